//! Classes and what they make, from a claim to a working connection: the adapters that come with Conductor, the
//! classes under `examples/classes`, and attacks on all of it. No faults here.

mod adapters;
mod attacks;
mod examples;
mod operators;
mod stage;
