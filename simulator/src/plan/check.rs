//! What is wrong with objects that could be loaded: fields that the engine cannot read, places where it
//! does not look. Each is told once, with its file and line; every other object takes part as usual.

use super::identity::claim_refs;
use crate::load::{LoadedObject, Problem};
use crate::world::key_of;
use conductor::model::{
    Claim, Class, FieldError, Kind, Limits, Object, ObjectKey, ProfileObject, Quota, Resource,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What there is to say about loaded objects before they are planned with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Objects that the engine cannot read, or does not look at, in the order of the objects.
    pub problems: Vec<Problem>,
    /// Resources whose holders are not among the claims: a plan takes those claims for gone.
    pub abandoned: BTreeSet<String>,
}

/// Looks at every object once.
pub fn check(objects: &[LoadedObject], system_namespace: &str) -> Findings {
    let problems = objects.iter().filter_map(|loaded| {
        let message = unreadable(&loaded.object).or_else(|| outside(&loaded.object, system_namespace))?;
        let object = format!("{} {}", loaded.object.kind.name(), key_of(&loaded.object));
        Some(Problem { source: loaded.source.clone(), line: loaded.line, object, message })
    });
    Findings { problems: problems.collect(), abandoned: abandoned(objects) }
}

fn unreadable(object: &Object) -> Option<String> {
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

/// Resources that are held by claims which the input does not hold under that UID.
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
            // A claim that was written by hand takes the UID that its resource knows.
            Some(known) => known.is_some_and(|known| known != uid),
        }
    };
    let abandoned = objects.iter().filter(|loaded| match loaded.object.kind {
        Kind::Resource(ty) => claim_refs(&loaded.object).any(|r| is_missing(Kind::Claim(ty), r)),
        _ => false,
    });
    abandoned.filter_map(|loaded| loaded.object.metadata.name.clone()).collect()
}
