//! What the engine believes: revisions, lives of a name, assumptions (rules 17 and 18).

use crate::support::{
    CLAIM, Driver, RESOURCE, With, answer_to, claim, db, held_by, is_write, requests, resource, world,
};
use conductor::action::{Action, Change};
use conductor::engine::Binding;
use conductor::event::{Answer, Event, Gone};
use conductor::model::{ObjectKey, Revision};
use serde_json::json;

#[test]
fn an_older_revision_is_dropped() {
    let mut driver = Driver::start(world().resource("r", db(5)).into_world());
    driver.run();
    let key = ObjectKey::new("conductor-system", "r");
    let stale = driver.world.get(RESOURCE, &key).unwrap().clone();
    let fresh = driver.world.edit(RESOURCE, &key, |o| o.body["spec"]["unschedulable"] = json!(true)).unwrap();
    driver.deliver_event(fresh);
    driver.deliver_event(Event::Seen(stale));
    driver.put(claim("c", requests(1)));
    driver.run();
    assert_eq!(driver.outcome("c"), "NoMatch");
}

#[test]
fn an_equal_revision_passes() {
    let mut driver = Driver::start(world().resource("r", db(5)).into_world());
    driver.run();
    let key = ObjectKey::new("conductor-system", "r");
    let mut same = driver.world.get(RESOURCE, &key).unwrap().clone();
    same.body["spec"]["unschedulable"] = json!(true);
    driver.deliver_event(Event::Seen(same));
    driver.put(claim("c", requests(1)));
    driver.run();
    assert_eq!(driver.outcome("c"), "NoMatch");
}

#[test]
fn what_was_written_is_known_before_the_watch_says_so() {
    // The watch is never heard: the answers to writes alone carry the bind to its end.
    let mut driver = Driver::start(world().resource("r", db(5)).claim("c", requests(1)).into_world());
    loop {
        if let Some(action) = driver.outbox.pop_front() {
            driver.carry_out(action);
            driver.inbox.retain(|event| !matches!(event, Event::Seen(_)));
        } else if let Some(event) = driver.inbox.pop_front() {
            driver.deliver_event(event);
        } else {
            break;
        }
    }
    assert_eq!(driver.outcome("c"), "-> r");
    assert_eq!(driver.phase_of(RESOURCE, "r"), "Bound");
}

#[test]
fn a_name_that_is_used_again_is_a_new_claim() {
    let mut driver = Driver::start(world().resource("r", db(5)).claim("c", requests(1)).into_world());
    driver.run();
    // Deleted and created again between two looks of the watch.
    let mut again = claim("c", requests(1));
    again.metadata.uid = Some("another-life".to_owned());
    driver.put(again);
    driver.run();
    assert_eq!(driver.phase_of(RESOURCE, "r"), "Released");
    assert_eq!(driver.outcome("c"), "NoMatch");
}

#[test]
fn a_late_echo_of_an_object_that_is_gone_does_not_bring_it_back() {
    let mut driver = Driver::start(world().resource("r", db(5)).into_world());
    driver.run();
    let key = ObjectKey::new("conductor-system", "r");
    let echo = driver.world.get(RESOURCE, &key).unwrap().clone();
    let uid = echo.metadata.uid.clone().unwrap();
    driver.world.delete(RESOURCE, &key);
    driver.deliver_event(Event::Gone(Gone {
        kind: RESOURCE,
        key,
        uid: uid.into(),
        revision: Revision::default(),
    }));
    driver.deliver_event(Event::Seen(echo));
    driver.put(claim("c", requests(1)));
    driver.run();
    assert_eq!(driver.outcome("c"), "NoMatch");
}

#[test]
fn what_a_list_does_not_show_is_gone_unless_it_was_written_after_the_list() {
    let mut driver = Driver::start(world().resource("old", db(5)).into_world());
    driver.run();
    let listed_at = Revision(driver.world.revision());
    driver.put(resource("new", db(5)));
    driver.run();
    driver.world.delete(RESOURCE, &ObjectKey::new("conductor-system", "old"));
    driver.deliver_event(Event::Listed { kind: RESOURCE, objects: vec![], revision: listed_at });
    driver.put(claim("a", requests(1)));
    driver.put(claim("b", requests(1)));
    driver.run();
    assert_eq!((driver.outcome("a").as_str(), driver.outcome("b").as_str()), ("-> new", "NoMatch"));
}

#[test]
fn an_assumed_binding_never_expires_by_time() {
    let mut driver = Driver::start(
        world().resource("r", db(5)).claim("c", requests(1)).claim("d", requests(1)).into_world(),
    );
    driver.run_holding_writes();
    driver.wait_holding_writes(24 * 3_600_000);
    assert!(matches!(driver.binding("c"), Binding::Assumed { .. }), "{:?}", driver.binding("c"));
    assert!(matches!(driver.binding("d"), Binding::Waiting(_)), "{:?}", driver.binding("d"));
    driver.run();
    assert_eq!((driver.outcome("c").as_str(), driver.outcome("d").as_str()), ("-> r", "NoMatch"));
}

/// Runs until the write that commits the bind, and takes it out of the outbox.
fn take_commit(driver: &mut Driver) -> Action {
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
fn a_lost_answer_is_settled_by_a_live_read_and_the_claim_keeps_what_it_was_given() {
    for arrived in [true, false] {
        let mut driver = Driver::start(
            world().resource("r", db(5)).claim("c", requests(1)).claim("d", requests(1)).into_world(),
        );
        let commit = take_commit(&mut driver);
        if arrived {
            driver.world.apply(&commit).unwrap();
        }
        driver.deliver_event(answer_to(&commit, Answer::Unknown("timed out".to_owned())));
        driver.run();
        assert!(matches!(driver.binding("c"), Binding::Assumed { .. }), "{:?}", driver.binding("c"));
        driver.wait(60_000);
        assert_eq!((driver.outcome("c").as_str(), driver.outcome("d").as_str()), ("-> r", "NoMatch"));
    }
}

#[test]
fn a_conflict_gives_the_claim_back_and_another_resource_is_found() {
    let mut driver = Driver::start(world().resource("r", db(5)).claim("c", requests(1)).into_world());
    let commit = take_commit(&mut driver);
    // Meanwhile another client has reserved the resource.
    let key = ObjectKey::new("conductor-system", "r");
    driver.put(claim("d", requests(900)));
    let uid = driver.world.get(CLAIM, &crate::support::claim_key("d")).unwrap().metadata.uid.clone().unwrap();
    driver
        .world
        .edit(RESOURCE, &key, |o| o.body["spec"]["claimRefs"] = held_by("d", &uid)["claimRefs"].clone());
    driver.put(resource("spare", db(50)));
    driver.carry_out(commit);
    driver.run();
    driver.wait(60_000);
    assert_eq!((driver.outcome("c").as_str(), driver.outcome("d").as_str()), ("-> spare", "-> r"));
}

#[test]
fn one_object_never_has_two_writes_on_their_way() {
    let shared = db(50).with(json!({"sharing": {"maxClaims": 20}}));
    let mut scene = world().resource("r", shared);
    for at in 0..10 {
        scene = scene.claim(&format!("c-{at}"), requests(1));
    }
    let mut driver = Driver::start(scene.into_world());
    loop {
        driver.run_holding_writes();
        let mut targets: Vec<String> = driver
            .outbox
            .iter()
            .filter(|a| is_write(a))
            .map(|a| match a {
                Action::Write(write) => format!("{:?} {}", write.kind, write.key),
                other => format!("{other:?}"),
            })
            .collect();
        if targets.is_empty() {
            break;
        }
        targets.sort();
        let all = targets.len();
        targets.dedup();
        assert_eq!(targets.len(), all);
        let write = driver.take_write();
        driver.carry_out(write);
    }
    assert_eq!(driver.engine.stats().bound, 10);
}

#[test]
fn no_action_precedes_the_complete_lists() {
    let world = world().resource("r", db(5)).claim("c", requests(1)).into_world();
    let mut engine = conductor::engine::Engine::new(Default::default());
    let now = conductor::model::Time(0);
    let actions: Vec<Action> =
        world.objects().flat_map(|o| engine.handle(Event::Seen(o.clone()), now)).collect();
    assert_eq!(actions, []);
    assert!(engine.handle(Event::Synced, now).iter().any(is_write));
}
