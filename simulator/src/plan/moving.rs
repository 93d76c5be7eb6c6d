//! Which objects can change under a plan: what each says of its neighbours, and the rule over that. What follows from a
//! change is the engine's to say; see `stage` for why the others need no answer.

use super::identity::{claim_refs, created, find_unsaid};
use conductor::model::{Kind, Name, Object, ObjectKey, ResourcePhase, Uid};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What an object says of itself and of its neighbours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outline {
    pub kind: Kind,
    pub key: ObjectKey,
    pub uid: Uid,
    /// When it was made, in milliseconds.
    pub created: Option<i64>,
    pub deleting: bool,
    /// Of a resource: whom it names, as they are written.
    pub names: Box<[Named]>,
    /// Of a claim: the resource that its own record names.
    pub recorded: Option<Name>,
    /// Of a claim: whether it names the resource that it wants, or was bound to.
    pub names_resource: bool,
    /// Of a resource: whether nothing but a claim can change its phase.
    has_plain_phase: bool,
    /// Of a class: whether it may refuse a claim's parameters.
    pub has_schema: bool,
}

/// A claim as a resource names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    /// Where it is, where that is said.
    pub claim: Option<(Kind, ObjectKey)>,
    /// Which life of that name.
    pub uid: Option<Uid>,
    /// Whether it holds the resource, and what it takes is not said.
    pub is_unsaid: bool,
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

    /// The claims that it holds, as a resource.
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
            is_unsaid: find_unsaid(claim_ref).is_some(),
        }
    }
}

fn text<'a>(body: &'a Value, way: &[&str]) -> Option<&'a str> {
    way.iter().try_fold(body, |value, field| value.get(field))?.as_str()
}

/// Whether a claim names a resource.
fn names_resource(object: &Object) -> bool {
    matches!(object.kind, Kind::Claim(_)) && text(&object.body, &["spec", "resourceName"]).is_some()
}

/// Whether a class may refuse a claim's parameters: the engine reads the claim for that, just before it makes something.
fn has_schema(object: &Object) -> bool {
    let says = |pointer: &str| object.body.pointer(pointer).is_some();
    matches!(object.kind, Kind::Class(_)) && (says("/parameterSchema") || says("/spec/parameterSchema"))
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

/// For each object of a plan whether it moves.
pub(super) fn all_moving(objects: &[Object]) -> Vec<bool> {
    let outlines: Vec<Outline> = objects.iter().map(Outline::read).collect();
    let may_refuse = outlines.iter().any(|o| o.has_schema);
    find_moving(&outlines.iter().collect::<Vec<_>>(), may_refuse)
}

/// For each object whether a write to it, or a read of it, can change what is decided. `may_refuse` says whether any
/// class has a schema.
pub(super) fn find_moving(objects: &[&Outline], may_refuse: bool) -> Vec<bool> {
    let staying = staying_claims(objects);
    let shared = held_twice(objects);
    let moves = |o: &Outline| match o.kind {
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
    let mut moving: Vec<bool> = objects.iter().map(|o| moves(o)).collect();
    let movers = objects.iter().zip(&moving).filter(|(_, moves)| **moves);
    let asked: BTreeSet<&(Kind, ObjectKey)> =
        movers.flat_map(|(o, _)| o.names.iter().filter_map(|named| named.claim.as_ref())).collect();
    for (object, moves) in objects.iter().zip(&mut moving).filter(|(o, _)| matches!(o.kind, Kind::Claim(_))) {
        *moves |= !asked.is_empty() && asked.contains(&(object.kind, object.key.clone()));
    }
    moving
}

/// The claims that are not being deleted, by UID, with the resource that each was bound to by its own record.
fn staying_claims<'a>(objects: &[&'a Outline]) -> BTreeMap<&'a Uid, Option<&'a Name>> {
    let claims = objects.iter().filter(|o| matches!(o.kind, Kind::Claim(_)) && !o.deleting);
    claims.map(|o| (&o.uid, o.recorded.as_ref())).collect()
}

/// The UIDs that more than one resource holds, or one resource twice.
fn held_twice<'a>(objects: &[&'a Outline]) -> BTreeSet<&'a Uid> {
    let mut held: Vec<&Uid> = objects.iter().flat_map(|o| o.holds()).collect();
    held.sort_unstable();
    held.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect()
}
