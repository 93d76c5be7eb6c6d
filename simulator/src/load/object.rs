//! From fields to objects: kind, metadata, defaults from an enclosing list. The spec is only checked for unknown fields.

use super::{
    LoadError, LoadFailure, LoadOptions, Loaded, LoadedObject, Located, UnknownField, unknown_fields,
    written_versions,
};
use crate::world::key_of;
use conductor::model::{Kind, Object};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde_json::{Map, Value};
use std::{fmt, sync::Arc};

/// Maximum nesting of lists. kubectl writes one.
pub(super) const LISTS_MAX: usize = 16;

/// Holds a second copy of the manifest, with anything its author had in it.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Where an object is in its file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Location {
    pub(super) line: usize,
    pub(super) document: usize,
    pub(super) item: Option<usize>,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.item {
            Some(item) => write!(f, "item {item} of document {}", self.document),
            None => write!(f, "document {}", self.document),
        }
    }
}

/// What a typed list declares for its items.
#[derive(Clone, Debug, Default)]
pub(super) struct Parent {
    api_version: Option<String>,
    kind: Option<String>,
}

/// What an object is.
pub(super) enum Shape {
    /// A list, with the declarations for its items.
    List(Parent),
    /// An object of a kind that the engine reads.
    Read(Kind),
    /// An object of another kind, `apiVersion/kind`.
    Other(String),
    /// Not an object, and why.
    Broken(String),
}

impl Parent {
    /// Determines the shape. `items`: whether the field exists, and whether it is a list or null.
    pub(super) fn shape(
        &self,
        api_version: Option<&Value>,
        kind: Option<&Value>,
        items: Option<bool>,
    ) -> Shape {
        self.try_shape(api_version, kind, items).unwrap_or_else(Shape::Broken)
    }

    fn try_shape(
        &self,
        api_version: Option<&Value>,
        kind: Option<&Value>,
        items: Option<bool>,
    ) -> Result<Shape, String> {
        let kind = text("kind", kind)?
            .or(self.kind.as_deref())
            .ok_or("no `kind`: write one, such as `kind: RelationalDatabaseClaim`")?;
        let api_version = text("apiVersion", api_version)?.or(self.api_version.as_deref());
        if kind == "List" {
            return match items {
                Some(false) => Err("`items` is not a list: write each object after a dash".to_owned()),
                Some(true) | None => Ok(Shape::List(Parent::default())),
            };
        }
        let api_version =
            api_version.ok_or("no `apiVersion`: write it, such as `storage.conductor.io/v1alpha1`")?;
        if let (Some(of), Some(true)) = (kind.strip_suffix("List"), items) {
            let (api_version, of) = (api_version.to_owned(), of.to_owned());
            return Ok(Shape::List(Parent { api_version: Some(api_version), kind: Some(of) }));
        }
        // Another version may give the same fields another meaning.
        Ok(match Kind::find(api_version, kind).filter(|kind| kind.api_version() == api_version) {
            Some(kind) => Shape::Read(kind),
            None => Shape::Other(format!("{api_version}/{kind}")),
        })
    }
}

/// The text of a field; `None` if missing or empty.
fn text<'a>(field: &str, value: Option<&'a Value>) -> Result<Option<&'a str>, String> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str()).filter(|text| !text.is_empty())),
        Some(other) => Err(format!("`{field}` is {}, not text: put it in quotes", describe(other))),
    }
}

/// Describes a value in an error message.
fn describe(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(true) => "a boolean (true)",
        Value::Bool(false) => "a boolean (false)",
        Value::Number(_) => "a number",
        Value::String(_) => "a piece of text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a mapping",
    }
}

/// A mapping, with its `items` separate.
pub(super) struct Entry {
    pub(super) fields: Map<String, Value>,
    pub(super) items: Option<ListItems>,
}

/// The `items` of a mapping.
pub(super) enum ListItems {
    /// Items with their lines.
    Each(Vec<(usize, Value)>),
    /// Not a list.
    NotAList(Value),
}

impl Entry {
    fn new(mut fields: Map<String, Value>, line: usize) -> Self {
        let items = fields.remove("items").map(|items| match items {
            Value::Array(items) => ListItems::Each(items.into_iter().map(|item| (line, item)).collect()),
            other => ListItems::NotAList(other),
        });
        Entry { fields, items }
    }

    /// The mapping including its items.
    fn whole(self) -> Map<String, Value> {
        let Entry { mut fields, items } = self;
        if let Some(items) = items {
            let items = match items {
                ListItems::Each(items) => items.into_iter().map(|(_, item)| item).collect(),
                ListItems::NotAList(value) => value,
            };
            fields.insert("items".to_owned(), items);
        }
        fields
    }
}

/// Collects the objects of one file.
pub(super) struct Collector<'a> {
    source: Arc<str>,
    options: &'a LoadOptions,
    found: Loaded,
    mappings: usize,
    first_stray: Option<(usize, &'static str)>,
}

impl<'a> Collector<'a> {
    pub(super) fn new(source: Arc<str>, options: &'a LoadOptions) -> Self {
        Collector { source, options, found: Loaded::default(), mappings: 0, first_stray: None }
    }

    /// The file's name.
    pub(super) fn source(&self) -> &Arc<str> {
        &self.source
    }

    /// Discards everything collected.
    pub(super) fn clear(&mut self) {
        *self = Collector::new(self.source.clone(), self.options);
    }

    /// Returns everything collected.
    ///
    /// # Errors
    /// No document is an object: prose is valid YAML too.
    pub(super) fn finish(self) -> Result<Loaded, LoadError> {
        match self.first_stray {
            Some((line, found)) if self.mappings == 0 => {
                Err(LoadFailure::NotManifest(found).at(&self.source, line, None))
            }
            _ => Ok(self.found),
        }
    }

    /// Whether the file holds no document.
    pub(super) fn is_empty(&self) -> bool {
        self.mappings == 0 && self.first_stray.is_none()
    }

    /// Finds versions that lost digits: each belongs to the last object that starts at or before its line and contains the
    /// number. Several objects may start on one line.
    pub(super) fn find_rounded(&mut self, text: &str) {
        for written in written_versions(text) {
            let before = self.found.objects.partition_point(|loaded| loaded.line <= written.line);
            let Some(last) = before.checked_sub(1).map(|at| self.found.objects[at].line) else { continue };
            let near = self.found.objects[..before].iter().rev().take_while(|loaded| loaded.line == last);
            let mut rounded =
                near.filter_map(|loaded| Some((loaded, written.rounded_in(&loaded.object.body)?)));
            if let Some((loaded, version)) = rounded.next() {
                let object = format!("{} {}", loaded.object.kind.name(), key_of(&loaded.object));
                let (source, line) = (self.source.clone(), written.line);
                self.found.rounded.push(Located { source, line, object, what: version });
            }
        }
    }

    /// Reports a document or item that is not a mapping.
    pub(super) fn stray(&mut self, location: Location, value: &Value) {
        let found = describe(value);
        self.first_stray.get_or_insert((location.line, found));
        let message = format!("it is {found}, not an object: write a mapping with `apiVersion` and `kind`");
        self.problem(location, location.to_string(), message);
    }

    /// Counts an object of another kind.
    pub(super) fn ignore(&mut self, kind: String) {
        self.mappings += 1;
        *self.found.ignored.entry(kind).or_default() += 1;
    }

    /// Counts a list; its items are added one by one.
    pub(super) fn list(&mut self) {
        self.mappings += 1;
    }

    /// Reports lists nested too deeply.
    pub(super) fn too_many_lists(&mut self, location: Location) {
        self.mappings += 1;
        let message = format!("more than {LISTS_MAX} lists within each other: take the inner ones out");
        self.problem(location, location.to_string(), message);
    }

    /// Adds a mapping; expands lists.
    pub(super) fn entry(&mut self, location: Location, entry: Entry, parent: &Parent) {
        self.nested_entry(location, entry, parent, 0);
    }

    fn nested_entry(&mut self, location: Location, entry: Entry, parent: &Parent, lists: usize) {
        let items = entry.items.as_ref();
        let items = items.map(|items| matches!(items, ListItems::Each(_) | ListItems::NotAList(Value::Null)));
        let shape = parent.shape(entry.fields.get("apiVersion"), entry.fields.get("kind"), items);
        let Shape::List(parent) = shape else { return self.shaped(location, shape, entry.whole()) };
        if lists >= LISTS_MAX {
            return self.too_many_lists(location);
        }
        self.list();
        if let Some(ListItems::Each(items)) = entry.items {
            for (at, (line, item)) in items.into_iter().enumerate() {
                let location = Location { line, item: Some(at + 1), ..location };
                match item {
                    Value::Object(fields) => {
                        self.nested_entry(location, Entry::new(fields, line), &parent, lists + 1);
                    }
                    other => self.stray(location, &other),
                }
            }
        }
    }

    /// Adds a mapping of known shape, not a list.
    pub(super) fn shaped(&mut self, location: Location, shape: Shape, fields: Map<String, Value>) {
        self.mappings += 1;
        match shape {
            Shape::Read(kind) => {
                let name = label(kind.name(), &fields);
                let unknown = unknown_fields(kind, &fields);
                match self.object(kind, fields) {
                    Ok(object) => {
                        self.unknown(location, &object, unknown);
                        let source = self.source.clone();
                        self.found.objects.push(LoadedObject { object, source, line: location.line });
                    }
                    Err(message) => self.problem(location, name.unwrap_or(location.to_string()), message),
                }
            }
            Shape::Other(kind) => *self.found.ignored.entry(kind).or_default() += 1,
            Shape::Broken(message) => {
                let kind = fields.get("kind").and_then(Value::as_str).unwrap_or("object");
                let name = label(kind, &fields).unwrap_or(location.to_string());
                self.problem(location, name, message);
            }
            Shape::List(_) => {}
        }
    }

    fn object(&self, kind: Kind, mut fields: Map<String, Value>) -> Result<Object, String> {
        fields.remove("apiVersion");
        fields.remove("kind");
        let mut metadata = metadata(fields.remove("metadata"))?;
        let missing = metadata.namespace.as_deref().unwrap_or_default().is_empty();
        metadata.namespace = match kind {
            Kind::ClusterQuota | Kind::Profile | Kind::Namespace => None,
            _ if !missing => metadata.namespace,
            Kind::Claim(_) | Kind::Quota | Kind::Limits => Some(self.options.namespace.clone()),
            Kind::Resource(_) | Kind::Class(_) => Some(self.options.system_namespace.clone()),
        };
        Ok(Object { kind, metadata, body: Value::Object(fields) })
    }

    fn unknown(&mut self, location: Location, object: &Object, fields: Vec<UnknownField>) {
        for field in fields {
            let object = format!("{} {}", object.kind.name(), key_of(object));
            let (source, line) = (self.source.clone(), location.line);
            self.found.unknown.push(Located { source, line, object, what: field });
        }
    }

    fn problem(&mut self, location: Location, object: String, what: String) {
        self.found.problems.push(Located { source: self.source.clone(), line: location.line, object, what });
    }
}

/// `Kind namespace/name`, if it has a name.
fn label(kind: &str, fields: &Map<String, Value>) -> Option<String> {
    let metadata = fields.get("metadata")?;
    let name = metadata.get("name")?.as_str().filter(|name| !name.is_empty())?;
    match metadata.get("namespace").and_then(Value::as_str) {
        Some(namespace) => Some(format!("{kind} {namespace}/{name}")),
        None => Some(format!("{kind} {name}")),
    }
}

fn metadata(value: Option<Value>) -> Result<ObjectMeta, String> {
    let mut map = match value {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(map)) => map,
        Some(other) => return Err(format!("`metadata` is {}, not a mapping", describe(&other))),
    };
    map.remove("managedFields");
    if let Some(Value::Object(annotations)) = map.get_mut("annotations") {
        annotations.remove(LAST_APPLIED);
        if annotations.is_empty() {
            map.remove("annotations");
        }
    }
    let metadata = read_metadata(Value::Object(map))?;
    let named = metadata.name.as_deref().is_some_and(|name| !name.is_empty());
    match (named, &metadata.generate_name) {
        (true, _) => Ok(metadata),
        (false, Some(_)) => {
            Err("only `generateName`, but names are not generated offline: write `metadata.name`".to_owned())
        }
        (false, None) => Err("no `metadata.name`: write one".to_owned()),
    }
}

/// Parses metadata.
///
/// # Errors
/// The invalid field, and what to write instead.
pub fn read_metadata(value: Value) -> Result<ObjectMeta, String> {
    if let Value::Object(map) = &value {
        check_texts(map)?;
        check_times(map)?;
    }
    serde_json::from_value(value).map_err(|error| format!("`metadata`: {error}"))
}

fn check_times(metadata: &Map<String, Value>) -> Result<(), String> {
    for field in ["creationTimestamp", "deletionTimestamp"] {
        let value = metadata.get(field).unwrap_or(&Value::Null);
        if serde_json::from_value::<Option<Time>>(value.clone()).is_err() {
            return Err(format!(
                "`metadata.{field}` is {value}, not a time: write it as 2026-01-31T12:00:00Z, or leave it out"
            ));
        }
    }
    Ok(())
}

/// Checks fields that often lack quotes; serde's own error would not name the field.
fn check_texts(metadata: &Map<String, Value>) -> Result<(), String> {
    for field in ["name", "namespace", "generateName", "uid", "resourceVersion"] {
        text(&format!("metadata.{field}"), metadata.get(field))?;
    }
    for field in ["labels", "annotations"] {
        match metadata.get(field) {
            None | Some(Value::Null) => {}
            Some(Value::Object(entries)) => {
                if let Some((key, value)) = entries.iter().find(|(_, value)| !value.is_string()) {
                    let found = describe(value);
                    return Err(format!("`metadata.{field}.{key}` is {found}, not text: put it in quotes"));
                }
            }
            Some(other) => return Err(format!("`metadata.{field}` is {}, not a mapping", describe(other))),
        }
    }
    Ok(())
}
