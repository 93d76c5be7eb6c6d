//! Who is tried when: order, backoff, parking, wake-ups, the safety flush, the audit.

use crate::support::{
    CLAIM, Driver, RESOURCE, Run, With, answer_to, claim, claim_key, class, db, is_write, makes, requests,
    resource, world,
};
use conductor::action::{Action, Change};
use conductor::event::Answer;
use conductor::model::ClaimPhase;
use serde_json::{Value, json};

fn urgent(gib: u32, priority: i32) -> Value {
    requests(gib).with(json!({ "priority": priority }))
}

#[test]
fn the_higher_priority_is_served_first_then_the_older_claim() {
    let run = world()
        .resource("r", db(5))
        .claim("a", requests(1))
        .created(10)
        .claim("b", urgent(1, 5))
        .created(30)
        .claim("c", urgent(1, 5))
        .created(20)
        .settle();
    assert_eq!(run.outcomes(), ["a: NoMatch", "b: NoMatch", "c -> r"]);
}

#[test]
fn a_freed_resource_goes_to_the_best_waiting_claim() {
    let mut run = world()
        .claim("low", urgent(1, -5))
        .created(1)
        .claim("high", urgent(1, 7))
        .created(9)
        .claim("middle", requests(1))
        .created(5)
        .settle();
    for (name, served) in [("r-1", "high"), ("r-2", "middle"), ("r-3", "low")] {
        run.put(resource(name, db(5)));
        assert_eq!(run.outcome(served), format!("-> {name}"));
    }
    assert_eq!(run.bound_after_flush(), 0);
}

#[test]
fn one_event_wakes_one_claim_per_group() {
    let mut scene = world();
    for at in 0..50 {
        scene = scene
            .claim(&format!("alike-{at:02}"), requests(1))
            .claim(&format!("large-{at:02}"), requests(100));
    }
    let mut run = scene.settle();
    let before = run.decisions();
    run.put(resource("r", db(5)));
    assert_eq!(run.outcome("alike-00"), "-> r");
    // The first of the group that fits, and the next, which finds nothing left. No others.
    assert!(run.decisions() - before <= 2, "{} decisions", run.decisions() - before);
}

#[test]
fn an_event_that_helps_no_claim_wakes_none() {
    let mut run =
        world().claim("c", requests(10)).claim("m", requests(1).with(json!({"engine": "mysql"}))).settle();
    let before = run.decisions();
    run.put(resource("small", db(1)));
    run.put(resource("classed", db(50).with(json!({"class": "fast"}))));
    run.put(class("other", makes("Delete")));
    assert_eq!(run.decisions(), before);
}

#[test]
fn a_shared_resource_that_appears_serves_as_many_as_it_has_slots_for() {
    let mut scene = world();
    for at in 0..5 {
        scene = scene.claim(&format!("c-{at}"), requests(1));
    }
    let mut run = scene.settle();
    run.put(resource("r", db(50).with(json!({"sharing": {"maxClaims": 3}}))));
    let bound = run.outcomes().iter().filter(|o| o.ends_with("-> r")).count();
    assert_eq!((bound, run.bound_after_flush()), (3, 0));
}

/// Each row: what a claim waits for, and the edit that should wake it at once.
#[test]
fn every_edit_that_makes_a_resource_fit_wakes_the_claim() {
    type Edit = (&'static str, Value, Value, Value);
    let rows: Vec<Edit> = vec![
        (
            "version",
            db(5).with(json!({"version": "12.1"})),
            requests(1).with(json!({"version": "14"})),
            json!({"version": "14.1"}),
        ),
        ("capacity", db(1), requests(5), json!({"capacity": {"storage": "5Gi"}})),
        ("engine", db(5).with(json!({"engine": "mysql"})), requests(1), json!({"engine": "postgres"})),
        ("class", db(5).with(json!({"class": "x"})), requests(1), json!({"class": ""})),
        ("cordon", db(5).with(json!({"unschedulable": true})), requests(1), json!({"unschedulable": false})),
        (
            "flag",
            db(5),
            requests(1).with(json!({"highly-available": true})),
            json!({"highly-available": true}),
        ),
        (
            "capability",
            db(5),
            requests(1).with(json!({"requests": ["tls"]})),
            json!({"capabilities": ["tls"]}),
        ),
        (
            "namespace",
            db(5).with(json!({"sharing": {"allowedNamespaces": ["x"]}})),
            requests(1),
            json!({"sharing": {}}),
        ),
    ];
    for (what, spec, wants, edit) in rows {
        let mut run = world().resource("r", spec).claim("c", wants).settle();
        assert_eq!(run.outcome("c"), "NoMatch", "{what}");
        run.edit_spec(RESOURCE, "r", edit);
        assert_eq!((run.outcome("c").as_str(), run.bound_after_flush()), ("-> r", 0), "{what}");
    }
}

#[test]
fn a_label_that_makes_a_resource_fit_wakes_the_claim() {
    let mut run = world()
        .resource("r", db(5))
        .claim("c", requests(1).with(json!({"selector": {"matchLabels": {"tier": "gold"}}})))
        .settle();
    run.edit(RESOURCE, "r", |o| o.metadata.labels = Some([("tier".to_owned(), "gold".to_owned())].into()));
    assert_eq!((run.outcome("c").as_str(), run.bound_after_flush()), ("-> r", 0));
}

#[test]
fn every_edit_of_the_claim_that_makes_it_fit_tries_it_at_once() {
    for edit in [requests(1), json!({"version": "14"}), json!({"class": ""}), json!({"resourceName": "r"})] {
        let wants = requests(9).with(json!({"class": "x", "version": "15"}));
        let mut run = world().resource("r", db(5)).claim("c", wants).settle();
        run.edit_spec(CLAIM, "c", requests(1).with(json!({"class": "", "version": "14"})).with(edit));
        assert_eq!((run.outcome("c").as_str(), run.bound_after_flush()), ("-> r", 0));
    }
}

#[test]
fn an_unreadable_claim_is_tried_again_once_it_is_repaired() {
    let mut run =
        world().resource("r", db(5)).claim("c", requests(1).with(json!({"version": "??"}))).settle();
    assert_eq!(run.outcome("c"), "InvalidSpec");
    run.edit_spec(CLAIM, "c", json!({"version": "14"}));
    assert_eq!(run.outcome("c"), "-> r");
}

#[test]
fn a_slot_that_a_claim_leaves_wakes_the_next() {
    let mut run = world()
        .resource("r", db(5).with(json!({"sharing": {"maxClaims": 2}})))
        .claim("a", requests(1))
        .claim("b", requests(1))
        .claim("c", requests(1))
        .settle();
    assert_eq!(run.outcome("c"), "NoMatch");
    run.delete(CLAIM, "a");
    assert_eq!((run.outcome("c").as_str(), run.bound_after_flush()), ("-> r", 0));
}

#[test]
fn a_write_that_changes_nothing_is_not_sent_again_at_once() {
    let mut driver = Driver::start(world().resource("r", db(5)).claim("c", requests(1)).into_world());
    driver.run_holding_writes();
    let write = next_commit(&mut driver);
    // The API took it, and the object is as it was: it says something that is read as something else.
    let Action::Write(sent) = &write else { panic!("{write:?}") };
    let as_it_was = driver.world.get(RESOURCE, &sent.key).unwrap().clone();
    driver.deliver_event(answer_to(&write, Answer::Written(as_it_was.into())));
    driver.run_holding_writes();
    let again = |driver: &Driver| driver.outbox.iter().filter(|a| is_write_to(a, &sent.key)).count();
    assert_eq!(again(&driver), 0);
    driver.wait_holding_writes(1_000);
    assert_eq!(again(&driver), 1, "but after a pause");
}

fn is_write_to(action: &Action, key: &conductor::model::ObjectKey) -> bool {
    matches!(action, Action::Write(write) if write.key == *key)
}

#[test]
fn failing_claims_do_not_block_newer_ones() {
    let mut scene = world();
    for at in 0..20 {
        scene = scene.claim(&format!("hopeless-{at}"), urgent(1000, 100)).created(1);
    }
    let mut run = scene.settle();
    run.put(resource("r", db(5)));
    run.put(claim("new", requests(1)));
    assert_eq!(run.outcome("new"), "-> r");
}

/// Carries out what is not a commit; hands back the next commit of a bind.
fn next_commit(driver: &mut Driver) -> Action {
    loop {
        driver.run_holding_writes();
        let write = driver.take_write();
        match &write {
            Action::Write(w) if matches!(w.change, Change::ResourceSpec { .. }) => return write,
            _ => driver.carry_out(write),
        }
    }
}

#[test]
fn a_claim_whose_write_fails_backs_off_one_second_doubling_to_ten() {
    let mut driver = Driver::start(world().resource("r", db(5)).claim("c", requests(1)).into_world());
    let mut tries = Vec::new();
    while tries.len() < 7 {
        driver.run_holding_writes();
        let Some(at) = driver.outbox.iter().position(is_write) else {
            driver.wait_holding_writes(100);
            assert!(driver.now.0 < 1_800_000_200_000, "it is never tried again");
            continue;
        };
        let write = driver.outbox.remove(at).unwrap();
        match &write {
            Action::Write(w) if matches!(w.change, Change::ResourceSpec { .. }) => {
                tries.push(driver.now);
                driver.deliver_event(answer_to(&write, Answer::Conflict));
            }
            _ => driver.carry_out(write),
        }
    }
    let pauses: Vec<i64> = tries.windows(2).map(|w| (w[1].0 - w[0].0) / 1000).collect();
    assert_eq!(pauses, [1, 2, 4, 8, 10, 10]);
}

#[test]
fn a_claim_whose_write_failed_goes_behind_its_peers() {
    let mut driver = Driver::start(
        world()
            .resource("r", db(5))
            .claim("a", requests(1))
            .created(1)
            .claim("b", requests(1))
            .created(2)
            .into_world(),
    );
    let commit = next_commit(&mut driver);
    driver.deliver_event(answer_to(&commit, Answer::Conflict));
    driver.run();
    driver.wait(30_000);
    assert_eq!((driver.outcome("a").as_str(), driver.outcome("b").as_str()), ("NoMatch", "-> r"));
}

#[test]
fn an_event_that_came_while_a_claim_was_tried_is_replayed_when_the_try_fails() {
    let mut driver = Driver::start(world().resource("r", db(5)).claim("c", requests(1)).into_world());
    let commit = next_commit(&mut driver);
    // While the write is on its way something else becomes free, and then the write fails.
    driver.put(resource("spare", db(5)));
    driver.world.delete(RESOURCE, &conductor::model::ObjectKey::new("conductor-system", "r"));
    driver.carry_out(commit);
    let now = driver.now;
    driver.run();
    assert_eq!((driver.outcome("c").as_str(), driver.now), ("-> spare", now), "at once, without a pause");
    assert_eq!(driver.engine.bound_after_flush(), 0);
}

#[test]
fn parked_claims_are_flushed_after_five_minutes_and_a_bind_after_a_flush_is_counted() {
    let mut driver = Driver::start(world().claim("c", requests(1)).into_world());
    driver.run();
    let before = driver.engine.stats().decisions;
    driver.wait(299_000);
    assert_eq!(driver.engine.stats().decisions, before);
    driver.wait(2_000);
    assert_eq!(driver.engine.stats().decisions, before + 1);
    assert_eq!(driver.engine.bound_after_flush(), 0, "a flush that binds no claim is not counted");
}

/// The message on a claim's Bound condition.
fn reported(driver: &Driver, name: &str) -> String {
    let claim = driver.world.get(CLAIM, &claim_key(name)).unwrap();
    let conditions = claim.body["status"]["conditions"].as_array().unwrap();
    let bound = conditions.iter().find(|c| c["type"] == "Bound").unwrap();
    bound["message"].as_str().unwrap().to_owned()
}

#[test]
fn in_a_burst_of_offers_each_claim_reports_once_until_a_pause() {
    let mut scene = world();
    for at in 0..20 {
        scene = scene.claim(&format!("c-{at:02}"), requests(1));
    }
    let mut driver = Driver::start(scene.into_world());
    driver.run();
    let (before, said) = (driver.sent.len(), reported(&driver, "c-10"));
    for at in 0..10 {
        driver.put(resource(&format!("r-{at}"), db(5)));
        driver.run();
    }
    let is_pending = |action: &&Action| match action {
        Action::Write(write) => {
            matches!(write.change, Change::ClaimStatus { phase: ClaimPhase::Pending, .. })
        }
        _ => false,
    };
    assert_eq!(driver.outcome("c-09"), "-> r-9");
    assert_eq!(driver.sent[before..].iter().filter(is_pending).count(), 0, "each bind alone is written");
    assert_eq!(reported(&driver, "c-10"), said);
    driver.wait(2_000);
    assert_eq!(driver.sent[before..].iter().filter(is_pending).count(), 1);
    assert!(reported(&driver, "c-10").starts_with("0/10 resources fit"), "{}", reported(&driver, "c-10"));
    assert_eq!(reported(&driver, "c-11"), said, "the others of a group report it with the flush, as ever");
    driver.wait(10_000);
    assert_eq!(driver.sent[before..].iter().filter(is_pending).count(), 1, "and once");
}

#[test]
fn the_next_in_line_reports_a_new_reason_at_once() {
    let limits = json!([{"claims": 1}]);
    let scene = world().quota("one", limits).claim("a", requests(1)).claim("b", requests(1));
    let mut driver = Driver::start(scene.into_world());
    driver.run();
    assert_eq!(driver.outcome("b"), "NoMatch");
    driver.put(resource("r", db(5)));
    driver.put(resource("s", db(5)));
    driver.run();
    assert_eq!((driver.outcome("a").as_str(), driver.outcome("b").as_str()), ("-> r", "QuotaExceeded"));
}

#[test]
fn an_edit_while_a_claim_is_parked_never_loses_it() {
    let mut run: Run = world().claim("a", requests(9)).claim("b", requests(9)).settle();
    for gib in [8, 7, 6] {
        run.edit_spec(CLAIM, "a", requests(gib));
        run.edit_spec(CLAIM, "b", urgent(gib, 3));
    }
    let lengths = run.harness.engine.queue_lengths();
    assert_eq!((lengths.parked, lengths.active, lengths.backoff, lengths.in_flight), (2, 0, 0, 0));
    run.delete(CLAIM, "a");
    assert_eq!(run.harness.engine.queue_lengths().parked, 1);
}

#[test]
fn queued_assumed_bound_and_parked_claims_are_all_there_are() {
    let mut driver = Driver::start(
        world()
            .class("fast", makes("Delete"))
            .resource("r", db(5))
            .resource("s", db(2))
            .claim("bound", requests(2))
            .claim("parked", requests(100))
            .claim("made", requests(1).with(json!({"class": "fast"})))
            .into_world(),
    );
    // `run_holding_writes` and `run` audit at every stop.
    driver.run_holding_writes();
    while driver.outbox.iter().any(is_write) {
        let write = driver.take_write();
        driver.carry_out(write);
        driver.run_holding_writes();
    }
    driver.put(claim("late", requests(3)));
    driver.run();
    assert_eq!(driver.outcome("late"), "-> r");
    assert_eq!(driver.engine.state().claim_count(), 4);
}
