//! Deployments as plain objects: defaults and checks, no roll-out.

use super::pod::{check_spec, default_spec};
use super::{inner, put, text};
use crate::status::Cause;
use conductor::model::Selector;
use serde_json::{Value, json};

pub(super) fn default(object: &mut Value) {
    let Some(spec) = inner(object, "spec") else { return };
    put(spec, "replicas", 1);
    put(spec, "revisionHistoryLimit", 10);
    put(spec, "progressDeadlineSeconds", 600);
    if let Some(strategy) = inner(spec, "strategy") {
        put(strategy, "type", "RollingUpdate");
        if text(strategy, "type") == "RollingUpdate"
            && let Some(rolling) = inner(strategy, "rollingUpdate")
        {
            put(rolling, "maxSurge", "25%");
            put(rolling, "maxUnavailable", "25%");
        }
    }
    if let Some(template) = inner(spec, "template") {
        put(template, "metadata", json!({}));
        if let Some(pod) = inner(template, "spec") {
            default_spec(pod);
        }
    }
}

pub(super) fn check(object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = Vec::new();
    let spec = object.get("spec").cloned().unwrap_or(Value::Null);
    if let Some(replicas) = spec.get("replicas").and_then(Value::as_i64).filter(|replicas| *replicas < 0) {
        let why = "must be greater than or equal to 0";
        causes.push(Cause::invalid("spec.replicas", &replicas.into(), why));
    }
    let selector = spec.get("selector");
    let labels = spec.pointer("/template/metadata/labels").cloned().unwrap_or(json!({}));
    match selector {
        None | Some(Value::Null) => causes.push(Cause::required("spec.selector", "")),
        Some(selector) => {
            let empty = selector.as_object().is_none_or(|fields| fields.is_empty());
            if empty {
                let why = "empty selector is invalid for deployment";
                causes.push(Cause::invalid("spec.selector", selector, why));
            }
            if !selects(selector, &labels) {
                let why = "`selector` does not match template `labels`";
                causes.push(Cause::invalid("spec.template.metadata.labels", &labels, why));
            }
        }
    }
    let pod = spec.pointer("/template/spec").cloned().unwrap_or(Value::Null);
    causes.extend(check_spec(&pod, "spec.template.spec"));
    if let Some(old) = old {
        let old = old.pointer("/spec/selector");
        if let Some(selector) = selector.filter(|selector| Some(*selector) != old) {
            causes.push(Cause::invalid("spec.selector", selector, "field is immutable"));
        }
    }
    causes
}

fn selects(selector: &Value, labels: &Value) -> bool {
    let label = |key: &str| labels.get(key).and_then(Value::as_str);
    Selector::from_json(selector).is_ok_and(|selector| selector.matches(label))
}
