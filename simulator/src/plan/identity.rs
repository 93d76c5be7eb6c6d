//! Who is who among objects that people wrote by hand: every object gets a UID, and a time to plan at.
//! Objects that came from an API server keep theirs.
//!
//! A claim without a UID whose key a resource's `claimRefs` name with one is that claim: the binding is honoured. What
//! such a reference leaves unsaid is what its claim asks: a controller would have written it there.

use conductor::model::{Kind, Object, Time, Uid};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

type Place = (Kind, String, String);

/// Objects of which each has a UID.
pub(super) struct Identified {
    /// By kind, namespace and name; one of each.
    pub objects: Vec<Object>,
    /// Of each whether its UID was given.
    pub own_uids: Vec<bool>,
    /// Whether no two had one place, or one UID.
    pub is_distinct: bool,
    /// The claims that a resource holds without saying what they take.
    pub unsaid: BTreeSet<Uid>,
}

/// Sorts the objects, leaves one of each kind, namespace and name, and gives each a UID of its own.
pub(super) fn identified(mut objects: Vec<Object>) -> Identified {
    let count = objects.len();
    // What was loaded is in order already; borrowing keys costs a hundred thousand objects less than copying.
    objects.sort_by(|a, b| borrowed(a).cmp(&borrowed(b)));
    objects.dedup_by(|later, kept| {
        let same = borrowed(later) == borrowed(kept);
        // Whichever came first in the input must not matter.
        if same && canonical(later) > canonical(kept) {
            std::mem::swap(later, kept);
        }
        same
    });
    let is_own = |object: &Object| object.metadata.uid.as_deref().is_some_and(|uid| !uid.is_empty());
    let own_uids: Vec<bool> = objects.iter().map(is_own).collect();
    // What came from an API server has UIDs: whom resources name is asked only where somebody has none, or another's.
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
    let unsaid: BTreeSet<Uid> = objects.iter().flat_map(claim_refs).filter_map(find_unsaid).collect();
    if !unsaid.is_empty() {
        let asked = asked(&objects, &unsaid);
        objects.iter_mut().for_each(|object| say(object, |uid| asked.get(uid).cloned()));
    }
    Identified { objects, own_uids, is_distinct, unsaid }
}

/// The claim that a reference holds without saying what it takes. Whom a resource is only kept for takes nothing yet.
pub(super) fn find_unsaid(claim_ref: &Value) -> Option<Uid> {
    let is_said = claim_ref.get("requests").is_some_and(|requests| !requests.is_null());
    claim_ref.get("uid").and_then(Value::as_str).filter(|_| !is_said).map(Uid::from)
}

/// What each of these claims asks.
fn asked(objects: &[Object], claims: &BTreeSet<Uid>) -> BTreeMap<Uid, Value> {
    let asked = objects.iter().filter(|o| matches!(o.kind, Kind::Claim(_))).filter_map(|claim| {
        let uid = claims.get(claim.metadata.uid.as_deref()?)?;
        Some((uid.clone(), requests(claim)?.clone()))
    });
    asked.collect()
}

/// What a claim asks.
pub(super) fn requests(claim: &Object) -> Option<&Value> {
    claim.body.pointer("/spec/resources/requests")
}

/// Completes a resource's references with what their claims ask.
pub(super) fn say(object: &mut Object, asked: impl Fn(&Uid) -> Option<Value>) {
    let Kind::Resource(_) = object.kind else { return };
    let refs = object.body.pointer_mut("/spec/claimRefs").and_then(Value::as_array_mut);
    for claim_ref in refs.into_iter().flatten() {
        if let Some(requests) = find_unsaid(claim_ref).and_then(|uid| asked(&uid)) {
            claim_ref["requests"] = requests;
        }
    }
}

/// The first moment of the year 9999: whoever comes then comes after everybody, those without a time too. It is no
/// time that a plan is made at.
pub(crate) const NOT_YET_MS: i64 = 253_370_764_800_000;

/// The time of a plan: just after the latest that the input tells of, so that undated claims, which are
/// only being thought about, come after those that have been waiting.
pub(super) fn latest(created: impl Iterator<Item = i64>) -> Time {
    Time(created.filter(|at| *at < NOT_YET_MS).max().map_or(0, |latest| latest.saturating_add(1)))
}

/// When an object was made, in milliseconds.
pub(super) fn created(object: &Object) -> Option<i64> {
    object.metadata.creation_timestamp.as_ref().map(|at| at.0.as_millisecond())
}

fn place(object: &Object) -> Place {
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

/// The UIDs under which resources name each claim, with the resources' names.
fn named_holders(objects: &[Object]) -> BTreeMap<Place, Vec<(String, String)>> {
    let mut named: BTreeMap<Place, Vec<(String, String)>> = BTreeMap::new();
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

/// The references in a resource's spec, as they are written.
pub(super) fn claim_refs(object: &Object) -> impl Iterator<Item = &Value> {
    let spec = object.body.get("spec");
    spec.and_then(|s| s.get("claimRefs")).and_then(Value::as_array).into_iter().flatten()
}

/// Gives a claim without a UID the one that its resource knows it by: the resource of its own record
/// first, then the one it names, then the first by name.
fn adopt(object: &mut Object, named: &BTreeMap<Place, Vec<(String, String)>>) {
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

/// Whether two objects have one UID.
fn shares_uid(objects: &[Object]) -> bool {
    let mut uids: Vec<&str> = objects.iter().filter_map(|o| o.metadata.uid.as_deref()).collect();
    uids.sort_unstable();
    uids.windows(2).any(|pair| pair[0] == pair[1])
}

/// A UID that was copied along with a manifest stays with one object: the claim that a resource names
/// by it, otherwise the first in order. The others are objects of their own.
fn part(objects: &mut [Object], named: &BTreeMap<Place, Vec<(String, String)>>) {
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

/// A UID for an object that never had one. It names the kind: a claim and a class may share a name.
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
