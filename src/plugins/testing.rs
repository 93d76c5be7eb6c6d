//! What plugin tests share: a claim's spec and a resource's spec as JSON, seen as a plugin sees them.

use super::filters;
use crate::cache::{Ask, ClassAsk, Standing};
use crate::framework::{Filter, Seen};
use crate::model::{
    Capacity, Claim, ClassWant, Kind, Name, Object, Offer, Predicate, Resource, TypeId, Wants,
};
use serde_json::{Value, json};
use std::sync::Arc;

const TYPE: TypeId = TypeId::RELATIONAL_DATABASE;

pub struct Want(Arc<Wants>);

impl Want {
    pub fn new(spec: Value) -> Want {
        Want(Claim::read(TYPE, &object(Kind::Claim(TYPE), spec, json!({}))).wants.unwrap())
    }

    pub fn ask(&self) -> Ask<'_> {
        let class = match &self.0.class {
            ClassWant::Named(names) => ClassAsk::Exactly(names.first()),
            ClassWant::Absent | ClassWant::Classless => ClassAsk::Exactly(None),
            ClassWant::Any => ClassAsk::Any,
        };
        Ask { namespace: "team-a", class, wants: &self.0, headroom: None }
    }
}

pub struct Db {
    name: Name,
    offer: Offer,
    pub standing: Standing,
    pub phase: &'static str,
    free: Capacity,
    pub holders: Vec<String>,
}

impl Db {
    pub fn seen(&self) -> Seen<'_> {
        Seen {
            name: &self.name,
            offer: &self.offer,
            standing: self.standing,
            phase: self.phase,
            free: self.free.clone(),
            holders: self.holders.clone(),
        }
    }
}

pub fn resource(spec: Value) -> Db {
    labelled(spec, json!({}))
}

pub fn labelled(spec: Value, labels: Value) -> Db {
    let resource = Resource::read(TYPE, &object(Kind::Resource(TYPE), spec, labels));
    let offer = Offer::clone(&resource.offer.unwrap());
    let free = offer.capacity.clone();
    Db {
        name: Name::from("db"),
        offer,
        standing: Standing::Vacant,
        phase: "Available",
        free,
        holders: Vec::new(),
    }
}

fn object(kind: Kind, spec: Value, labels: Value) -> Object {
    let metadata = json!({"namespace": "team-a", "name": "x", "labels": labels});
    Object { kind, metadata: serde_json::from_value(metadata).unwrap(), body: json!({"spec": spec}) }
}

/// The filter of the relational database that counts under `predicate`.
pub fn filter(predicate: Predicate) -> Box<dyn Filter> {
    filters(TYPE).into_iter().find(|f| f.predicate() == predicate).unwrap()
}

/// What `filter` says of `db` to a claim with this spec.
#[track_caller]
pub fn check(filter: &dyn Filter, claim: Value, db: &Db, lack: Option<&str>) {
    let want = Want::new(claim);
    assert_eq!(filter.lack(&want.ask(), &db.seen()).as_deref(), lack);
}
