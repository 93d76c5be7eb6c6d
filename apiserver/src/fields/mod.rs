//! Who manages which field: sets of fields, how they are written, and how they change when objects are updated or
//! applied. Only fields are known here, not what they mean.

mod apply;
mod managed_fields;
mod manager;
mod path;
mod set;
mod typed;
mod update;
mod walk;
mod zero_values;

pub(super) use apply::apply;
pub(super) use manager::Manager;
pub(super) use typed::find_untyped;
pub(super) use update::{keep_times, track_update};
