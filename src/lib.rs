//! Conductor lets applications claim infrastructure and lets administrators define what a claim gets.
//!
//! This crate is the pure heart: types, rules and the scheduler. It holds no client, no clock,
//! no randomness and no async runtime; those come with the feature `live`, in the room of that name.
//! `ARCHITECTURE.md` maps the rooms and what each may touch.

pub mod action;
pub mod api;
pub mod cache;
#[cfg(feature = "live")]
mod client_error;
pub mod database;
pub mod engine;
pub mod event;
pub mod framework;
pub mod lifecycle;
#[cfg(feature = "live")]
pub mod live;
pub mod model;
pub mod plugins;
#[cfg(feature = "live")]
pub mod provider;
pub mod queue;
pub mod scheduler;
pub mod template;
