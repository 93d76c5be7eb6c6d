//! The engine held against a scheduler that scans: over random worlds both give every claim the same.
//! `CONDUCTOR_SEED` replays one world, `CONDUCTOR_WORLDS` sets how many worlds run.

mod batch;
mod changes;
mod seeds;
mod worlds;
#[cfg(feature = "example-predicate")]
mod zone;

use conductor::action::Action;
use conductor::engine::{Binding, Config, Engine};
use conductor::event::Event;
use conductor::model::{Kind, Object, Time, Uid};
use conductor::predicates::{Candidate, ClassQuery, Predicate, Query, steps};
use conductor_simulator::fuzz::oracle::{Oracle, Outcome};
use conductor_simulator::fuzz::rng::Rng;
use seeds::seeds;
use std::borrow::Cow;
use std::collections::BTreeMap;
use worlds::{Flavour, TYPE, draw};

const NOW: Time = Time(1_704_300_000_000);

/// An engine that received all objects of a world at once, and the actions that it returned.
fn engine_on(objects: &[Object]) -> (Engine, Vec<Action>) {
    let mut engine = Engine::new(Config::default());
    for object in objects {
        assert!(
            engine.handle(Event::Seen(object.clone()), NOW).is_empty(),
            "nothing before everything is listed"
        );
    }
    let actions = engine.handle(Event::Synced, NOW);
    (engine, actions)
}

/// What the engine decided about every claim, in the oracle's words.
fn decided(engine: &Engine) -> BTreeMap<String, Outcome> {
    let outcome = |uid: &Uid| match engine.binding(uid) {
        Some(Binding::Waiting(Some(refused))) => {
            let reasons = refused.refusal.reasons.iter().map(|r| (r.predicate.name().to_owned(), r.count));
            Outcome::Wait(refused.refusal.message.clone(), reasons.collect())
        }
        Some(Binding::Assumed { resource, .. }) => Outcome::Bind(resource.to_string()),
        Some(Binding::Provisioning { class, .. }) => Outcome::Provision(class.to_string()),
        Some(Binding::Bound { resource }) => Outcome::Held(resource.to_string()),
        Some(Binding::Lost { .. }) => Outcome::Lost,
        Some(Binding::Leaving) => Outcome::Leaving,
        other => panic!("claim {uid} is left in {other:?}"),
    };
    engine.state().claims().map(|c| (c.meta.key.to_string(), outcome(&c.meta.uid))).collect()
}

fn flavour_of(seed: u64) -> Flavour {
    if seed % 25 == 24 { Flavour::Crowded } else { Flavour::Mixed }
}

fn show(objects: &[Object], key: &str) -> String {
    let named = |o: &&Object| {
        format!(
            "{}/{}",
            o.metadata.namespace.as_deref().unwrap_or(""),
            o.metadata.name.as_deref().unwrap_or("")
        ) == key
    };
    objects.iter().filter(named).map(|o| format!("{:?} {:#}", o.kind, o.body)).collect()
}

#[test]
fn a_plain_scan_decides_the_same_for_every_claim() {
    let mut tried: BTreeMap<&'static str, usize> = BTreeMap::new();
    for seed in seeds("CONDUCTOR_WORLDS", 2_400) {
        let objects = draw(&mut Rng::new(seed), flavour_of(seed));
        let (engine, _) = engine_on(&objects);
        engine.audit().unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let expected = Oracle::read(&objects, NOW.0).decide_all();
        let got = decided(&engine);
        for (key, expected) in &expected {
            let kind = match expected {
                Outcome::Held(_) => "held",
                Outcome::Bind(_) => "bind",
                Outcome::Provision(_) => "provision",
                Outcome::Wait(..) => "wait",
                Outcome::Lost => "lost",
                Outcome::Leaving => "leaving",
            };
            *tried.entry(kind).or_default() += 1;
            let got = &got[key];
            assert!(
                got == expected,
                "CONDUCTOR_SEED={seed}: claim {key}\n  engine {got:?}\n  oracle {expected:?}\n{}\n{}",
                show(&objects, key),
                [got, expected]
                    .map(|outcome| match outcome {
                        Outcome::Bind(name) => show(&objects, &format!("conductor-system/{name}")),
                        _ => String::new(),
                    })
                    .join("\n"),
            );
        }
    }
    println!("claims by outcome: {tried:?}");
}

#[test]
fn the_index_refuses_what_the_predicates_refuse() {
    for seed in seeds("CONDUCTOR_WORLDS", 300) {
        let objects = draw(&mut Rng::new(seed), flavour_of(seed));
        let (engine, _) = engine_on(&objects);
        let state = engine.state();
        for claim in state.claims() {
            let Ok(wants) = &claim.wants else { continue };
            for (id, entry) in state.resources() {
                let Ok(offer) = &entry.resource.offer else { continue };
                let class =
                    ClassQuery::Exactly(offer.class.as_ref().filter(|_| !claim.priority.is_positive()));
                let query = Query { namespace: &claim.meta.key.namespace, class, wants, headroom: None };
                let standing = state.standing(entry).expect("it can be read");
                let free = Cow::Owned(offer.capacity.saturating_sub(&entry.taken()));
                let candidate = Candidate { offer, standing, free };
                let refusing = steps(TYPE).iter().find(|step| step.refuses(&query, &candidate));
                let indexed = state.index_of(TYPE).first_refusal(&query, id);
                let (key, name) = (&claim.meta.key, &entry.resource.meta.key.name);
                assert_eq!(
                    refusing.map(|step| step.predicate),
                    indexed,
                    "CONDUCTOR_SEED={seed}: {key} and {name}"
                );
            }
        }
    }
}

#[test]
fn the_index_counts_what_the_predicates_refuse() {
    for seed in seeds("CONDUCTOR_WORLDS", 300) {
        let objects = draw(&mut Rng::new(seed), flavour_of(seed));
        let (engine, _) = engine_on(&objects);
        let (state, index) = (engine.state(), engine.state().index_of(TYPE));
        for claim in state.claims() {
            let Ok(wants) = &claim.wants else { continue };
            let class = ClassQuery::Exactly(None);
            let query = Query { namespace: &claim.meta.key.namespace, class, wants, headroom: None };
            let mut expected: BTreeMap<Predicate, usize> = BTreeMap::new();
            for predicate in state.resources().filter_map(|(id, _)| index.first_refusal(&query, id)) {
                *expected.entry(predicate).or_default() += 1;
            }
            assert_eq!(
                index.count_refusals(&query).refused,
                expected,
                "CONDUCTOR_SEED={seed}: {}",
                claim.meta.key
            );
        }
    }
}

#[test]
fn objects_in_any_order_give_the_same_decisions_and_two_runs_the_same_actions() {
    for seed in seeds("CONDUCTOR_WORLDS", 300) {
        let mut rng = Rng::new(seed);
        let mut objects = draw(&mut rng, flavour_of(seed));
        let (engine, actions) = engine_on(&objects);
        let (_, again) = engine_on(&objects);
        assert_eq!(actions, again, "CONDUCTOR_SEED={seed}: two runs differ");
        let first = decided(&engine);
        for _ in 0..3 {
            rng.shuffle(&mut objects);
            let (engine, shuffled) = engine_on(&objects);
            assert_eq!(decided(&engine), first, "CONDUCTOR_SEED={seed}: the order of objects matters");
            assert_eq!(shuffled, actions, "CONDUCTOR_SEED={seed}: the order of objects shows in the actions");
        }
        objects.sort_by_key(|o| matches!(o.kind, Kind::Resource(_)));
        assert_eq!(engine_on(&objects).1, actions, "CONDUCTOR_SEED={seed}: claims before resources");
    }
}
