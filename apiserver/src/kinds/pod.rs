//! Pods as plain objects, and the template that Deployments share with them. Nothing runs them, so nothing is
//! admitted on behalf of nodes, priorities or service accounts.

use super::{inner, items, items_mut, put, text};
use crate::object::names::bad_label;
use crate::object::set_meta;
use crate::scope::Sub;
use crate::status::Cause;
use serde_json::{Map, Value, json};

pub(super) fn default(object: &mut Value) {
    if let Some(spec) = object.get_mut("spec") {
        default_spec(spec);
        put(spec, "enableServiceLinks", true);
    }
}

/// What a Pod's spec gets, alone or in a template.
pub(super) fn default_spec(spec: &mut Value) {
    put(spec, "restartPolicy", "Always");
    put(spec, "dnsPolicy", "ClusterFirst");
    put(spec, "schedulerName", "default-scheduler");
    put(spec, "terminationGracePeriodSeconds", 30);
    put(spec, "securityContext", json!({}));
    if let Some(name) = spec.get("serviceAccountName").or_else(|| spec.get("serviceAccount")).cloned() {
        put(spec, "serviceAccountName", name.clone());
        put(spec, "serviceAccount", name);
    }
    for list in ["initContainers", "containers"] {
        items_mut(spec, list).for_each(default_container);
    }
    items_mut(spec, "volumes").for_each(default_volume);
}

fn default_container(container: &mut Value) {
    put(container, "terminationMessagePath", "/dev/termination-log");
    put(container, "terminationMessagePolicy", "File");
    put(container, "resources", json!({}));
    let image = text(container, "image");
    let last = image.rsplit('/').next().unwrap_or(image);
    let is_latest = !image.contains('@') && (!last.contains(':') || last.ends_with(":latest"));
    let policy = if is_latest { "Always" } else { "IfNotPresent" };
    put(container, "imagePullPolicy", policy);
    items_mut(container, "ports").for_each(|port| put(port, "protocol", "TCP"));
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(probe) {
            default_probe(probe);
        }
    }
    for variable in items_mut(container, "env") {
        if let Some(field) = variable.get_mut("valueFrom").and_then(|from| from.get_mut("fieldRef")) {
            put(field, "apiVersion", "v1");
        }
    }
}

fn default_probe(probe: &mut Value) {
    for (field, value) in
        [("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)]
    {
        put(probe, field, value);
    }
    if let Some(get) = probe.get_mut("httpGet") {
        put(get, "path", "/");
        put(get, "scheme", "HTTP");
    }
    if let Some(grpc) = probe.get_mut("grpc") {
        put(grpc, "service", "");
    }
}

fn default_volume(volume: &mut Value) {
    const MODE: i64 = 0o644;
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = volume.get_mut(source) {
            put(source, "defaultMode", MODE);
        }
    }
    let has_source = volume.as_object().is_some_and(|fields| fields.len() > 1);
    if !has_source {
        put(volume, "emptyDir", json!({}));
    }
    if let Some(path) = volume.get_mut("hostPath") {
        put(path, "type", "");
    }
}

pub(super) fn prepare_created(object: &mut Value) {
    let spec = object.get("spec").cloned().unwrap_or(Value::Null);
    let status = json!({"phase": "Pending", "qosClass": quality(&spec)});
    if let Some(fields) = object.as_object_mut() {
        fields.insert("status".to_owned(), status);
    }
    if let Some(spec) = inner(object, "spec") {
        put(spec, "priority", 0);
        put(spec, "preemptionPolicy", "PreemptLowerPriority");
        tolerate(spec);
    }
    set_meta(object, "generation", 1.into());
}

/// Every Pod bears with an unready node for a while.
fn tolerate(spec: &mut Value) {
    put(spec, "tolerations", json!([]));
    let Some(list) = spec.get_mut("tolerations").and_then(Value::as_array_mut) else { return };
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        if !list.iter().any(|one| text(one, "key") == key) {
            list.push(json!({
                "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300,
            }));
        }
    }
}

/// The quality of service that a Pod's resources promise.
fn quality(spec: &Value) -> &'static str {
    let containers = || items(spec, "containers").iter().chain(items(spec, "initContainers"));
    let of = |container: &Value, kind: &str| -> Map<String, Value> {
        let found = container.get("resources").and_then(|resources| resources.get(kind));
        found.and_then(Value::as_object).cloned().unwrap_or_default()
    };
    if containers().all(|one| of(one, "limits").is_empty() && of(one, "requests").is_empty()) {
        return "BestEffort";
    }
    let full = |one: &Value| {
        let (limits, requests) = (of(one, "limits"), of(one, "requests"));
        ["cpu", "memory"].iter().all(|name| {
            limits.contains_key(*name)
                && requests.get(*name).is_none_or(|request| Some(request) == limits.get(*name))
        })
    };
    if containers().all(full) { "Guaranteed" } else { "Burstable" }
}

pub(super) fn check(object: &Value, old: Option<&Value>, _sub: Sub) -> Vec<Cause> {
    let empty = Value::Null;
    let spec = object.get("spec").unwrap_or(&empty);
    let mut causes = check_spec(spec, "spec");
    let Some(old) = old else { return causes };
    let fixed = |spec: Option<&Value>| {
        let mut spec = spec.cloned().unwrap_or(Value::Null);
        if let Some(fields) = spec.as_object_mut() {
            [
                "activeDeadlineSeconds",
                "tolerations",
                "terminationGracePeriodSeconds",
                "schedulingGates",
                "nodeName",
            ]
            .iter()
            .for_each(|field| drop(fields.remove(*field)));
        }
        for list in ["containers", "initContainers"] {
            for container in items_mut(&mut spec, list) {
                if let Some(fields) = container.as_object_mut() {
                    fields.remove("image");
                }
            }
        }
        spec
    };
    if fixed(object.get("spec")) != fixed(old.get("spec")) {
        let fields = "spec.containers[*].image,spec.initContainers[*].image,spec.activeDeadlineSeconds,\
                      spec.tolerations (only additions to existing tolerations),\
                      spec.terminationGracePeriodSeconds (allow it to be set to 1 if it was previously negative)";
        let fields = fields.replace("  ", "");
        causes.push(Cause::forbidden(
            "spec",
            &format!("pod updates may not change fields other than {}", spaced(&fields)),
        ));
    }
    causes
}

fn spaced(fields: &str) -> String {
    fields.split(',').map(|field| format!("`{field}`")).collect::<Vec<_>>().join(",")
}

/// What is wrong with a Pod's spec.
pub(super) fn check_spec(spec: &Value, path: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    if items(spec, "containers").is_empty() {
        causes.push(Cause::required(format!("{path}.containers"), ""));
    }
    let mut seen: Vec<&str> = Vec::new();
    for list in ["initContainers", "containers"] {
        for (at, container) in items(spec, list).iter().enumerate() {
            let place = format!("{path}.{list}[{at}]");
            let name = text(container, "name");
            match name.is_empty() {
                true => causes.push(Cause::required(format!("{place}.name"), "")),
                false => {
                    for why in bad_label(name) {
                        causes.push(Cause::invalid_text(format!("{place}.name"), name, &why));
                    }
                }
            }
            if !name.is_empty() && seen.contains(&name) {
                causes.push(Cause::duplicate(format!("{place}.name"), &name.into()));
            }
            seen.push(name);
            if text(container, "image").is_empty() {
                causes.push(Cause::required(format!("{place}.image"), ""));
            }
            causes.extend(check_ports(container, &place));
        }
    }
    let policy = text(spec, "restartPolicy");
    if !["Always", "OnFailure", "Never"].contains(&policy) {
        let known = ["Always", "Never", "OnFailure"];
        causes.push(Cause::unsupported(format!("{path}.restartPolicy"), &policy.into(), &known));
    }
    causes
}

fn check_ports(container: &Value, place: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (at, port) in items(container, "ports").iter().enumerate() {
        let number = port.get("containerPort").and_then(Value::as_i64).unwrap_or(0);
        let field = format!("{place}.ports[{at}].containerPort");
        match number {
            0 => causes.push(Cause::required(field, "")),
            1..=65535 => {}
            number => {
                causes.push(Cause::invalid(field, &number.into(), "must be between 1 and 65535, inclusive"))
            }
        }
    }
    causes
}
