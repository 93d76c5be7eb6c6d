//! A resource, validated: what it offers, who holds it, and what is to become of it afterwards.

use super::capacity::Capacity;
use super::claim::{canonical_name, read_capacity, read_conditions};
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
use serde_json::Value;
use std::sync::Arc;

/// A resource as the engine knows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    /// Its abstract type.
    pub ty: TypeId,
    /// Identity.
    pub meta: Meta,
    /// What it offers; one that cannot be read is offered to nobody, and told on the resource.
    pub offer: Result<Arc<Offer>, FieldError>,
    /// Who holds it or is to have it, as far as that can be read.
    pub claim_refs: Vec<ClaimRef>,
    /// Whether there is more in its references than can be read: then nobody knows that it is free.
    pub has_unreadable_refs: bool,
    /// What becomes of it when its last claim goes.
    pub reclaim: ReclaimPolicy,
    /// What is to implement it.
    pub template: Template,
    /// What is computed for it; absent where nothing is.
    pub script: Option<Arc<Script>>,
    /// The UID of the claim it was made for, where it was made for one.
    pub provisioned_for: Option<Uid>,
    /// The class it was made from, where it was made from one.
    pub provisioned_by: Option<Name>,
    /// Whether it is a server of ours on which each claim has a database: those follow their claims by themselves.
    pub is_server: bool,
    /// What its status says.
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
    /// Everything it has, held or not.
    pub capacity: Capacity,
    /// How many claims may hold it at once.
    pub max_claims: u32,
    /// The namespaces that may claim it; empty means all.
    pub allowed_namespaces: Box<[Name]>,
    /// Whether an administrator has taken it off the market.
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
    /// What it can do, sorted.
    Set(Box<[Name]>),
}

/// A resource's reference to one of its claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimRef {
    /// Which claim.
    pub claim: ObjectKey,
    /// Which life of that claim; absent while it is only reserved.
    pub uid: Option<Uid>,
    /// What the claim takes of the capacity.
    pub requests: Capacity,
    /// Whether an administrator wrote this reference before we filled in the UID.
    pub reserved: bool,
}

/// What becomes of a resource when its last claim goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReclaimPolicy {
    /// It stays, with its data, and is offered to nobody.
    Retain,
    /// It is destroyed.
    Delete,
    /// Not a policy that we know: nothing is destroyed.
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

    /// The word in the spec.
    pub fn name(&self) -> &str {
        match self {
            ReclaimPolicy::Retain => "Retain",
            ReclaimPolicy::Delete => "Delete",
            ReclaimPolicy::Unknown(word) => word,
        }
    }
}

/// How far a resource is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ResourcePhase {
    /// Seen by nobody yet.
    Pending,
    /// Its implementation is being made.
    Creating,
    /// Ready, held by nobody.
    Available,
    /// Held by at least one claim.
    Bound,
    /// Its last claim is gone; it is offered to nobody.
    Released,
    /// Something went wrong that time alone does not mend.
    Failed,
    /// Being destroyed.
    Deleting,
}

impl ResourcePhase {
    /// Every phase, in the order of a resource's life.
    pub const ALL: [ResourcePhase; 7] = [
        ResourcePhase::Pending,
        ResourcePhase::Creating,
        ResourcePhase::Available,
        ResourcePhase::Bound,
        ResourcePhase::Released,
        ResourcePhase::Failed,
        ResourcePhase::Deleting,
    ];

    /// The word in the status.
    pub fn name(self) -> &'static str {
        match self {
            ResourcePhase::Pending => "Pending",
            ResourcePhase::Creating => "Creating",
            ResourcePhase::Available => "Available",
            ResourcePhase::Bound => "Bound",
            ResourcePhase::Released => "Released",
            ResourcePhase::Failed => "Failed",
            ResourcePhase::Deleting => "Deleting",
        }
    }

    /// The phase of a word. `Created` is the first proposal's word for Available.
    pub fn find(word: &str) -> Option<ResourcePhase> {
        match word {
            "Created" => Some(ResourcePhase::Available),
            word => ResourcePhase::ALL.into_iter().find(|p| p.name() == word),
        }
    }
}

/// A resource's status as last read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceStatus {
    /// How far it is; absent while nobody wrote it.
    pub phase: Option<ResourcePhase>,
    /// What its claims take, as written.
    pub allocated: Capacity,
    /// The generation that the status speaks of.
    pub observed_generation: i64,
    /// Conditions, ours and others'.
    pub conditions: Vec<ConditionView>,
    /// What implements it, as recorded.
    pub implementation: Record,
    /// The version that its implementation reports: it wins over the one in the spec.
    pub version: Option<Name>,
}

impl Resource {
    /// Reads a resource of type `ty`. Never fails: what cannot be read is kept as the resource's error.
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

    /// Whether somebody has to implement it.
    pub fn has_template(&self) -> bool {
        self.template != Template::Absent
    }

    /// Its parts, made or to be made, and where each is. What was recorded counts: a template may be edited later.
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

    /// Whether its status says that its last claim is gone: it is Released, or Failed at its reclaim.
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

    /// When it must have become ready, where its class says so.
    pub fn deadline(&self) -> Option<Time> {
        let text = self.script.as_ref()?.inputs.pointer("/class/deadline")?.as_str()?;
        Some(self.meta.created?.plus_ms(duration::parse_ms(text).ok()?))
    }

    /// Whether it was let go of for good. One whose references somebody cleared has its last claim's data still: whoever
    /// wants it used again keeps it for a claim by name, or makes another resource for what it stands for.
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

    /// Whether its phase is one in which claims can have it.
    pub fn is_offered(&self) -> bool {
        matches!(self.status.phase, Some(ResourcePhase::Available | ResourcePhase::Bound))
    }

    /// The references that hold the resource: those with a UID.
    pub fn holders(&self) -> impl Iterator<Item = &ClaimRef> {
        self.claim_refs.iter().filter(|r| r.uid.is_some())
    }

    /// The sum of what its holders take.
    pub fn held_capacity(&self) -> Capacity {
        self.holders().fold(Capacity::default(), |sum, r| sum.saturating_add(&r.requests))
    }
}

/// What a status says is taken. What cannot be read of it counts as more than anybody takes, so that it is written anew.
fn read_allocated(primary: &str, field: &Field<'_>) -> Capacity {
    read_capacity(primary, field).unwrap_or_else(|_| {
        let names = field.value().and_then(Value::as_object).into_iter().flat_map(|map| map.keys());
        Capacity::from_entries(primary, names.map(|name| (name.as_str(), Quantity::from_nanos(i128::MAX))))
    })
}

/// Reads who holds the resource. References that can be read are kept even where a
/// neighbour cannot: a holder must never be forgotten because of a typing mistake beside it.
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
            requests: read_capacity(primary, &field.at("requests"))?,
            reserved: field.at("reserved").flag()?.unwrap_or(false),
        })
    }
}

impl Offer {
    /// Whether a claim has it alone: it takes one claim only, or the claim is exclusive.
    pub fn is_held_alone(&self, is_exclusive: bool) -> bool {
        self.max_claims <= 1 || is_exclusive
    }

    /// What quotas count of it for a claim with these requests: what it requests, and of everything else, where it has
    /// the resource alone, all there is.
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
            capacity: read_capacity(rules.primary_capacity, &spec.at("capacity"))?,
            max_claims,
            allowed_namespaces: sharing.at("allowedNamespaces").names()?.into(),
            cordoned: spec.at("unschedulable").flag()?.unwrap_or(false),
        })
    }

    /// What runs wins over what was to run: the version that the implementation reports, where it can be read.
    fn with_reported(mut self, ty: TypeId, status: &Field<'_>) -> Offer {
        let reported = status.at("version").text().ok().flatten();
        let version = reported.and_then(|text| Version::parse(text).ok());
        if let (Some(at), Some(version)) = (ty.rules().version_field(), version) {
            self.fields[at] = FieldValue::Version(Arc::new(version));
        }
        self
    }

    /// Whether claims of `namespace` may have it.
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
    /// Reads a status. It is ours to write, so what cannot be read counts as not written.
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
