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
use crate::api::names::RESOURCE_UID;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is to implement a resource.
#[derive(Clone, Debug, PartialEq)]
pub enum Template {
    /// Nothing: it stands for something that exists.
    Absent,
    /// One object.
    One(Arc<PartTemplate>),
    /// Several objects. They are kept as written, and made by nobody yet.
    Several,
    /// Something that cannot be made, and why.
    Unreadable(FieldError),
}

/// A part before it is made.
#[derive(Clone, Debug, PartialEq)]
pub struct PartTemplate {
    /// Where it will be. The template has no say in that: its own name and namespace are not honoured.
    pub key: PartKey,
    /// The template's labels, as far as they are texts.
    pub labels: BTreeMap<String, String>,
    /// The template's annotations, as far as they are texts.
    pub annotations: BTreeMap<String, String>,
    /// Every other field but the status, which is for its controller to write.
    pub body: Value,
    /// What is computed when it is made; absent where nothing is.
    pub computed: Option<Computed>,
}

/// A template with expressions, or whose class says when its object is ready.
#[derive(Clone, Debug, PartialEq)]
pub struct Computed {
    /// The template as written.
    pub template: Value,
    /// What expressions see: resource, claim, class, parameters.
    pub inputs: Value,
}

impl Computed {
    fn read(template: &Value, resource: &Object) -> Option<Computed> {
        let given = resource.body.pointer("/spec/inputs").and_then(Value::as_object);
        if given.is_none() && !inputs::has_expressions(template) {
            return None;
        }
        let mut inputs = given.cloned().unwrap_or_default();
        inputs.insert("resource".to_owned(), inputs::of_resource(resource));
        Some(Computed { template: template.clone(), inputs: Value::Object(inputs) })
    }
}

impl Template {
    /// Reads what is to implement a resource from its spec.
    pub(super) fn read(ty: TypeId, meta: &Meta, spec: &Field<'_>, object: &Object) -> Template {
        let (one, many) = (spec.at("template"), spec.at("templates"));
        match (one.value(), many.value()) {
            (None, None) => Template::Absent,
            (None, Some(_)) => Template::Several,
            (Some(_), Some(_)) => {
                Template::Unreadable(many.error("stands beside `template`", "keep one of the two"))
            }
            (Some(value), None) => match read_kind(&one) {
                Ok(kind) => {
                    let computed = Computed::read(value, object);
                    Template::One(Arc::new(PartTemplate::new(part_key(ty, meta, kind), value, computed)))
                }
                Err(error) => Template::Unreadable(error),
            },
        }
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

impl PartTemplate {
    /// What a template without expressions makes.
    pub fn new(key: PartKey, template: &Value, computed: Option<Computed>) -> PartTemplate {
        let texts = |field: &str| {
            let map = template.get("metadata").and_then(|m| m.get(field)).and_then(Value::as_object);
            let pairs =
                map.into_iter().flatten().filter_map(|(k, v)| Some((k.clone(), v.as_str()?.to_owned())));
            pairs.collect()
        };
        let fields = template.as_object().into_iter().flatten();
        let own =
            fields.filter(|(name, _)| !["apiVersion", "kind", "metadata", "status"].contains(&name.as_str()));
        let body: Map<String, Value> = own.map(|(name, value)| (name.clone(), value.clone())).collect();
        PartTemplate {
            key,
            labels: texts("labels"),
            annotations: texts("annotations"),
            body: Value::Object(body),
            computed,
        }
    }
}

/// How long a part's name may be before the digest: operators add to the names of what they make.
const NAME_CHARS_MAX: usize = 40;

/// Where a resource's only part is. The name derives from the resource's name, for people, and from its UID,
/// so that a create that is tried again meets itself, and a successor of the resource's name does not.
fn part_key(ty: TypeId, meta: &Meta, kind: PartKind) -> PartKey {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = meta.key.name.chars().map(plain).take(NAME_CHARS_MAX).collect();
    let name = name.trim_matches('-');
    // Some kinds want a name that begins with a letter.
    let prefix = if name.starts_with(|c: char| c.is_ascii_alphabetic()) { "" } else { ty.rules().short };
    let digest = digest(&format!("{}/{MAIN}", meta.uid));
    let words = [prefix, name, &digest].into_iter().filter(|word| !word.is_empty());
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
    /// A part that we make or have made.
    Ours(PartRef),
    /// Something that somebody else made: it is theirs to look after.
    Foreign,
}

/// A reference to a part. It is written before the part is made, without a UID: whatever becomes of us
/// afterwards, what may exist is known. The UID follows once the part has been seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartRef {
    /// Where it is.
    pub key: PartKey,
    /// Which life of that name.
    pub uid: Option<Uid>,
}

impl Record {
    /// Reads a status. A reference is ours where it leads to the name that we would give.
    pub(super) fn read(ty: TypeId, meta: &Meta, status: &Field<'_>) -> Record {
        let field = status.at("implementationRef");
        if field.value().is_none() {
            return Record::Absent;
        }
        let text = |name: &'static str| field.at(name).name().ok().flatten();
        let key = text("apiVersion").zip(text("kind")).map(|(v, k)| part_key(ty, meta, PartKind::new(v, k)));
        let found = text("namespace").zip(text("name"));
        match key.filter(|key| found.is_some_and(|(ns, name)| (&ns, &name) == (&key.namespace, &key.name))) {
            Some(key) => Record::Ours(PartRef { key, uid: text("uid") }),
            None => Record::Foreign,
        }
    }
}

impl PartRef {
    /// The reference as it stands in a status. An unknown UID is taken out of what was written before.
    pub fn to_json(&self) -> Value {
        let PartRef { key: PartKey { kind, namespace, name }, uid } = self;
        json!({
            "apiVersion": &*kind.api_version, "kind": &*kind.kind,
            "namespace": &**namespace, "name": &**name, "uid": uid.as_deref(),
        })
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
    /// Whether it can be used.
    pub readiness: Readiness,
}

/// Whether a part can be used, by its own word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// It can.
    Ready,
    /// Not yet; what it says instead.
    NotReady(Name),
}

impl PartView {
    /// Reads a part.
    pub fn read(part: &Part) -> PartView {
        let meta = Meta::read(&part.metadata);
        let owner = part.metadata.annotations.as_ref().and_then(|a| a.get(RESOURCE_UID));
        PartView {
            key: part.key(),
            uid: meta.uid,
            revision: meta.revision,
            deleting: meta.deleting,
            owner: owner.map(|uid| Uid::from(uid.as_str())),
            readiness: Readiness::read(&part.kind, &part.body),
        }
    }
}

/// Words of a `phase` or `state` that mean ready, in lower case.
const READY_PHASES: &[&str] = &["ready", "available", "running", "bound"];

impl Readiness {
    /// What a part says of itself, first form; a class will be able to say better:
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
