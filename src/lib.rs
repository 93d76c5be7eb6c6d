//! Conductor lets applications claim infrastructure and lets administrators define what a claim gets.
//!
//! This crate is the pure heart: types, rules and the scheduler. It holds no client, no clock,
//! no randomness and no async runtime; `ARCHITECTURE.md` maps the rooms and what each may touch.

pub mod api;
pub mod model;
