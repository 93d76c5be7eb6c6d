//! How long single steps take: a decision, an event, an assumption, a quota check, an explanation.
//! Whole plans and the table for people are in `summary`.

mod support;

use conductor::cache::{Charge, State};
use conductor::event::Event;
use conductor::model::{Capacity, ClaimRef, Kind, Name, Object, ObjectKey, Quota, Uid};
use conductor::scheduler::{Memo, explain, prepare, schedule_one};
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use serde_json::json;
use std::hint::black_box;
use std::time::Duration;
use support::{NOW, Sizes, Wish};

/// Claims that take turns, so that no figure hangs on one lucky request.
const CLAIMS: usize = 64;

fn decisions(c: &mut Criterion) {
    for (count, word) in [(1_000, "1k"), (10_000, "10k"), (100_000, "100k"), (1_000_000, "1M")] {
        for sizes in [Sizes::Shirts, Sizes::Any] {
            let state = support::state(count, sizes);
            decide(c, &format!("decision/{word}/{sizes:?}/fits"), &state, Wish::Usual, true);
            decide(c, &format!("decision/{word}/{sizes:?}/refused"), &state, Wish::Impossible, false);
        }
    }
}

/// Each decision is made with an empty memo: nothing is remembered from the last one.
fn decide(c: &mut Criterion, name: &str, state: &State, wish: Wish, served: bool) {
    let claims = support::claims(state, wish, served, CLAIMS);
    let mut turns = claims.iter().cycle();
    c.bench_function(name, |b| {
        b.iter(|| {
            let claim = turns.next().expect("there are claims");
            let request = prepare(state, claim).expect("readable");
            black_box(schedule_one(state, &request, &mut Memo::default()))
        });
    });
}

/// A resource that helps no claim is freed and allocated again, while many claims wait.
fn events(c: &mut Criterion) {
    for (parked, lanes) in [(10, 1), (100_000, 1), (1_000, 1_000), (100_000, 1_000)] {
        let mut engine = support::crowd(parked, lanes, 100);
        let mut revision = 1;
        c.bench_function(&format!("event/{parked} parked/{lanes} lanes"), |b| {
            b.iter_batched(
                || {
                    revision += 1;
                    support::held(1_000_000, revision % 2 == 0, revision, "512Mi")
                },
                |object| black_box(engine.handle(Event::Seen(object), NOW)),
                BatchSize::SmallInput,
            );
        });
    }
}

/// A class of three objects, compiled once, rendered for one claim after the other.
fn templates(c: &mut Criterion) {
    let class = support::graph_class();
    let inputs = support::GraphInputs::new();
    let compiled = support::compile(&class);
    c.bench_function("template/render three objects", |b| {
        b.iter(|| black_box(compiled.render(&inputs.all_there())));
    });
    c.bench_function("template/compile three objects", |b| b.iter(|| black_box(support::compile(&class))));
}

fn bookkeeping(c: &mut Criterion) {
    let mut state = support::state(100_000, Sizes::Shirts);
    let id = support::vacant(&state);
    let uid = Uid::from("assumed");
    let requests = Capacity::parse("storage", &json!({"storage": "1Gi"})).expect("readable");
    let key = ObjectKey::new("team-1", "assumed");
    c.bench_function("assume and forget", |b| {
        b.iter(|| {
            let (claim, requests) = (key.clone(), requests.clone());
            state.assume(id, ClaimRef { claim, uid: Some(uid.clone()), requests, reserved: false });
            state.forget(id, &uid);
        });
    });
    let refused = support::claims(&state, Wish::Impossible, false, CLAIMS);
    let mut turns = refused.iter().cycle();
    c.bench_function("explain one refusal", |b| {
        b.iter(|| {
            let claim = turns.next().expect("there are claims");
            let request = prepare(&state, claim).expect("readable");
            black_box(explain(&state, &request))
        });
    });
    for n in 0..100 {
        state.quota_usage.set_quota(Quota::read(&quota(n)));
    }
    let charge = Charge {
        namespace: Name::from("team-1"),
        class: Some(Name::from("gold")),
        engine: Some(Name::from("mysql")),
        amounts: requests,
    };
    c.bench_function("quota check, 100 quotas", |b| {
        b.iter(|| black_box(state.quota_usage.overruns(&charge, false)))
    });
}

/// Half are the namespace's own, half the cluster's.
fn quota(n: u64) -> Object {
    let kind = if n.is_multiple_of(2) { Kind::Quota } else { Kind::ClusterQuota };
    let mut object = support::claim_object(
        n,
        json!({"limits": [
            {"claims": 10, "requests": {"storage": "500Gi"}}, {"class": "gold", "claims": 5},
        ]}),
    );
    let namespace = (kind == Kind::Quota).then(|| "team-1".to_owned());
    (object.kind, object.metadata.namespace) = (kind, namespace);
    object
}

fn short() -> Criterion {
    let criterion = Criterion::default().sample_size(20).without_plots();
    criterion.warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1))
}

criterion_group! { name = all; config = short(); targets = decisions, events, bookkeeping, templates }
criterion_main!(all);
