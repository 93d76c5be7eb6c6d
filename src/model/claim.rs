//! A claim, validated: what it requests, and the state of its binding by its own status. Matching is the scheduler's.

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
pub use crate::api::claim::ClaimPhase;
use crate::api::names::SCHEDULING_PROFILE;
use serde_json::Value;
use std::sync::Arc;

/// A parsed claim.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// Its abstract type.
    pub ty: TypeId,
    /// Identity.
    pub meta: Meta,
    /// What it requests. The claim's status reports an invalid spec.
    pub wants: Result<Arc<Wants>, FieldError>,
    /// The engine that it requests, for quotas; known even if another field of the spec is invalid.
    pub group: Option<Name>,
    /// Claims with a higher priority are decided first.
    pub priority: i32,
    /// The resource named in its spec: by the user before binding, by Conductor after.
    pub resource_name: Option<Name>,
    /// The name of the Secret with its connection, if its spec sets one.
    pub secret_name: Option<Name>,
    /// The scheduling profile that its annotation selects.
    pub profile: Option<Name>,
    /// Digests of the fields of its spec, to detect edits.
    pub spec: SpecRecord,
    /// Its status.
    pub status: ClaimStatus,
}

/// Everything that matching depends on. Claims with equal wants match the same resources.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Wants {
    /// The class that it requests.
    pub class: ClassWant,
    /// The requirement on each field of its type, in the order of the type table.
    pub fields: Box<[FieldWant]>,
    /// Labels that the resource must have.
    pub selector: Selector,
    /// The quantities that the resource must have left.
    pub requests: Capacity,
    /// Whether it requires a resource without other claims.
    pub exclusive: bool,
}

/// The class that a claim requests. An empty name differs from an absent one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClassWant {
    /// None: resources without a class, then the default class.
    Absent,
    /// `class: ""`: only resources without a class.
    Classless,
    /// One class, or several in order of preference; never empty.
    Named(Box<[Name]>),
    /// Any, because the profile disables the predicate. No claim requests this itself.
    Any,
}

/// The requirement of a claim on one field.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FieldWant {
    /// No requirement.
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

/// A claim's status as last read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimStatus {
    /// Whether the status has a phase.
    pub written: bool,
    /// Its phase; Pending if the status has none.
    pub phase: ClaimPhase,
    /// The resource that it was bound to.
    pub resource: Option<Name>,
    /// The namespace of that resource.
    pub resource_namespace: Option<Name>,
    /// The UID of that resource.
    pub resource_uid: Option<Uid>,
    /// The published Secret's name.
    pub binding: Option<Name>,
    /// The generation that the status describes.
    pub observed_generation: i64,
    /// Digests of its spec at the time of binding, if recorded.
    pub bound_spec: Option<SpecRecord>,
    /// Classes that failed for it.
    pub refused_by: Vec<ClassRefusal>,
    /// All conditions, including those of other controllers.
    pub conditions: Vec<ConditionView>,
}

/// A class that failed for a claim, with the generations of both. The claim's status has it, so that a controller does not
/// try the class again after a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassRefusal {
    /// The name of the class.
    pub class: Name,
    /// The UID of the class.
    pub class_uid: Uid,
    /// The generation of the class.
    pub class_generation: i64,
    /// The generation of the claim.
    pub generation: i64,
    /// The UID of the resource that was provisioned and failed, if any.
    pub resource_uid: Option<Uid>,
    /// Why the class failed.
    pub message: Name,
}

impl Claim {
    /// Parses a claim of type `ty`. Never fails: the claim keeps the error.
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

    /// Whether it requires a resource without other claims.
    pub fn is_exclusive(&self) -> bool {
        self.wants.as_ref().is_ok_and(|wants| wants.exclusive)
    }

    /// The refusal of a class, if neither the class nor the claim changed since.
    pub fn refusal_by(&self, class: &Meta) -> Option<&ClassRefusal> {
        let is_current = |refusal: &&ClassRefusal| {
            (&refusal.class, &refusal.class_uid, refusal.class_generation, refusal.generation)
                == (&class.key.name, &class.uid, class.generation, self.meta.generation)
        };
        self.status.refused_by.iter().find(is_current)
    }

    /// Whether the failure of a resource is recorded, so that the resource can be released.
    pub fn has_given_up(&self, resource: &Uid) -> bool {
        self.status.refused_by.iter().any(|refusal| refusal.resource_uid.as_ref() == Some(resource))
    }

    /// Its refusals with a new one. Drops those of other generations of the claim and an earlier one of the class.
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

    /// The name of the Secret with its connection.
    pub fn wanted_secret(&self) -> &Name {
        self.secret_name.as_ref().unwrap_or(&self.meta.key.name)
    }

    /// Whether its status says that it was bound once: then it has data.
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

/// Characters of a refusal that the status keeps.
const REFUSAL_CHARS_MAX: usize = 1_024;

impl ClassRefusal {
    /// Parses a refusal. Only Conductor writes it, so an invalid one counts as absent.
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

/// The fields of a spec that matching does not depend on.
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
    /// The smallest wants in order, as the start of a range.
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
        Ok(Wants {
            class: ClassWant::read(spec)?,
            fields,
            selector: Selector::read(&spec.at("selector"))?,
            requests: Capacity::read(rules.primary_capacity, &resources.at("requests"))?,
            exclusive: spec.at("exclusive").flag()?.unwrap_or(false),
        })
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
            (Some(_), false) => Err(class.error("is set together with spec.classes", "keep one of the two")),
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

/// The canonical spelling of a name: lower case, aliases resolved.
pub(crate) fn canonical_name(text: &str, aliases: &[(&str, &str)]) -> Name {
    let lower = text.trim().to_lowercase();
    let alias = aliases.iter().find(|(spelling, _)| *spelling == lower);
    alias.map_or_else(|| Name::from(lower.as_str()), |(_, canonical)| Name::from(*canonical))
}

impl ClaimStatus {
    /// Parses a status. Only Conductor writes it, so invalid fields count as absent.
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

/// The valid conditions of a status.
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
