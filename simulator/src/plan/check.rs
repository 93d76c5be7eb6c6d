//! Problems of objects that loaded well: fields that the engine cannot read, namespaces that it does not watch. Each is
//! reported once, with file and line; all other objects take part as usual.

use super::identity::claim_refs;
use crate::load::{LoadedObject, Problem};
use crate::world::key_of;
use conductor::model::{
    Claim, Class, FieldError, Kind, Limits, Object, ObjectKey, ProfileObject, Quota, Resource, ResourcePhase,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What is wrong with loaded objects, known before they are planned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Objects that the engine cannot read or does not watch, in the order of the objects.
    pub faults: Vec<(Fault, Problem)>,
    /// Resources with holders that are not among the claims; a plan takes those claims for deleted.
    pub abandoned: BTreeSet<String>,
}

/// How a problem affects its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The claim's spec cannot be read: it stays pending, with the reason in its message.
    Waits,
    /// The object cannot be read and is ignored: a resource that no claim gets, a limit that limits nothing.
    Drops,
    /// The object is in a namespace that the engine does not watch.
    Outside,
}

impl Findings {
    /// The problems of all objects.
    pub fn problems(&self) -> impl Iterator<Item = &Problem> {
        self.faults.iter().map(|(_, problem)| problem)
    }

    /// The problems with this effect.
    pub fn of(&self, fault: Fault) -> impl Iterator<Item = &Problem> {
        self.faults.iter().filter(move |(known, _)| *known == fault).map(|(_, problem)| problem)
    }
}

/// Checks every object.
pub fn check(objects: &[LoadedObject], system_namespace: &str) -> Findings {
    let faults = objects.iter().filter_map(|loaded| {
        let (fault, message) = fault(&loaded.object, system_namespace)?;
        let object = format!("{} {}", loaded.object.kind.name(), key_of(&loaded.object));
        Some((fault, Problem { source: loaded.source.clone(), line: loaded.line, object, what: message }))
    });
    Findings { faults: faults.collect(), abandoned: abandoned(objects) }
}

fn fault(object: &Object, system_namespace: &str) -> Option<(Fault, String)> {
    let is_claim = matches!(object.kind, Kind::Claim(_));
    let unread = unreadable(object).map(|why| (if is_claim { Fault::Waits } else { Fault::Drops }, why));
    unread.or_else(|| outside(object, system_namespace).map(|why| (Fault::Outside, why)))
}

/// Cluster quotas that select namespaces by label, if the input holds no namespace: none of them matches.
pub fn unlabelled(objects: &[Object]) -> Vec<String> {
    if objects.iter().any(|o| o.kind == Kind::Namespace) {
        return Vec::new();
    }
    let is_filled = |v: &Value| {
        v.as_object().is_some_and(|map| !map.is_empty()) || v.as_array().is_some_and(|l| !l.is_empty())
    };
    let selects = |o: &&Object| {
        let selector = o.body.pointer("/spec/namespaceSelector").and_then(Value::as_object);
        o.kind == Kind::ClusterQuota && selector.is_some_and(|s| s.values().any(is_filled))
    };
    objects.iter().filter(selects).filter_map(|o| o.metadata.name.clone()).collect()
}

/// Why the engine cannot read an object, with the field; `None` if it can.
pub fn unreadable(object: &Object) -> Option<String> {
    let error: Option<FieldError> = match object.kind {
        Kind::Claim(ty) => Claim::read(ty, object).wants.err(),
        Kind::Resource(ty) => Resource::read(ty, object).offer.err(),
        Kind::Class(ty) => Class::read(ty, object).recipe.err(),
        Kind::Quota | Kind::ClusterQuota => Quota::read(object).limits.err(),
        Kind::Limits => Limits::read(object).bounds.err(),
        Kind::Profile => ProfileObject::read(object).profile.err(),
        Kind::Namespace => None,
    };
    error.map(|error| error.to_string())
}

fn outside(object: &Object, system_namespace: &str) -> Option<String> {
    let (Kind::Resource(_) | Kind::Class(_)) = object.kind else { return None };
    let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
    (namespace != system_namespace).then(|| {
        format!(
            "does not take part: resources and classes live in {system_namespace}; \
             move it, or plan with --system-namespace {namespace}"
        )
    })
}

/// Resources whose holders are missing from the input or have another UID there. A Released resource is expected to
/// have lost its claim.
fn abandoned(objects: &[LoadedObject]) -> BTreeSet<String> {
    let mut claims: BTreeMap<(Kind, ObjectKey), Option<&str>> = BTreeMap::new();
    for loaded in objects.iter().filter(|l| matches!(l.object.kind, Kind::Claim(_))) {
        claims.insert((loaded.object.kind, key_of(&loaded.object)), loaded.object.metadata.uid.as_deref());
    }
    let is_missing = |kind: Kind, claim_ref: &Value| {
        let text = |field: &str| claim_ref.get(field).and_then(Value::as_str);
        let (Some(namespace), Some(name), Some(uid)) = (text("namespace"), text("name"), text("uid")) else {
            return false;
        };
        match claims.get(&(kind, ObjectKey::new(namespace, name))) {
            None => true,
            // A hand-written claim without a UID takes the one that its resource references.
            Some(known) => known.is_some_and(|known| known != uid),
        }
    };
    let abandoned = objects.iter().filter(|loaded| match loaded.object.kind {
        Kind::Resource(ty) => {
            !is_released(&loaded.object) && claim_refs(&loaded.object).any(|r| is_missing(Kind::Claim(ty), r))
        }
        _ => false,
    });
    abandoned.filter_map(|loaded| loaded.object.metadata.name.clone()).collect()
}

fn is_released(resource: &Object) -> bool {
    let phase = resource.body.pointer("/status/phase").and_then(Value::as_str);
    phase.and_then(ResourcePhase::find) == Some(ResourcePhase::Released)
}
