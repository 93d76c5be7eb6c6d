//! Recordings: the objects of a cluster and everything that happened to them, in one file that is safe to share.
//!
//! ```text
//! watch -> recorder (redact, patch, decisions) -> writer -> file -> reader -> state | inspect | audit | replay
//!                                                                      \-> rewrite -> writer -> file
//! ```
//!
//! A file is a sequence of zstd frames of JSON lines: a header, the initial objects, then changes as merge patches with
//! their time, the live engine's decisions, ends of provisionings and gaps of lost watches; finally counts and a hash.
//! Not here: the watches (the command line connects the two), and what another engine would have done (`replay`).

mod audit;
mod decisions;
mod inspect;
mod line;
mod line_scan;
mod pseudonyms;
mod reader;
mod recorder;
mod redact;
mod rewrite;
mod state;
mod writer;

pub use audit::{Audit, Finding, audit};
pub(crate) use decisions::{is_decision, made_for, refusal};
pub use inspect::{Gap, Inspection, inspect, percentile};
pub use line::{Change, Decision, End, FORMAT, Header, Line, Outcome, Verdict};
pub(crate) use line_scan::{EnginePatch, ScannedLine};
pub use pseudonyms::Pseudonyms;
pub use reader::{MAGIC, ReadError, Reader, is_recording};
pub use recorder::{Recorder, RecordingInfo};
pub use redact::Redaction;
pub use rewrite::{RewriteError, Rewritten, rewrite};
pub(crate) use state::{AppliedChange, into_object};
pub use state::{RecordedObjects, Snapshot, snapshot_at, to_object};
pub use writer::Writer;
pub(crate) use writer::hex;
