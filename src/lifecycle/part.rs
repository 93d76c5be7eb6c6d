//! The implementation's side of a resource: from what is seen of its parts to the resource's condition and record, and the
//! next step of each part. Nothing here remembers; what must survive a crash is in the resource.
//!
//! ```text
//! finalizer on the resource -> record in its status -> part created -> its outputs known -> next part ...
//! every part ready -> resource Available
//! resource deleting, policy Delete -> last part deleted -> read and not found -> the one before ... -> finalizer removed
//! ```
//!
//! The record comes before the part, so that a part that may exist is always known. A part that was ready once is never
//! created again: an empty database in place of a lost one would look like the lost one.

mod delete;
mod desired;
mod reconcile;

pub use desired::with_checked_templates;
pub(super) use desired::{inputs_of, present};

use crate::api::reasons::resource as reason;
use crate::cache::{ResourceEntry, Sight};
use crate::model::{
    FieldError, Name, Part, PartKey, PartRef, Record, Resource, ResourcePhase, Revision, Template, Uid,
};
use crate::template::{Adapters, CompiledClass};
use std::collections::BTreeMap;

/// What is seen of a resource's parts, and how they are rendered.
pub struct View<'a> {
    /// Each part, by id.
    pub parts: BTreeMap<&'a Name, PartSight<'a>>,
    /// The compiled templates; absent where the resource has none.
    pub compiled: Option<Result<&'a CompiledClass, &'a FieldError>>,
    /// What is known of well-known kinds.
    pub adapters: &'a Adapters,
}

/// What is seen of one part.
#[derive(Clone, Debug)]
pub struct PartSight<'a> {
    /// Whether it exists.
    pub sight: Sight<'a>,
    /// Why the API refused the last try to create, change or delete it.
    pub trouble: Option<&'a str>,
}

/// The state of a resource's implementation.
#[derive(Clone, Debug, PartialEq)]
pub struct Implementation {
    /// What the condition of the resource should say.
    pub says: Says,
    /// What the resource should record of it; `None` leaves the record as it is.
    pub record: Option<Vec<PartRef>>,
    /// The version that it reports, where it does.
    pub version: Option<Name>,
    /// Whether the resource needs our finalizer because of it.
    pub protects: bool,
    /// What the deletion of the resource waits for, for users.
    pub waits: String,
    /// The next steps of its parts, once the resource says what it should.
    pub steps: Vec<(Name, PartStep)>,
}

/// What a resource's condition should say of its implementation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Says {
    /// What it says already: nothing better is known yet.
    Nothing,
    /// It can be used.
    Ready,
    /// It cannot be used yet, or at the moment.
    NotReady {
        /// The reason for the condition.
        reason: &'static str,
        /// The message for the condition.
        message: String,
    },
    /// It cannot be used, and time alone does not fix it.
    Failed {
        /// The reason for the condition.
        reason: &'static str,
        /// The message for the condition.
        message: String,
    },
}

/// The next step of a part.
#[derive(Clone, Debug, PartialEq)]
pub enum PartStep {
    /// Create it.
    Create(Box<Part>),
    /// Apply what it is rendered from now.
    Update {
        /// As it should be.
        part: Box<Part>,
        /// Its UID.
        uid: Uid,
        /// As it was last seen.
        revision: Revision,
    },
    /// Read it live: what follows must not rest on a cache.
    Read(PartKey),
    /// Delete it, after everything has been read live once more.
    Delete {
        /// Where it is.
        key: PartKey,
        /// Its UID.
        uid: Uid,
        /// As it was last seen.
        revision: Revision,
    },
}

impl Implementation {
    /// The implementation is not managed here: the phase of the resource says whether it exists.
    pub fn by_phase(implemented: bool) -> Implementation {
        Implementation::of(if implemented { Says::Ready } else { Says::Nothing })
    }

    fn of(says: Says) -> Implementation {
        let (record, version, steps) = (None, None, Vec::new());
        Implementation { says, record, version, protects: false, waits: String::new(), steps }
    }
}

/// Judges a resource's implementation from what is seen of its parts.
pub fn judge(entry: &ResourceEntry, view: &View<'_>) -> Implementation {
    let resource = &entry.resource;
    if resource.meta.deleting && !entry.has_live_holder() {
        return delete::plan_deletion(resource, view);
    }
    match (&resource.status.implementation, &resource.template) {
        (Record::Ours(_), _) => judge_parts(entry, view),
        // Another client has created it, or says so: the phase counts.
        (Record::Absent | Record::Foreign, _) if is_usable(resource) => Implementation::of(Says::Ready),
        (Record::Foreign, _) => Implementation::of(Says::Nothing),
        (Record::Absent, Template::Absent) => Implementation::of(Says::Ready),
        (Record::Absent, Template::Unreadable(error)) => {
            let (reason, message) = (reason::INVALID_SPEC, error.to_string());
            Implementation::of(Says::Failed { reason, message })
        }
        // What cannot be read is not offered to any claim, so nothing is created for it yet.
        (Record::Absent, Template::Objects(_)) if resource.offer.is_err() => {
            Implementation::of(Says::Nothing)
        }
        (Record::Absent, Template::Objects(_)) => judge_parts(entry, view),
    }
}

/// Whether the phase says that it can be used, or could be before it was released.
fn is_usable(resource: &Resource) -> bool {
    match resource.status.phase {
        Some(ResourcePhase::Available | ResourcePhase::Bound | ResourcePhase::Released) => true,
        Some(
            ResourcePhase::Pending
            | ResourcePhase::Creating
            | ResourcePhase::Failed
            | ResourcePhase::Deleting,
        )
        | None => false,
    }
}

/// All parts together: the worst that any of them says, and the next step of each.
fn judge_parts(entry: &ResourceEntry, view: &View<'_>) -> Implementation {
    let resource = &entry.resource;
    let mut making = desired::render(resource, view);
    let recorded = resource.status.implementation.parts();
    let new: Vec<Name> =
        making.order.iter().filter(|id| !recorded.iter().any(|r| r.id == **id)).cloned().collect();
    let mut whole = Implementation::of(Says::Ready);
    let mut record = Vec::new();
    for id in recorded.iter().map(|part| &part.id).chain(&new) {
        let part = reconcile::OnePart {
            entry,
            id,
            record: recorded.iter().find(|part| part.id == *id),
            key: resource.template.objects().iter().find(|part| part.id == *id).map(|part| &part.key),
            view,
        };
        whole.version = whole.version.or_else(|| reported_version(view, id));
        let judged = part.judge(making.parts.remove(id));
        record.extend(judged.record);
        whole.says = worse(whole.says, judged.says);
        whole.protects |= judged.protects;
        whole.steps.extend(judged.step.map(|step| (id.clone(), step)));
    }
    whole.record = (!record.is_empty()).then_some(record);
    whole
}

/// The version that a part reports, by the adapter for its kind.
fn reported_version(view: &View<'_>, id: &Name) -> Option<Name> {
    let Sight::Present(part) = &view.parts.get(id)?.sight else { return None };
    let adapter = view.adapters.find(&part.key.kind)?;
    adapter.version(|| part.object())
}

/// The worse of what two parts say; of two that are equally bad, the first. Where one says nothing for the
/// moment, so does the whole, unless something has failed.
fn worse(one: Says, other: Says) -> Says {
    let rank = |says: &Says| match says {
        Says::Ready => 0,
        Says::NotReady { .. } => 1,
        Says::Nothing => 2,
        Says::Failed { .. } => 3,
    };
    if rank(&other) > rank(&one) { other } else { one }
}
