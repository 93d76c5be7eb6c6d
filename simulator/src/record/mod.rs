//! Recordings: what a cluster held and what happened to it, in one file that can be given away.
//!
//! ```text
//! watch -> recorder (redact, patch, decisions) -> writer -> file -> reader -> state | inspect | audit | replay
//!                                                                      \-> rewrite -> writer -> file
//! ```
//!
//! A file is a row of zstd frames of JSON lines: a header, the objects at the beginning, then what changed, as merge
//! patches with the milliseconds since the beginning, and between them the live engine's decisions, the ends of
//! provisionings and the gaps of lost watches; at the end counts and a hash. Not here: the cluster (the command line
//! connects the two), and what the engine would have done (`replay`).

mod audit;
mod decisions;
mod glance;
mod inspect;
mod line;
mod patch;
mod pseudonyms;
mod reader;
mod recorder;
mod redact;
mod rewrite;
mod state;
mod writer;

pub use audit::{Audit, Finding, audit};
pub use decisions::{decisions, made_for, refusal};
pub use glance::{Glance, Report};
pub use inspect::{Gap, Inspection, inspect, percentile};
pub use line::{Change, Decision, End, FORMAT, Header, Line, Outcome, Verdict};
pub use pseudonyms::Pseudonyms;
pub use reader::{MAGIC, ReadError, Reader, is_recording};
pub use recorder::{Recorder, Subject};
pub use redact::Redaction;
pub use rewrite::{RewriteError, Rewritten, rewrite};
pub(crate) use state::into_object;
pub use state::{Followed, Moment, Recorded, moment, to_object};
pub use writer::Writer;
