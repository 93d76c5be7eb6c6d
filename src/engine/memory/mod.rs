//! What the engine remembers between two events, beside the cache and the queue: one type per concern, each with
//! private fields. None of them knows the engine or another of them; the engine's steps compose them.

mod bindings;
mod contests;
mod live_reads;
mod losses;
mod provisioning;
mod publishing;
mod target;
mod tombstones;
mod worklist;
mod writes;

pub(super) use bindings::Bindings;
pub(super) use live_reads::{DeletionCheck, LiveReads};
pub(super) use losses::Losses;
pub(super) use provisioning::Provisioning;
pub(super) use publishing::{PublishFailure, Publishing};
pub(super) use target::{Effect, Target};
pub(super) use tombstones::Tombstones;
pub(super) use worklist::Worklist;
pub(super) use writes::{Flight, Writes};
