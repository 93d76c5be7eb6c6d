//! Classes and what they make, from a claim to a working connection: the adapters that come with Conductor, the
//! classes under `examples/classes`, the page for their authors, and attacks on all of it. No faults here.

mod adapters;
mod attacks;
mod examples;
mod operators;
mod page;
mod stage;
