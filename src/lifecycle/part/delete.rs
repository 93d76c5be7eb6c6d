//! Deleting parts: with their resource, last created first, where the policy says Delete and they are ours, and never
//! otherwise. The engine reads everything live before it sends the deletion.

use super::{Implementation, PartSight, PartStep, Says, View};
use crate::api::names::RESOURCE_PROTECTION;
use crate::api::reasons::resource as reason;
use crate::cache::Sight;
use crate::model::part::WhyMissing;
use crate::model::{Name, PartKey, PartRef, PartView, ReclaimPolicy, Resource};
use serde_json::Value;

/// The resource is being deleted. Its parts go first, where the policy says Delete and they are ours.
pub(super) fn plan_deletion(resource: &Resource, view: &View<'_>) -> Implementation {
    let free = Implementation::of(Says::Nothing);
    if view.parts.values().any(|part| part.sight == Sight::InFlight) {
        // Whatever the policy: a create in flight is answered first.
        return protected(String::new());
    }
    let destroys = match resource.reclaim {
        ReclaimPolicy::Delete => resource.meta.has_finalizer(RESOURCE_PROTECTION),
        ReclaimPolicy::Retain | ReclaimPolicy::Unknown(_) => false,
    };
    if !destroys {
        return free;
    }
    let mut parts: Vec<(&Name, &PartKey)> = resource.parts().collect();
    parts.reverse();
    parts.into_iter().find_map(|(id, key)| end_of(resource, view, id, key)).unwrap_or(free)
}

/// The resource stays for now; `waits` says for what, where that may take long.
fn protected(waits: String) -> Implementation {
    Implementation { protects: true, waits, ..Implementation::of(Says::Nothing) }
}

/// The next step of one part; `None` where it was deleted, or is not ours to delete.
fn end_of(resource: &Resource, view: &View<'_>, id: &Name, key: &PartKey) -> Option<Implementation> {
    let PartSight { sight, trouble } = view.parts.get(id)?;
    let record = resource.status.implementation.parts().iter().find(|part| part.id == *id);
    match sight {
        Sight::Unknown | Sight::InFlight => Some(protected(String::new())),
        Sight::KindMissing(_) if record.is_none() => None,
        Sight::KindMissing(why) => Some(stuck(key, &missing_message(why))),
        Sight::Taken | Sight::Absent { confirmed: true } => None,
        Sight::Absent { confirmed: false } => {
            Some(then(protected(String::new()), id, PartStep::Read(key.clone())))
        }
        Sight::Present(part) if is_another(record, part) => None,
        Sight::Present(part) if part.deleting => Some(protected(leaving(part))),
        Sight::Present(part) => {
            let judged = trouble.map_or_else(|| protected(String::new()), |why| stuck(key, why));
            let (key, uid, revision) = (part.key.clone(), part.uid.clone(), part.revision);
            Some(then(judged, id, PartStep::Delete { key, uid, revision }))
        }
    }
}

fn is_another(record: Option<&PartRef>, part: &PartView) -> bool {
    record.and_then(|record| record.uid.as_ref()).is_some_and(|uid| *uid != part.uid)
}

fn then(judged: Implementation, id: &Name, step: PartStep) -> Implementation {
    Implementation { steps: vec![(id.clone(), step)], ..judged }
}

/// What keeps a part that is being deleted, for users.
fn leaving(part: &PartView) -> String {
    let object = part.object();
    let finalizers = object.pointer("/metadata/finalizers").and_then(Value::as_array);
    let names: Vec<&str> = finalizers.into_iter().flatten().filter_map(Value::as_str).collect();
    // The time, not the age: an age would change with every resync, and each would be a write.
    let since =
        object.pointer("/metadata/deletionTimestamp").and_then(Value::as_str).unwrap_or("an unknown time");
    let going = format!("{} to be gone, which was requested at {since}", part.key);
    match names.is_empty() {
        true => going,
        false => format!("{going} and waits for {}", names.join(", ")),
    }
}

fn stuck(key: &PartKey, why: &str) -> Implementation {
    let message =
        format!("{key} cannot be deleted: {why}. It is tried again; with reclaimPolicy Retain it would stay");
    let says = Says::Failed { reason: reason::RECLAIM_FAILED, message };
    Implementation { protects: true, ..Implementation::of(says) }
}

fn missing_message(why: &WhyMissing) -> String {
    match why {
        WhyMissing::NotInstalled => "its kind is not installed any more".to_owned(),
        WhyMissing::NotNamespaced => "its kind is cluster-scoped now".to_owned(),
        WhyMissing::NotAllowed(why) => format!("Conductor is not allowed to: {why}"),
        WhyMissing::NotListed => "its kind is not on this installation's list any more".to_owned(),
    }
}
