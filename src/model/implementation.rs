//! The implementation of a resource: its templates, the recorded references to its objects, and the readiness that each
//! object reports. The lifecycle creates, checks and deletes the objects.

use super::error::FieldError;
use super::fields::Field;
use super::inputs;
use super::key::{Name, Revision, Uid};
use super::meta::Meta;
use super::object::Object;
use super::part::{MAIN, Part, PartKey, PartKind};
use super::types::TypeId;
use crate::api::names::{RENDERED, RESOURCE_UID};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The templates of a resource.
#[derive(Clone, Debug, PartialEq)]
pub enum Template {
    /// None: the resource represents something that exists.
    Absent,
    /// These objects, in the order as written.
    Objects(Box<[PartTemplate]>),
    /// Invalid templates, and why.
    Unreadable(FieldError),
}

/// An object of the implementation before it is created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartTemplate {
    /// Its id among the objects of its resource.
    pub id: Name,
    /// Its key. The name and namespace in the template are ignored.
    pub key: PartKey,
}

/// The source of everything that expressions compute for a resource: its objects, their readiness, the connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// `template` or `templates`, `ready` and `connection` as written.
    pub source: Value,
    /// The same as text, the key under which resources of one class share the compiled form.
    pub text: String,
    /// The variables of expressions: resource, claim, class, parameters.
    pub inputs: Value,
}

impl Script {
    /// Parses the source; None if the resource has neither templates nor a connection.
    pub(super) fn read(spec: &Field<'_>, object: &Object) -> Option<Script> {
        let own = |name| spec.at(name).value();
        let mut inputs = own("inputs").and_then(Value::as_object).cloned().unwrap_or_default();
        let class = |name: &str| inputs.get("class").and_then(|class| class.get(name));
        let connection = own("connection").or_else(|| class("connection"));
        let fields = [
            ("template", own("template")),
            ("templates", own("templates")),
            ("ready", class("ready")),
            ("connection", connection),
        ];
        let given = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.clone())));
        let source: Map<String, Value> = given.filter(|(_, value)| !value.is_null()).collect();
        if source.is_empty() {
            return None;
        }
        inputs.insert("resource".to_owned(), inputs::of_resource(object));
        let source = Value::Object(source);
        Some(Script { text: source.to_string(), source, inputs: Value::Object(inputs) })
    }
}

impl Template {
    /// Parses the templates in the spec of a resource.
    pub(super) fn read(ty: TypeId, meta: &Meta, spec: &Field<'_>) -> Template {
        let (one, many) = (spec.at("template"), spec.at("templates"));
        let objects = match (one.value(), many.value()) {
            (None, None) => return Template::Absent,
            (Some(_), Some(_)) => Err(many.error("is set together with `template`", "keep one of the two")),
            (Some(_), None) => PartTemplate::read(ty, meta, Name::from(MAIN), &one).map(|part| vec![part]),
            (None, Some(_)) => read_several(ty, meta, &many),
        };
        match objects {
            Ok(objects) => Template::Objects(objects.into()),
            Err(error) => Template::Unreadable(error),
        }
    }

    /// The objects to create.
    pub fn objects(&self) -> &[PartTemplate] {
        match self {
            Template::Objects(objects) => objects,
            Template::Absent | Template::Unreadable(_) => &[],
        }
    }
}

fn read_several(ty: TypeId, meta: &Meta, many: &Field<'_>) -> Result<Vec<PartTemplate>, FieldError> {
    let mut parts: Vec<PartTemplate> = Vec::new();
    for entry in many.items()? {
        let field = entry.at("id");
        let id = field.name()?.ok_or_else(|| field.error("is missing", "name the object"))?;
        if parts.iter().any(|part| part.id == id) {
            return Err(field.error("is used twice", "give each object its own id"));
        }
        parts.push(PartTemplate::read(ty, meta, id, &entry.at("template"))?);
    }
    match parts.is_empty() {
        true => Err(many.error("is empty", "write at least one object, or leave it out")),
        false => Ok(parts),
    }
}

impl PartTemplate {
    fn read(ty: TypeId, meta: &Meta, id: Name, template: &Field<'_>) -> Result<PartTemplate, FieldError> {
        let key = part_key(ty, meta, &id, read_kind(template)?);
        Ok(PartTemplate { id, key })
    }
}

/// The kind of the object in a template.
///
/// # Errors
/// A missing field, or a kind that is never created.
pub(super) fn read_kind(template: &Field<'_>) -> Result<PartKind, FieldError> {
    let require = |name: &'static str| {
        let field = template.at(name);
        let text = field.text()?.filter(|text| !text.is_empty());
        text.ok_or_else(|| field.error("is missing", "write the kind that the template creates"))
    };
    let kind = PartKind::new(require("apiVersion")?, require("kind")?);
    if kind.is_denied() {
        let fix = "use a kind that grants no rights and is not Conductor's own";
        return Err(template.at("kind").error("is a kind that Conductor never creates", fix));
    }
    Ok(kind)
}

/// Characters of a part's name before the digest. It is short because operators append to it.
const NAME_CHARS_MAX: usize = 40;
/// Characters of it for the id, if there are several parts.
const ID_CHARS_MAX: usize = 12;

/// The key of a resource's part. The name derives from the resource's name, for readability, and from its UID, so that a
/// retried create finds its own object, and a resource that is recreated with the same name does not.
fn part_key(ty: TypeId, meta: &Meta, id: &str, kind: PartKind) -> PartKey {
    let plain = |text: &str, most: usize| {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let text: String = text.chars().map(plain).take(most).collect();
        text.trim_matches('-').to_owned()
    };
    let called = if id == MAIN { String::new() } else { plain(id, ID_CHARS_MAX) };
    let name = plain(&meta.key.name, NAME_CHARS_MAX - called.len());
    // Some kinds require a name that begins with a letter.
    let prefix = if name.starts_with(|c: char| c.is_ascii_alphabetic()) { "" } else { ty.rules().short };
    let digest = digest(&format!("{}/{id}", meta.uid));
    let words = [prefix, &name, &called, &digest].into_iter().filter(|word| !word.is_empty());
    let name = words.collect::<Vec<_>>().join("-");
    PartKey { kind, namespace: meta.key.namespace.clone(), name: Name::from(name) }
}

/// A digest of a text in 12 characters: FNV-1a, because names must be the same in every version of Conductor.
pub fn digest(text: &str) -> String {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325, step);
    format!("{:012x}", (hash ^ (hash >> 48)) & 0xffff_ffff_ffff)
}

/// The `implementationRef` of a resource's status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Record {
    /// Not recorded yet.
    #[default]
    Absent,
    /// Parts that Conductor creates or created, in the order of creation.
    Ours(Vec<PartRef>),
    /// An object that Conductor did not create and does not manage.
    Foreign,
}

/// A reference to a part. It is written before the part is created, without a UID, so that the part is known even if the
/// controller crashes afterwards. The UID follows when the part is observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartRef {
    /// The id of the part in its resource.
    pub id: Name,
    /// Its key.
    pub key: PartKey,
    /// Its UID; None until it is observed.
    pub uid: Option<Uid>,
}

impl Record {
    /// Parses a status. A reference is Conductor's if it has the name that Conductor would choose.
    pub(super) fn read(ty: TypeId, meta: &Meta, status: &Field<'_>) -> Record {
        let field = status.at("implementationRef");
        let parts = match field.value() {
            None => return Record::Absent,
            Some(Value::Array(items)) if items.is_empty() => return Record::Absent,
            Some(Value::Array(_)) => field.items().ok().and_then(|items| {
                items.iter().map(|item| PartRef::read(ty, meta, item)).collect::<Option<Vec<_>>>()
            }),
            Some(_) => PartRef::read(ty, meta, &field).map(|part| vec![part]),
        };
        parts.map_or(Record::Foreign, Record::Ours)
    }

    /// The parts that Conductor manages.
    pub fn parts(&self) -> &[PartRef] {
        match self {
            Record::Ours(parts) => parts,
            Record::Absent | Record::Foreign => &[],
        }
    }
}

impl PartRef {
    fn read(ty: TypeId, meta: &Meta, field: &Field<'_>) -> Option<PartRef> {
        let text = |name: &'static str| field.at(name).name().ok().flatten();
        let id = text("id").unwrap_or_else(|| Name::from(MAIN));
        let key = part_key(ty, meta, &id, PartKind::new(text("apiVersion")?, text("kind")?));
        let is_ours = text("namespace")? == key.namespace && text("name")? == key.name;
        is_ours.then(|| PartRef { id, key, uid: text("uid") })
    }

    /// The reference as in a status.
    fn to_json(&self) -> Value {
        let PartRef { id, key: PartKey { kind, namespace, name }, uid } = self;
        let mut json = json!({
            "apiVersion": &*kind.api_version, "kind": &*kind.kind,
            "namespace": &**namespace, "name": &**name, "uid": uid.as_deref(),
        });
        if &**id != MAIN {
            json["id"] = Value::from(&**id);
        }
        json
    }
}

/// The `implementationRef` for these parts: one reference, or a list. An unknown UID is null, which removes an earlier one.
pub fn record_json(parts: &[PartRef]) -> Value {
    match parts {
        [main] if &*main.id == MAIN => main.to_json(),
        parts => parts.iter().map(PartRef::to_json).map(without_nulls).collect(),
    }
}

/// Removes nulls from an entry of a list, because a merge patch replaces the whole list.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            Value::Object(fields.into_iter().filter(|(_, value)| !value.is_null()).collect())
        }
        other => other,
    }
}

/// A parsed part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartView {
    /// Its key.
    pub key: PartKey,
    /// Its UID.
    pub uid: Uid,
    /// Its resourceVersion.
    pub revision: Revision,
    /// Whether it has a deletionTimestamp.
    pub deleting: bool,
    /// The UID of its resource, by its annotation.
    pub owner: Option<Uid>,
    /// A digest of the manifest that it was last written from, by its annotation.
    pub rendered: Option<Name>,
    /// The object as JSON text, parsed when expressions need it.
    pub text: Arc<str>,
}

/// The readiness that a part reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// The part is ready.
    Ready,
    /// Not ready yet; what it reports.
    NotReady(Name),
    /// Failed for good; what it reports.
    Failed(Name),
}

impl PartView {
    /// Parses a part.
    pub fn read(part: &Part) -> PartView {
        let meta = Meta::read(&part.metadata);
        let annotation = |name| part.metadata.annotations.as_ref().and_then(|a| a.get(name));
        let (owner, rendered) = (annotation(RESOURCE_UID), annotation(RENDERED));
        PartView {
            key: part.key(),
            uid: meta.uid,
            revision: meta.revision,
            deleting: meta.deleting,
            owner: owner.map(|uid| Uid::from(uid.as_str())),
            rendered: rendered.map(|digest| Name::from(digest.as_str())),
            text: part.to_json().to_string().into(),
        }
    }

    /// The object, as expressions see it.
    pub fn object(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }
}

/// Values of `phase` or `state` that mean ready, in lower case.
const READY_PHASES: &[&str] = &["ready", "available", "running", "bound"];

impl Readiness {
    /// The readiness of a part whose class and adapter do not define it:
    ///
    /// 1. the condition `Ready`, if its status has one;
    /// 2. else `status.phase`, else `status.state`: Ready, Available, Running or Bound, in any case;
    /// 3. else a kind of the core group is ready once it exists, because most have no status;
    /// 4. else it is not ready: its controller has not reported yet.
    pub fn read(kind: &PartKind, body: &Value) -> Readiness {
        let status = body.get("status");
        let text = |name: &str| status.and_then(|s| s.get(name)).and_then(Value::as_str);
        if let Some(condition) = ready_condition(status) {
            return condition;
        }
        match text("phase").or_else(|| text("state")) {
            Some(word) if READY_PHASES.contains(&word.to_ascii_lowercase().as_str()) => Readiness::Ready,
            Some(word) => Readiness::not_ready(word),
            None if kind.group().is_empty() => Readiness::Ready,
            None => Readiness::not_ready("its status has neither a Ready condition nor a phase yet"),
        }
    }

    fn not_ready(says: &str) -> Readiness {
        Readiness::NotReady(says.chars().take(SAYS_CHARS_MAX).collect::<String>().into())
    }
}

/// Characters of a part's message that its resource repeats.
const SAYS_CHARS_MAX: usize = 256;

fn ready_condition(status: Option<&Value>) -> Option<Readiness> {
    let conditions = status?.get("conditions")?.as_array()?;
    let ready = conditions.iter().find(|c| c.get("type").and_then(Value::as_str) == Some("Ready"))?;
    let text = |name: &str| ready.get(name).and_then(Value::as_str).unwrap_or_default();
    if text("status") == "True" {
        return Some(Readiness::Ready);
    }
    let words = [text("reason"), text("message")].into_iter().filter(|word| !word.is_empty());
    let says = words.collect::<Vec<_>>().join(": ");
    Some(Readiness::not_ready(if says.is_empty() { "its Ready condition is not True" } else { &says }))
}

#[cfg(test)]
mod tests;
