//! The implementation's side of a resource: from what is seen of its parts to what the resource should say and
//! what is to be done about them. Nothing here remembers; what must survive a crash stands in the resource.
//!
//! ```text
//! finalizer on the resource -> record in its status -> part created -> its outputs known -> next part ...
//! every part ready -> resource Available
//! resource deleting, policy Delete -> last part deleted -> read and not found -> the one before ... -> finalizer gone
//! ```
//!
//! The record comes before the part, so that a part that may exist is always known of. A part that was ready
//! once is never made again: an empty database in place of a lost one would look like the lost one.

mod end;
mod make;
mod one;

pub use make::with_checked_templates;
pub(super) use make::{inputs_of, present};

use crate::api::reasons::resource as reason;
use crate::cache::{ResourceEntry, Sight};
use crate::model::{
    FieldError, Name, Part, PartKey, PartRef, Record, Resource, ResourcePhase, Revision, Template, Uid,
};
use crate::template::{Adapters, Blueprint};
use std::collections::BTreeMap;

/// What is seen of a resource's parts, and what says how they are made.
pub struct View<'a> {
    /// Each part, by id.
    pub parts: BTreeMap<&'a Name, PartSight<'a>>,
    /// The compiled templates; absent where the resource has none.
    pub blueprint: Option<Result<&'a Blueprint, &'a FieldError>>,
    /// What is known of well-known kinds.
    pub adapters: &'a Adapters,
}

/// What is seen of one part.
#[derive(Clone, Debug)]
pub struct PartSight<'a> {
    /// Whether it is there.
    pub sight: Sight<'a>,
    /// What the API said to the last try to make, change or delete it, where that was no.
    pub trouble: Option<&'a str>,
}

/// How a resource's implementation stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Implementation {
    /// What the resource should say of it.
    pub says: Says,
    /// What the resource should record of it; nothing leaves the record as it is.
    pub record: Option<Vec<PartRef>>,
    /// The version that it reports, where it does.
    pub version: Option<Name>,
    /// Whether the resource needs our finalizer because of it.
    pub protects: bool,
    /// What the end of the resource waits for, for people.
    pub waits: String,
    /// What is to be done about the parts, once the resource says what it should.
    pub steps: Vec<(Name, PartStep)>,
}

/// What a resource should say of its implementation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Says {
    /// What it says already: nobody knows better yet.
    Nothing,
    /// It can be used.
    Ready,
    /// It cannot be used yet, or at the moment.
    NotReady {
        /// One word.
        reason: &'static str,
        /// A sentence.
        message: String,
    },
    /// It cannot be used, and time alone does not mend it.
    Failed {
        /// One word.
        reason: &'static str,
        /// A sentence.
        message: String,
    },
}

/// What is to be done about a part.
#[derive(Clone, Debug, PartialEq)]
pub enum PartStep {
    /// Make it.
    Create(Box<Part>),
    /// Bring it in line with what it is made from now.
    Update {
        /// As it should be.
        part: Box<Part>,
        /// Which life of its name.
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
        /// Which life of that name.
        uid: Uid,
        /// As it was last seen.
        revision: Revision,
    },
}

impl Implementation {
    /// Nobody's business: it is there, or it is not, by the word of the resource's phase.
    pub fn by_phase(implemented: bool) -> Implementation {
        Implementation::of(if implemented { Says::Ready } else { Says::Nothing })
    }

    fn of(says: Says) -> Implementation {
        let (record, version, steps) = (None, None, Vec::new());
        Implementation { says, record, version, protects: false, waits: String::new(), steps }
    }
}

/// How a resource's implementation stands, from what is seen of its parts.
pub fn judge(entry: &ResourceEntry, view: &View<'_>) -> Implementation {
    let resource = &entry.resource;
    if resource.meta.deleting && !entry.has_live_holder() {
        return end::judge_end(resource, view);
    }
    match (&resource.status.implementation, &resource.template) {
        (Record::Ours(_), _) => judge_parts(entry, view),
        // Somebody else has made it, or says so: it is what the phase says it is.
        (Record::Absent | Record::Foreign, _) if is_usable(resource) => Implementation::of(Says::Ready),
        (Record::Foreign, _) => Implementation::of(Says::Nothing),
        (Record::Absent, Template::Absent) => Implementation::of(Says::Ready),
        (Record::Absent, Template::Unreadable(error)) => {
            let (reason, message) = (reason::INVALID_SPEC, error.to_string());
            Implementation::of(Says::Failed { reason, message })
        }
        // What cannot be read is offered to nobody, so nothing is made for it yet.
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

/// All parts together: the worst that any of them says, and what is to be done about each.
fn judge_parts(entry: &ResourceEntry, view: &View<'_>) -> Implementation {
    let resource = &entry.resource;
    let mut making = make::render(resource, view);
    let recorded = resource.status.implementation.parts();
    let new: Vec<Name> =
        making.order.iter().filter(|id| !recorded.iter().any(|r| r.id == **id)).cloned().collect();
    let mut whole = Implementation::of(Says::Ready);
    let mut record = Vec::new();
    for id in recorded.iter().map(|part| &part.id).chain(&new) {
        let part = one::OnePart {
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
