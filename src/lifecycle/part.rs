//! The implementation's side of a resource: from what is seen of its part to what the resource should say and
//! what is to be done about the part. Nothing here remembers; what must survive a crash stands in the resource.
//!
//! ```text
//! finalizer on the resource -> record in its status -> part created -> part ready -> resource Available
//! resource deleting, policy Delete -> part deleted -> part read and not found -> finalizer gone
//! ```
//!
//! The record comes before the part, so that a part that may exist is always known of. A part that was ready
//! once is never made again: an empty database in place of a lost one would look like the lost one.

mod end;
mod make;

pub use make::{make_part, readiness, with_checked_templates};

use crate::api::names::RESOURCE_PROTECTION;
use crate::api::reasons::resource as reason;
use crate::cache::{ResourceEntry, Sight};
use crate::model::part::WhyMissing;
use crate::model::{
    PartKey, PartRef, PartTemplate, PartView, Readiness, Record, Resource, ResourcePhase, Revision, Template,
    Uid,
};

/// How a resource's implementation stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Implementation {
    /// What the resource should say of it.
    pub says: Says,
    /// What the resource should record of it; nothing leaves the record as it is.
    pub record: Option<PartRef>,
    /// Whether the resource needs our finalizer because of it.
    pub protects: bool,
    /// What is to be done about the part, once the resource says what it should.
    pub step: PartStep,
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartStep {
    /// Nothing.
    Rest,
    /// Make it.
    Create,
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
        Implementation { says, record: None, protects: false, step: PartStep::Rest }
    }

    fn protected(self) -> Implementation {
        Implementation { protects: true, ..self }
    }

    fn recorded(self, record: PartRef) -> Implementation {
        Implementation { record: Some(record), ..self }
    }

    fn then(self, step: PartStep) -> Implementation {
        Implementation { step, ..self }
    }
}

fn not_ready(reason: &'static str, message: String) -> Implementation {
    Implementation::of(Says::NotReady { reason, message })
}

fn failed(reason: &'static str, message: String) -> Implementation {
    Implementation::of(Says::Failed { reason, message })
}

/// How a resource's implementation stands, from what is seen of its part. `trouble` is what the API said to
/// the last try to make or delete it.
pub fn judge(entry: &ResourceEntry, sight: &Sight<'_>, trouble: Option<&str>) -> Implementation {
    let resource = &entry.resource;
    if resource.meta.deleting && !entry.has_live_holder() {
        return end::judge_end(resource, sight, trouble);
    }
    match (&resource.status.implementation, &resource.template) {
        (Record::Ours(record), _) => judge_recorded(entry, record, sight, trouble),
        // Somebody else has made it, or says so: it is what the phase says it is.
        (Record::Absent | Record::Foreign, _) if is_usable(resource) => Implementation::of(Says::Ready),
        (Record::Foreign, _) => Implementation::of(Says::Nothing),
        (Record::Absent, Template::Absent) => Implementation::of(Says::Ready),
        (Record::Absent, Template::Several) => not_ready(reason::TEMPLATE_ERROR, several()),
        (Record::Absent, Template::Unreadable(error)) => failed(reason::INVALID_SPEC, error.to_string()),
        // What cannot be read is offered to nobody, so nothing is made for it yet.
        (Record::Absent, Template::One(_)) if resource.offer.is_err() => Implementation::of(Says::Nothing),
        (Record::Absent, Template::One(template)) => judge_unrecorded(template, sight),
    }
}

fn several() -> String {
    "spec.templates: several objects are not made yet: write one as spec.template".to_owned()
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

/// Whether a part that was seen has ever been ready: then the resource has got past Creating.
fn was_ready(resource: &Resource, record: &PartRef) -> bool {
    let past = match resource.status.phase {
        None | Some(ResourcePhase::Pending | ResourcePhase::Creating) => false,
        Some(
            ResourcePhase::Available
            | ResourcePhase::Bound
            | ResourcePhase::Released
            | ResourcePhase::Failed
            | ResourcePhase::Deleting,
        ) => true,
    };
    past && record.uid.is_some()
}

/// Nothing was recorded, so nothing was made: first the record.
fn judge_unrecorded(template: &PartTemplate, sight: &Sight<'_>) -> Implementation {
    let key = &template.key;
    match sight {
        Sight::Unknown | Sight::InFlight => Implementation::of(Says::Nothing),
        Sight::KindMissing(why) => kind_missing(key, why),
        Sight::Absent { .. } | Sight::Taken | Sight::Present(_) => {
            let record = PartRef { key: key.clone(), uid: None };
            not_ready(reason::CREATING, creating(key)).recorded(record).protected()
        }
    }
}

fn creating(key: &PartKey) -> String {
    format!("creating {key}")
}

fn kind_missing(key: &PartKey, why: &WhyMissing) -> Implementation {
    let kind = &key.kind;
    let version = &kind.api_version;
    let (reason, message) = match why {
        WhyMissing::NotInstalled => (
            reason::KIND_NOT_INSTALLED,
            format!(
                "{kind} in {version} is not installed in the cluster: install it, or change spec.template"
            ),
        ),
        WhyMissing::NotNamespaced => (
            reason::KIND_NOT_ALLOWED,
            format!("{kind} in {version} lives in no namespace, and is never made: change spec.template"),
        ),
        WhyMissing::NotAllowed(why) => (
            reason::KIND_NOT_ALLOWED,
            format!("Conductor may not handle {kind} in {version}: grant it the rights. {why}"),
        ),
    };
    not_ready(reason, message)
}

fn judge_recorded(
    entry: &ResourceEntry,
    record: &PartRef,
    sight: &Sight<'_>,
    trouble: Option<&str>,
) -> Implementation {
    let resource = &entry.resource;
    let key = &record.key;
    let was_ready = was_ready(resource, record);
    let judged = match sight {
        Sight::Unknown | Sight::InFlight => Implementation::of(Says::Nothing),
        Sight::KindMissing(why) => kind_missing(key, why),
        Sight::Taken if was_ready => gone(key, "another object has its name"),
        Sight::Taken => {
            let message = format!("{key} exists and is not this resource's: rename or delete it");
            not_ready(reason::NAME_CONFLICT, message)
        }
        Sight::Absent { confirmed: true } if was_ready => gone(key, "it was deleted"),
        Sight::Absent { confirmed: false } if was_ready => {
            Implementation::of(Says::Nothing).then(PartStep::Read(key.clone()))
        }
        Sight::Absent { confirmed } => judge_unmade(entry, record, *confirmed, trouble),
        Sight::Present(part) if was_ready && record.uid.as_ref() != Some(&part.uid) => {
            gone(key, "another object of its name has taken its place")
        }
        Sight::Present(part) => judge_present(part),
    };
    judged.protected()
}

fn gone(key: &PartKey, how: &str) -> Implementation {
    let message = format!("{key}, which implements it, is gone: {how}. It is not replaced by an empty one");
    failed(reason::IMPLEMENTATION_GONE, message)
}

fn judge_present(part: &PartView) -> Implementation {
    let key = &part.key;
    let judged = match &part.readiness {
        _ if part.deleting => not_ready(reason::IMPLEMENTATION_NOT_READY, format!("{key} is being deleted")),
        Readiness::Ready => Implementation::of(Says::Ready),
        Readiness::NotReady(says) => not_ready(reason::IMPLEMENTATION_NOT_READY, format!("{key}: {says}")),
    };
    judged.recorded(PartRef { key: key.clone(), uid: Some(part.uid.clone()) })
}

/// It is recorded and not there: it was not made yet, or was taken away before it was ever ready.
fn judge_unmade(
    entry: &ResourceEntry,
    record: &PartRef,
    confirmed: bool,
    trouble: Option<&str>,
) -> Implementation {
    let resource = &entry.resource;
    let template = match &resource.template {
        Template::One(template) => template,
        Template::Several => return not_ready(reason::TEMPLATE_ERROR, several()),
        Template::Unreadable(error) => return failed(reason::INVALID_SPEC, error.to_string()),
        // It no longer needs one, once it is sure that there is none.
        Template::Absent if confirmed => return Implementation::of(Says::Ready),
        Template::Absent => {
            return Implementation::of(Says::Nothing).then(PartStep::Read(record.key.clone()));
        }
    };
    if !confirmed && (record.uid.is_some() || template.key != record.key) {
        // It was there, or the template was edited since. What was made before must not be lost sight of.
        return Implementation::of(Says::Nothing).then(PartStep::Read(record.key.clone()));
    }
    if let Err(error) = make_part(resource) {
        return not_ready(reason::TEMPLATE_ERROR, error.to_string());
    }
    let key = &template.key;
    let says = match trouble {
        Some(why) => not_ready(reason::TEMPLATE_ERROR, format!("{key} cannot be created: {why}")),
        None => not_ready(reason::CREATING, creating(key)),
    };
    // The UID of what was there before goes first: whoever finds the next one must know it for ours.
    let intent = PartRef { key: key.clone(), uid: None };
    let ready_to_make = resource.offer.is_ok()
        && resource.meta.has_finalizer(RESOURCE_PROTECTION)
        && resource.status.implementation == Record::Ours(intent.clone())
        && !entry.is_released();
    let says = says.recorded(intent);
    if ready_to_make { says.then(PartStep::Create) } else { says }
}
