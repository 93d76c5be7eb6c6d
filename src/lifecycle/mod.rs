//! From what is decided and what is seen to what must be written, one object at a time.
//! Every plan is computed anew from both sides, so after a crash anywhere the next plan continues from there.
//! Nothing here chooses a resource, and nothing here remembers.

mod claim;
mod class;
mod class_update;
mod conditions;
mod part;
mod provision;
mod publish;
mod quota;
mod resource;

pub use claim::{ClaimReady, ClaimSide, bound_message, plan_claim};
pub use class::plan_class;
pub use class_update::{Edit, difference, plan_class_update, preview};
pub use part::{Implementation, PartSight, PartStep, Says, View, judge, with_checked_templates};
pub use provision::{make_resource, provisioned_name, provisioned_names};
pub use publish::{Connecting, Meeting, compose, decode, meet, plan_connection};
pub use quota::plan_quota;
pub use resource::{Step, cannot_be_made, plan_resource, retained_parts, was_never_made};
