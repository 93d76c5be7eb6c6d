//! Validated values: what the scheduler reasons about, parsed once from the wire and never in doubt again.
//! Nothing here knows about caches, queues or decisions.

pub mod error;
pub mod object;
pub mod types;

pub use error::{FieldError, ValueError};
pub use object::{Kind, Object};
pub use types::{Predicate, TypeId};
