//! The columns of the common kinds.

use super::age::age;
use super::{AGE, NAME, definition};
use crate::object::{meta_text, name};
use crate::registry::Common;
use serde_json::{Value, json};

/// The columns of a kind: name, type, priority.
fn shape(kind: Common) -> &'static [(&'static str, &'static str, i64)] {
    match kind {
        Common::Namespace => &[("Status", "string", 0), ("Age", "string", 0)],
        Common::Secret => &[("Type", "string", 0), ("Data", "string", 0), ("Age", "string", 0)],
        Common::ConfigMap => &[("Data", "string", 0), ("Age", "string", 0)],
        Common::Service => &[
            ("Type", "string", 0),
            ("Cluster-IP", "string", 0),
            ("External-IP", "string", 0),
            ("Port(s)", "string", 0),
            ("Age", "string", 0),
            ("Selector", "string", 1),
        ],
        Common::EndpointSlice => &[
            ("AddressType", "string", 0),
            ("Ports", "string", 0),
            ("Endpoints", "string", 0),
            ("Age", "string", 0),
        ],
        Common::Lease => &[("Holder", "string", 0), ("Age", "string", 0)],
        Common::Pod => &[
            ("Ready", "string", 0),
            ("Status", "string", 0),
            ("Restarts", "string", 0),
            ("Age", "string", 0),
            ("IP", "string", 1),
            ("Node", "string", 1),
            ("Nominated Node", "string", 1),
            ("Readiness Gates", "string", 1),
        ],
        Common::Deployment => &[
            ("Ready", "string", 0),
            ("Up-to-date", "string", 0),
            ("Available", "string", 0),
            ("Age", "string", 0),
            ("Containers", "string", 1),
            ("Images", "string", 1),
            ("Selector", "string", 1),
        ],
        Common::ServiceAccount => &[("Age", "string", 0)],
        Common::Crd => &[("Created At", "date", 0)],
        Common::Event | Common::NewEvent => &[
            ("Last Seen", "string", 0),
            ("Type", "string", 0),
            ("Reason", "string", 0),
            ("Object", "string", 0),
            ("Subobject", "string", 1),
            ("Source", "string", 1),
            ("Message", "string", 0),
            ("First Seen", "string", 1),
            ("Count", "string", 1),
            ("Name", "string", 1),
        ],
    }
}

pub(super) fn columns(kind: Common) -> Vec<Value> {
    let own = shape(kind).iter().map(|(name, kind, priority)| {
        let text = if *name == "Age" { AGE } else { "" };
        let format = if *name == "Name" { "name" } else { "" };
        definition(name, kind, format, text, *priority)
    });
    let is_event = matches!(kind, Common::Event | Common::NewEvent);
    let first = (!is_event).then(|| definition("Name", "string", "name", NAME, 0));
    first.into_iter().chain(own).collect()
}

pub(super) fn cells(kind: Common, object: &Value) -> Vec<Value> {
    let at = |path: &str| object.pointer(path);
    let text = |path: &str| at(path).and_then(Value::as_str).unwrap_or_default().to_owned();
    let number = |path: &str| at(path).and_then(Value::as_i64).unwrap_or(0);
    let count = |path: &str| at(path).map_or(0, |value| value.as_object().map_or(0, |map| map.len()));
    let born = meta_text(object, "creationTimestamp").map_or_else(|| "<unknown>".to_owned(), age);
    let own = name(object);
    match kind {
        Common::Namespace => vec![json!(own), json!(text("/status/phase")), json!(born)],
        Common::Secret => vec![json!(own), json!(text("/type")), json!(count("/data")), json!(born)],
        Common::ConfigMap => vec![json!(own), json!(count("/data") + count("/binaryData")), json!(born)],
        Common::Lease => vec![json!(own), json!(text("/spec/holderIdentity")), json!(born)],
        Common::ServiceAccount => vec![json!(own), json!(born)],
        Common::Crd => vec![json!(own), json!(text("/metadata/creationTimestamp"))],
        Common::Service => service(object, own, &born),
        Common::EndpointSlice => slice(object, own, &born),
        Common::Pod => {
            let containers = list(object, "/spec/containers").len();
            vec![
                json!(own),
                json!(format!("0/{containers}")),
                json!(text("/status/phase")),
                json!("0"),
                json!(born),
                json!(or_none(&text("/status/podIP"))),
                json!(or_none(&text("/spec/nodeName"))),
                json!(or_none(&text("/status/nominatedNodeName"))),
                json!("<none>"),
            ]
        }
        Common::Deployment => {
            let containers = list(object, "/spec/template/spec/containers");
            let join = |field: &str| {
                let texts = containers.iter().filter_map(|one| one.get(field)?.as_str());
                texts.collect::<Vec<_>>().join(",")
            };
            vec![
                json!(own),
                json!(format!("{}/{}", number("/status/readyReplicas"), number("/spec/replicas"))),
                json!(number("/status/updatedReplicas")),
                json!(number("/status/availableReplicas")),
                json!(born),
                json!(join("name")),
                json!(join("image")),
                json!(labels(at("/spec/selector/matchLabels"))),
            ]
        }
        Common::Event | Common::NewEvent => event(object, own),
    }
}

fn service(object: &Value, own: &str, born: &str) -> Vec<Value> {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let ports: Vec<String> = list(object, "/spec/ports")
        .iter()
        .map(|port| {
            let number = port.get("port").and_then(Value::as_i64).unwrap_or(0);
            let protocol = port.get("protocol").and_then(Value::as_str).unwrap_or("TCP");
            match port.get("nodePort").and_then(Value::as_i64) {
                Some(node) if node > 0 => format!("{number}:{node}/{protocol}"),
                _ => format!("{number}/{protocol}"),
            }
        })
        .collect();
    let outside = match text("/spec/type") {
        "ExternalName" => text("/spec/externalName").to_owned(),
        "LoadBalancer" => "<pending>".to_owned(),
        _ => "<none>".to_owned(),
    };
    vec![
        json!(own),
        json!(text("/spec/type")),
        json!(or_none(text("/spec/clusterIP"))),
        json!(outside),
        json!(or_none(&ports.join(","))),
        json!(born),
        json!(or_none(&labels(object.pointer("/spec/selector")))),
    ]
}

fn slice(object: &Value, own: &str, born: &str) -> Vec<Value> {
    let ports: Vec<String> = list(object, "/ports")
        .iter()
        .filter_map(|port| Some(port.get("port")?.as_i64()?.to_string()))
        .collect();
    let endpoints: Vec<&str> = list(object, "/endpoints")
        .iter()
        .flat_map(|one| one.get("addresses").and_then(Value::as_array).into_iter().flatten())
        .filter_map(Value::as_str)
        .collect();
    let shown = match endpoints.len() {
        0 => "<unset>".to_owned(),
        1..=3 => endpoints.join(","),
        many => format!("{} + {} more...", endpoints[..3].join(","), many - 3),
    };
    let kind = object.get("addressType").and_then(Value::as_str).unwrap_or_default();
    let ports = if ports.is_empty() { "<unset>".to_owned() } else { ports.join(",") };
    vec![json!(own), json!(kind), json!(ports), json!(shown), json!(born)]
}

fn event(object: &Value, own: &str) -> Vec<Value> {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let first_of = |paths: &[&str]| {
        paths.iter().map(|path| text(path)).find(|found| !found.is_empty()).unwrap_or_default()
    };
    let since = |paths: &[&str]| match first_of(paths) {
        "" => "<unknown>".to_owned(),
        time => age(time),
    };
    let last =
        since(&["/series/lastObservedTime", "/lastTimestamp", "/deprecatedLastTimestamp", "/eventTime"]);
    let first = since(&["/firstTimestamp", "/deprecatedFirstTimestamp", "/eventTime"]);
    let about = object.get("involvedObject").or_else(|| object.get("regarding")).cloned().unwrap_or_default();
    let field = |name: &str| about.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let subject = format!("{}/{}", field("kind").to_lowercase(), field("name"));
    let source = first_of(&["/source/component", "/reportingComponent", "/reportingController"]);
    let count = ["/series/count", "/count", "/deprecatedCount"]
        .iter()
        .find_map(|path| object.pointer(path)?.as_i64());
    vec![
        json!(last),
        json!(text("/type")),
        json!(text("/reason")),
        json!(subject),
        json!(field("fieldPath")),
        json!(source),
        json!(first_of(&["/message", "/note"])),
        json!(first),
        json!(count.unwrap_or(1)),
        json!(own),
    ]
}

fn list<'a>(object: &'a Value, path: &str) -> &'a [Value] {
    object.pointer(path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn labels(map: Option<&Value>) -> String {
    let pairs = map.and_then(Value::as_object).into_iter().flatten();
    let pairs = pairs.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
    pairs.collect::<Vec<_>>().join(",")
}

fn or_none(text: &str) -> String {
    if text.is_empty() { "<none>".to_owned() } else { text.to_owned() }
}
