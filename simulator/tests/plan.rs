//! A plan says what a cluster would do: held against an engine in a loop with a world, over random worlds,
//! and against every kind of release by hand. The engine's tests cover the messages of refusals.

use conductor::engine::Config;
use conductor::model::{Kind, Name, Object, ObjectKey, Time, TypeId};
use conductor_simulator::harness::Harness;
use conductor_simulator::plan::{Options, Outcome, Plan, plan};
use conductor_simulator::world::{World, key_of};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time as MetaTime};
use k8s_openapi::jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

const TYPE: TypeId = TypeId::RELATIONAL_DATABASE;
const SYSTEM: &str = "conductor-system";

fn object(kind: Kind, namespace: &str, name: &str, uid: &str, body: Value) -> Object {
    let metadata = ObjectMeta {
        namespace: (!kind.is_cluster_scoped()).then(|| namespace.to_owned()),
        name: Some(name.to_owned()),
        uid: (!uid.is_empty()).then(|| uid.to_owned()),
        ..ObjectMeta::default()
    };
    Object { kind, metadata, body }
}

fn claim(name: &str, spec: Value) -> Object {
    object(Kind::Claim(TYPE), "a", name, &format!("u-{name}"), json!({"spec": spec}))
}

fn resource(name: &str, spec: Value) -> Object {
    object(Kind::Resource(TYPE), SYSTEM, name, &format!("r-{name}"), json!({"spec": spec}))
}

fn leaving(mut object: Object, finalizer: &str) -> Object {
    object.metadata.deletion_timestamp = Some(MetaTime(Timestamp::UNIX_EPOCH));
    object.metadata.finalizers = Some(vec![finalizer.to_owned()]);
    object
}

fn held(by: &[&str], more: Value) -> Value {
    let refs: Vec<Value> = by
        .iter()
        .map(|name| json!({"namespace": "a", "name": name, "uid": format!("u-{name}"), "requests": {"storage": "1Gi"}}))
        .collect();
    let mut spec = json!({"claimRefs": refs});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    spec
}

fn planned(objects: &[Object]) -> Plan {
    plan(objects.to_vec(), &Options::default())
}

/// `a/x Bound db-1`, one line each, then `db-1 Bound [a/x] reclaim`.
fn reported(plan: &Plan) -> Vec<String> {
    let claims = plan.claims.iter().map(|c| {
        let resource = c.resource.as_ref().map(|r| r.name.to_string()).unwrap_or_default();
        format!("{}/{} {} {resource}", c.namespace, c.name, c.outcome.name()).trim_end().to_owned()
    });
    let resources = plan.resources.iter().map(|r| {
        let reclaim = r.reclaim.map(|r| format!(" {r}")).unwrap_or_default();
        let claims: Vec<String> = r.claims.iter().map(ToString::to_string).collect();
        format!("{} {} [{}]{reclaim}", r.name, r.phase, claims.join(" "))
    });
    claims.chain(resources).collect()
}

/// The same lines, read off a cluster in memory after everything has settled.
fn lived(objects: &[Object]) -> Vec<String> {
    let mut world = World::new();
    for object in objects {
        world.put(object.clone());
    }
    let config = Config { absent_phase_is_available: true, makes_parts: false, ..Config::default() };
    let harness = Harness::start(world, config, Time(0));
    harness.engine.audit().unwrap();
    let mut lines = Vec::new();
    let of = |kind: Kind| {
        let mut keys: Vec<ObjectKey> = objects.iter().filter(|o| o.kind == kind).map(key_of).collect();
        keys.sort();
        keys
    };
    for key in of(Kind::Claim(TYPE)) {
        lines.push(format!("{key} {}", lived_claim(&harness, &key)).trim_end().to_owned());
    }
    for key in of(Kind::Resource(TYPE)) {
        let before = objects.iter().find(|o| o.kind == Kind::Resource(TYPE) && key_of(o) == key).unwrap();
        lines.push(format!("{} {}", key.name, lived_resource(&harness, &key, before)));
    }
    lines
}

fn lived_claim(harness: &Harness, key: &ObjectKey) -> String {
    let Some(claim) = harness.world.get(Kind::Claim(TYPE), key) else { return "Pending".to_owned() };
    if claim.metadata.deletion_timestamp.is_some() {
        return "Pending".to_owned();
    }
    let resource = claim.body["status"]["resourceRef"]["name"].as_str().unwrap_or_default();
    let made = harness.world.get(Kind::Resource(TYPE), &ObjectKey::new(SYSTEM, resource));
    let is_new = made.is_some_and(|r| {
        r.metadata.annotations.as_ref().is_some_and(|a| a.contains_key("conductor.io/provisioned-by"))
    });
    match claim.body["status"]["phase"].as_str().unwrap_or_default() {
        "Bound" if is_new => "Provision".to_owned(),
        "Lost" => "Lost".to_owned(),
        phase => format!("{phase} {resource}"),
    }
}

fn lived_resource(harness: &Harness, key: &ObjectKey, before: &Object) -> String {
    let Some(resource) = harness.world.get(Kind::Resource(TYPE), key) else {
        let deleted = before.metadata.deletion_timestamp.is_some();
        return if deleted { "Deleting []" } else { "Released [] Delete" }.to_owned();
    };
    let phase = resource.body["status"]["phase"].as_str().unwrap_or("Available");
    let refs = resource.body["spec"]["claimRefs"].as_array().cloned().unwrap_or_default();
    let mut claims: Vec<String> = refs
        .iter()
        .map(|r| (r, ObjectKey::new(r["namespace"].as_str().unwrap(), r["name"].as_str().unwrap())))
        .filter(|(r, key)| {
            let claim = harness.world.get(Kind::Claim(TYPE), key).map(|claim| &claim.metadata);
            claim.is_some_and(|c| c.uid.as_deref() == r["uid"].as_str() && c.deletion_timestamp.is_none())
        })
        .map(|(_, key)| key.to_string())
        .collect();
    claims.sort();
    let was_released = before.body["status"]["phase"] == "Released";
    let retain = if phase == "Released" && !was_released { " Retain" } else { "" };
    format!("{phase} [{}]{retain}", claims.join(" "))
}

#[track_caller]
fn check(objects: &[Object], expected: &[&str]) {
    assert_eq!(reported(&planned(objects)), expected);
    assert_eq!(lived(objects), expected, "a cluster does otherwise");
}

#[test]
fn a_claim_that_goes_frees_its_slot_for_one_that_waits() {
    let shared = json!({"sharing": {"maxClaims": 2}, "capacity": {"storage": "2Gi"}});
    let wants = json!({"resources": {"requests": {"storage": "1Gi"}}});
    let going = leaving(claim("going", wants.clone()), "conductor.io/claim-protection");
    check(
        &[
            resource("db", held(&["going", "stays"], shared)),
            going,
            claim("stays", wants.clone()),
            claim("waits", wants),
        ],
        &["a/going Pending", "a/stays Bound db", "a/waits Bound db", "db Bound [a/stays a/waits]"],
    );
}

#[test]
fn a_claim_that_is_gone_releases_its_resource_by_policy() {
    check(
        &[
            resource("kept", held(&["gone"], json!({}))),
            resource("removed", held(&["gone-too"], json!({"reclaimPolicy": "Delete"}))),
            claim("waits", json!({})),
        ],
        &["a/waits Pending", "kept Released [] Retain", "removed Released [] Delete"],
    );
}

#[test]
fn what_was_released_before_is_not_released_again() {
    let mut released = resource("db", held(&["gone"], json!({})));
    released.body["status"] = json!({"phase": "Released"});
    let mut cleared = resource("free", json!({"reclaimPolicy": "Delete"}));
    cleared.body["status"] = json!({"phase": "Released"});
    check(
        &[released, cleared, claim("waits", json!({}))],
        &["a/waits Pending", "db Released []", "free Released []"],
    );
}

#[test]
fn a_claim_over_quota_is_served_once_another_leaves() {
    let quota = json!({"spec": {"limits": [{"claims": 1}]}});
    check(
        &[
            object(Kind::Quota, "a", "one", "q", quota),
            resource("db-1", held(&["going"], json!({}))),
            resource("db-2", json!({})),
            leaving(claim("going", json!({})), "conductor.io/claim-protection"),
            claim("waits", json!({})),
        ],
        &["a/going Pending", "a/waits Bound db-2", "db-1 Released [] Retain", "db-2 Bound [a/waits]"],
    );
}

#[test]
fn a_claim_held_twice_keeps_one_and_the_other_is_free() {
    check(
        &[
            resource("db-1", held(&["x"], json!({}))),
            resource("db-2", held(&["x"], json!({}))),
            claim("x", json!({})),
            claim("y", json!({})),
        ],
        &["a/x Bound db-1", "a/y Bound db-2", "db-1 Bound [a/x]", "db-2 Bound [a/y]"],
    );
}

#[test]
fn a_bound_claim_whose_resource_is_gone_is_lost() {
    let mut lost = claim("lost", json!({}));
    lost.body["status"] = json!({"phase": "Bound", "resourceRef": {"name": "db-9"}});
    check(&[lost], &["a/lost Lost"]);
}

#[test]
fn a_resource_that_is_being_deleted_stays_under_its_users_only() {
    let going = |r: Object| leaving(r, "conductor.io/resource-protection");
    check(
        &[
            going(resource("idle", json!({}))),
            going(resource("used", held(&["x"], json!({})))),
            claim("x", json!({})),
            claim("y", json!({})),
        ],
        &["a/x Bound used", "a/y Pending", "idle Deleting []", "used Bound [a/x]"],
    );
}

#[test]
fn a_class_makes_what_does_not_exist() {
    let class =
        json!({"template": {"apiVersion": "example.com/v1", "kind": "Thing"}, "reclaimPolicy": "Delete"});
    check(
        &[
            object(Kind::Class(TYPE), SYSTEM, "fast", "c", class),
            claim("x", json!({"class": "fast"})),
            claim("y", json!({"class": "none"})),
        ],
        &["a/x Provision", "a/y Pending"],
    );
}

#[test]
fn a_handwritten_claim_keeps_the_resource_that_holds_it() {
    let mut written = claim("x", json!({}));
    written.metadata.uid = None;
    let plan = planned(&[written, resource("db-2", held(&["x"], json!({}))), resource("db-1", json!({}))]);
    assert_eq!(reported(&plan), ["a/x Bound db-2", "db-1 Available []", "db-2 Bound [a/x]"]);
    assert_eq!(&*plan.claims[0].message, "bound to db-2");
}

/// A database for five that holds a claim without saying what it takes.
fn unsaid() -> Object {
    let refs = json!([{"namespace": "a", "name": "h", "uid": "u-h"}]);
    let spec = json!({"capacity": {"storage": "100Gi"}, "sharing": {"maxClaims": 5}, "claimRefs": refs});
    let mut database = resource("db", spec);
    database.body["status"] = json!({"phase": "Bound"});
    database
}

#[test]
fn a_handwritten_reference_takes_what_its_claim_requests() {
    let requests =
        |name: &str, storage: &str| claim(name, json!({"resources": {"requests": {"storage": storage}}}));
    let mut without_uid = requests("h", "90Gi");
    without_uid.metadata.uid = None;
    for holder in [requests("h", "90Gi"), without_uid] {
        let fits = planned(&[unsaid(), holder.clone(), requests("c", "10Gi")]);
        assert_eq!(reported(&fits), ["a/c Bound db", "a/h Bound db", "db Bound [a/c a/h]"]);
        let over = planned(&[unsaid(), holder, requests("c", "11Gi")]);
        assert_eq!(reported(&over), ["a/c Pending", "a/h Bound db", "db Bound [a/h]"]);
    }
}

#[test]
fn a_handwritten_reference_counts_against_the_quota() {
    let requests =
        |name: &str, storage: &str| claim(name, json!({"resources": {"requests": {"storage": storage}}}));
    let quota = |storage: &str| {
        let limits = json!([{"requests": {"storage": storage}}]);
        object(Kind::Quota, "a", "q", "q", json!({"spec": {"limits": limits}}))
    };
    for (most, outcome) in [("10Gi", Outcome::Bound), ("9Gi", Outcome::Pending)] {
        let plan = planned(&[unsaid(), requests("h", "8Gi"), requests("c", "2Gi"), quota(most)]);
        assert_eq!(plan.claims[0].outcome, outcome, "{most}");
    }
}

#[test]
fn undated_claims_come_after_those_that_have_been_waiting() {
    let mut old = claim("z-old", json!({}));
    old.metadata.creation_timestamp = Some(MetaTime(Timestamp::from_second(1_000).unwrap()));
    let plan = planned(&[claim("a-new", json!({})), old, resource("db", json!({}))]);
    assert_eq!(reported(&plan)[..2], ["a/a-new Pending", "a/z-old Bound db"]);
}

#[test]
fn an_unreadable_claim_waits_and_affects_no_other() {
    let plan = planned(&[
        claim("bad", json!({"version": ">= banana"})),
        claim("good", json!({})),
        resource("db", json!({})),
    ]);
    assert_eq!(reported(&plan)[..2], ["a/bad Pending", "a/good Bound db"]);
    assert!(plan.claims[0].message.contains("spec.version"), "{}", plan.claims[0].message);
}

#[test]
fn the_message_of_a_leaving_claim_says_what_becomes_of_its_data() {
    let going = |name: &str| leaving(claim(name, json!({})), "conductor.io/claim-protection");
    let plan = planned(&[
        resource("d", held(&["x"], json!({"reclaimPolicy": "Delete"}))),
        resource("r", held(&["y"], json!({}))),
        going("x"),
        going("y"),
        going("z"),
    ]);
    let messages: Vec<&str> = plan.claims.iter().map(|c| &*c.message).collect();
    assert_eq!(
        messages,
        ["being deleted; d is deleted with it", "being deleted; r is released and retained", "being deleted"]
    );
}

const NAMES: [&str; 4] = ["c0", "c1", "c2", "c3"];

fn any_claim(at: usize) -> impl Strategy<Value = Object> {
    let spec = (
        prop::option::of(prop::sample::select(vec!["mysql", "postgres"])),
        prop::option::of(prop::sample::select(vec![">= 14", "12", "< 14"])),
        prop::option::of(1u32..4),
        prop::option::weighted(0.3, prop::sample::select(vec!["fast", "slow", ""])),
        prop::option::weighted(0.1, prop::sample::select(vec!["r0", "r1", "r9"])),
        prop::bool::weighted(0.1),
        0i64..2,
    );
    let status = prop::option::weighted(
        0.2,
        (
            prop::sample::select(vec!["Bound", "Lost", "Pending"]),
            prop::sample::select(vec!["r0", "r1", "r2"]),
        ),
    );
    (spec, status, prop::bool::weighted(0.15)).prop_map(move |(spec, status, going)| {
        let (engine, version, storage, class, named, exclusive, priority) = spec;
        let mut body = json!({"priority": priority, "exclusive": exclusive});
        body["engine"] = json!(engine);
        body["version"] = json!(version);
        body["class"] = json!(class);
        body["resourceName"] = json!(named);
        if let Some(storage) = storage {
            body["resources"] = json!({"requests": {"storage": format!("{storage}Gi")}});
        }
        let mut object = claim(NAMES[at], body);
        if let Some((phase, name)) = status {
            object.body["status"] = json!({"phase": phase, "resourceRef": {"name": name}});
        }
        if going { leaving(object, "conductor.io/claim-protection") } else { object }
    })
}

fn any_resource(at: usize) -> impl Strategy<Value = Object> {
    let holder = (prop::sample::select(vec!["c0", "c1", "c2", "c3", "gone"]), prop::bool::weighted(0.8));
    let spec = (
        prop::sample::select(vec!["mysql", "postgresql"]),
        prop::sample::select(vec!["12.1", "14.2", "16"]),
        1u32..6,
        prop::option::weighted(0.3, prop::sample::select(vec!["fast", "slow"])),
        1u32..4,
        prop::collection::btree_map(holder.clone().prop_map(|h| h.0), holder.prop_map(|h| h.1), 0..3),
        prop::sample::select(vec!["Retain", "Delete", "Retain", "Odd"]),
    );
    let phase = prop::option::weighted(
        0.5,
        prop::sample::select(vec!["Available", "Bound", "Released", "Failed", "Creating", "Pending"]),
    );
    (spec, phase, prop::bool::weighted(0.1), prop::bool::weighted(0.3)).prop_map(
        move |(spec, phase, going, template)| {
            let (engine, version, storage, class, slots, holders, reclaim) = spec;
            let refs: Vec<Value> = holders
                .iter()
                .take(slots as usize)
                .map(|(name, with_uid)| match with_uid {
                    // As a controller writes it; what is left unsaid is completed in a plan, and nowhere else.
                    true => {
                        let requests = json!({"storage": "1Gi"});
                        json!({"namespace": "a", "name": name, "uid": format!("u-{name}"), "requests": requests})
                    }
                    false => json!({"namespace": "a", "name": name}),
                })
                .collect();
            let mut body = json!({
                "engine": engine, "version": version, "capacity": {"storage": format!("{storage}Gi")},
                "sharing": {"maxClaims": slots}, "claimRefs": refs, "reclaimPolicy": reclaim,
            });
            body["class"] = json!(class);
            if template {
                body["template"] = json!({"kind": "Thing"});
            }
            let mut object = resource(&format!("r{at}"), body);
            if let Some(phase) = phase {
                object.body["status"] = json!({"phase": phase});
            }
            if going { leaving(object, "conductor.io/resource-protection") } else { object }
        },
    )
}

/// Lists objects, one per line, when a world fails.
#[derive(Clone)]
struct Objects(Vec<Object>);

impl std::fmt::Debug for Objects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for object in &self.0 {
            let going = if object.metadata.deletion_timestamp.is_some() { " (going)" } else { "" };
            write!(f, "\n{} {}{going} {}", object.kind.name(), key_of(object), object.body)?;
        }
        Ok(())
    }
}

fn any_world() -> impl Strategy<Value = Objects> {
    let claims = (any_claim(0), any_claim(1), any_claim(2), any_claim(3));
    let resources = (any_resource(0), any_resource(1), any_resource(2));
    (claims, resources, prop::option::of(1u32..4), 0usize..5, 0usize..4).prop_map(
        |((a, b, c, d), (x, y, z), quota, claims, resources)| {
            let mut objects: Vec<Object> = [a, b, c, d].into_iter().take(claims).collect();
            objects.extend([x, y, z].into_iter().take(resources));
            let class = json!({"template": {"apiVersion": "example.com/v1", "kind": "Thing"}, "engine": "mysql", "versions": ["12", "14"]});
            objects.push(object(Kind::Class(TYPE), SYSTEM, "fast", "c-fast", class));
            objects.extend(
                quota.map(|n| {
                    object(Kind::Quota, "a", "q", "q", json!({"spec": {"limits": [{"claims": n}]}}))
                }),
            );
            Objects(objects)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

    #[test]
    fn a_plan_is_what_a_cluster_would_do(world in any_world()) {
        prop_assert_eq!(reported(&planned(&world.0)), lived(&world.0));
    }

    #[test]
    fn the_order_of_the_input_does_not_matter(objects in any_world().prop_map(|w| w.0).prop_shuffle()) {
        let mut sorted = objects.clone();
        sorted.sort_by_key(|o| (o.kind, key_of(o)));
        prop_assert_eq!(planned(&objects), planned(&sorted));
    }
}

#[test]
fn resources_elsewhere_do_not_take_part() {
    let mut elsewhere = resource("db", json!({}));
    elsewhere.metadata.namespace = Some("other".to_owned());
    let objects = vec![elsewhere, claim("x", json!({}))];
    assert_eq!(reported(&planned(&objects)), ["a/x Pending"]);
    let options = Options { system_namespace: Name::from("other"), ..Options::default() };
    assert_eq!(reported(&plan(objects, &options)), ["a/x Bound db", "db Bound [a/x]"]);
}

#[test]
fn claims_that_wait_alike_share_one_explanation() {
    let wants = json!({"version": ">= 17"});
    let plan = planned(&[
        resource("db", json!({"version": "16"})),
        claim("x", wants.clone()),
        claim("y", wants),
        claim("z", json!({"version": ">= 18"})),
    ]);
    assert!(plan.claims.iter().all(|c| c.outcome == Outcome::Pending));
    assert_eq!(plan.claims[0].message, plan.claims[1].message);
    assert!(std::ptr::eq(&*plan.claims[0].reasons, &*plan.claims[1].reasons));
    assert!(!std::ptr::eq(&*plan.claims[0].reasons, &*plan.claims[2].reasons));
    assert_eq!(plan.claims[0].nearest[0].binds.as_deref(), Some("db"), "{:?}", plan.claims[0].nearest);
}

#[test]
fn a_resource_that_is_only_closed_to_the_namespace_is_reported_with_its_remedy() {
    let theirs = json!({"sharing": {"maxClaims": 9, "allowedNamespaces": ["b", "c"]}});
    let nearest = |wants: Value| {
        let plan = planned(&[resource("theirs", theirs.clone()), claim("x", wants)]);
        let nearest = plan.claims[0].nearest.iter();
        nearest.map(|n| (n.change.to_string(), n.binds.as_deref().map(str::to_owned))).collect::<Vec<_>>()
    };
    let remedy = "add a to the allowedNamespaces of theirs".to_owned();
    assert_eq!(nearest(json!({})), [(remedy, Some("theirs".to_owned()))]);
    assert_eq!(nearest(json!({"version": "16"})), [], "it is of no version either");
}

/// A resource `x` of this spec and more, in this phase.
fn phased(phase: Option<&str>, spec: &Value, more: &Value) -> Object {
    let mut body = spec.clone();
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let mut resource = resource("x", body);
    if let Some(phase) = phase {
        resource.body["status"] = json!({"phase": phase});
    }
    resource
}

#[test]
fn a_remedy_is_reported_only_where_the_resource_would_take_the_claim() {
    let (nothing, template) = (json!({}), json!({"template": {"kind": "Thing"}}));
    let cordon = json!({"unschedulable": true});
    let withheld = [
        (Some("Creating"), &template, "wait until x, now Creating, is Available"),
        (Some("Failed"), &nothing, "repair x, which is Failed"),
        (None, &cordon, "take unschedulable off x"),
    ];
    let two = json!({"sharing": {"maxClaims": 2}});
    let kept = json!({"claimRefs": [{"namespace": "b", "name": "expected"}]});
    let holder = |spec: Value| claim("holder", spec);
    let alone = json!({"exclusive": true});
    let others = [
        ("free", json!({}), vec![], true),
        ("kept for another", kept, vec![], false),
        ("held by another", held(&["holder"], json!({})), vec![holder(json!({}))], false),
        ("held by an exclusive one", held(&["holder"], two.clone()), vec![holder(alone.clone())], false),
        ("full", held(&["holder", "h"], two.clone()), vec![holder(json!({})), claim("h", json!({}))], false),
        ("shared", held(&["holder"], two), vec![holder(json!({}))], true),
    ];
    let nearest = |resource: Object, claims: &[Object], requests: &Value| {
        let plan = planned(&[&[resource, claim("waits", requests.clone())][..], claims].concat());
        let waits = plan.claims.iter().find(|c| &*c.name == "waits").unwrap();
        assert_eq!(waits.outcome, Outcome::Pending);
        waits.nearest.iter().map(|n| (n.change.clone(), n.binds.clone())).collect::<Vec<_>>()
    };
    for (phase, spec, remedy) in withheld {
        let reported = vec![(remedy.to_owned(), Some(Name::from("x")))];
        for (way, more, claims, serves) in &others {
            let expected = if *serves { reported.clone() } else { Vec::new() };
            let resource = phased(phase, spec, more);
            assert_eq!(nearest(resource.clone(), claims, &json!({})), expected, "{remedy}: {way}");
            // A claim that tolerates no other is served only by an unused resource.
            let expected = if claims.is_empty() { expected } else { Vec::new() };
            assert_eq!(nearest(resource.clone(), claims, &alone), expected, "{remedy}, alone: {way}");
            if phase.is_some() {
                let mut cordoned = resource;
                cordoned.body["spec"]["unschedulable"] = json!(true);
                assert_eq!(nearest(cordoned, claims, &json!({})), [], "{remedy}, and cordoned: {way}");
            }
        }
    }
}

#[test]
fn a_released_resource_is_offered_with_its_data() {
    for more in [json!({}), json!({"unschedulable": true})] {
        let released = phased(Some("Released"), &held(&["gone"], json!({})), &more);
        let plan = planned(&[released, claim("waits", json!({}))]);
        let nearest: Vec<&str> = plan.claims[0].nearest.iter().map(|n| &*n.change).collect();
        let remedy = "keep x, with its last claim's data, for this claim: name it in claimRefs";
        assert_eq!(nearest, [remedy], "{more}");
    }
}

#[test]
fn only_an_earlier_binding_is_reported_as_existing() {
    let reported = |resource: Object, claim: Object| {
        let plan = planned(&[resource, claim]);
        (plan.claims[0].message.to_string(), plan.claims[0].kept)
    };
    let (nothing, template) = (json!({}), json!({"template": {"kind": "Thing"}}));
    let kept = json!({"claimRefs": [{"namespace": "a", "name": "c"}]});
    let (named, anything) = (json!({"resourceName": "x"}), json!({}));
    for (phase, spec, more, requests) in [
        (None, &nothing, &nothing, &named),
        (Some("Pending"), &nothing, &nothing, &named),
        (Some("Failed"), &nothing, &nothing, &named),
        (Some("Released"), &kept, &nothing, &anything),
        (Some("Creating"), &kept, &template, &anything),
    ] {
        let new = reported(phased(phase, spec, more), claim("c", requests.clone()));
        assert_eq!(new, ("would be bound to x".to_owned(), false), "{phase:?}");
        let was = reported(phased(phase, &held(&["c"], json!({})), more), claim("c", requests.clone()));
        assert_eq!(was, ("bound to x".to_owned(), true), "{phase:?}");
    }
    let mut recorded = claim("c", json!({}));
    recorded.body["status"] = json!({"phase": "Bound", "resourceRef": {"name": "x"}});
    let restored = reported(resource("x", json!({})), recorded);
    assert_eq!(restored, ("bound to x".to_owned(), true), "its own record says so");
}

#[test]
fn a_lost_claim_that_is_still_referenced_has_its_own_message() {
    let mut lost = claim("c", json!({"resourceName": "x"}));
    lost.body["status"] = json!({"phase": "Lost", "resourceRef": {"name": "x"}});
    let message = |objects: &[Object]| {
        let plan = planned(objects);
        assert_eq!(plan.claims[0].outcome, Outcome::Lost);
        plan.claims[0].message.to_string()
    };
    for phase in [None, Some("Bound"), Some("Failed")] {
        let names_it = phased(phase, &held(&["c"], json!({})), &json!({}));
        assert_eq!(
            message(&[lost.clone(), names_it]),
            "lost: resource x references the claim, but the claim does not record the UID of x as its own. \
             Deleting the claim releases x to its reclaim policy"
        );
    }
    let gone = message(&[lost]);
    assert!(gone.starts_with("resource x was deleted"), "{gone}");
}

#[test]
fn a_parameter_that_the_class_does_not_allow_is_in_the_plan_and_the_next_class_serves() {
    let class = |name: &str, most: u64| {
        let nodes = json!({"type": "integer", "maximum": most});
        let body = json!({
            "parameterSchema": {"type": "object", "properties": {"nodes": nodes}},
            "template": {"apiVersion": "v1", "kind": "ConfigMap", "data": {"nodes": "${string(parameters.nodes)}"}},
        });
        object(Kind::Class(TYPE), SYSTEM, name, name, body)
    };
    let requests = |name: &str, classes: Value, nodes: u64| {
        claim(name, json!({"classes": classes, "engine": "postgresql", "parameters": {"nodes": nodes}}))
    };
    let plan = planned(&[
        class("small", 3),
        class("large", 9),
        requests("fits", json!(["small"]), 2),
        requests("next", json!(["small", "large"]), 5),
        requests("refused", json!(["small"]), 5),
    ]);
    let fates: Vec<_> = plan.claims.iter().map(|c| (c.outcome, c.class.as_deref(), &*c.message)).collect();
    assert_eq!((fates[0].0, fates[0].1), (Outcome::Provision, Some("small")), "{fates:?}");
    assert_eq!((fates[1].0, fates[1].1), (Outcome::Provision, Some("large")), "{fates:?}");
    assert_eq!(fates[2].0, Outcome::Pending, "{fates:?}");
    assert!(fates[2].2.contains("spec.parameters.nodes"), "{fates:?}");
}

#[test]
fn classes_that_refuse_are_counted_as_resources_are_and_apart_from_them() {
    let class = |name: &str, body: Value| object(Kind::Class(TYPE), SYSTEM, name, name, body);
    let template = json!({"apiVersion": "example.com/v1", "kind": "Instance"});
    let plan = planned(&[
        resource("db", json!({"engine": "mysql", "version": "8.0", "capacity": {"storage": "9Gi"}})),
        class("old", json!({"template": template, "version": "5.7"})),
        class("small", json!({"template": template, "capacity": {"storage": {"max": "1Gi"}}})),
        claim(
            "c",
            json!({"engine": "mysql", "version": "8.0", "classes": ["old", "small"],
            "resources": {"requests": {"storage": "2Gi"}}}),
        ),
    ]);
    let reported = serde_json::to_value(&plan.claims[0]).unwrap();
    let resources = json!([
        {"predicate": "Class", "count": 1, "message": "1 resource is not of class old or of class small"},
    ]);
    let classes = json!([
        {"predicate": "Version", "count": 1, "message": "class old does not offer the version asked"},
        {"predicate": "Capacity", "count": 1,
            "message": "class small makes storage up to 1Gi, and 2Gi is requested"},
    ]);
    assert_eq!((&reported["reasons"], &reported["classReasons"]), (&resources, &classes));
    let counted = "0/1 resources fit: 1 class; 0/2 classes fit: 1 version, 1 capacity (";
    assert!(plan.claims[0].message.starts_with(counted), "{}", plan.claims[0].message);
}
