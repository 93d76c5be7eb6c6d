//! What the common kinds are beyond their schemas: their defaults, what the server sets, and their own checks. One
//! room per kind that has any.

mod config;
mod crd;
mod crd_schema;
mod deployment;
mod event;
mod namespace;
mod pod;
mod service;

pub(super) use crd::{
    conditions as crd_conditions, emptying as crd_emptying, terminating as crd_terminating,
};
pub(super) use event::{from_new as event_from_new, to_new as event_to_new};
pub(super) use namespace::remaining as namespace_remaining;

use super::object::names::Form;
use super::object::{generation, meta, set_field, set_meta};
use super::registry::Common;
use super::scope::Sub;
use super::status::Cause;
use serde_json::Value;

/// Fills in what the kind's users leave out.
pub(super) fn default(common: Common, object: &mut Value) {
    match common {
        Common::Secret => config::default_secret(object),
        Common::Service => service::default(object),
        Common::Pod => pod::default(object),
        Common::Deployment => deployment::default(object),
        Common::Namespace => namespace::default(object),
        Common::EndpointSlice => service::default_slice(object),
        Common::Event | Common::NewEvent => event::default(object),
        Common::Crd => crd::default(object),
        Common::ConfigMap | Common::Lease | Common::ServiceAccount => {}
    }
}

/// How names of the kind are formed.
pub(super) fn name_form(common: Common) -> Form {
    match common {
        Common::Namespace => Form::Label,
        Common::Service => Form::Label,
        Common::Event | Common::NewEvent => Form::Segment,
        _ => Form::Subdomain,
    }
}

/// What the server sets on a new object.
pub(super) fn prepare_created(common: Common, object: &mut Value) {
    match common {
        Common::Namespace => namespace::prepare_created(object),
        Common::Pod => pod::prepare_created(object),
        Common::Service => service::prepare_created(object),
        Common::Deployment => {
            set_field(object, "status", Some(Value::Object(serde_json::Map::new())));
            set_meta(object, "generation", 1.into());
        }
        Common::Crd => crd::prepare_created(object),
        Common::EndpointSlice => set_meta(object, "generation", 1.into()),
        Common::Secret
        | Common::ConfigMap
        | Common::Event
        | Common::NewEvent
        | Common::Lease
        | Common::ServiceAccount => {}
    }
}

/// What an update may not change, and when a generation passes.
pub(super) fn prepare_updated(common: Common, object: &mut Value, old: &Value, sub: Sub) {
    match sub {
        Sub::Whole | Sub::Scale => keep(object, old, &["status"]),
        Sub::Status => {
            let status = object.get("status").cloned();
            let managed = meta(object).and_then(|meta| meta.get("managedFields")).cloned();
            *object = old.clone();
            set_field(object, "status", status);
            set_meta(object, "managedFields", managed.unwrap_or_default());
        }
        Sub::Finalize => keep(object, old, &["status"]),
    }
    match common {
        Common::Namespace if sub != Sub::Finalize => keep(object, old, &["spec"]),
        Common::Service => service::prepare_updated(object, old),
        Common::Deployment | Common::Crd | Common::Pod if object.get("spec") != old.get("spec") => {
            set_meta(object, "generation", (generation(old) + 1).into());
        }
        Common::EndpointSlice => {
            let changed =
                ["endpoints", "ports", "addressType"].iter().any(|name| object.get(name) != old.get(name))
                    || meta(object).and_then(|meta| meta.get("labels"))
                        != meta(old).and_then(|meta| meta.get("labels"));
            if changed {
                set_meta(object, "generation", (generation(old) + 1).into());
            }
        }
        _ => {}
    }
    if common == Common::Crd {
        crd::prepare_updated(object, old, sub);
    }
}

/// What is wrong with an object beyond its schema.
pub(super) fn check(common: Common, object: &Value, old: Option<&Value>, sub: Sub) -> Vec<Cause> {
    match common {
        Common::Secret => config::check_secret(object, old),
        Common::ConfigMap => config::check_map(object, old),
        Common::Namespace => namespace::check(object),
        Common::Service => service::check(object, old),
        Common::EndpointSlice => service::check_slice(object, old),
        Common::Pod => pod::check(object, old, sub),
        Common::Deployment => deployment::check(object, old),
        Common::Crd => crd::check(object, old),
        Common::Event | Common::NewEvent => event::check(object, old),
        Common::Lease => config::check_lease(object),
        Common::ServiceAccount => Vec::new(),
    }
}

fn keep(object: &mut Value, old: &Value, fields: &[&str]) {
    for field in fields {
        set_field(object, field, old.get(*field).cloned());
    }
}

/// Sets a field where there is none.
fn put(object: &mut Value, field: &str, value: impl Into<Value>) {
    if let Some(fields) = object.as_object_mut()
        && fields.get(field).is_none_or(Value::is_null)
    {
        fields.insert(field.to_owned(), value.into());
    }
}

/// A field that is an object, made where there is none.
fn inner<'a>(object: &'a mut Value, field: &str) -> Option<&'a mut Value> {
    put(object, field, Value::Object(serde_json::Map::new()));
    object.get_mut(field)
}

fn items_mut<'a>(object: &'a mut Value, field: &str) -> impl Iterator<Item = &'a mut Value> {
    object.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten()
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn items<'a>(object: &'a Value, field: &str) -> &'a [Value] {
    object.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
