//! The production scheduler, offline. `conductor` makes all decisions; nothing here decides.

pub mod compare;
pub mod diff;
pub mod fuzz;
pub mod gate;
pub mod harness;
pub mod load;
mod merge_patch;
pub mod plan;
pub mod record;
pub mod replay;
pub mod report;
pub mod whatif;
pub mod world;
