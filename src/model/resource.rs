//! A resource, validated: what it offers, which claims hold it, and what happens to it afterwards.

use super::capacity::Capacity;
use super::claim::{canonical_name, read_conditions};
use super::duration;
use super::error::FieldError;
use super::fields::Field;
use super::implementation::{PartTemplate, Record, Script, Template};
use super::key::{Name, ObjectKey, Time, Uid};
use super::meta::{ConditionView, Labels, Meta};
use super::object::Object;
use super::part::PartKey;
use super::quantity::Quantity;
use super::types::{FieldRule, Rule, TypeId};
use super::version::Version;
use crate::api::database;
use crate::api::names::{PROVISIONED_BY, PROVISIONED_FOR};
use crate::api::reasons;
pub use crate::api::relational_database::ResourcePhase;
use serde_json::Value;
use std::sync::Arc;

/// A parsed resource.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    /// Its abstract type.
    pub ty: TypeId,
    /// Identity.
    pub meta: Meta,
    /// What it offers. An invalid resource matches no claim; its status reports the error.
    pub offer: Result<Arc<Offer>, FieldError>,
    /// The claims that hold it or that it is reserved for, as far as they can be parsed.
    pub claim_refs: Vec<ClaimRef>,
    /// Whether some references cannot be parsed: then it may not count as free.
    pub has_unreadable_refs: bool,
    /// What happens to it when its last claim is deleted.
    pub reclaim: ReclaimPolicy,
    /// The objects that implement it.
    pub template: Template,
    /// Its templates and their inputs; None without templates.
    pub script: Option<Arc<Script>>,
    /// The UID of the claim that it was provisioned for, if any.
    pub provisioned_for: Option<Uid>,
    /// The class that it was provisioned from, if any.
    pub provisioned_by: Option<Name>,
    /// Whether it is a server on which each claim has its own database, which the SQL provider creates and drops.
    pub is_server: bool,
    /// Its status.
    pub status: ResourceStatus,
}

/// What a resource offers to claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Its class, where it has one.
    pub class: Option<Name>,
    /// Its fields, in the type table's order.
    pub fields: Box<[FieldValue]>,
    /// Its labels.
    pub labels: Labels,
    /// Its total capacity.
    pub capacity: Capacity,
    /// How many claims may hold it at once.
    pub max_claims: u32,
    /// The namespaces whose claims can bind to it; empty means all.
    pub allowed_namespaces: Box<[Name]>,
    /// Whether an administrator cordoned it.
    pub cordoned: bool,
}

/// A resource's value of one field.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FieldValue {
    /// Not given.
    #[default]
    Absent,
    /// A name in canonical spelling.
    Name(Name),
    /// A version.
    Version(Arc<Version>),
    /// True or false.
    Flag(bool),
    /// Capabilities, sorted.
    Set(Box<[Name]>),
}

/// A resource's reference to one of its claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimRef {
    /// Namespace and name of the claim.
    pub claim: ObjectKey,
    /// The UID of the claim; None for a reservation.
    pub uid: Option<Uid>,
    /// The capacity that the claim uses.
    pub requests: Capacity,
    /// Whether an administrator made the reservation, before Conductor added the UID.
    pub reserved: bool,
}

/// What happens to a resource when its last claim is deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReclaimPolicy {
    /// Keep it with its data; no claim binds to it.
    Retain,
    /// Delete it and its data.
    Delete,
    /// An unknown policy: nothing is deleted.
    Unknown(Name),
}

impl ReclaimPolicy {
    /// Reads a policy; absent means Retain.
    pub fn read(text: Option<&str>) -> ReclaimPolicy {
        match text {
            None | Some("Retain") => ReclaimPolicy::Retain,
            Some("Delete") => ReclaimPolicy::Delete,
            Some(other) => ReclaimPolicy::Unknown(Name::from(other)),
        }
    }

    /// The policy as in the spec.
    pub fn name(&self) -> &str {
        match self {
            ReclaimPolicy::Retain => "Retain",
            ReclaimPolicy::Delete => "Delete",
            ReclaimPolicy::Unknown(name) => name,
        }
    }
}

/// A resource's status as last read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceStatus {
    /// Its phase; None until the controller writes one.
    pub phase: Option<ResourcePhase>,
    /// The capacity that its claims use, as written.
    pub allocated: Capacity,
    /// The generation that the status describes.
    pub observed_generation: i64,
    /// All conditions, including those of other controllers.
    pub conditions: Vec<ConditionView>,
    /// The recorded references to its implementation.
    pub implementation: Record,
    /// The version that its implementation reports. It takes precedence over the spec.
    pub version: Option<Name>,
}

impl Resource {
    /// Parses a resource of type `ty`. Never fails: the resource keeps the error.
    pub fn read(ty: TypeId, object: &Object) -> Resource {
        let root = Field::root(&object.body);
        let (spec, status) = (root.at("spec"), root.at("status"));
        let primary = ty.rules().primary_capacity;
        let (claim_refs, refs_error) = read_claim_refs(primary, &spec);
        let (reclaim, reclaim_error) = match spec.at("reclaimPolicy").text() {
            Ok(text) => (ReclaimPolicy::read(text), None),
            Err(error) => (ReclaimPolicy::Unknown(Name::from("unreadable")), Some(error)),
        };
        let labels = Labels::read(object.metadata.labels.as_ref());
        let has_unreadable_refs = refs_error.is_some();
        let offer = match refs_error.or(reclaim_error) {
            Some(error) => Err(error),
            None => Offer::read(ty, &spec, labels).map(|offer| Arc::new(offer.with_reported(ty, &status))),
        };
        let annotations = object.metadata.annotations.as_ref();
        let meta = Meta::read(&object.metadata);
        let template = Template::read(ty, &meta, &spec);
        let makes_server = template.objects().iter().any(|part| part.key.kind.group() == database::GROUP);
        Resource {
            ty,
            offer,
            claim_refs,
            has_unreadable_refs,
            reclaim,
            is_server: makes_server || annotations.is_some_and(|a| a.contains_key(database::ON_SERVER)),
            template,
            script: Script::read(&spec, object).map(Arc::new),
            provisioned_for: annotations
                .and_then(|a| a.get(PROVISIONED_FOR))
                .map(|uid| Uid::from(uid.as_str())),
            provisioned_by: annotations
                .and_then(|a| a.get(PROVISIONED_BY))
                .map(|class| Name::from(class.as_str())),
            status: ResourceStatus {
                implementation: Record::read(ty, &meta, &status),
                ..ResourceStatus::read(primary, &status)
            },
            meta,
        }
    }

    /// Whether it has templates to create.
    pub fn has_template(&self) -> bool {
        self.template != Template::Absent
    }

    /// The ids and keys of its parts. Recorded ones take precedence, because a template can be edited later.
    pub fn parts(&self) -> impl Iterator<Item = (&Name, &PartKey)> {
        let recorded = self.status.implementation.parts();
        let unrecorded = |part: &&PartTemplate| !recorded.iter().any(|r| r.id == part.id);
        let templates = match self.status.implementation {
            Record::Absent | Record::Ours(_) => self.template.objects(),
            Record::Foreign => &[],
        };
        let planned = templates.iter().filter(unrecorded).map(|part| (&part.id, &part.key));
        recorded.iter().map(|part| (&part.id, &part.key)).chain(planned)
    }

    /// Whether its status says that its last claim was deleted: phase Released, or Failed while reclaiming.
    pub fn says_released(&self) -> bool {
        let ready = self.status.conditions.iter().find(|condition| &*condition.kind == reasons::READY);
        match self.status.phase {
            Some(ResourcePhase::Released) => true,
            Some(ResourcePhase::Failed) => {
                ready.is_some_and(|ready| &*ready.reason == reasons::resource::RECLAIM_FAILED)
            }
            _ => false,
        }
    }

    /// When it must be ready, if its class has a deadline.
    pub fn deadline(&self) -> Option<Time> {
        let text = self.script.as_ref()?.inputs.pointer("/class/deadline")?.as_str()?;
        Some(self.meta.created?.plus_ms(duration::parse_ms(text).ok()?))
    }

    /// Whether it is released for good. A resource whose claimRefs a user cleared still has its last claim's data: to use
    /// it again, the administrator reserves it for a claim by name, or creates another resource for the same database.
    pub fn is_withdrawn(&self) -> bool {
        match self.status.phase {
            Some(ResourcePhase::Released | ResourcePhase::Failed) => {
                self.says_released() && self.claim_refs.is_empty() && !self.has_unreadable_refs
            }
            Some(ResourcePhase::Deleting) => !self.meta.deleting,
            Some(
                ResourcePhase::Pending
                | ResourcePhase::Creating
                | ResourcePhase::Available
                | ResourcePhase::Bound,
            )
            | None => false,
        }
    }

    /// Whether claims can bind to it in its phase.
    pub fn is_offered(&self) -> bool {
        matches!(self.status.phase, Some(ResourcePhase::Available | ResourcePhase::Bound))
    }

    /// The references of bound claims: those with a UID.
    pub fn holders(&self) -> impl Iterator<Item = &ClaimRef> {
        self.claim_refs.iter().filter(|r| r.uid.is_some())
    }

    /// The sum of the capacity that its claims use.
    pub fn held_capacity(&self) -> Capacity {
        self.holders().fold(Capacity::default(), |sum, r| sum.saturating_add(&r.requests))
    }
}

/// The allocated capacity of a status. If it cannot be parsed, the maximum, so that the status is written again.
fn read_allocated(primary: &str, field: &Field<'_>) -> Capacity {
    Capacity::read(primary, field).unwrap_or_else(|_| {
        let names = field.value().and_then(Value::as_object).into_iter().flat_map(|map| map.keys());
        Capacity::from_entries(primary, names.map(|name| (name.as_str(), Quantity::from_nanos(i128::MAX))))
    })
}

/// Parses the claimRefs. Keeps the valid ones even if another is invalid: an error in one reference must not drop a
/// holder.
fn read_claim_refs(primary: &str, spec: &Field<'_>) -> (Vec<ClaimRef>, Option<FieldError>) {
    let (mut refs, mut first_error) = (Vec::new(), None);
    match spec.at("claimRefs").items() {
        Ok(items) => {
            for item in items {
                match ClaimRef::read(primary, &item) {
                    Ok(claim_ref) => refs.push(claim_ref),
                    Err(error) => first_error = first_error.or(Some(error)),
                }
            }
        }
        Err(error) => first_error = Some(error),
    }
    (refs, first_error)
}

impl ClaimRef {
    fn read(primary: &str, field: &Field<'_>) -> Result<ClaimRef, FieldError> {
        let require = |name: &'static str| {
            let field = field.at(name);
            field.name()?.filter(|n| !n.is_empty()).ok_or_else(|| field.error("is missing", "name the claim"))
        };
        Ok(ClaimRef {
            claim: ObjectKey::new(require("namespace")?, require("name")?),
            uid: field.at("uid").name()?.filter(|uid| !uid.is_empty()),
            requests: Capacity::read(primary, &field.at("requests"))?,
            reserved: field.at("reserved").flag()?.unwrap_or(false),
        })
    }
}

impl Offer {
    /// Whether a claim has the resource alone: it is for one claim only, or the claim is exclusive.
    pub fn is_held_alone(&self, is_exclusive: bool) -> bool {
        self.max_claims <= 1 || is_exclusive
    }

    /// What quotas count for a claim with these requests: the requests, and for capacities that it does not request, all of
    /// the resource if it has it alone.
    pub fn counted_for(&self, requests: &Capacity, is_exclusive: bool) -> Capacity {
        match self.is_held_alone(is_exclusive) {
            true => requests.or_else(&self.capacity),
            false => requests.clone(),
        }
    }

    fn read(ty: TypeId, spec: &Field<'_>, labels: Labels) -> Result<Offer, FieldError> {
        let rules = ty.rules();
        spec.require_map()?;
        let sharing = spec.at("sharing");
        sharing.require_map()?;
        let slots = sharing.at("maxClaims");
        let max_claims = match slots.integer()? {
            None => 1,
            Some(n) => match u32::try_from(n) {
                Ok(n) if n >= 1 => n,
                _ => return Err(slots.error("is not a number of claims", "write 1 or more")),
            },
        };
        Ok(Offer {
            class: spec.at("class").name()?.filter(|c| !c.is_empty()),
            fields: rules.fields.iter().map(|rule| FieldValue::read(rule, spec)).collect::<Result<_, _>>()?,
            labels,
            capacity: Capacity::read(rules.primary_capacity, &spec.at("capacity"))?,
            max_claims,
            allowed_namespaces: sharing.at("allowedNamespaces").names()?.into(),
            cordoned: spec.at("unschedulable").flag()?.unwrap_or(false),
        })
    }

    /// Replaces the version of the spec by the one that the implementation reports, if it is valid.
    fn with_reported(mut self, ty: TypeId, status: &Field<'_>) -> Offer {
        let reported = status.at("version").text().ok().flatten();
        let version = reported.and_then(|text| Version::parse(text).ok());
        if let (Some(at), Some(version)) = (ty.rules().version_field(), version) {
            self.fields[at] = FieldValue::Version(Arc::new(version));
        }
        self
    }

    /// Whether claims of `namespace` can bind to it.
    pub fn is_open_to(&self, namespace: &str) -> bool {
        self.allowed_namespaces.is_empty() || self.allowed_namespaces.iter().any(|n| &**n == namespace)
    }
}

impl FieldValue {
    pub(crate) fn read(rule: &FieldRule, spec: &Field<'_>) -> Result<FieldValue, FieldError> {
        let field = spec.at(rule.resource);
        Ok(match rule.rule {
            Rule::Name { aliases } => match field.text()? {
                Some(text) if !text.trim().is_empty() => FieldValue::Name(canonical_name(text, aliases)),
                _ => FieldValue::Absent,
            },
            Rule::VersionRange => match field.read(Version::from_json)? {
                Some(version) => FieldValue::Version(Arc::new(version)),
                None => FieldValue::Absent,
            },
            Rule::Flag => FieldValue::Flag(field.flag()?.unwrap_or(false)),
            Rule::Contains => FieldValue::Set(field.names()?.into()),
        })
    }
}

impl ResourceStatus {
    /// Parses a status. Only Conductor writes it, so invalid fields count as absent.
    fn read(primary: &str, status: &Field<'_>) -> ResourceStatus {
        ResourceStatus {
            phase: status.at("phase").text().ok().flatten().and_then(ResourcePhase::find),
            allocated: read_allocated(primary, &status.at("allocated")),
            observed_generation: status.at("observedGeneration").integer().ok().flatten().unwrap_or(0),
            conditions: read_conditions(status),
            implementation: Record::Absent,
            version: status.at("version").name().ok().flatten(),
        }
    }
}
