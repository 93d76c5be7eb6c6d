//! What the tests of predicates share: a claim's spec and a resource's spec as JSON, and one predicate applied to them.

use super::{Candidate, ClassQuery, Described, Occupancy, Predicate, Query, standing_of, steps};
use crate::model::{Claim, ClassWant, Kind, Name, Object, ObjectKey, Offer, Resource, ResourcePhase, TypeId};
use serde_json::{Value, json};
use std::borrow::Cow;

const TYPE: TypeId = TypeId::RELATIONAL_DATABASE;

pub struct Db {
    name: Name,
    offer: Offer,
    pub phase: Option<ResourcePhase>,
    holders: Vec<ObjectKey>,
}

impl Db {
    /// Gives the resource to another claim.
    pub fn hold(&mut self, namespace: &str, name: &str) {
        self.holders.push(ObjectKey { namespace: Name::from(namespace), name: Name::from(name) });
    }
}

pub fn resource(spec: Value) -> Db {
    labelled(spec, json!({}))
}

pub fn labelled(spec: Value, labels: Value) -> Db {
    let resource = Resource::read(TYPE, &object(Kind::Resource(TYPE), spec, labels));
    let offer = Offer::clone(&resource.offer.unwrap());
    Db { name: Name::from("db"), offer, phase: Some(ResourcePhase::Available), holders: Vec::new() }
}

fn object(kind: Kind, spec: Value, labels: Value) -> Object {
    let metadata = json!({"namespace": "team-a", "name": "x", "labels": labels});
    Object { kind, metadata: serde_json::from_value(metadata).unwrap(), body: json!({"spec": spec}) }
}

/// Why `predicate` refuses `db` to a claim with this spec.
pub fn refusal(predicate: Predicate, claim: Value, db: &Db) -> Option<String> {
    let wants = Claim::read(TYPE, &object(Kind::Claim(TYPE), claim, json!({}))).wants.unwrap();
    let class = match &wants.class {
        ClassWant::Named(names) => ClassQuery::Exactly(names.first()),
        ClassWant::Absent | ClassWant::Classless => ClassQuery::Exactly(None),
        ClassWant::Any => ClassQuery::Any,
    };
    let query = Query { namespace: "team-a", class, wants: &wants, headroom: None };
    let occupancy = Occupancy {
        offer: &db.offer,
        is_cordoned: db.offer.cordoned,
        phase: db.phase,
        is_implemented: true,
        is_deleting: false,
        is_released: false,
        holders: db.holders.len(),
        is_exclusive: false,
    };
    let standing = standing_of(TYPE, &occupancy);
    let resource = Described {
        candidate: Candidate { offer: &db.offer, standing, free: Cow::Borrowed(&db.offer.capacity) },
        name: &db.name,
        phase: db.phase.map_or("Pending", ResourcePhase::name),
        holders: db.holders.iter().collect(),
    };
    steps(TYPE)
        .iter()
        .filter(|step| step.predicate == predicate)
        .find_map(|step| step.refusal(&query, &resource))
}

/// Asserts why `predicate` refuses `db` to a claim with this spec.
#[track_caller]
pub fn check(predicate: Predicate, claim: Value, db: &Db, expected: Option<&str>) {
    assert_eq!(refusal(predicate, claim, db).as_deref(), expected);
}
