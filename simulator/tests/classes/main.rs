//! Classes and what they make, from a claim to a working connection: the adapters that come with Conductor, the
//! classes under `examples/classes`. No faults here.

mod adapters;
mod examples;
mod operators;
mod stage;
