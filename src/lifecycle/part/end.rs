//! The end of a part: with its resource, where the policy says Delete and the part is ours, and never otherwise.
//! How the deletion is sent, and what is read before, is the engine's.

use super::{Implementation, PartStep, Says, failed};
use crate::api::names::RESOURCE_PROTECTION;
use crate::api::reasons::resource as reason;
use crate::cache::Sight;
use crate::model::part::WhyMissing;
use crate::model::{PartKey, ReclaimPolicy, Record, Resource};

/// The resource is going. Its part goes first, where the policy says Delete and the part is ours.
pub(super) fn judge_end(resource: &Resource, sight: &Sight<'_>, trouble: Option<&str>) -> Implementation {
    let free = Implementation::of(Says::Nothing);
    let Some(key) = resource.part_key() else { return free };
    if *sight == Sight::InFlight {
        // Whatever the policy: what is being made is brought to a known end first.
        return free.protected();
    }
    let destroys = match resource.reclaim {
        ReclaimPolicy::Delete => resource.meta.has_finalizer(RESOURCE_PROTECTION),
        ReclaimPolicy::Retain | ReclaimPolicy::Unknown(_) => false,
    };
    if !destroys {
        return free;
    }
    let recorded = match &resource.status.implementation {
        Record::Ours(record) => Some(record),
        Record::Absent | Record::Foreign => None,
    };
    match sight {
        Sight::Unknown | Sight::InFlight => free.protected(),
        Sight::KindMissing(_) if recorded.is_none() => free,
        Sight::KindMissing(why) => stuck(key, &missing_word(why)),
        Sight::Taken | Sight::Absent { confirmed: true } => free,
        Sight::Absent { confirmed: false } => free.protected().then(PartStep::Read(key.clone())),
        Sight::Present(part) if recorded.is_some_and(|r| r.uid.as_ref().is_some_and(|u| *u != part.uid)) => {
            free
        }
        Sight::Present(part) if part.deleting => free.protected(),
        Sight::Present(part) => {
            let judged = trouble.map_or(free.protected(), |why| stuck(key, why));
            let (key, uid, revision) = (part.key.clone(), part.uid.clone(), part.revision);
            judged.then(PartStep::Delete { key, uid, revision })
        }
    }
}

fn stuck(key: &PartKey, why: &str) -> Implementation {
    let message =
        format!("{key} cannot be deleted: {why}. It is tried again; with reclaimPolicy Retain it would stay");
    failed(reason::RECLAIM_FAILED, message).protected()
}

fn missing_word(why: &WhyMissing) -> String {
    match why {
        WhyMissing::NotInstalled => "its kind is not installed any more".to_owned(),
        WhyMissing::NotNamespaced => "its kind lives in no namespace any more".to_owned(),
        WhyMissing::NotAllowed(why) => format!("Conductor may not: {why}"),
    }
}
