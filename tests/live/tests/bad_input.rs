//! Objects that no schema would let through, and some that it does: written while the definitions were loose, read
//! by the controller afterwards. Each reports its own error, on itself and as an Event, and affects no other.

use conductor_live::kinds::{CLAIM, CLASS, QUOTA, RESOURCE, api_of};
use conductor_live::observer::State;
use conductor_live::operator;
use conductor_live::trial::{Lab, Trial};
use conductor_live::workflow::{Act, claim, custom, is_bound, phase, resource, wants};
use conductor_live::{Side, Site, on_both_apis};
use kube::api::ListParams;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

const CRDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crds");

on_both_apis!(a_bad_object_reports_its_error_and_affects_no_other);

async fn a_bad_object_reports_its_error_and_affects_no_other(side: Side) {
    let site = Site::start(side).await;
    define(&site, true);
    let config = conductor_controller::find_cluster(Some(site.kubeconfig()), None).await.unwrap();
    let lab = Lab::new(conductor_controller::connect(config).unwrap()).await.unwrap();
    let story = custom(true);
    let mut trial = Trial::begin(&lab, &story).await.unwrap();
    trial.act(&bad_objects()).await.unwrap();
    define(&site, false);
    trial.act(&[resource("good", "Retain", "5Gi"), claim("good", wants("5Gi"))]).await.unwrap();
    trial.trigger(None).await.unwrap();
    trial.wait("the good claim is bound", |state, _| is_bound(state, "good")).await.unwrap();
    trial.wait("the bad ones are reported", |state, _| all_reported(state)).await.unwrap();
    // Bad ones that come while the controller runs hurt as little. The schema lets this one through.
    trial
        .act(&[claim("late-range", json!({"version": ">= banana"})), claim("late", wants("1Gi"))])
        .await
        .unwrap();
    trial.act(&[resource("late", "Retain", "1Gi")]).await.unwrap();
    trial.wait("the late claim is bound", |state, _| is_bound(state, "late")).await.unwrap();
    let state = trial.state();
    reported_in_status(&state);
    reported_as_events(&lab, trial.name()).await;
    trial.close().unwrap();
}

/// Installs the definitions, as they are or with schemas that take anything.
fn define(site: &Site, loose: bool) {
    let files = fs::read_dir(CRDS).unwrap().map(|file| file.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|ending| ending == "yaml"));
    let mut items: Vec<Value> = files.map(|path| read(&path)).collect();
    items.push(operator::definition());
    for crd in items.iter_mut().filter(|_| loose) {
        for version in crd["spec"]["versions"].as_array_mut().unwrap() {
            version["schema"]["openAPIV3Schema"] =
                json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        }
    }
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
    for (arguments, input) in [
        (&["replace", "--force=false", "-f", "-"][..], list.as_str()),
        (&["apply", "--server-side", "--force-conflicts", "-f", "-"], &list),
        (&["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"], ""),
    ] {
        // Replacing takes out what applying would merge; there is nothing to replace the first time.
        let output = site.kubectl_with_input(arguments, input);
        assert!(
            output.status.success() || arguments[0] == "replace",
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

fn read(path: &Path) -> Value {
    serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn bad(kind: &str, name: &str, namespace: &str, body: Value) -> Act {
    let mut object = json!({"kind": kind, "metadata": {"name": name, "namespace": namespace}});
    object.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
    Act::Create(object)
}

fn bad_objects() -> Vec<Act> {
    let mut from_bad_class = wants("1Gi");
    from_bad_class["class"] = Value::from("no-kind");
    vec![
        bad(CLAIM, "range", "NS", json!({"spec": {"version": ">= banana"}})),
        bad(CLAIM, "scrambled", "NS", json!({"spec": {"selector": 7, "resources": {"requests": "much"}}})),
        bad(CLAIM, "negative", "NS", json!({"spec": {"resources": {"requests": {"storage": "-1Gi"}}}})),
        bad(
            RESOURCE,
            "negative",
            "NS-system",
            json!({"spec": {"engine": "mysql", "capacity": {"storage": "-5Gi"}}}),
        ),
        bad(RESOURCE, "scrambled", "NS-system", json!({"spec": {"engine": "mysql", "claimRefs": {"a": 1}}})),
        bad(CLASS, "no-kind", "NS-system", json!({"engine": "mysql", "template": {"apiVersion": "v1"}})),
        bad(QUOTA, "scrambled", "NS", json!({"spec": {"limits": "many"}})),
        claim("from-bad-class", from_bad_class),
    ]
}

/// Every object whose status can report it, and the field that it must name.
const REPORTED: [(&str, &str, &str); 6] = [
    (CLAIM, "range", "spec.version"),
    (CLAIM, "scrambled", "spec."),
    (CLAIM, "negative", "spec.resources.requests"),
    (CLAIM, "from-bad-class", "template.kind"),
    (RESOURCE, "negative", "spec.capacity.storage"),
    (RESOURCE, "scrambled", "spec.claimRefs"),
];

fn message<'a>(state: &'a State, kind: &str, name: &str) -> &'a str {
    let found = state.iter().find(|((k, _, n), _)| k == kind && n == name);
    found.and_then(|(_, object)| object["status"]["conditions"][0]["message"].as_str()).unwrap_or_default()
}

fn all_reported(state: &State) -> bool {
    REPORTED.iter().all(|(kind, name, _)| !message(state, kind, name).is_empty())
}

fn reported_in_status(state: &State) {
    for (kind, name, field) in REPORTED.into_iter().chain([(CLAIM, "late-range", "spec.version")]) {
        let said = message(state, kind, name);
        assert!(said.contains(field), "{kind} {name} should name {field}: {said:?}");
        let wanted = if kind == CLAIM { "Pending" } else { "Failed" };
        assert_eq!(phase(state, kind, name), Some(wanted), "{kind} {name}");
    }
}

async fn reported_as_events(lab: &Lab, trial: &str) {
    let mut events_seen = Vec::new();
    for namespace in [trial.to_owned(), format!("{trial}-system")] {
        let events = api_of(lab.api(), "Event", Some(&namespace)).list(&ListParams::default()).await.unwrap();
        events_seen.extend(events.items.into_iter().map(|event| event.data));
    }
    let mut wanted = vec![(CLASS, "no-kind", "template.kind"), (QUOTA, "scrambled", "spec.limits")];
    wanted.extend(REPORTED);
    for (kind, name, field) in wanted {
        let about = |event: &&Value| event["regarding"]["kind"] == kind && event["regarding"]["name"] == name;
        let says = |event: &Value| {
            event["type"] == "Warning" && event["note"].as_str().unwrap_or_default().contains(field)
        };
        assert!(
            events_seen.iter().filter(about).any(says),
            "no Event of {kind} {name} names {field} in {events_seen:#?}"
        );
    }
}
