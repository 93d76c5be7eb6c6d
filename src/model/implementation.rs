//! What implements a resource: the template it is made from, the record of what was made, and what the made
//! object says of itself. Making, judging and removing one is the lifecycle's business.

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

/// What is to implement a resource.
#[derive(Clone, Debug, PartialEq)]
pub enum Template {
    /// Nothing: it stands for something that exists.
    Absent,
    /// These objects, in the order in which they are written.
    Objects(Box<[PartTemplate]>),
    /// Something that cannot be made, and why.
    Unreadable(FieldError),
}

/// An object before it is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartTemplate {
    /// What it is called among the objects of its resource.
    pub id: Name,
    /// Where it will be. The template has no say in that: its own name and namespace are not honoured.
    pub key: PartKey,
}

/// What is computed for a resource: its templates, when their objects are ready, how it is reached.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// `template` or `templates`, `ready` and `connection` as written.
    pub source: Value,
    /// The same as text: resources of one class share what is compiled from it.
    pub text: String,
    /// What expressions see: resource, claim, class, parameters.
    pub inputs: Value,
}

impl Script {
    /// Reads what is computed for a resource; nothing where nothing is.
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
    /// Reads what is to implement a resource from its spec.
    pub(super) fn read(ty: TypeId, meta: &Meta, spec: &Field<'_>) -> Template {
        let (one, many) = (spec.at("template"), spec.at("templates"));
        let objects = match (one.value(), many.value()) {
            (None, None) => return Template::Absent,
            (Some(_), Some(_)) => Err(many.error("stands beside `template`", "keep one of the two")),
            (Some(_), None) => PartTemplate::read(ty, meta, Name::from(MAIN), &one).map(|part| vec![part]),
            (None, Some(_)) => read_several(ty, meta, &many),
        };
        match objects {
            Ok(objects) => Template::Objects(objects.into()),
            Err(error) => Template::Unreadable(error),
        }
    }

    /// The objects that are to be made.
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

/// The kind that a template makes.
///
/// # Errors
/// The field that is missing, or a kind of which no part is ever made.
pub(super) fn read_kind(template: &Field<'_>) -> Result<PartKind, FieldError> {
    let require = |name: &'static str| {
        let field = template.at(name);
        let text = field.text()?.filter(|text| !text.is_empty());
        text.ok_or_else(|| field.error("is missing", "say what the template makes"))
    };
    let kind = PartKind::new(require("apiVersion")?, require("kind")?);
    if kind.is_denied() {
        let fix = "implement the resource by a kind that hands out no rights and is not Conductor's own";
        return Err(template.at("kind").error("is a kind of which no part is ever made", fix));
    }
    Ok(kind)
}

/// How long a part's name may be before the digest: operators add to the names of what they make.
const NAME_CHARS_MAX: usize = 40;
/// How much of that its id may take, where there are several.
const ID_CHARS_MAX: usize = 12;

/// Where a resource's part is. The name derives from the resource's name, for people, and from its UID,
/// so that a create that is tried again meets itself, and a successor of the resource's name does not.
fn part_key(ty: TypeId, meta: &Meta, id: &str, kind: PartKind) -> PartKey {
    let plain = |text: &str, most: usize| {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let text: String = text.chars().map(plain).take(most).collect();
        text.trim_matches('-').to_owned()
    };
    let called = if id == MAIN { String::new() } else { plain(id, ID_CHARS_MAX) };
    let name = plain(&meta.key.name, NAME_CHARS_MAX - called.len());
    // Some kinds want a name that begins with a letter.
    let prefix = if name.starts_with(|c: char| c.is_ascii_alphabetic()) { "" } else { ty.rules().short };
    let digest = digest(&format!("{}/{id}", meta.uid));
    let words = [prefix, &name, &called, &digest].into_iter().filter(|word| !word.is_empty());
    let name = words.collect::<Vec<_>>().join("-");
    PartKey { kind, namespace: meta.key.namespace.clone(), name: Name::from(name) }
}

/// Twelve characters that stand for a text: FNV-1a, because names must be the same in every version of ours.
pub fn digest(text: &str) -> String {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325, step);
    format!("{:012x}", (hash ^ (hash >> 48)) & 0xffff_ffff_ffff)
}

/// What a resource's status records of its implementation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Record {
    /// Nothing yet.
    #[default]
    Absent,
    /// Parts that we make or have made, in the order in which they are made.
    Ours(Vec<PartRef>),
    /// Something that somebody else made: it is theirs to look after.
    Foreign,
}

/// A reference to a part. It is written before the part is made, without a UID: whatever becomes of us
/// afterwards, what may exist is known. The UID follows once the part has been seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartRef {
    /// Which of the resource's parts.
    pub id: Name,
    /// Where it is.
    pub key: PartKey,
    /// Which life of that name.
    pub uid: Option<Uid>,
}

impl Record {
    /// Reads a status. A reference is ours where it leads to the name that we would give.
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

    /// The parts that are ours.
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

    /// The reference as it stands in a status.
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

/// What a status says of these parts: one reference, or a list. An unknown UID is taken out of what was
/// written before.
pub fn record_json(parts: &[PartRef]) -> Value {
    match parts {
        [main] if &*main.id == MAIN => main.to_json(),
        parts => parts.iter().map(PartRef::to_json).map(without_nulls).collect(),
    }
}

/// A list is replaced whole by a merge patch, so that nothing in it has to be taken out.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            Value::Object(fields.into_iter().filter(|(_, value)| !value.is_null()).collect())
        }
        other => other,
    }
}

/// A part as the engine knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartView {
    /// Where it is.
    pub key: PartKey,
    /// Which life of that name.
    pub uid: Uid,
    /// How far it has come.
    pub revision: Revision,
    /// Whether its deletion has been asked for.
    pub deleting: bool,
    /// The UID of the resource that it belongs to, where it says so.
    pub owner: Option<Uid>,
    /// A digest of what it was last made from, where we wrote one.
    pub rendered: Option<Name>,
    /// All of it as JSON: what expressions ask of it is read when they ask.
    pub text: Arc<str>,
}

/// Whether a part can be used, by its own word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// It can.
    Ready,
    /// Not yet; what it says instead.
    NotReady(Name),
    /// It has failed, and waiting does not help; what it says.
    Failed(Name),
}

impl PartView {
    /// Reads a part.
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

    /// All of it, as expressions see it.
    pub fn object(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }
}

/// Words of a `phase` or `state` that mean ready, in lower case.
const READY_PHASES: &[&str] = &["ready", "available", "running", "bound"];

impl Readiness {
    /// What a part says of itself, where neither its class nor an adapter says better:
    ///
    /// 1. a condition `Ready` decides, where its status has one;
    /// 2. else its `status.phase`, else its `status.state`: Ready, Available, Running or Bound, in any case;
    /// 3. else a core kind is ready once it exists: most have nothing to become;
    /// 4. else it is not ready: its controller has not spoken yet, and silence is no consent.
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

/// How much of what a part says is repeated on its resource.
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
