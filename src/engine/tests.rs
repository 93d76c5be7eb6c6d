//! A type that is not a database is bound by the same engine: its entry in the table is all it takes.

use super::{Binding, Config, Engine};
use crate::action::{Action, Change};
use crate::event::Event;
use crate::model::types::bucket::TYPE;
use crate::model::{FieldValue, Kind, Object, Time, TypeId, Uid};
use crate::predicates::Standing;
use serde_json::{Value, json};

const NOW: Time = Time(1_000_000);

fn object(kind: Kind, namespace: &str, name: &str, body: Value) -> Object {
    let metadata = json!({"namespace": namespace, "name": name, "uid": name, "resourceVersion": "7"});
    Object { kind, metadata: serde_json::from_value(metadata).unwrap(), body }
}

fn bucket(name: &str, region: &str, features: &[&str], objects: u32) -> Object {
    let spec = json!({"region": region, "features": features, "capacity": {"objects": objects}});
    object(Kind::Resource(TYPE), "conductor-system", name, json!({"spec": spec}))
}

fn claim(name: &str, spec: Value) -> Object {
    object(Kind::Claim(TYPE), "shop", name, json!({"spec": spec}))
}

fn start(objects: Vec<Object>) -> (Engine, Vec<Action>) {
    let mut engine = Engine::new(Config::default());
    for object in objects {
        engine.handle(Event::Seen(object), NOW);
    }
    let actions = engine.handle(Event::Synced, NOW);
    engine.audit().unwrap();
    (engine, actions)
}

fn buckets() -> Vec<Object> {
    vec![
        bucket("far", "us-east-1", &["versioning"], 10),
        bucket("plain", "eu-central-1", &[], 10),
        bucket("large", "eu-central-1", &["versioning"], 1000),
        bucket("small", "EU-Central-1", &["versioning", "lock"], 10),
        bucket("tiny", "eu-central-1", &["versioning"], 1),
    ]
}

#[test]
fn a_bucket_is_bound_by_region_features_and_objects() {
    let mut objects = buckets();
    let spec =
        json!({"region": "Frankfurt", "needs": ["versioning"], "resources": {"requests": {"objects": 5}}});
    objects.push(claim("photos", spec));
    // A database of the same name and shape of claim is of another type, and is ignored.
    let database = json!({"spec": {"engine": "mysql"}});
    objects.push(object(Kind::Resource(TypeId::RELATIONAL_DATABASE), "conductor-system", "small", database));
    let (engine, actions) = start(objects);
    let Some(Binding::Assumed { resource, .. }) = engine.binding(&Uid::from("photos")) else {
        panic!("{:?}", engine.binding(&Uid::from("photos")))
    };
    assert_eq!(&**resource, "small");
    let binds = actions.iter().any(|action| match action {
        Action::Write(write) => {
            write.kind == Kind::Resource(TYPE)
                && matches!(&write.change, Change::ResourceSpec { claim_refs, .. }
                    if claim_refs.len() == 1 && claim_refs[0].uid.as_deref() == Some("photos"))
        }
        _ => false,
    });
    assert!(binds, "{actions:#?}");
}

#[test]
fn a_resource_that_the_index_is_wrong_about_is_not_bound() {
    let (mut engine, _) = start(buckets());
    let id = engine.state.find_resource(TYPE, &"far".into()).unwrap();
    let entry = engine.state.resource(id).unwrap().clone();
    let offered = entry.resource.offer.clone().unwrap();
    let mut wrong = (*offered).clone();
    wrong.fields[0] = FieldValue::Name("eu-north-1".into());
    let index = engine.state.index_mut(TYPE);
    index.place(id, &"far".into(), &wrong.into(), Standing::Vacant, &entry.taken(), 0);
    let actions = engine.handle(Event::Seen(claim("photos", json!({"region": "eu-north-1"}))), NOW);
    let message =
        "the index offers resource far, which Region refuses: its region is us-east-1, not eu-north-1";
    let Some(Binding::Waiting(Some(refused))) = engine.binding(&Uid::from("photos")) else {
        panic!("{:?}", engine.binding(&Uid::from("photos")))
    };
    assert_eq!((refused.reason, refused.refusal.message.as_str()), ("NoMatch", message));
    assert_eq!((engine.stats().index_disagreements, engine.stats().bound), (1, 0));
    let reported = |action: &&Action| match action {
        Action::Emit(note) => (note.reason, note.message.as_str()) == ("IndexDisagreement", message),
        _ => false,
    };
    assert_eq!(actions.iter().filter(reported).count(), 1, "{actions:#?}");
    let is_bound = |action: &Action| match action {
        Action::Write(write) => matches!(write.change, Change::ResourceSpec { .. }),
        _ => false,
    };
    assert!(!actions.iter().any(is_bound), "{actions:#?}");
    // It was indexed anew: the next claim is refused by the index itself.
    engine.handle(Event::Seen(claim("films", json!({"region": "eu-north-1"}))), NOW);
    assert_eq!(engine.stats().index_disagreements, 1);
}

#[test]
fn a_bucket_claim_is_refused_by_the_predicates_of_its_type() {
    let mut objects = buckets();
    let spec = json!({"region": "frankfurt", "needs": ["lock"], "resources": {"requests": {"objects": 50}}});
    objects.push(claim("photos", spec));
    let (engine, _) = start(objects);
    let Some(Binding::Waiting(Some(refused))) = engine.binding(&Uid::from("photos")) else {
        panic!("{:?}", engine.binding(&Uid::from("photos")))
    };
    let message = "0/5 resources fit: 3 features, 1 region, 1 capacity";
    assert_eq!(refused.refusal.message, message);
}

#[test]
fn unreadable_objects_are_reported_at_the_start_and_not_before() {
    let class = json!({"template": {"apiVersion": "v1"}});
    let class = object(Kind::Class(TypeId::RELATIONAL_DATABASE), "conductor-system", "no-kind", class);
    let quota = object(Kind::Quota, "shop", "scrambled", json!({"spec": {"limits": "many"}}));
    let limits = object(Kind::Limits, "shop", "wordy", json!({"spec": {"max": {"storage": "much"}}}));
    let profile = object(Kind::Profile, "", "odd", json!({"spec": {"scores": [{"name": "Luck"}]}}));
    let reported = |actions: &[Action]| {
        let note = |action: &Action| match action {
            Action::Emit(note) => Some(note.key.name.to_string()),
            _ => None,
        };
        actions.iter().filter_map(note).collect::<Vec<_>>()
    };
    let mut engine = Engine::new(Config::default());
    for object in [class, quota, limits, profile] {
        // A replica that stands by sees everything and must report nothing: the leader does.
        assert_eq!(reported(&engine.handle(Event::Seen(object), NOW)), [""; 0]);
    }
    assert_eq!(reported(&engine.handle(Event::Synced, NOW)), ["no-kind", "scrambled", "wordy", "odd"]);
}
