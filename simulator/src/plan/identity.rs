//! Assigns a UID to every hand-written object, and a time to the plan. Objects from an API server keep their UIDs.
//!
//! A claim without a UID takes the one in a resource's `claimRefs` that name its key: the binding is honoured. A reference
//! without requests gets those of its claim, as a controller would have written them.

use conductor::model::{Kind, Object, Time, Uid};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

type Address = (Kind, String, String);

/// Objects with UIDs.
pub(super) struct Identified {
    /// Sorted by kind, namespace and name, without duplicates.
    pub objects: Vec<Object>,
    /// For each object, whether its UID came with it.
    pub own_uids: Vec<bool>,
    /// Whether no two objects shared a key or a UID.
    pub is_distinct: bool,
    /// Claims whose references state no requests.
    pub unstated: BTreeSet<Uid>,
}

/// Sorts the objects, keeps one per kind, namespace and name, and gives each a UID of its own.
pub(super) fn identified(mut objects: Vec<Object>) -> Identified {
    let count = objects.len();
    // Loaded objects are sorted already; comparing borrowed keys is cheaper than copying 100,000 of them.
    objects.sort_by(|a, b| borrowed(a).cmp(&borrowed(b)));
    objects.dedup_by(|later, kept| {
        let same = borrowed(later) == borrowed(kept);
        // The order of the input must not matter.
        if same && canonical(later) > canonical(kept) {
            std::mem::swap(later, kept);
        }
        same
    });
    let is_own = |object: &Object| object.metadata.uid.as_deref().is_some_and(|uid| !uid.is_empty());
    let own_uids: Vec<bool> = objects.iter().map(is_own).collect();
    // Resources' references matter only if some object lacks a UID or shares one.
    if own_uids.contains(&false) {
        let named = named_holders(&objects);
        objects.iter_mut().for_each(|object| adopt(object, &named));
    }
    let is_shared = shares_uid(&objects);
    if is_shared {
        let named = named_holders(&objects);
        part(&mut objects, &named);
    }
    let is_distinct = objects.len() == count && !is_shared;
    for object in objects.iter_mut().filter(|o| o.metadata.uid.is_none()) {
        object.metadata.uid = Some(stand_in(object));
    }
    let unstated: BTreeSet<Uid> = objects.iter().flat_map(claim_refs).filter_map(find_unstated).collect();
    if !unstated.is_empty() {
        let requests_of = requests_of(&objects, &unstated);
        objects.iter_mut().for_each(|object| complete_requests(object, |uid| requests_of.get(uid).cloned()));
    }
    Identified { objects, own_uids, is_distinct, unstated }
}

/// The UID of a claim that holds a resource without stating its requests. Reservations, which have no UID, take nothing.
pub(super) fn find_unstated(claim_ref: &Value) -> Option<Uid> {
    let is_stated = claim_ref.get("requests").is_some_and(|requests| !requests.is_null());
    claim_ref.get("uid").and_then(Value::as_str).filter(|_| !is_stated).map(Uid::from)
}

/// Requests of these claims.
fn requests_of(objects: &[Object], claims: &BTreeSet<Uid>) -> BTreeMap<Uid, Value> {
    let requests_of = objects.iter().filter(|o| matches!(o.kind, Kind::Claim(_))).filter_map(|claim| {
        let uid = claims.get(claim.metadata.uid.as_deref()?)?;
        Some((uid.clone(), requests(claim)?.clone()))
    });
    requests_of.collect()
}

pub(super) fn requests(claim: &Object) -> Option<&Value> {
    claim.body.pointer("/spec/resources/requests")
}

/// Adds missing requests to a resource's references.
pub(super) fn complete_requests(object: &mut Object, requests_of: impl Fn(&Uid) -> Option<Value>) {
    let Kind::Resource(_) = object.kind else { return };
    let refs = object.body.pointer_mut("/spec/claimRefs").and_then(Value::as_array_mut);
    for claim_ref in refs.into_iter().flatten() {
        if let Some(requests) = find_unstated(claim_ref).and_then(|uid| requests_of(&uid)) {
            claim_ref["requests"] = requests;
        }
    }
}

/// Start of the year 9999: a claim created then sorts after all others, undated ones too. Never the time of a plan.
pub(crate) const NOT_YET_MS: i64 = 253_370_764_800_000;

/// The time of a plan: just after the latest creation in the input, so that undated claims, which are hypothetical, come
/// after those that already wait.
pub(super) fn latest(created: impl Iterator<Item = i64>) -> Time {
    Time(created.filter(|at| *at < NOT_YET_MS).max().map_or(0, |latest| latest.saturating_add(1)))
}

/// Creation time in milliseconds.
pub(super) fn created(object: &Object) -> Option<i64> {
    object.metadata.creation_timestamp.as_ref().map(|at| at.0.as_millisecond())
}

fn place(object: &Object) -> Address {
    let text = |t: &Option<String>| t.clone().unwrap_or_default();
    (object.kind, text(&object.metadata.namespace), text(&object.metadata.name))
}

fn borrowed(object: &Object) -> (Kind, Option<&str>, Option<&str>) {
    (object.kind, object.metadata.namespace.as_deref(), object.metadata.name.as_deref())
}

fn canonical(object: &Object) -> String {
    let metadata = serde_json::to_string(&object.metadata).unwrap_or_default();
    format!("{metadata} {}", object.body)
}

/// For each claim, the UIDs by which resources reference it, with the resources' names.
fn named_holders(objects: &[Object]) -> BTreeMap<Address, Vec<(String, String)>> {
    let mut named: BTreeMap<Address, Vec<(String, String)>> = BTreeMap::new();
    for object in objects {
        let Kind::Resource(ty) = object.kind else { continue };
        for claim_ref in claim_refs(object) {
            let text = |field: &str| claim_ref.get(field).and_then(Value::as_str).map(str::to_owned);
            if let (Some(namespace), Some(name), Some(uid)) = (text("namespace"), text("name"), text("uid")) {
                let resource = object.metadata.name.clone().unwrap_or_default();
                named.entry((Kind::Claim(ty), namespace, name)).or_default().push((resource, uid));
            }
        }
    }
    named
}

/// References in a resource's spec.
pub(super) fn claim_refs(object: &Object) -> impl Iterator<Item = &Value> {
    let spec = object.body.get("spec");
    spec.and_then(|s| s.get("claimRefs")).and_then(Value::as_array).into_iter().flatten()
}

/// Gives a claim without a UID the one in a resource's reference: the resource in the claim's status first, then the one
/// in its spec, then the first by name.
fn adopt(object: &mut Object, named: &BTreeMap<Address, Vec<(String, String)>>) {
    if object.metadata.uid.as_deref().is_some_and(str::is_empty) {
        object.metadata.uid = None;
    }
    let Kind::Claim(_) = object.kind else { return };
    if named.is_empty() || object.metadata.uid.is_some() {
        return;
    }
    let Some(holders) = named.get(&place(object)) else { return };
    let field = |path: &str| object.body.pointer(path).and_then(Value::as_str);
    let by = |name: Option<&str>| holders.iter().find(|(resource, _)| Some(resource.as_str()) == name);
    let holder = by(field("/status/resourceRef/name"))
        .or_else(|| by(field("/spec/resourceName")))
        .or_else(|| holders.iter().min());
    object.metadata.uid = holder.map(|(_, uid)| uid.clone());
}

fn shares_uid(objects: &[Object]) -> bool {
    let mut uids: Vec<&str> = objects.iter().filter_map(|o| o.metadata.uid.as_deref()).collect();
    uids.sort_unstable();
    uids.windows(2).any(|pair| pair[0] == pair[1])
}

/// A UID that was copied with a manifest stays with one object: the claim that a resource references by it, or else the
/// first in order. The others get UIDs of their own.
fn part(objects: &mut [Object], named: &BTreeMap<Address, Vec<(String, String)>>) {
    let mut taken: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, object) in objects.iter().enumerate() {
        if let Some(uid) = &object.metadata.uid {
            taken.entry(uid.clone()).or_default().push(at);
        }
    }
    for (uid, places) in taken.into_iter().filter(|(_, places)| places.len() > 1) {
        let is_named = |at: &&usize| {
            named.get(&place(&objects[**at])).is_some_and(|refs| refs.iter().any(|(_, known)| *known == uid))
        };
        let owner = places.iter().find(is_named).or(places.first()).copied();
        for at in places.into_iter().filter(|at| Some(*at) != owner) {
            objects[at].metadata.uid = None;
        }
    }
}

/// A UID for an object without one. It includes the kind: a claim and a class may share a name.
pub(super) fn stand_in(object: &Object) -> String {
    let (kind, namespace, name) = place(object);
    format!("unassigned:{}:{namespace}/{name}", kind.name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use conductor::model::TypeId;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use serde_json::json;

    const TYPE: TypeId = TypeId::RELATIONAL_DATABASE;

    fn object(kind: Kind, namespace: &str, name: &str, uid: Option<&str>, body: Value) -> Object {
        let metadata = ObjectMeta {
            namespace: Some(namespace.to_owned()),
            name: Some(name.to_owned()),
            uid: uid.map(str::to_owned),
            ..ObjectMeta::default()
        };
        Object { kind, metadata, body }
    }

    fn uids(objects: Vec<Object>) -> Vec<String> {
        identified(objects).objects.into_iter().map(|o| o.metadata.uid.unwrap()).collect()
    }

    #[test]
    fn a_claim_is_known_by_the_uid_that_its_resource_knows() {
        let refs = |uid: &str| json!({"spec": {"claimRefs": [{"namespace": "a", "name": "x", "uid": uid}]}});
        let first = object(Kind::Resource(TYPE), "s", "db-1", Some("r1"), refs("u1"));
        let second = object(Kind::Resource(TYPE), "s", "db-2", Some("r2"), refs("u2"));
        let claim = |body| object(Kind::Claim(TYPE), "a", "x", None, body);
        for (body, uid) in [
            (json!({}), "u1"),
            (json!({"spec": {"resourceName": "db-2"}}), "u2"),
            (json!({"status": {"resourceRef": {"name": "db-2"}}, "spec": {"resourceName": "db-1"}}), "u2"),
        ] {
            assert_eq!(uids(vec![first.clone(), second.clone(), claim(body)])[0], uid);
        }
    }

    #[test]
    fn a_copied_uid_stays_with_one_claim() {
        let one = object(Kind::Claim(TYPE), "a", "x", Some("u"), json!({}));
        let two = object(Kind::Claim(TYPE), "a", "y", Some("u"), json!({}));
        let other = "unassigned:RelationalDatabaseClaim:a/";
        assert_eq!(uids(vec![two.clone(), one.clone()]), ["u", &format!("{other}y")]);
        let refs = json!({"spec": {"claimRefs": [{"namespace": "a", "name": "y", "uid": "u"}]}});
        let holder = object(Kind::Resource(TYPE), "s", "db", Some("r"), refs);
        assert_eq!(uids(vec![holder, two, one]), [&format!("{other}x"), "u", "r"]);
    }
}
