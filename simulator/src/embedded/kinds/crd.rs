//! CRDs: defaults, checks, and the conditions that a cluster's controllers would set, set at once.

use super::crd_schema::check_schema;
use super::{inner, items, items_mut, put, text};
use crate::embedded::object::names::{bad_label_1035, bad_subdomain};
use crate::embedded::object::{is_deleting, name, set_field, set_meta};
use crate::embedded::registry::has_condition;
use crate::embedded::scope::Sub;
use crate::embedded::status::Cause;
use serde_json::{Value, json};

pub(super) fn default(object: &mut Value) {
    let Some(spec) = object.get_mut("spec") else { return };
    if let Some(names) = inner(spec, "names") {
        let kind = text(names, "kind").to_owned();
        put(names, "singular", kind.to_lowercase());
        if !kind.is_empty() {
            put(names, "listKind", format!("{kind}List"));
        }
    }
    put(spec, "conversion", json!({"strategy": "None"}));
    for version in items_mut(spec, "versions") {
        for column in items_mut(version, "additionalPrinterColumns") {
            put(column, "jsonPath", "");
        }
    }
}

pub(super) fn prepare_created(object: &mut Value) {
    let status = json!({
        "conditions": [],
        "acceptedNames": {"kind": "", "plural": ""},
        "storedVersions": [],
    });
    set_field(object, "status", Some(status));
    set_meta(object, "generation", 1.into());
    store_version(object);
}

pub(super) fn prepare_updated(object: &mut Value, _old: &Value, sub: Sub) {
    if sub == Sub::Whole {
        store_version(object);
    }
}

/// Remembers every version that objects have been kept in.
fn store_version(object: &mut Value) {
    let versions = object.pointer("/spec/versions").and_then(Value::as_array);
    let storage =
        versions.into_iter().flatten().find(|version| version.get("storage") == Some(&Value::Bool(true)));
    let Some(name) = storage.map(|version| text(version, "name").to_owned()) else { return };
    if let Some(status) = inner(object, "status") {
        put(status, "storedVersions", json!([]));
        if let Some(stored) = status.get_mut("storedVersions").and_then(Value::as_array_mut)
            && !stored.iter().any(|one| one == &name)
        {
            stored.push(name.into());
        }
    }
}

/// Whether the names are free, and whether the resource is served: as the controllers of a cluster would say, given
/// the other CRDs.
pub(crate) fn conditions<'a>(crd: &mut Value, others: impl Iterator<Item = &'a Value>, now: &str) {
    let wanted = crd.pointer("/spec/names").cloned().unwrap_or(Value::Null);
    let taken = taken(crd, &wanted, others);
    let was_established = has_condition(crd, "Established");
    let accepted = match &taken {
        None => condition("NamesAccepted", true, "NoConflicts", "no conflicts found", now),
        Some((reason, message)) => condition("NamesAccepted", false, reason, message, now),
    };
    let established = match (&taken, was_established) {
        (None, _) | (_, true) => condition(
            "Established",
            true,
            "InitialNamesAccepted",
            "the initial names have been accepted",
            now,
        ),
        (Some(_), false) => condition("Established", false, "NotAccepted", "not all names are accepted", now),
    };
    let Some(status) = inner(crd, "status") else { return };
    if taken.is_none() {
        set_field(status, "acceptedNames", Some(wanted));
    }
    put(status, "conditions", json!([]));
    for condition in [accepted, established] {
        set_condition(status, condition);
    }
}

/// Whether a CRD's resource is served.
pub(crate) fn established(crd: &Value) -> bool {
    has_condition(crd, "Established") && !is_deleting(crd)
}

fn taken<'a>(
    crd: &Value,
    wanted: &Value,
    others: impl Iterator<Item = &'a Value>,
) -> Option<(&'static str, String)> {
    let group = crd.pointer("/spec/group");
    let same_group = others.filter(|other| other.pointer("/spec/group") == group && name(other) != name(crd));
    for other in same_group {
        let Some(theirs) = other.pointer("/status/acceptedNames") else { continue };
        let mut resources = vec![text(theirs, "plural"), text(theirs, "singular")];
        resources.extend(items(theirs, "shortNames").iter().filter_map(Value::as_str));
        let mine =
            [("PluralConflict", text(wanted, "plural")), ("SingularConflict", text(wanted, "singular"))];
        let short = items(wanted, "shortNames")
            .iter()
            .filter_map(Value::as_str)
            .map(|one| ("ShortNamesConflict", one));
        let clash = mine.into_iter().chain(short).find(|(_, one)| !one.is_empty() && resources.contains(one));
        if let Some((reason, one)) = clash {
            return Some((reason, format!("{one:?} is already in use")));
        }
        let kinds = [text(theirs, "kind"), text(theirs, "listKind")];
        for (reason, field) in [("KindConflict", "kind"), ("ListKindConflict", "listKind")] {
            if kinds.contains(&text(wanted, field)) && !text(wanted, field).is_empty() {
                return Some((reason, format!("{:?} is already in use", text(wanted, field))));
            }
        }
    }
    None
}

fn condition(kind: &str, holds: bool, reason: &str, message: &str, now: &str) -> Value {
    let status = if holds { "True" } else { "False" };
    json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": now})
}

fn set_condition(status: &mut Value, mut new: Value) {
    let Some(conditions) = status.get_mut("conditions").and_then(Value::as_array_mut) else { return };
    let same = |old: &&mut Value| text(old, "type") == text(&new, "type");
    match conditions.iter_mut().find(same) {
        Some(old) => {
            if text(old, "status") == text(&new, "status") {
                set_field(&mut new, "lastTransitionTime", old.get("lastTransitionTime").cloned());
            }
            *old = new;
        }
        None => conditions.push(new),
    }
}

pub(super) fn check(object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let empty = Value::Null;
    let spec = object.get("spec").unwrap_or(&empty);
    let names = spec.get("names").unwrap_or(&empty);
    let mut causes = Vec::new();
    let expected = format!("{}.{}", text(names, "plural"), text(spec, "group"));
    if name(object) != expected {
        causes.push(Cause::invalid_text(
            "metadata.name",
            name(object),
            "must be spec.names.plural+\".\"+spec.group",
        ));
    }
    check_group(text(spec, "group"), &mut causes);
    match text(spec, "scope") {
        "" => causes.push(Cause::required("spec.scope", "")),
        "Cluster" | "Namespaced" => {}
        other => causes.push(Cause::unsupported("spec.scope", &other.into(), &["Cluster", "Namespaced"])),
    }
    check_versions(spec, &mut causes);
    check_names(names, &mut causes);
    check_conversion(spec, &mut causes);
    if let Some(old) = old {
        check_fixed(spec, old, &mut causes);
    }
    causes
}

fn check_group(group: &str, causes: &mut Vec<Cause>) {
    if group.is_empty() {
        causes.push(Cause::required("spec.group", ""));
    } else if let bad @ [_, ..] = bad_subdomain(group).as_slice() {
        causes.push(Cause::invalid_text("spec.group", group, &bad.join(",")));
    } else if !group.contains('.') {
        causes.push(Cause::invalid_text("spec.group", group, "should be a domain with at least one dot"));
    }
}

fn check_versions(spec: &Value, causes: &mut Vec<Cause>) {
    let versions = items(spec, "versions");
    let shown = spec.get("versions").cloned().unwrap_or(Value::Null);
    for (at, version) in versions.iter().enumerate() {
        let place = format!("spec.versions[{at}]");
        let name = text(version, "name");
        if let bad @ [_, ..] = bad_label_1035(name).as_slice() {
            causes.push(Cause::invalid_text(format!("{place}.name"), name, &bad.join(",")));
        }
        let schema_place = format!("{place}.schema.openAPIV3Schema");
        match version.pointer("/schema/openAPIV3Schema") {
            None | Some(Value::Null) => causes.push(Cause::required(schema_place, "schemas are required")),
            Some(schema) => causes.extend(check_schema(schema, &schema_place)),
        }
        check_columns(version, &place, causes);
    }
    let storage =
        versions.iter().filter(|version| version.get("storage") == Some(&Value::Bool(true))).count();
    let names: Vec<&str> = versions.iter().map(|version| text(version, "name")).collect();
    let repeated = names.iter().enumerate().any(|(at, name)| names[..at].contains(name));
    if repeated {
        causes.push(Cause::invalid("spec.versions", &shown, "must contain unique version names"));
    }
    if storage != 1 {
        let why = "must have exactly one version marked as storage version";
        causes.push(Cause::invalid("spec.versions", &shown, why));
    }
}

fn check_columns(version: &Value, place: &str, causes: &mut Vec<Cause>) {
    const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
    for (at, column) in items(version, "additionalPrinterColumns").iter().enumerate() {
        let place = format!("{place}.additionalPrinterColumns[{at}]");
        if text(column, "name").is_empty() {
            causes.push(Cause::required(format!("{place}.name"), ""));
        }
        let kind = text(column, "type");
        let why = format!("must be one of {}", TYPES.join(","));
        match kind {
            "" => causes.push(Cause::required(format!("{place}.type"), &why)),
            kind if !TYPES.contains(&kind) => {
                causes.push(Cause::invalid_text(format!("{place}.type"), kind, &why));
            }
            _ => {}
        }
        match text(column, "jsonPath") {
            "" => causes.push(Cause::required(format!("{place}.JSONPath"), "")),
            path if !path.starts_with('.') => {
                let why = "must be a simple json path starting with .";
                causes.push(Cause::invalid_text(format!("{place}.JSONPath"), path, why));
            }
            _ => {}
        }
    }
}

fn check_names(names: &Value, causes: &mut Vec<Cause>) {
    for field in ["plural", "singular", "kind", "listKind"] {
        let name = text(names, field);
        if name.is_empty() {
            causes.push(Cause::required(format!("spec.names.{field}"), ""));
            continue;
        }
        let is_kind = matches!(field, "kind" | "listKind");
        let bad = bad_label_1035(&if is_kind { name.to_lowercase() } else { name.to_owned() });
        if !bad.is_empty() {
            let title = if is_kind { "may have mixed case, but should otherwise match: " } else { "" };
            let why = format!("{title}{}", bad.join(","));
            causes.push(Cause::invalid_text(format!("spec.names.{field}"), name, &why));
        }
    }
    for (list, place) in [("shortNames", "spec.names.shortNames"), ("categories", "spec.names.categories")] {
        for (at, one) in items(names, list).iter().filter_map(Value::as_str).enumerate() {
            if let bad @ [_, ..] = bad_label_1035(one).as_slice() {
                causes.push(Cause::invalid_text(format!("{place}[{at}]"), one, &bad.join(",")));
            }
        }
    }
    if !text(names, "kind").is_empty() && text(names, "kind") == text(names, "listKind") {
        let why = "kind and listKind may not be the same";
        causes.push(Cause::invalid_text("spec.names.listKind", text(names, "listKind"), why));
    }
}

fn check_conversion(spec: &Value, causes: &mut Vec<Cause>) {
    let strategy = spec.pointer("/conversion/strategy").and_then(Value::as_str).unwrap_or_default();
    match strategy {
        "None" => {}
        "Webhook" => {
            let why = "the embedded API calls no webhooks: use None";
            causes.push(Cause::forbidden("spec.conversion.strategy", why));
        }
        other => {
            causes.push(Cause::unsupported("spec.conversion.strategy", &other.into(), &["None", "Webhook"]));
        }
    }
    if spec.get("preserveUnknownFields") == Some(&Value::Bool(true)) {
        let why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        causes.push(Cause::invalid("spec.preserveUnknownFields", &Value::Bool(true), why));
    }
}

/// What may not change once the resource is served.
fn check_fixed(spec: &Value, old: &Value, causes: &mut Vec<Cause>) {
    if !established(old) {
        return;
    }
    for field in ["scope", "group"] {
        let before = old.pointer(&format!("/spec/{field}")).and_then(Value::as_str).unwrap_or_default();
        if text(spec, field) != before {
            causes.push(Cause::invalid_text(
                format!("spec.{field}"),
                text(spec, field),
                "field is immutable",
            ));
        }
    }
    for field in ["kind", "plural"] {
        let path = format!("/names/{field}");
        let now = spec.pointer(&path).and_then(Value::as_str).unwrap_or_default();
        if Some(now) != old.pointer(&format!("/spec{path}")).and_then(Value::as_str) {
            causes.push(Cause::invalid_text(format!("spec.names.{field}"), now, "field is immutable"));
        }
    }
}
