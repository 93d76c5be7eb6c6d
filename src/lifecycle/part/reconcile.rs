//! One part of a resource: what the resource says and records of it, and its next step.
//! Which parts there are, and what each should be, is found elsewhere.

use super::desired::{self, DesiredPart};
use super::{PartStep, Says, View};
use crate::api::names::RESOURCE_PROTECTION;
use crate::api::reasons::resource as reason;
use crate::cache::{ResourceEntry, Sight};
use crate::model::part::WhyMissing;
use crate::model::{
    Name, Part, PartKey, PartRef, PartView, Readiness, Record, Resource, ResourcePhase, Template,
};

/// A part, and everything that is known of it.
pub(super) struct OnePart<'a> {
    pub entry: &'a ResourceEntry,
    pub id: &'a Name,
    /// What its resource records of it.
    pub record: Option<&'a PartRef>,
    /// Where its template would put it; absent where there is no template for it any more.
    pub key: Option<&'a PartKey>,
    pub view: &'a View<'a>,
}

/// How one part stands.
pub(super) struct Judged {
    pub says: Says,
    /// The reference that its resource should have; nothing where it needs none yet.
    pub record: Option<PartRef>,
    pub protects: bool,
    pub step: Option<PartStep>,
}

impl Judged {
    fn of(says: Says) -> Judged {
        Judged { says, record: None, protects: false, step: None }
    }

    fn then(self, step: PartStep) -> Judged {
        Judged { step: Some(step), ..self }
    }

    fn recorded(self, record: PartRef) -> Judged {
        Judged { record: Some(record), ..self }
    }
}

fn not_ready(reason: &'static str, message: String) -> Judged {
    Judged::of(Says::NotReady { reason, message })
}

impl OnePart<'_> {
    pub fn judge(&self, making: Option<DesiredPart>) -> Judged {
        match self.record {
            None => self.judge_unrecorded(making),
            Some(record) => {
                let judged = self.judge_recorded(record, making);
                Judged { record: judged.record.or_else(|| Some(record.clone())), protects: true, ..judged }
            }
        }
    }

    fn sight(&self) -> Sight<'_> {
        self.view.parts.get(self.id).map_or(Sight::Unknown, |part| part.sight.clone())
    }

    fn trouble(&self) -> Option<&str> {
        self.view.parts.get(self.id).and_then(|part| part.trouble)
    }

    fn intent(&self, key: &PartKey) -> PartRef {
        PartRef { id: self.id.clone(), key: key.clone(), uid: None }
    }

    /// Nothing was recorded, so nothing was created: first the record.
    fn judge_unrecorded(&self, making: Option<DesiredPart>) -> Judged {
        let (Some(key), Some(making)) = (self.key, making) else { return Judged::of(Says::Ready) };
        match (self.sight(), making) {
            (_, DesiredPart::LeftOut) => Judged::of(Says::Ready),
            (_, DesiredPart::Wrong(error)) => not_ready(reason::TEMPLATE_ERROR, error.to_string()),
            (_, DesiredPart::Waits(outputs)) => not_ready(reason::CREATING, waiting(key, &outputs)),
            (Sight::Unknown | Sight::InFlight, DesiredPart::Part(_)) => Judged::of(Says::Nothing),
            (Sight::KindMissing(why), DesiredPart::Part(_)) => kind_missing(key, why),
            (Sight::Absent { .. } | Sight::Taken | Sight::Present(_), DesiredPart::Part(_)) => {
                let judged = not_ready(reason::CREATING, creating(key)).recorded(self.intent(key));
                Judged { protects: true, ..judged }
            }
        }
    }

    /// Whether the templates of the resource do not name this part any more, or its `when` is false. It stays on record, and
    /// is deleted with the resource.
    fn is_dropped(&self, making: Option<&DesiredPart>) -> bool {
        match &self.entry.resource.template {
            Template::Objects(_) => self.key.is_none() || matches!(making, Some(DesiredPart::LeftOut)),
            Template::Absent | Template::Unreadable(_) => false,
        }
    }

    /// A part that implements nothing holds up no claim. Its UID is recorded where that was not done yet.
    fn judge_dropped(&self, record: &PartRef) -> Judged {
        match self.sight() {
            Sight::Present(part) if record.uid.is_none() => {
                let uid = Some(part.uid.clone());
                Judged::of(Says::Ready).recorded(PartRef { uid, ..record.clone() })
            }
            // Where it is named again, it is created again: no data depended on it.
            Sight::Absent { confirmed: true } if record.uid.is_some() => {
                Judged::of(Says::Ready).recorded(PartRef { uid: None, ..record.clone() })
            }
            Sight::Absent { confirmed: false } if record.uid.is_some() => {
                Judged::of(Says::Ready).then(PartStep::Read(record.key.clone()))
            }
            Sight::Present(_)
            | Sight::Absent { .. }
            | Sight::Unknown
            | Sight::InFlight
            | Sight::KindMissing(_)
            | Sight::Taken => Judged::of(Says::Ready),
        }
    }

    fn judge_recorded(&self, record: &PartRef, making: Option<DesiredPart>) -> Judged {
        if self.is_dropped(making.as_ref()) {
            return self.judge_dropped(record);
        }
        let key = &record.key;
        let was_ready = was_ready(&self.entry.resource, record);
        match self.sight() {
            Sight::Unknown | Sight::InFlight => Judged::of(Says::Nothing),
            Sight::KindMissing(why) => kind_missing(key, why),
            Sight::Taken if was_ready => gone(key, "another object has its name"),
            Sight::Taken => {
                let message = format!("{key} exists and is not this resource's: rename or delete it");
                not_ready(reason::NAME_CONFLICT, message)
            }
            Sight::Absent { confirmed: true } if was_ready => gone(key, "it was deleted"),
            Sight::Absent { confirmed: false } if was_ready => {
                Judged::of(Says::Nothing).then(PartStep::Read(key.clone()))
            }
            Sight::Absent { confirmed } => self.judge_unmade(record, confirmed, making),
            Sight::Present(part) if was_ready && record.uid.as_ref() != Some(&part.uid) => {
                gone(key, "another object of its name has taken its place")
            }
            Sight::Present(part) => self.judge_present(part, making),
        }
    }

    fn judge_present(&self, part: &PartView, making: Option<DesiredPart>) -> Judged {
        let key = &part.key;
        let record = PartRef { id: self.id.clone(), key: key.clone(), uid: Some(part.uid.clone()) };
        let unready = |message| not_ready(reason::IMPLEMENTATION_NOT_READY, message);
        let judged = match desired::readiness(&self.entry.resource, self.view, self.id, part) {
            _ if part.deleting => unready(format!("{key} is being deleted")),
            Ok(Readiness::Ready) => Judged::of(Says::Ready),
            Ok(Readiness::NotReady(says)) => unready(format!("{key}: {says}")),
            Ok(Readiness::Failed(says)) => {
                let (reason, message) = (reason::IMPLEMENTATION_FAILED, format!("{key}: {says}"));
                Judged::of(Says::Failed { reason, message })
            }
            Err(error) => not_ready(reason::TEMPLATE_ERROR, error.to_string()),
        };
        let judged = match (&making, judged.says) {
            // It stays as it was created. An administrator has edited its template, and has to know.
            (Some(DesiredPart::Wrong(error)), Says::Ready) => {
                not_ready(reason::TEMPLATE_ERROR, error.to_string())
            }
            (_, says) => Judged::of(says),
        };
        let judged = judged.recorded(record);
        match self.update(part, making) {
            Some(update) => {
                let refused = self.trouble().map(|why| format!("{key} cannot be updated: {why}"));
                let says =
                    refused.map(|message| Says::NotReady { reason: reason::IMPLEMENTATION_REFUSED, message });
                Judged { says: says.unwrap_or(judged.says), ..judged }.then(update)
            }
            None => judged,
        }
    }

    /// The change that applies what a part is rendered from now. Only a part that records what it was rendered from is ever
    /// changed, and none of a released resource.
    fn update(&self, part: &PartView, making: Option<DesiredPart>) -> Option<PartStep> {
        let Some(DesiredPart::Part(made)) = making else { return None };
        let differs = part.rendered.is_some() && part.rendered != desired::digest_of(&made);
        let stays = !part.deleting && !self.entry.is_released() && self.entry.resource.offer.is_ok();
        let (uid, revision) = (part.uid.clone(), part.revision);
        (differs && stays && made.key() == part.key).then_some(PartStep::Update { part: made, uid, revision })
    }

    /// It is recorded and does not exist: it was not created yet, or was deleted before it was ever ready.
    fn judge_unmade(&self, record: &PartRef, confirmed: bool, making: Option<DesiredPart>) -> Judged {
        let read = || Judged::of(Says::Nothing).then(PartStep::Read(record.key.clone()));
        let Some(key) = self.key else {
            return match &self.entry.resource.template {
                Template::Unreadable(error) => {
                    let (reason, message) = (reason::INVALID_SPEC, error.to_string());
                    Judged::of(Says::Failed { reason, message })
                }
                // It no longer needs one, once it is sure that there is none.
                Template::Absent | Template::Objects(_) if confirmed => Judged::of(Says::Ready),
                Template::Absent | Template::Objects(_) => read(),
            };
        };
        if !confirmed && (record.uid.is_some() || *key != record.key) {
            // It existed, or the template was edited since. What was created before must not be forgotten.
            return read();
        }
        match making {
            Some(DesiredPart::Part(part)) => self.judge_makeable(key, part),
            Some(DesiredPart::Wrong(error)) => not_ready(reason::TEMPLATE_ERROR, error.to_string()),
            Some(DesiredPart::Waits(outputs)) => not_ready(reason::CREATING, waiting(key, &outputs)),
            Some(DesiredPart::LeftOut) | None => Judged::of(Says::Ready),
        }
    }

    fn judge_makeable(&self, key: &PartKey, part: Box<Part>) -> Judged {
        let resource = &self.entry.resource;
        let says = match self.trouble() {
            Some(why) => not_ready(reason::IMPLEMENTATION_REFUSED, format!("{key} cannot be created: {why}")),
            None => not_ready(reason::CREATING, creating(key)),
        };
        // The UID of the former part is removed first: the next one must be known for ours.
        let intent = self.intent(key);
        let recorded = match &resource.status.implementation {
            Record::Ours(parts) => parts.contains(&intent),
            Record::Absent | Record::Foreign => false,
        };
        let ready_to_make = resource.offer.is_ok()
            && resource.meta.has_finalizer(RESOURCE_PROTECTION)
            && recorded
            && !self.entry.is_released();
        let says = says.recorded(intent);
        if ready_to_make { says.then(PartStep::Create(part)) } else { says }
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

fn creating(key: &PartKey) -> String {
    format!("creating {key}")
}

fn waiting(key: &PartKey, outputs: &str) -> String {
    format!("{key} is created once {outputs} is known")
}

fn gone(key: &PartKey, how: &str) -> Judged {
    let message = format!("{key}, which implements it, is gone: {how}. It is not replaced by an empty one");
    Judged::of(Says::Failed { reason: reason::IMPLEMENTATION_GONE, message })
}

fn kind_missing(key: &PartKey, why: &WhyMissing) -> Judged {
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
            format!("{kind} in {version} is cluster-scoped, and is never created: change spec.template"),
        ),
        WhyMissing::NotAllowed(why) => (
            reason::KIND_NOT_ALLOWED,
            format!("Conductor is not allowed to handle {kind} in {version}: grant it the rights. {why}"),
        ),
        WhyMissing::NotListed => (
            reason::KIND_NOT_ALLOWED,
            format!("{kind} is not on this installation's list of kinds: add it to --allow-kinds"),
        ),
    };
    not_ready(reason, message)
}
