//! A claim, validated: what it asks for, and how far its binding has come on its own side.
//! Whether anything fits is not asked here.

use super::capacity::Capacity;
use super::error::FieldError;
use super::fields::Field;
use super::key::{Name, Uid};
use super::meta::{ConditionView, Meta};
use super::object::Object;
use super::range::VersionRange;
use super::selector::Selector;
use super::spec_record::SpecRecord;
use super::types::{FieldRule, Rule, TypeId};
use crate::api::names::SCHEDULING_PROFILE;
use serde_json::Value;
use std::sync::Arc;

/// A claim as the engine knows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// Its abstract type.
    pub ty: TypeId,
    /// Identity.
    pub meta: Meta,
    /// What it asks for; an unreadable spec is the claim's own error and told there.
    pub wants: Result<Arc<Wants>, FieldError>,
    /// The group (the engine) that it asks for: known, for quotas, also where something else in the spec is unreadable.
    pub group: Option<Name>,
    /// The higher, the sooner it is tried.
    pub priority: i32,
    /// The resource named in its spec: by the user before binding, by us after.
    pub resource_name: Option<Name>,
    /// What the Secret with its connection is to be called, where it says so.
    pub secret_name: Option<Name>,
    /// The scheduling profile that it chose.
    pub profile: Option<Name>,
    /// What its spec says, field by field, to tell an edit from what was always there.
    pub spec: SpecRecord,
    /// What its status says.
    pub status: ClaimStatus,
}

/// Everything that matching depends on. Claims with equal wants fit the same resources.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Wants {
    /// Which class it is of.
    pub class: ClassWant,
    /// What it asks of each field of its type, in the type table's order.
    pub fields: Box<[FieldWant]>,
    /// Labels that the resource must have.
    pub selector: Selector,
    /// Named quantities that the resource must have left.
    pub requests: Capacity,
    /// Whether it refuses to share.
    pub exclusive: bool,
}

/// What a claim says about its class. An empty name is not an absent one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClassWant {
    /// Says nothing: classless resources, then the default class.
    Absent,
    /// `class: ""`: classless resources only.
    Classless,
    /// One class, or several in order of preference; never empty.
    Named(Box<[Name]>),
    /// The class is not asked, because the profile says so. No claim says this itself.
    Any,
}

/// What a claim asks of one field.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FieldWant {
    /// Nothing.
    Any,
    /// This name, in canonical spelling.
    Name(Name),
    /// A version in this range.
    Range(Arc<VersionRange>),
    /// True.
    Flag,
    /// All of these, sorted.
    Contains(Box<[Name]>),
}

/// How far a claim is, by its own status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClaimPhase {
    /// Waiting; also where no phase is written.
    #[default]
    Pending,
    /// Both sides agree.
    Bound,
    /// Its resource was deleted or is held by another. It ends only when the same resource holds the claim again.
    Lost,
}

impl ClaimPhase {
    /// The word in the status.
    pub fn name(self) -> &'static str {
        match self {
            ClaimPhase::Pending => "Pending",
            ClaimPhase::Bound => "Bound",
            ClaimPhase::Lost => "Lost",
        }
    }
}

/// A claim's status as last read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimStatus {
    /// Whether a phase is written at all.
    pub written: bool,
    /// How far it is.
    pub phase: ClaimPhase,
    /// The resource that it was bound to.
    pub resource: Option<Name>,
    /// The namespace of that resource.
    pub resource_namespace: Option<Name>,
    /// Which life of that name it was bound to.
    pub resource_uid: Option<Uid>,
    /// The published Secret's name.
    pub binding: Option<Name>,
    /// The generation that the status speaks of.
    pub observed_generation: i64,
    /// What its spec said when it was bound, where that is known.
    pub bound_spec: Option<SpecRecord>,
    /// Classes that were tried and will not do.
    pub refused_by: Vec<ClassRefusal>,
    /// Conditions, ours and others'.
    pub conditions: Vec<ConditionView>,
}

/// A class that was tried for a claim and will not do, as both were then. It stands in the claim's status, so that
/// a controller that starts anew does not try what has failed for good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassRefusal {
    /// The class.
    pub class: Name,
    /// Which life of that name.
    pub class_uid: Uid,
    /// The generation that was tried.
    pub class_generation: i64,
    /// The generation of the claim that it was tried for.
    pub generation: i64,
    /// The resource that it made and that failed, where it came so far.
    pub resource_uid: Option<Uid>,
    /// Why not.
    pub message: Name,
}

impl Claim {
    /// Reads a claim of type `ty`. Never fails: what cannot be read is kept as the claim's error.
    pub fn read(ty: TypeId, object: &Object) -> Claim {
        let spec = Field::root(&object.body).at("spec");
        let annotations = object.metadata.annotations.as_ref();
        let header = Header::read(&spec);
        let (header, wants) = match header {
            Ok(header) => (header, Wants::read(ty, &spec).map(Arc::new)),
            Err(error) => (Header::default(), Err(error)),
        };
        Claim {
            ty,
            meta: Meta::read(&object.metadata),
            group: read_group(ty, &spec),
            wants,
            priority: header.priority,
            resource_name: header.resource_name,
            secret_name: header.secret_name,
            profile: annotations.and_then(|a| a.get(SCHEDULING_PROFILE)).map(|p| Name::from(p.as_str())),
            spec: object.body.get("spec").map(SpecRecord::of).unwrap_or_default(),
            status: ClaimStatus::read(&Field::root(&object.body).at("status")),
        }
    }

    /// Whether it tolerates nobody else on its resource.
    pub fn is_exclusive(&self) -> bool {
        self.wants.as_ref().is_ok_and(|wants| wants.exclusive)
    }

    /// Why a class is not tried for it: it was, and neither has changed since.
    pub fn refusal_by(&self, class: &Meta) -> Option<&ClassRefusal> {
        let is_current = |refusal: &&ClassRefusal| {
            (&refusal.class, &refusal.class_uid, refusal.class_generation, refusal.generation)
                == (&class.key.name, &class.uid, class.generation, self.meta.generation)
        };
        self.status.refused_by.iter().find(is_current)
    }

    /// Whether a resource that failed is on record, so that it may be let go of.
    pub fn has_given_up(&self, resource: &Uid) -> bool {
        self.status.refused_by.iter().any(|refusal| refusal.resource_uid.as_ref() == Some(resource))
    }

    /// Its refusals with one more. Those of another generation of the claim, and an older one of this class, go.
    pub fn refusals_with(&self, class: &Meta, resource: Option<&Uid>, message: &str) -> Vec<ClassRefusal> {
        let kept = self.status.refused_by.iter();
        let kept = kept.filter(|r| r.generation == self.meta.generation && r.class != class.key.name);
        let new = ClassRefusal {
            class: class.key.name.clone(),
            class_uid: class.uid.clone(),
            class_generation: class.generation,
            generation: self.meta.generation,
            resource_uid: resource.cloned(),
            message: message.chars().take(REFUSAL_CHARS_MAX).collect::<String>().into(),
        };
        kept.cloned().chain([new]).collect()
    }

    /// What the Secret with its connection is to be called.
    pub fn wanted_secret(&self) -> &Name {
        self.secret_name.as_ref().unwrap_or(&self.meta.key.name)
    }

    /// Whether it was bound once, by its own record: then there is data that is its own.
    pub fn was_bound(&self) -> bool {
        self.status.phase == ClaimPhase::Bound || self.status.resource.is_some()
    }
}

fn read_group(ty: TypeId, spec: &Field<'_>) -> Option<Name> {
    let rule = &ty.rules().fields[ty.rules().group_field()?];
    match FieldWant::read(rule, spec).ok()? {
        FieldWant::Name(name) => Some(name),
        FieldWant::Any | FieldWant::Range(_) | FieldWant::Flag | FieldWant::Contains(_) => None,
    }
}

/// How much of a refusal is kept in a status.
const REFUSAL_CHARS_MAX: usize = 1_024;

impl ClassRefusal {
    /// Reads one. It is ours to write, so what cannot be read counts as not written.
    fn read(field: &Field<'_>) -> Option<ClassRefusal> {
        let name = |at: &'static str| field.at(at).name().ok().flatten();
        let number = |at: &'static str| field.at(at).integer().ok().flatten();
        Some(ClassRefusal {
            class: name("class")?,
            class_uid: name("classUid")?,
            class_generation: number("classGeneration")?,
            generation: number("generation")?,
            resource_uid: name("resourceUid"),
            message: name("message").unwrap_or_default(),
        })
    }
}

/// The parts of a spec that steer the claim rather than the match.
#[derive(Default)]
struct Header {
    priority: i32,
    resource_name: Option<Name>,
    secret_name: Option<Name>,
}

impl Header {
    fn read(spec: &Field<'_>) -> Result<Header, FieldError> {
        spec.require_map()?;
        let priority = spec.at("priority");
        let number = priority.integer()?.unwrap_or(0);
        let number =
            i32::try_from(number).map_err(|_| priority.error("is out of range", "keep it within 32 bits"))?;
        let resource_name = spec.at("resourceName").name()?.filter(|n| !n.is_empty());
        let secret_name = spec.at("connection").at("secretName").name()?.filter(|n| !n.is_empty());
        Ok(Header { priority: number, resource_name, secret_name })
    }
}

impl Wants {
    /// Wants that come before all others in order, to start a range with.
    pub(crate) fn least() -> Wants {
        Wants {
            class: ClassWant::Absent,
            fields: Box::default(),
            selector: Selector::default(),
            requests: Capacity::default(),
            exclusive: false,
        }
    }

    fn read(ty: TypeId, spec: &Field<'_>) -> Result<Wants, FieldError> {
        let rules = ty.rules();
        let fields = rules.fields.iter().map(|rule| FieldWant::read(rule, spec)).collect::<Result<_, _>>()?;
        let resources = spec.at("resources");
        resources.require_map()?;
        let requests = resources.at("requests");
        let selector = spec.at("selector");
        Ok(Wants {
            class: ClassWant::read(spec)?,
            fields,
            selector: match selector.value() {
                Some(value) => Selector::from_json(value).map_err(|e| selector.place(e))?,
                None => Selector::default(),
            },
            requests: read_capacity(rules.primary_capacity, &requests)?,
            exclusive: spec.at("exclusive").flag()?.unwrap_or(false),
        })
    }
}

/// Reads a map of named quantities; an absent one is empty.
pub(crate) fn read_capacity(primary: &str, field: &Field<'_>) -> Result<Capacity, FieldError> {
    match field.value() {
        Some(value) => Capacity::parse(primary, value).map_err(|e| field.place(e)),
        None => Ok(Capacity::default()),
    }
}

impl ClassWant {
    fn read(spec: &Field<'_>) -> Result<ClassWant, FieldError> {
        let (class, classes) = (spec.at("class"), spec.at("classes"));
        let mut listed = Vec::new();
        for item in classes.items()? {
            match item.name()? {
                Some(name) if !name.is_empty() && !listed.contains(&name) => listed.push(name),
                _ => return Err(item.error("is empty or listed twice", "name each class once")),
            }
        }
        match (class.name()?, listed.is_empty()) {
            (Some(_), false) => Err(class.error("stands beside spec.classes", "keep one of the two")),
            (Some(name), true) if name.is_empty() => Ok(ClassWant::Classless),
            (Some(name), true) => Ok(ClassWant::Named(Box::new([name]))),
            (None, false) => Ok(ClassWant::Named(listed.into())),
            (None, true) => Ok(ClassWant::Absent),
        }
    }
}

impl FieldWant {
    fn read(rule: &FieldRule, spec: &Field<'_>) -> Result<FieldWant, FieldError> {
        let field = spec.at(rule.claim);
        Ok(match rule.rule {
            Rule::Name { aliases } => match field.text()? {
                Some(text) if !text.trim().is_empty() => FieldWant::Name(canonical_name(text, aliases)),
                _ => FieldWant::Any,
            },
            Rule::VersionRange => match field.read(VersionRange::from_json)? {
                Some(range) => FieldWant::Range(Arc::new(range)),
                None => FieldWant::Any,
            },
            Rule::Flag => match field.flag()? {
                Some(true) => FieldWant::Flag,
                Some(false) | None => FieldWant::Any,
            },
            Rule::Contains => match field.names()? {
                names if names.is_empty() => FieldWant::Any,
                names => FieldWant::Contains(names.into()),
            },
        })
    }
}

/// The one spelling under which names of a field are compared.
pub(crate) fn canonical_name(text: &str, aliases: &[(&str, &str)]) -> Name {
    let lower = text.trim().to_lowercase();
    let alias = aliases.iter().find(|(spelling, _)| *spelling == lower);
    alias.map_or_else(|| Name::from(lower.as_str()), |(_, canonical)| Name::from(*canonical))
}

impl ClaimStatus {
    /// Reads a status. It is ours to write, so what cannot be read counts as not written.
    fn read(status: &Field<'_>) -> ClaimStatus {
        let phase = status.at("phase").text().ok().flatten();
        ClaimStatus {
            written: phase.is_some(),
            phase: match phase {
                Some("Bound") => ClaimPhase::Bound,
                Some("Lost") => ClaimPhase::Lost,
                _ => ClaimPhase::Pending,
            },
            resource: status.at("resourceRef").at("name").name().ok().flatten(),
            resource_namespace: status.at("resourceRef").at("namespace").name().ok().flatten(),
            resource_uid: status.at("resourceRef").at("uid").name().ok().flatten(),
            binding: status.at("binding").at("name").name().ok().flatten(),
            observed_generation: status.at("observedGeneration").integer().ok().flatten().unwrap_or(0),
            bound_spec: status.at("boundSpec").text().ok().flatten().map(SpecRecord::read),
            refused_by: status
                .at("refusedBy")
                .items()
                .unwrap_or_default()
                .iter()
                .filter_map(ClassRefusal::read)
                .collect(),
            conditions: read_conditions(status),
        }
    }
}

/// The conditions of a status, as far as they can be read.
pub(crate) fn read_conditions(status: &Field<'_>) -> Vec<ConditionView> {
    let text = |v: &Value, name: &str| Name::from(v.get(name).and_then(Value::as_str).unwrap_or_default());
    let items = status.at("conditions").items().unwrap_or_default();
    let values = items.iter().filter_map(Field::value);
    values
        .map(|v| ConditionView {
            kind: text(v, "type"),
            status: text(v, "status"),
            reason: text(v, "reason"),
            message: text(v, "message"),
            since: text(v, "lastTransitionTime"),
        })
        .collect()
}
