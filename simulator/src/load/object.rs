//! From fields to objects: which kind it is, what its metadata says, which list it came in.
//! Whether a `spec` makes sense is not asked here; only which of its fields nobody knows.

use super::{
    LoadError, LoadOptions, Loaded, LoadedObject, Problem, Rounded, Unknown, UnknownField, unknown_fields,
    written_versions,
};
use crate::world::key_of;
use conductor::model::{Kind, Object};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde_json::{Map, Value};
use std::{fmt, sync::Arc};

/// How many lists may stand within each other. kubectl writes one.
pub(super) const LISTS_MAX: usize = 16;

/// Holds the whole manifest once more, with whatever its author had in it.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Where an object stands in its file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) line: usize,
    pub(super) document: usize,
    pub(super) item: Option<usize>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.item {
            Some(item) => write!(f, "item {item} of document {}", self.document),
            None => write!(f, "document {}", self.document),
        }
    }
}

/// What the items of a list inherit: a typed list says once what each of them is.
#[derive(Clone, Debug, Default)]
pub(super) struct Parent {
    api_version: Option<String>,
    kind: Option<String>,
}

/// What an object turns out to be.
pub(super) enum Shape {
    /// A list, and what its items inherit.
    List(Parent),
    /// A kind that the engine reads.
    Read(Kind),
    /// Another kind, as `apiVersion/kind`.
    Other(String),
    /// Nothing that can be told, and why.
    Broken(String),
}

impl Parent {
    /// The shape of an object. `items` says whether there are any, and whether they are a list or null.
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
            .ok_or("no `kind`: say what it is, such as `kind: RelationalDatabaseClaim`")?;
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
        // A version that we do not have may mean something else by the same fields.
        Ok(match Kind::find(api_version, kind).filter(|kind| kind.api_version() == api_version) {
            Some(kind) => Shape::Read(kind),
            None => Shape::Other(format!("{api_version}/{kind}")),
        })
    }
}

/// The text of a field; nothing and the empty text are one.
fn text<'a>(field: &str, value: Option<&'a Value>) -> Result<Option<&'a str>, String> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str()).filter(|text| !text.is_empty())),
        Some(other) => Err(format!("`{field}` is {}, not text: put it in quotes", describe(other))),
    }
}

/// What a value is, in words.
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

/// A mapping, with its `items` apart.
pub(super) struct Entry {
    pub(super) fields: Map<String, Value>,
    pub(super) items: Option<ListItems>,
}

/// The `items` of a mapping.
pub(super) enum ListItems {
    /// Each with its line.
    Each(Vec<(usize, Value)>),
    /// Anything else.
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

    /// The mapping as it was written.
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

/// Gathers what one file holds.
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

    /// The name of the file.
    pub(super) fn source(&self) -> &Arc<str> {
        &self.source
    }

    /// The same, with nothing gathered yet.
    pub(super) fn clear(&mut self) {
        *self = Collector::new(self.source.clone(), self.options);
    }

    /// What was gathered.
    ///
    /// # Errors
    /// A file of which no document is an object is no manifest: prose is valid YAML too.
    pub(super) fn finish(self) -> Result<Loaded, LoadError> {
        match self.first_stray {
            Some((line, found)) if self.mappings == 0 => {
                Err(LoadError::NotManifest { source_name: self.source, line, found })
            }
            _ => Ok(self.found),
        }
    }

    /// Whether the file holds no document at all.
    pub(super) fn is_empty(&self) -> bool {
        self.mappings == 0 && self.first_stray.is_none()
    }

    /// Finds the versions that lost digits: each belongs to the last object that begins at or before its line and
    /// has such a number. Several objects may stand on one line.
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
                self.found.rounded.push(Rounded { source, line, object, version });
            }
        }
    }

    /// A document or an item that is not a mapping.
    pub(super) fn stray(&mut self, place: Place, value: &Value) {
        let found = describe(value);
        self.first_stray.get_or_insert((place.line, found));
        let message = format!("it is {found}, not an object: write a mapping with `apiVersion` and `kind`");
        self.problem(place, place.to_string(), message);
    }

    /// An object of a kind that the engine does not read.
    pub(super) fn ignore(&mut self, kind: String) {
        self.mappings += 1;
        *self.found.ignored.entry(kind).or_default() += 1;
    }

    /// A list, whose items come by themselves.
    pub(super) fn list(&mut self) {
        self.mappings += 1;
    }

    /// A list below more lists than anybody writes.
    pub(super) fn too_many_lists(&mut self, place: Place) {
        self.mappings += 1;
        let message = format!("more than {LISTS_MAX} lists within each other: take the inner ones out");
        self.problem(place, place.to_string(), message);
    }

    /// A mapping of which nothing is known yet; lists are opened.
    pub(super) fn entry(&mut self, place: Place, entry: Entry, parent: &Parent) {
        self.nested_entry(place, entry, parent, 0);
    }

    fn nested_entry(&mut self, place: Place, entry: Entry, parent: &Parent, lists: usize) {
        let items = entry.items.as_ref();
        let items = items.map(|items| matches!(items, ListItems::Each(_) | ListItems::NotAList(Value::Null)));
        let shape = parent.shape(entry.fields.get("apiVersion"), entry.fields.get("kind"), items);
        let Shape::List(parent) = shape else { return self.shaped(place, shape, entry.whole()) };
        if lists >= LISTS_MAX {
            return self.too_many_lists(place);
        }
        self.list();
        if let Some(ListItems::Each(items)) = entry.items {
            for (at, (line, item)) in items.into_iter().enumerate() {
                let place = Place { line, item: Some(at + 1), ..place };
                match item {
                    Value::Object(fields) => {
                        self.nested_entry(place, Entry::new(fields, line), &parent, lists + 1);
                    }
                    other => self.stray(place, &other),
                }
            }
        }
    }

    /// A mapping whose shape is known and is not a list.
    pub(super) fn shaped(&mut self, place: Place, shape: Shape, fields: Map<String, Value>) {
        self.mappings += 1;
        match shape {
            Shape::Read(kind) => {
                let name = label(kind.name(), &fields);
                let unknown = unknown_fields(kind, &fields);
                match self.object(kind, fields) {
                    Ok(object) => {
                        self.unknown(place, &object, unknown);
                        let source = self.source.clone();
                        self.found.objects.push(LoadedObject { object, source, line: place.line });
                    }
                    Err(message) => self.problem(place, name.unwrap_or(place.to_string()), message),
                }
            }
            Shape::Other(kind) => *self.found.ignored.entry(kind).or_default() += 1,
            Shape::Broken(message) => {
                let kind = fields.get("kind").and_then(Value::as_str).unwrap_or("object");
                let name = label(kind, &fields).unwrap_or(place.to_string());
                self.problem(place, name, message);
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

    fn unknown(&mut self, place: Place, object: &Object, fields: Vec<UnknownField>) {
        for field in fields {
            let object = format!("{} {}", object.kind.name(), key_of(object));
            let (source, line) = (self.source.clone(), place.line);
            self.found.unknown.push(Unknown { source, line, object, field });
        }
    }

    fn problem(&mut self, place: Place, object: String, message: String) {
        self.found.problems.push(Problem { source: self.source.clone(), line: place.line, object, message });
    }
}

/// `Kind namespace/name`, as far as the fields tell.
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
            Err("only `generateName`, and nobody here generates names: write `metadata.name`".to_owned())
        }
        (false, None) => Err("no `metadata.name`: give it a name".to_owned()),
    }
}

/// Metadata from its fields.
///
/// # Errors
/// The field that cannot be read, and what to write instead.
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
                "`metadata.{field}` is {value}, which is no time: write it as in 2026-01-31T12:00:00Z, or leave it out"
            ));
        }
    }
    Ok(())
}

/// serde says what it met but not where; these are the fields where a missing pair of quotes bites.
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
