//! The production scheduler, offline. Decisions are made in `conductor`; nothing here decides.

#[cfg(feature = "embedded")]
pub mod embedded;
pub mod lab;
pub mod load;
pub mod plan;
pub mod world;
