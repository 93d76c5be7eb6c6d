//! Conductor lets applications claim infrastructure and lets administrators define what a claim gets.
//!
//! This crate is the pure engine: API types, rules and the scheduler. It depends on no client, no clock, no randomness
//! and no async runtime; the crates around it bring those. `ARCHITECTURE.md` maps the crates and what each may touch.

pub mod action;
pub mod api;
pub mod cache;
pub mod engine;
pub mod event;
pub mod lifecycle;
pub mod model;
pub mod predicates;
pub mod queue;
pub mod scheduler;
pub mod scores;
pub mod template;
