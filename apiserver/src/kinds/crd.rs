//! CRDs: defaults, checks, and the conditions that a cluster's controllers would set, set at once.

use super::crd_schema::check_schema;
use super::{inner, items, items_mut, put, text};
use crate::object::names::{bad_label_1035, bad_subdomain};
use crate::object::{is_deleting, name, set_field, set_meta};
use crate::registry::has_condition;
use crate::scope::Sub;
use crate::status::Cause;
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
    let (names, taken) = accept(crd, &wanted, others);
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
    set_field(status, "acceptedNames", Some(names));
    put(status, "conditions", json!([]));
    for condition in [accepted, established] {
        set_condition(status, condition);
    }
}

/// Whether a CRD's resource is served.
pub(crate) fn established(crd: &Value) -> bool {
    has_condition(crd, "Established") && !is_deleting(crd)
}

/// The names that may be had, and the last that may not.
fn accept<'a>(
    crd: &Value,
    wanted: &Value,
    others: impl Iterator<Item = &'a Value>,
) -> (Value, Option<(&'static str, String)>) {
    let group = crd.pointer("/spec/group");
    let (mut resources, mut kinds): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for other in others.filter(|other| other.pointer("/spec/group") == group && name(other) != name(crd)) {
        let Some(theirs) = other.pointer("/status/acceptedNames") else { continue };
        resources.extend([text(theirs, "plural"), text(theirs, "singular")]);
        resources.extend(items(theirs, "shortNames").iter().filter_map(Value::as_str));
        kinds.extend([text(theirs, "kind"), text(theirs, "listKind")]);
    }
    let mut accepted = crd.pointer("/status/acceptedNames").cloned().unwrap_or_else(|| json!({}));
    let mut clash = None;
    let fields = [
        ("plural", "PluralConflict"),
        ("singular", "SingularConflict"),
        ("shortNames", "ShortNamesConflict"),
        ("kind", "KindConflict"),
        ("listKind", "ListKindConflict"),
    ];
    for (field, reason) in fields {
        let used = if field.to_lowercase().ends_with("kind") { &kinds } else { &resources };
        let one = [text(wanted, field)];
        let many = items(wanted, field).iter().filter_map(Value::as_str);
        match one.into_iter().chain(many).find(|one| !one.is_empty() && used.contains(one)) {
            Some(one) => clash = Some((reason, format!("{one:?} is already in use"))),
            None => set_field(&mut accepted, field, wanted.get(field).cloned()),
        }
    }
    set_field(&mut accepted, "categories", wanted.get("categories").cloned());
    (accepted, clash)
}

/// Says that a CRD goes, and its objects first.
pub(crate) fn terminating(crd: &mut Value, now: &str) {
    let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
    let condition = condition("Terminating", true, "InstanceDeletionPending", message, now);
    if let Some(status) = inner(crd, "status") {
        put(status, "conditions", json!([]));
        set_condition(status, condition);
    }
}

/// Says that a CRD's objects are being deleted.
pub(crate) fn emptying(crd: &mut Value, now: &str) {
    let message = "CustomResource deletion is in progress";
    let condition = condition("Terminating", true, "InstanceDeletionInProgress", message, now);
    if let Some(status) = inner(crd, "status") {
        set_condition(status, condition);
    }
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
    check_approval(object, text(spec, "group"), old, &mut causes);
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

/// Groups of the community need its approval.
fn check_approval(object: &Value, group: &str, old: Option<&Value>, causes: &mut Vec<Cause>) {
    const ANNOTATION: &str = "api-approved.kubernetes.io";
    let protected = group == "k8s.io" || group.ends_with(".k8s.io") || group.ends_with(".kubernetes.io");
    let approval =
        object.pointer("/metadata/annotations").and_then(|all| all.get(ANNOTATION)).and_then(Value::as_str);
    if !protected || old.is_some() || approval.is_some_and(|text| !text.is_empty()) {
        return;
    }
    let why = format!(
        "protected groups must have approval annotation {ANNOTATION:?}, see \
         https://github.com/kubernetes/enhancements/pull/1111"
    );
    causes.push(Cause::required(format!("metadata.annotations[{ANNOTATION}]"), &why));
}

fn check_versions(spec: &Value, causes: &mut Vec<Cause>) {
    let versions = items(spec, "versions");
    // What all versions share is reported once.
    let shared = |path: &str| {
        let first = versions.first().and_then(|version| version.pointer(path));
        versions.iter().all(|version| version.pointer(path) == first)
    };
    for (at, version) in versions.iter().enumerate() {
        let name = text(version, "name");
        if let bad @ [_, ..] = bad_label_1035(name).as_slice() {
            causes.push(Cause::invalid_text(format!("spec.versions[{at}].name"), name, &bad.join(",")));
        }
        let place = |path: &str, short: &str| match shared(path) {
            true if at > 0 => None,
            true => Some(format!("spec.{short}")),
            false => Some(format!("spec.versions[{at}].{}", path.trim_start_matches('/').replace('/', "."))),
        };
        match version.pointer("/schema/openAPIV3Schema") {
            None | Some(Value::Null) => {
                causes.push(Cause::required(format!("spec.versions[{at}].schema.openAPIV3Schema"), ""));
            }
            Some(schema) => {
                if let Some(place) = place("/schema", "validation") {
                    causes.extend(check_schema(schema, &format!("{place}.openAPIV3Schema")));
                }
            }
        }
        if let Some(place) = place("/additionalPrinterColumns", "additionalPrinterColumns") {
            check_columns(version, &place, causes);
        }
        if let Some(place) = place("/subresources", "subresources") {
            check_scale(version, &place, causes);
        }
    }
    check_storage(versions, causes);
}

fn check_storage(versions: &[Value], causes: &mut Vec<Cause>) {
    // As the server shows its own form of them.
    let shown: Vec<String> = versions
        .iter()
        .map(|version| {
            let flag = |field: &str| version.get(field).and_then(Value::as_bool).unwrap_or(false);
            format!(
                "{{\"Name\":{},\"Served\":{},\"Storage\":{},\"Deprecated\":{},\"DeprecationWarning\":null,\"Schema\":null,\
                 \"Subresources\":null,\"AdditionalPrinterColumns\":null,\"SelectableFields\":null}}",
                Value::from(text(version, "name")),
                flag("served"),
                flag("storage"),
                flag("deprecated"),
            )
        })
        .collect();
    let refuse = |why: &str| Cause {
        kind: "FieldValueInvalid",
        field: "spec.versions".to_owned(),
        message: format!("Invalid value: [{}]: {why}", shown.join(",")),
    };
    let names: Vec<&str> = versions.iter().map(|version| text(version, "name")).collect();
    if names.iter().enumerate().any(|(at, name)| names[..at].contains(name)) {
        causes.push(refuse("must contain unique version names"));
    }
    let stored = versions.iter().filter(|version| version.get("storage") == Some(&Value::Bool(true)));
    let stored: Vec<&str> = stored.map(|version| text(version, "name")).collect();
    match stored.as_slice() {
        [_] => {}
        [] => {
            causes.push(refuse("must have exactly one version marked as storage version"));
            let why = "must have at least one stored version";
            causes.push(Cause::invalid("status.storedVersions", &Value::Null, why));
        }
        [first, others @ ..] => {
            causes.push(refuse("must have exactly one version marked as storage version"));
            for other in others {
                let why = format!("must have the storage version {other}");
                causes.push(Cause::invalid("status.storedVersions", &json!([first]), &why));
            }
        }
    }
}

fn check_columns(version: &Value, place: &str, causes: &mut Vec<Cause>) {
    const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
    for (at, column) in items(version, "additionalPrinterColumns").iter().enumerate() {
        let place = format!("{place}[{at}]");
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
        check_path(text(column, "jsonPath"), format!("{place}.JSONPath"), causes);
    }
}

fn check_path(path: &str, place: String, causes: &mut Vec<Cause>) -> bool {
    match path {
        "" => causes.push(Cause::required(place, "")),
        path if !path.starts_with('.') => {
            causes.push(Cause::invalid_text(place, path, "must be a simple json path starting with ."));
        }
        _ => return true,
    }
    false
}

fn check_scale(version: &Value, place: &str, causes: &mut Vec<Cause>) {
    let Some(scale) = version.pointer("/subresources/scale").filter(|scale| !scale.is_null()) else { return };
    for (field, root) in [("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")] {
        let path = text(scale, field);
        let at = format!("{place}.scale.{field}");
        if check_path(path, at.clone(), causes) && !path.starts_with(root) {
            let why = format!("should be a json path under {}", root.trim_end_matches('.'));
            causes.push(Cause::invalid_text(at, path, &why));
        }
    }
    let path = text(scale, "labelSelectorPath");
    if !path.is_empty() && !path.starts_with(".spec.") && !path.starts_with(".status.") {
        let why = "should be a json path under either .spec or .status";
        causes.push(Cause::invalid_text(format!("{place}.scale.labelSelectorPath"), path, why));
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
