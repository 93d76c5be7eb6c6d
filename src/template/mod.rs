//! Templates: JSON whose values may be expressions, `${...}` in CEL, over named inputs and nothing else.
//! Compiled once, evaluated often. Creating what comes out of it is not done here.
//!
//! ```text
//! source (template | templates, ready, connection)
//!    -> compile: expressions parsed and checked, references found, order made (petgraph)
//!    -> Blueprint
//!    -> render(inputs): each object Made, Left out, or Waiting for an output of another
//! ```

mod adapter;
mod blueprint;
mod body;
mod connection;
mod dialect;
mod expression;
mod graph;
mod parameters;
mod scope;
mod shipped;
mod survey;
#[cfg(test)]
mod tests;
mod text;
mod value;
mod variables;

pub use adapter::{Adapter, AdapterError, Adapters};
pub use blueprint::{Blueprint, Inputs, Rendered, Source};
pub use connection::{Connection, Prepared, SecretRef, complete};
pub use parameters::{check_schema, parameters};
pub use value::to_cel;
