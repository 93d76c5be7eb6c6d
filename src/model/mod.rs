//! Validated values: what the scheduler reasons about, parsed once from the wire and never in doubt again.
//! Nothing here knows about caches, queues or decisions.

pub mod capacity;
pub mod claim;
pub mod class;
pub mod duration;
pub mod error;
mod fields;
pub mod implementation;
pub mod inputs;
pub mod key;
pub mod lookup;
pub mod meta;
pub mod object;
pub mod part;
pub mod profile;
pub mod publication;
pub mod quantity;
pub mod quota;
pub mod range;
pub mod resource;
pub mod selector;
mod spec_record;
pub mod taken;
pub mod types;
pub mod version;

pub use capacity::{Capacity, Dim};
pub use claim::{Claim, ClaimPhase, ClaimStatus, ClassRefusal, ClassWant, FieldWant, Wants};
pub use class::{Class, FieldOffer, Recipe};
pub use error::{FieldError, ValueError};
pub use implementation::{PartRef, PartTemplate, PartView, Readiness, Record, Script, Template, record_json};
pub use key::{Name, ObjectKey, Revision, Time, Uid, WriteId};
pub use lookup::Lookup;
pub use meta::{Labels, Meta};
pub use object::{Kind, Object};
pub use part::{AllowedKinds, Part, PartId, PartKey, PartKind};
pub use profile::{Profile, ProfileObject};
pub use publication::{Publication, PublishedView, Slot, SourceView};
pub use quantity::Quantity;
pub use quota::{Limits, Quota};
pub use range::VersionRange;
pub use resource::{ClaimRef, FieldValue, Offer, ReclaimPolicy, Resource, ResourcePhase, ResourceStatus};
pub use selector::Selector;
pub use spec_record::SpecRecord;
pub use types::TypeId;
pub use version::Version;
