//! From a body to an object that may be kept: read, pruned, defaulted, prepared, checked. Pure: the store, the
//! namespaces and the clock are handed in.

mod fit;
mod prepare;

pub(super) use fit::{fit, read_object, unknown};
pub(super) use prepare::{check, is_lenient, prepare_created, prepare_updated};
