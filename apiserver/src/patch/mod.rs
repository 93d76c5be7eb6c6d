//! Patches that know nothing of who manages what: JSON patches, merge patches, strategic merge patches. Applied
//! configurations are in `fields`.

mod json;
mod strategic;

pub(super) use conductor::model::merge_patch;
pub(super) use json::{Failure, apply_json};
pub(super) use strategic::merge_strategic;
