//! Encodes stored objects for the client: in the version that it requested, whole, as a row, or only their metadata.

use super::accept::Shape;
use super::kinds;
use super::registry::{Common, Served};
use super::store::Stored;
use super::table;
use bytes::Bytes;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Value, json};
use std::sync::Arc;

/// Whether what is kept can be served as it is.
fn is_kept_form(served: &Served) -> bool {
    served.at == served.resource.storage() && served.resource.common() != Some(Common::NewEvent)
}

/// An object in the version that the client requested.
pub(super) fn to_served(value: &Value, served: &Served) -> Value {
    if served.resource.common() == Some(Common::NewEvent) {
        return kinds::event_to_new(value.clone());
    }
    with_version(value.clone(), served.api_version())
}

/// An object as it is kept.
pub(super) fn to_kept(value: Value, served: &Served) -> Value {
    if served.resource.common() == Some(Common::NewEvent) {
        return kinds::event_from_new(value);
    }
    let storage = Served { resource: Arc::clone(&served.resource), at: served.resource.storage() };
    with_version(value, storage.api_version())
}

fn with_version(mut value: Value, api_version: String) -> Value {
    if let Some(fields) = value.as_object_mut()
        && fields.get("apiVersion").and_then(Value::as_str) != Some(api_version.as_str())
    {
        fields.insert("apiVersion".to_owned(), api_version.into());
    }
    value
}

/// One object, as JSON.
pub(super) fn object(stored: &Stored, served: &Served, shape: Shape) -> Bytes {
    match shape {
        Shape::Whole | Shape::Discovery if is_kept_form(served) => stored.bytes(),
        Shape::Whole | Shape::Discovery => Bytes::from(to_served(&stored.value, served).to_string()),
        Shape::Metadata => Bytes::from(metadata(&stored.value).to_string()),
        Shape::Table => Bytes::from(table::of_one(&to_served(&stored.value, served), served).to_string()),
    }
}

/// One object as an item of a list, without the names that a list of common kinds has only once.
pub(super) fn item(stored: &Stored, served: &Served) -> Bytes {
    match (served.resource.is_custom(), is_kept_form(served)) {
        (true, true) => stored.bytes(),
        (true, false) => Bytes::from(to_served(&stored.value, served).to_string()),
        (false, true) => Bytes::from(bare(&stored.value)),
        (false, false) => Bytes::from(bare(&to_served(&stored.value, served))),
    }
}

/// Only what every object has.
pub(super) fn metadata(value: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": value.get("metadata").cloned().unwrap_or_else(|| json!({})),
    })
}

fn bare(value: &Value) -> String {
    struct Bare<'a>(&'a serde_json::Map<String, Value>);
    impl Serialize for Bare<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut map = serializer.serialize_map(None)?;
            for (name, value) in
                self.0.iter().filter(|(name, _)| !matches!(name.as_str(), "apiVersion" | "kind"))
            {
                map.serialize_entry(name, value)?;
            }
            map.end()
        }
    }
    match value.as_object() {
        Some(fields) => serde_json::to_string(&Bare(fields)).unwrap_or_else(|_| value.to_string()),
        None => value.to_string(),
    }
}
