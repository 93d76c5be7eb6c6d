//! Which objects the engine's writes can change during a plan, read from the objects' references to each other.
//! `plan_engine` explains why no other object needs an answer.

use super::identity::{claim_refs, created, find_unstated};
use conductor::model::{Kind, Name, Object, ObjectKey, ResourcePhase, Uid};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What an object has about itself and its references.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outline {
    pub kind: Kind,
    pub key: ObjectKey,
    pub uid: Uid,
    /// Creation time in milliseconds.
    pub created: Option<i64>,
    pub deleting: bool,
    /// Claims that a resource references.
    pub names: Box<[Named]>,
    /// The resource in a claim's status.
    pub recorded: Option<Name>,
    /// Whether a claim's spec names a resource, requested or bound.
    pub names_resource: bool,
    /// Whether only claims can change a resource's phase.
    has_plain_phase: bool,
    /// Whether a class has a schema and may reject a claim's parameters.
    pub has_schema: bool,
}

/// A claim as a resource references it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    /// Its key, if the reference has one.
    pub claim: Option<(Kind, ObjectKey)>,
    pub uid: Option<Uid>,
    /// Whether it holds the resource without stating its requests.
    pub is_unstated: bool,
}

impl Outline {
    pub fn read(object: &Object) -> Outline {
        let names = match object.kind {
            Kind::Resource(ty) => claim_refs(object).map(|r| Named::read(Kind::Claim(ty), r)).collect(),
            _ => Box::default(),
        };
        let recorded = match object.kind {
            Kind::Claim(_) => text(&object.body, &["status", "resourceRef", "name"]).map(Name::from),
            _ => None,
        };
        Outline {
            kind: object.kind,
            key: crate::world::key_of(object),
            uid: Uid::from(object.metadata.uid.as_deref().unwrap_or_default()),
            created: created(object),
            deleting: object.metadata.deletion_timestamp.is_some(),
            names,
            recorded,
            names_resource: names_resource(object),
            has_plain_phase: has_plain_phase(object),
            has_schema: has_schema(object),
        }
    }

    /// UIDs of the claims that a resource holds.
    pub fn holds(&self) -> impl Iterator<Item = &Uid> {
        self.names.iter().filter_map(|named| named.uid.as_ref())
    }
}

impl Named {
    fn read(kind: Kind, claim_ref: &Value) -> Named {
        let field = |name: &str| claim_ref.get(name).and_then(Value::as_str);
        let place = field("namespace").zip(field("name"));
        Named {
            claim: place.map(|(namespace, name)| (kind, ObjectKey::new(namespace, name))),
            uid: field("uid").map(Uid::from),
            is_unstated: find_unstated(claim_ref).is_some(),
        }
    }
}

fn text<'a>(body: &'a Value, way: &[&str]) -> Option<&'a str> {
    way.iter().try_fold(body, |value, field| value.get(field))?.as_str()
}

/// Whether a claim's spec names a resource.
fn names_resource(object: &Object) -> bool {
    matches!(object.kind, Kind::Claim(_)) && text(&object.body, &["spec", "resourceName"]).is_some()
}

/// Whether a class may reject a claim's parameters; the engine then reads the claim live before it provisions.
fn has_schema(object: &Object) -> bool {
    let has = |pointer: &str| object.body.pointer(pointer).is_some();
    matches!(object.kind, Kind::Class(_)) && (has("/parameterSchema") || has("/spec/parameterSchema"))
}

fn has_plain_phase(object: &Object) -> bool {
    match text(&object.body, &["status", "phase"]).and_then(ResourcePhase::find) {
        None | Some(ResourcePhase::Available | ResourcePhase::Bound) => true,
        Some(
            ResourcePhase::Pending
            | ResourcePhase::Creating
            | ResourcePhase::Released
            | ResourcePhase::Failed
            | ResourcePhase::Deleting,
        ) => false,
    }
}

/// For each object of a plan, whether it is affected.
pub(super) fn all_affected(objects: &[Object]) -> Vec<bool> {
    let outlines: Vec<Outline> = objects.iter().map(Outline::read).collect();
    let may_refuse = outlines.iter().any(|o| o.has_schema);
    find_affected(&outlines.iter().collect::<Vec<_>>(), may_refuse)
}

/// For each object, whether a write to it or a live read of it can change a decision. `may_refuse`: some class has a
/// schema.
pub(super) fn find_affected(objects: &[&Outline], may_refuse: bool) -> Vec<bool> {
    let staying = staying_claims(objects);
    let shared = held_twice(objects);
    let is_affected = |o: &Outline| match o.kind {
        Kind::Claim(_) if may_refuse => true,
        Kind::Claim(_) | Kind::Class(_) => o.deleting,
        Kind::Resource(_) => {
            let name = Some(&o.key.name);
            let stays = |uid: &Uid| staying.get(uid).is_some_and(|at| at.is_none() || *at == name);
            let unsettled = |uid: &Uid| !stays(uid) || shared.contains(uid);
            o.deleting || !o.has_plain_phase || o.holds().any(unsettled)
        }
        Kind::Quota | Kind::ClusterQuota | Kind::Limits | Kind::Profile | Kind::Namespace => false,
    };
    let mut affected: Vec<bool> = objects.iter().map(|o| is_affected(o)).collect();
    let movers = objects.iter().zip(&affected).filter(|(_, is_affected)| **is_affected);
    let referenced: BTreeSet<&(Kind, ObjectKey)> =
        movers.flat_map(|(o, _)| o.names.iter().filter_map(|named| named.claim.as_ref())).collect();
    for (object, is_affected) in
        objects.iter().zip(&mut affected).filter(|(o, _)| matches!(o.kind, Kind::Claim(_)))
    {
        *is_affected |= !referenced.is_empty() && referenced.contains(&(object.kind, object.key.clone()));
    }
    affected
}

/// Claims that are not being deleted, by UID, with the resource in their status.
fn staying_claims<'a>(objects: &[&'a Outline]) -> BTreeMap<&'a Uid, Option<&'a Name>> {
    let claims = objects.iter().filter(|o| matches!(o.kind, Kind::Claim(_)) && !o.deleting);
    claims.map(|o| (&o.uid, o.recorded.as_ref())).collect()
}

/// UIDs held by two resources, or twice by one.
fn held_twice<'a>(objects: &[&'a Outline]) -> BTreeSet<&'a Uid> {
    let mut held: Vec<&Uid> = objects.iter().flat_map(|o| o.holds()).collect();
    held.sort_unstable();
    held.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect()
}
