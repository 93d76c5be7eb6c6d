//! The production scheduler, offline. Decisions are made in `conductor`; nothing here decides.

pub mod compare;
pub mod diff;
pub mod fuzz;
pub mod gate;
pub mod lab;
pub mod load;
pub mod plan;
pub mod record;
pub mod replay;
pub mod report;
pub mod whatif;
pub mod world;
