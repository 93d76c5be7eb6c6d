//! Templates: JSON whose values can be CEL expressions, `${...}`, over named inputs. Compiled once, evaluated often. The
//! lifecycle creates the rendered objects.
//!
//! ```text
//! source (template | templates, ready, connection)
//!    -> compile: parse and check expressions, find references, order the objects (petgraph)
//!    -> CompiledClass
//!    -> render(inputs): each object is Made, LeftOut, or Waits for an output of another
//! ```

mod adapter;
mod body;
mod builtin_adapters;
mod cel_env;
mod compiled_class;
mod connection;
mod cost_check;
mod expression;
mod graph;
mod parameters;
mod scope;
#[cfg(test)]
mod tests;
mod value;
mod variables;

pub use adapter::{Adapter, AdapterError, Adapters};
pub use compiled_class::{CompiledClass, Inputs, Rendered, Source};
pub use connection::{Connection, Prepared, SecretRef, complete};
pub use parameters::{check_schema, parameters};
pub use value::to_cel;
