//! Claims that come together and can share: one resource is made for all that it has room for, as it would be shared by
//! claims that come one by one. The implementation is played by the test.

use crate::fallback::born_now;
use crate::support::{CLAIM, RESOURCE, Run, Scene, With, claim, db, makes, profile, requests, world};
use serde_json::{Value, json};

const MADE: &str = "rdb-a";

fn of_class() -> Value {
    requests(1).with(json!({"class": "fast"}))
}

fn shared(slots: u32) -> Value {
    let more = json!({"sharing": {"maxClaims": slots}, "capacity": {"storage": "10Gi"}});
    makes("Delete").with(more)
}

/// One claim after the other, each under its own name as its UID.
fn scene(class: Value, claims: &[&str]) -> Scene {
    let scene = world().class("fast", class);
    let with =
        |scene: Scene, (at, name): (usize, &&str)| scene.claim(name, of_class()).uid(name).created(at as i64);
    claims.iter().enumerate().fold(scene, with)
}

fn made(run: &Run) -> Vec<String> {
    run.resources()
}

#[test]
fn claims_that_come_together_have_one_resource_made_and_share_it() {
    let mut run = scene(shared(3), &["a", "b", "c"]).settle();
    assert_eq!(run.outcomes(), ["a: Provisioning", "b: Provisioning", "c: Provisioning"]);
    assert_eq!((made(&run), run.resource(MADE)), (vec![MADE.to_owned()], "Creating by a, b, c".to_owned()));
    assert_eq!(run.message("b"), "waiting for resource rdb-a, which is being made from class fast");
    run.becomes_available(MADE);
    assert_eq!(run.outcomes(), ["a -> rdb-a", "b -> rdb-a", "c -> rdb-a"]);
    assert_eq!(run.bound_after_flush(), 0);
}

#[test]
fn a_claim_that_comes_while_a_resource_is_made_shares_it() {
    let mut run = scene(shared(3), &["a"]).settle();
    run.put(claim("late", of_class()));
    assert_eq!(
        (run.resource(MADE), run.outcome("late")),
        ("Creating by a, late".into(), "Provisioning".into())
    );
    run.becomes_available(MADE);
    assert_eq!((made(&run).len(), run.outcome("late")), (1, "-> rdb-a".to_owned()));
}

#[test]
fn another_is_made_for_those_that_the_first_has_no_room_for() {
    let run = scene(shared(2), &["a", "b", "c", "d", "e"]).settle();
    assert_eq!(made(&run), ["rdb-a", "rdb-c", "rdb-e"]);
    assert_eq!(
        (run.resource("rdb-a"), run.resource("rdb-c")),
        ("Creating by a, b".into(), "Creating by c, d".into())
    );
    // What it is made with is what there is to share.
    let as_asked = makes("Delete").with(json!({"sharing": {"maxClaims": 9}}));
    assert_eq!(made(&scene(as_asked, &["a", "b"]).settle()), ["rdb-a", "rdb-b"]);
}

#[test]
fn one_that_is_ready_is_preferred_to_one_that_is_being_made() {
    let mut run = scene(shared(3), &["a"]).settle();
    run.put(crate::support::resource("there", db(50).with(json!({"class": "fast"}))));
    run.put(claim("late", of_class()));
    assert_eq!(run.outcome("late"), "-> there");
}

#[test]
fn no_claim_shares_unless_both_allow_it() {
    let alone = of_class().with(json!({"exclusive": true}));
    let mut run = scene(shared(3), &["a"]).settle();
    run.put(claim("alone", alone));
    assert_eq!((made(&run).len(), run.resource(MADE)), (2, "Creating by a".to_owned()));
    let first =
        world().class("fast", shared(3)).claim("a", of_class().with(json!({"exclusive": true}))).uid("a");
    let both = first.created(1).claim("b", of_class()).uid("b").created(2).settle();
    assert_eq!(made(&both), ["rdb-a", "rdb-b"], "no claim joins an exclusive one");
    let unshared = profile("default", json!({"order": ["existing", "provision"]}));
    assert_eq!(made(&scene(shared(3), &["a", "b"]).object(unshared).settle()), ["rdb-a", "rdb-b"]);
    let closed = shared(3).with(json!({"sharing": {"maxClaims": 3, "allowedNamespaces": ["app"]}}));
    let mut run = scene(closed, &["a"]).settle();
    run.put(claim("elsewhere/b", of_class()));
    assert_eq!(made(&run).len(), 2, "what is made is open to the namespaces that the class lists");
}

#[test]
fn a_claim_that_waits_to_share_counts_in_quotas() {
    let run = scene(shared(9), &["a", "b", "c"]).quota("q", json!([{"claims": 2}])).settle();
    assert_eq!(run.outcomes(), ["a: Provisioning", "b: Provisioning", "c: QuotaExceeded"]);
}

#[test]
fn the_others_go_on_when_the_claim_goes_that_it_is_made_for() {
    let mut run = scene(shared(3), &["a", "b"]).settle();
    run.delete(CLAIM, "a");
    assert_eq!((made(&run), run.resource(MADE)), (vec![MADE.to_owned()], "Creating by b".to_owned()));
    run.becomes_available(MADE);
    assert_eq!(run.outcomes(), ["b -> rdb-a"]);
    run.delete(CLAIM, "b");
    assert_eq!(made(&run), Vec::<String>::new());
}

#[test]
fn what_cannot_be_made_is_let_go_by_all_that_were_to_share_it() {
    let class = shared(3).with(json!({"deadline": "60s"}));
    let mut run = scene(class, &["a", "b"]).settle();
    born_now(&mut run);
    run.harness.advance(61_000);
    assert_eq!(run.outcome("a"), "ProvisioningFailed");
    assert_eq!(run.outcome("b"), "Provisioning");
    assert_eq!(run.resource("rdb-b"), "Creating by b", "it has its own made now");
    assert!(run.find(RESOURCE, MADE).is_none(), "an unused resource is reclaimed");
}

#[test]
fn a_new_controller_keeps_every_binding() {
    let mut run = scene(shared(2), &["a", "b", "c"]).settle().restart();
    assert_eq!(made(&run), ["rdb-a", "rdb-c"]);
    assert_eq!(run.outcomes(), ["a: Provisioning", "b: Provisioning", "c: Provisioning"]);
    run.becomes_available("rdb-a");
    assert_eq!(run.outcomes(), ["a -> rdb-a", "b -> rdb-a", "c: Provisioning"]);
}
