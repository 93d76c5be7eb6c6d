//! The example predicate, in the simulator: the oracle compares by its rule, and recordings keep its field.

use crate::worlds::{TYPE, draw};
use crate::{NOW, decided, engine_on, flavour_of, seeds};
use conductor::model::{Kind, Object};
use conductor::predicates::Predicate;
use conductor_simulator::fuzz::oracle::Oracle;
use conductor_simulator::fuzz::rng::Rng;
use conductor_simulator::record::Redaction;
use serde_json::json;

/// Puts some of the databases into zones, and lets some of the claims want one.
fn zoned(rng: &mut Rng, mut objects: Vec<Object>) -> Vec<Object> {
    for object in objects.iter_mut().filter(|o| matches!(o.kind, Kind::Claim(_) | Kind::Resource(_))) {
        let zones: &[&str] = if object.kind == Kind::Claim(TYPE) { &["a"] } else { &["A", "a", "b"] };
        if rng.chance(60) {
            object.body["spec"]["zone"] = json!(*rng.pick(zones));
        }
    }
    objects
}

#[test]
fn the_oracle_and_the_engine_agree_about_zones() {
    let mut refused = 0;
    for seed in seeds("CONDUCTOR_WORLDS", 300) {
        let mut rng = Rng::new(seed);
        let world = draw(&mut rng, flavour_of(seed));
        let objects = zoned(&mut rng, world);
        let (engine, _) = engine_on(&objects);
        assert_eq!(decided(&engine), Oracle::read(&objects, NOW.0).decide_all(), "CONDUCTOR_SEED={seed}");
        refused += engine.stats().refusals.get(&Predicate::Zone).copied().unwrap_or(0);
    }
    assert!(refused > 0, "no world had a claim that its zone kept from most resources");
}

#[test]
fn a_recording_keeps_the_zone_or_its_pseudonym() {
    let mut rng = Rng::new(1);
    let world = draw(&mut rng, flavour_of(1));
    let objects = zoned(&mut rng, world);
    let object = objects.iter().find(|o| o.body["spec"]["zone"] == "a").expect("a zone was drawn");
    assert_eq!(Redaction::fields_only().redact(object)["spec"]["zone"], "a");
    let hidden = Redaction::with_key(b"key", "conductor-system").redact(object)["spec"]["zone"].clone();
    assert!(hidden.as_str().is_some_and(|zone| zone != "a"), "{hidden}");
}
