//! What the server itself sets before an object is kept, and every check that decides whether it may be.

use crate::kinds;
use crate::object::{self, check_created, check_updated, names::Form, set_field, set_meta};
use crate::registry::{Common, Served};
use crate::schema::{check_lists, validate};
use crate::scope::Sub;
use crate::status::{Cause, Status};
use serde_json::Value;

/// Sets what a new object must have and drops what it cannot have yet.
pub(crate) fn prepare_created(object: &mut Value, served: &Served) {
    match served.resource.common() {
        Some(common) => kinds::prepare_created(common, object),
        None => {
            if served.version().status {
                set_field(object, "status", None);
            }
            set_meta(object, "generation", 1.into());
        }
    }
}

/// Keeps what an update may not change, and counts generations.
pub(crate) fn prepare_updated(object: &mut Value, old: &Value, served: &Served, sub: Sub) {
    set_meta(object, "selfLink", Value::Null);
    set_meta(
        object,
        "generation",
        object::meta(old).and_then(|m| m.get("generation")).cloned().unwrap_or_default(),
    );
    match served.resource.common() {
        Some(common) => kinds::prepare_updated(common, object, old, sub),
        None => prepare_custom(object, old, served, sub),
    }
    for field in ["creationTimestamp", "deletionTimestamp"] {
        if let Some(value) = object::meta(old).and_then(|meta| meta.get(field)) {
            set_meta(object, field, value.clone());
        }
    }
    for field in ["uid", "deletionGracePeriodSeconds"] {
        let absent = object::meta(object).is_none_or(|meta| !meta.contains_key(field));
        if let Some(value) = object::meta(old).and_then(|meta| meta.get(field)).filter(|_| absent) {
            set_meta(object, field, value.clone());
        }
    }
    if object::meta_text(old, "deletionTimestamp").is_none() {
        set_meta(object, "deletionTimestamp", Value::Null);
    }
}

fn prepare_custom(object: &mut Value, old: &Value, served: &Served, sub: Sub) {
    if sub == Sub::Status {
        // Only the status, and of the metadata only who manages what.
        let status = object.get("status").cloned();
        let managed = object::meta(object).and_then(|meta| meta.get("managedFields")).cloned();
        *object = old.clone();
        set_field(object, "status", status);
        set_meta(object, "managedFields", managed.unwrap_or_default());
        return;
    }
    if served.version().status {
        set_field(object, "status", old.get("status").cloned());
    }
    let differs = |name: &str| object.get(name) != old.get(name);
    let names = object.as_object().into_iter().flatten().chain(old.as_object().into_iter().flatten());
    let ignored = |name: &str| {
        name == "metadata" || name == "apiVersion" || (name == "status" && served.version().status)
    };
    let changed = names.map(|(name, _)| name.as_str()).any(|name| !ignored(name) && differs(name));
    if changed {
        let next = object::generation(old) + 1;
        set_meta(object, "generation", next.into());
    }
}

/// Everything that is wrong with an object.
pub(crate) fn check(object: &Value, old: Option<&Value>, served: &Served, sub: Sub) -> Result<(), Status> {
    let resource = &served.resource;
    let mut causes = match old {
        Some(old) => check_updated(object, old, !resource.is_custom()),
        None => Vec::new(),
    };
    match resource.common() {
        Some(common) => causes.extend(kinds::check(common, object, old, sub)),
        None => causes.extend(check_custom(object, old, served, sub)),
    }
    if old.is_none() {
        // The kind's own form of names comes with its other checks; where those pass, the common ones remain.
        let form = resource.common().map_or(Form::Subdomain, kinds::name_form);
        let own = check_created(object, resource.namespaced, form, !resource.is_custom());
        causes = own.into_iter().chain(causes).collect();
    }
    if causes.is_empty() {
        return Ok(());
    }
    let mut named = resource.kind_named();
    if resource.is_custom() {
        // A custom object is called what it calls itself.
        named.name = object.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    }
    Err(Status::invalid(&named, object::name(object), &causes))
}

fn check_custom(object: &Value, old: Option<&Value>, served: &Served, sub: Sub) -> Vec<Cause> {
    let mut causes = Vec::new();
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
    if kind != served.resource.kind {
        let why = format!("must be {}", served.resource.kind);
        causes.push(Cause::invalid_text("kind", kind, &why));
    }
    let version = served.version();
    let found = match sub {
        Sub::Status => check_status(object, old, served),
        _ => {
            let mut found = validate(object, old, &version.schema);
            found.extend(check_lists(object, &version.schema));
            found
        }
    };
    let blocks = found.iter().any(|cause| BLOCKING.contains(&cause.kind));
    causes.extend(found);
    match &version.rules {
        Some(_) if blocks => causes.push(Cause::invalid("<nil>", &Value::Null, UNCHECKED)),
        Some(rules) if sub == Sub::Status => causes.extend(rules.check_field("status", object, old)),
        Some(rules) => causes.extend(rules.check(object, old)),
        None => {}
    }
    if let Some(scale) = version.scale.as_ref().filter(|_| sub != Sub::Status) {
        causes.extend(crate::verbs::scale::check(object, scale));
    }
    causes
}

/// A status is checked alone; messages name its fields without the prefix.
fn check_status(object: &Value, old: Option<&Value>, served: &Served) -> Vec<Cause> {
    let (Some(node), Some(status)) = (served.version().schema.properties.get("status"), object.get("status"))
    else {
        return Vec::new();
    };
    let mut found = validate(status, old.and_then(|old| old.get("status")), node);
    found.extend(check_lists(status, node));
    for cause in &mut found {
        cause.field = match cause.field.as_str() {
            "<nil>" => "status".to_owned(),
            field => format!("status.{field}"),
        };
    }
    found
}

/// Rules are not asked about objects that are wrong in these ways.
const BLOCKING: [&str; 5] = [
    "FieldValueNotSupported",
    "FieldValueRequired",
    "FieldValueTooLong",
    "FieldValueTooMany",
    "FieldValueTypeInvalid",
];
const UNCHECKED: &str = "some validation rules were not checked because the object was invalid; correct the existing \
errors to complete validation";

/// Whether a kind may be created by an update, and updated without naming a revision.
pub(crate) fn is_lenient(common: Option<Common>) -> (bool, bool) {
    match common {
        Some(Common::Service | Common::Event | Common::NewEvent) => (true, true),
        Some(Common::Lease) => (true, false),
        Some(Common::Crd) | None => (false, false),
        Some(_) => (false, true),
    }
}
