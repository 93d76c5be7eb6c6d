//! Several objects behind one resource: made in the order of what they need of each other, brought in line where
//! their templates change, and removed in reverse.

use crate::support::{CLAIM, RESOURCE, Run, With, db, ready, requests, world};
use conductor::model::{Part, PartKey};
use serde_json::{Value, json};

fn object(id: &str, spec: Value) -> Value {
    json!({"id": id, "template": {"apiVersion": "example.com/v1", "kind": "Instance", "spec": spec}})
}

/// A network, a server in it, and a proxy before the server; written in an order that does not help.
fn three() -> Value {
    json!({
        "reclaimPolicy": "Delete",
        "templates": [
            object("proxy", json!({"to": "${objects.server.status.address}", "in": "${objects.net.status.id}"})),
            object("server", json!({"in": "${objects.net.status.id}", "size": "${resource.spec.capacity.storage}"})),
            object("net", json!({"for": "${claim.metadata.name}"})),
        ],
    })
}

fn provisioned(class: Value) -> Run {
    world().class("k", class).claim("c", requests(5).with(json!({"class": "k"}))).settle()
}

fn part<'a>(run: &'a Run, id: &str) -> Option<&'a Part> {
    let is = |part: &&Part| {
        part.metadata.labels.as_ref().is_some_and(|l| l.get("conductor.io/part").is_some_and(|p| p == id))
    };
    run.harness.world.parts().find(is)
}

fn ids(run: &Run) -> Vec<String> {
    let label = |part: &Part| part.metadata.labels.clone().unwrap_or_default().remove("conductor.io/part");
    let mut ids: Vec<String> = run.harness.world.parts().filter_map(label).collect();
    ids.sort();
    ids
}

fn key(run: &Run, id: &str) -> PartKey {
    part(run, id).unwrap_or_else(|| panic!("{id} is there")).key()
}

fn says(run: &mut Run, id: &str, status: Value) {
    let key = key(run, id);
    run.harness.touch_parts(|world| world.set_part_status(&key, status));
}

fn resource(run: &Run) -> String {
    run.resources()[0].split(' ').next().unwrap_or_default().to_owned()
}

fn reported(run: &Run) -> String {
    run.reported(&resource(run))
}

/// The three of them, ready and bound.
fn bound() -> Run {
    let mut run = provisioned(three());
    says(&mut run, "net", ready().with(json!({"id": "n-1"})));
    says(&mut run, "server", ready().with(json!({"address": "10.0.0.1"})));
    says(&mut run, "proxy", ready());
    assert_eq!(run.body(CLAIM, "c")["status"]["phase"], "Bound", "{}", run.message("c"));
    run
}

#[test]
fn objects_are_made_as_the_outputs_that_they_need_become_known() {
    let mut run = provisioned(three());
    assert_eq!(ids(&run), ["net"]);
    assert_eq!(part(&run, "net").expect("it is there").body["spec"], json!({"for": "c"}));
    says(&mut run, "net", json!({"phase": "Starting"}));
    assert_eq!(ids(&run), ["net"], "what it says is not what is waited for");
    says(&mut run, "net", json!({"id": "n-1"}));
    assert_eq!(ids(&run), ["net", "server"]);
    assert_eq!(part(&run, "server").expect("it is there").body["spec"], json!({"in": "n-1", "size": "5Gi"}));
    says(&mut run, "server", ready().with(json!({"address": "10.0.0.1"})));
    assert_eq!(
        part(&run, "proxy").expect("it is there").body["spec"],
        json!({"to": "10.0.0.1", "in": "n-1"})
    );
    assert!(reported(&run).contains("ImplementationNotReady"), "{}", reported(&run));
    says(&mut run, "net", ready().with(json!({"id": "n-1"})));
    says(&mut run, "proxy", ready());
    assert_eq!(run.body(CLAIM, "c")["status"]["phase"], "Bound");
}

#[test]
fn the_message_names_what_a_resource_waits_for() {
    let mut run = provisioned(three());
    says(&mut run, "net", ready());
    let reported = reported(&run);
    assert!(reported.contains("is created once objects.net.status.id is known"), "{reported}");
}

#[test]
fn the_record_names_every_object_in_the_order_in_which_they_were_made() {
    let run = bound();
    let record = run.body(RESOURCE, &resource(&run))["status"]["implementationRef"].clone();
    let named = |entry: &Value| entry["id"].as_str().unwrap_or_default().to_owned();
    let ids: Vec<String> = record.as_array().expect("a list").iter().map(named).collect();
    assert_eq!(ids, ["net", "server", "proxy"]);
    assert!(record.as_array().expect("a list").iter().all(|entry| entry["uid"].is_string()), "{record}");
}

#[test]
fn objects_are_removed_in_reverse_and_each_is_waited_for() {
    let mut run = bound();
    let keep = vec!["example.com/keep".to_owned()];
    for id in ["net", "server", "proxy"] {
        let key = key(&run, id);
        run.harness
            .touch_parts(|world| world.edit_part(&key, |part| part.metadata.finalizers = Some(keep.clone())));
    }
    run.delete(CLAIM, "c");
    for leaving in ["proxy", "server", "net"] {
        let deleting: Vec<String> = run
            .harness
            .world
            .parts()
            .filter(|p| p.metadata.deletion_timestamp.is_some())
            .map(|p| p.key().to_string())
            .collect();
        assert_eq!(deleting, [key(&run, leaving).to_string()]);
        assert!(reported(&run).contains("example.com/keep"), "{}", reported(&run));
        let key = key(&run, leaving);
        run.harness.touch_parts(|world| world.edit_part(&key, |part| part.metadata.finalizers = None));
    }
    assert!(run.resources().is_empty(), "{:?}", run.resources());
    assert_eq!(ids(&run), Vec::<String>::new());
}

#[test]
fn an_object_whose_condition_says_no_is_left_out() {
    let mut class = three();
    class["templates"][0]["when"] = json!("parameters.proxy");
    class["parameters"] = json!({"proxy": false});
    let mut run = provisioned(class);
    says(&mut run, "net", ready().with(json!({"id": "n-1"})));
    says(&mut run, "server", ready());
    assert_eq!(ids(&run), ["net", "server"]);
    assert_eq!(run.body(CLAIM, "c")["status"]["phase"], "Bound");
}

#[test]
fn an_object_may_say_for_itself_when_it_is_ready() {
    let mut class = three();
    class["templates"][2]["ready"] = json!("object.status.routes > 0");
    let mut run = provisioned(class);
    says(&mut run, "net", ready().with(json!({"id": "n-1"})));
    says(&mut run, "server", ready().with(json!({"address": "x"})));
    says(&mut run, "proxy", ready());
    assert_ne!(run.body(CLAIM, "c")["status"]["phase"], "Bound");
    says(&mut run, "net", json!({"id": "n-1", "routes": 1}));
    assert_eq!(run.body(CLAIM, "c")["status"]["phase"], "Bound");
}

#[test]
fn an_output_that_changes_reaches_those_who_use_it_and_nothing_else_is_written() {
    let mut run = bound();
    let writes = run.harness.writes();
    says(&mut run, "server", ready().with(json!({"address": "10.0.0.2"})));
    assert_eq!(part(&run, "proxy").expect("it is there").body["spec"]["to"], "10.0.0.2");
    assert_eq!(part(&run, "proxy").expect("it is there").body["status"], ready(), "its status stays");
    assert_eq!(run.harness.writes() - writes, 1);
    says(&mut run, "server", ready().with(json!({"address": "10.0.0.2", "beat": 7})));
    assert_eq!(run.harness.writes() - writes, 1);
}

#[test]
fn a_template_that_is_edited_changes_its_object_in_place() {
    let spec = |size: u32| db(5).with(json!({"templates": [object("a", json!({"size": size}))]}));
    let mut run = world().resource("r", spec(1)).settle();
    says(&mut run, "a", ready());
    let before = part(&run, "a").expect("it is there").metadata.uid.clone();
    run.edit_spec(RESOURCE, "r", spec(2));
    assert_eq!(part(&run, "a").expect("it is there").body["spec"]["size"], 2);
    assert_eq!(part(&run, "a").expect("it is there").metadata.uid, before);
    assert_eq!(run.resource("r"), "Available");
}

#[test]
fn an_object_that_is_lost_fails_the_whole_and_is_not_replaced() {
    let mut run = bound();
    let server = key(&run, "server");
    run.harness.touch_parts(|world| world.delete_part(&server));
    run.harness.advance(60_000);
    assert_eq!(ids(&run), ["net", "proxy"]);
    assert!(reported(&run).starts_with("ImplementationGone"), "{}", reported(&run));
}

/// The recipe of the only resource, as Follow would write it.
fn follow(run: &mut Run, templates: Value) {
    let name = resource(run);
    run.edit(RESOURCE, &name, |resource| resource.body["spec"]["templates"] = templates.clone());
}

#[test]
fn what_the_class_no_longer_names_implements_nothing_and_may_be_removed_by_hand() {
    let mut run = bound();
    let proxy = key(&run, "proxy");
    let kept = three()["templates"].as_array().expect("a list")[1..].to_vec();
    follow(&mut run, kept.into());
    assert_eq!(ids(&run), ["net", "proxy", "server"], "it stays as it is");
    says(&mut run, "proxy", json!({"phase": "Broken"}));
    assert!(reported(&run).starts_with("Available"), "{}", reported(&run));
    run.harness.touch_parts(|world| world.delete_part(&proxy));
    run.harness.advance(60_000);
    assert!(reported(&run).starts_with("Available"), "{}", reported(&run));
    assert_eq!(run.body(CLAIM, "c")["status"]["phase"], "Bound");
    // Named again, it is made again.
    follow(&mut run, three()["templates"].clone());
    assert_eq!(ids(&run), ["net", "proxy", "server"]);
    run.delete(CLAIM, "c");
    assert_eq!((ids(&run).len(), run.resources().len()), (0, 0));
}

#[test]
fn what_the_class_no_longer_names_goes_with_the_resource() {
    let mut run = bound();
    let kept = three()["templates"].as_array().expect("a list")[1..].to_vec();
    follow(&mut run, kept.into());
    run.delete(CLAIM, "c");
    assert_eq!((ids(&run).len(), run.resources().len()), (0, 0));
}

#[test]
fn what_is_left_out_since_implements_nothing() {
    let mut class = three();
    class["templates"][0]["when"] = json!("parameters.proxy");
    class["parameters"] = json!({"proxy": true});
    let mut run = provisioned(class);
    says(&mut run, "net", ready().with(json!({"id": "n-1"})));
    says(&mut run, "server", ready().with(json!({"address": "10.0.0.1"})));
    says(&mut run, "proxy", ready());
    let name = resource(&run);
    run.edit(RESOURCE, &name, |r| r.body["spec"]["inputs"]["parameters"]["proxy"] = json!(false));
    let proxy = key(&run, "proxy");
    run.harness.touch_parts(|world| world.delete_part(&proxy));
    run.harness.advance(60_000);
    assert!(reported(&run).starts_with("Available"), "{}", reported(&run));
}

#[test]
fn an_object_that_tests_for_another_is_created_after_it() {
    let requests = "${has(objects.net) ? 'in a net' : 'alone'}";
    let class = |when: Value| {
        let net = object("net", json!({})).with(json!({"when": when}));
        json!({"reclaimPolicy": "Delete", "parameters": {"net": true},
            "templates": [object("server", json!({"is": requests})), net]})
    };
    let mut run = provisioned(class(json!("parameters.net")));
    let spec = |run: &Run| part(run, "server").expect("it is made").body["spec"]["is"].clone();
    assert_eq!(spec(&run), "in a net");
    let uid = part(&run, "server").expect("it is made").metadata.generation;
    says(&mut run, "net", ready());
    assert_eq!(
        (spec(&run), part(&run, "server").expect("it is made").metadata.generation),
        (json!("in a net"), uid)
    );
    let run = provisioned(class(json!("!parameters.net")));
    assert_eq!((ids(&run), spec(&run)), (vec!["server".to_owned()], json!("alone")));
}

#[test]
fn an_object_that_needs_one_that_is_left_out_says_so_and_does_not_wait() {
    let mut class = three();
    class["templates"][2]["when"] = json!("parameters.net");
    class["parameters"] = json!({"net": false});
    let run = provisioned(class);
    assert_eq!(run.outcome("c"), "ProvisioningFailed", "{}", run.message("c"));
    let message = run.message("c");
    assert!(
        message.contains("objects.net, which its `when` leaves out") && message.contains("has(objects.net)"),
        "{message}"
    );
}

#[test]
fn a_template_that_fails_later_is_reported_and_unbinds_no_claim() {
    let mut run = bound();
    let mut templates = three()["templates"].clone();
    templates[2]["template"]["spec"]["for"] = json!("${parameters.nothing}");
    follow(&mut run, templates);
    let reported = reported(&run);
    assert!(reported.starts_with("TemplateError") && reported.contains("spec.for"), "{reported}");
    assert_eq!(run.body(CLAIM, "c")["status"]["phase"], "Bound");
    assert_eq!(run.resource(&resource(&run)).split(' ').next(), Some("Bound"));
    follow(&mut run, three()["templates"].clone());
    assert!(self::reported(&run).starts_with("Available"), "{}", self::reported(&run));
}

#[test]
fn impossible_object_graphs_are_reported_with_their_cycle() {
    let circle = json!({"templates": [
        object("a", json!({"x": "${objects.b.status.x}"})),
        object("b", json!({"x": "${objects.c.status.x}"})),
        object("c", json!({"x": "${objects.a.status.x}"})),
    ]});
    let unknown = json!({"templates": [object("a", json!({"x": "${objects.b.status.x}"}))]});
    let twice = json!({"templates": [object("a", json!({})), object("a", json!({}))]});
    for (class, reported) in
        [(circle, "a -> b -> c -> a"), (unknown, "there is no b"), (twice, "is used twice")]
    {
        let run = provisioned(class);
        assert!(run.resources().is_empty(), "{:?}", run.resources());
        assert!(run.message("c").contains(reported), "{}", run.message("c"));
    }
}

#[test]
fn a_claim_that_goes_while_its_objects_are_made_leaves_nothing() {
    for made in 1..=3 {
        let mut run = provisioned(three());
        if made > 1 {
            says(&mut run, "net", ready().with(json!({"id": "n-1"})));
        }
        if made > 2 {
            says(&mut run, "server", ready().with(json!({"address": "10.0.0.1"})));
        }
        assert_eq!(ids(&run).len(), made);
        run.delete(CLAIM, "c");
        assert_eq!((ids(&run).len(), run.resources().len()), (0, 0), "after {made} were made");
    }
}
