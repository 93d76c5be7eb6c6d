//! Everything the engine can request, as one closed enum. The controller or the simulator carries it out; the JSON of a
//! change is defined here, once, for both.

use crate::api::names::{CLAIM_PROTECTION, CLASS_PROTECTION, RESOURCE_PROTECTION};
use crate::model::{
    Capacity, ClaimPhase, ClaimRef, ClassRefusal, Kind, Name, Object, ObjectKey, Part, PartKey, PartKind,
    PartRef, Publication, ResourcePhase, Revision, Slot, SpecRecord, Uid, WriteId, meta::ConditionView,
    record_json,
};
use serde_json::{Map, Value, json};

/// One request of the engine.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Change an object, under a guard.
    Write(Write),
    /// Create an object.
    Create {
        /// The answer repeats it.
        id: WriteId,
        /// The new object.
        object: Object,
    },
    /// Delete an object, if it is still the one we mean.
    Delete {
        /// The answer repeats it.
        id: WriteId,
        /// Its kind.
        kind: Kind,
        /// Where it is.
        key: ObjectKey,
        /// Its UID.
        uid: Uid,
        /// As we last saw it.
        revision: Revision,
    },
    /// Read an object live, past every cache.
    Read {
        /// Its kind.
        kind: Kind,
        /// Where it is.
        key: ObjectKey,
    },
    /// Watch every object of a kind that carries the label [`crate::api::names::PART`], in the system namespace,
    /// from now on. Sent once; a second time changes nothing. Answered by
    /// [`crate::event::PartEvent::Listed`] or [`crate::event::PartEvent::KindMissing`], and by the other one
    /// whenever that changes.
    Watch(PartKind),
    /// Something about the objects that implement a resource.
    Part(PartAction),
    /// Publish a connection to its claim: read the Secret that it comes from, compute what is missing, and write what
    /// differs. The engine never sees the secret.
    Publish {
        /// The answer repeats it.
        id: WriteId,
        /// The connection.
        publication: Box<Publication>,
    },
    /// Read the one Secret of this name, live: whether it is published for the claim, and from what. The answer has none of
    /// its values. Answered by [`crate::event::PublishEvent::SecretRead`], or `SecretRefused`.
    ReadSecret {
        /// The claim.
        claim: Uid,
        /// Where.
        key: ObjectKey,
    },
    /// Delete something that was published, if it is still the one we mean.
    Withdraw {
        /// The answer repeats it.
        id: WriteId,
        /// What it is.
        slot: Slot,
        /// Where it is.
        key: ObjectKey,
        /// Its UID.
        uid: Uid,
    },
    /// Emit a Kubernetes Event.
    Emit(Note),
    /// Send, at this time, [`crate::event::Event::Tick`].
    WakeAt(crate::model::Time),
}

impl Action {
    /// The id that its answer repeats; nothing where it has no answer, or is no write.
    pub fn write_id(&self) -> Option<WriteId> {
        match self {
            Action::Write(write) => Some(write.id),
            Action::Create { id, .. } | Action::Delete { id, .. } => Some(*id),
            Action::Publish { id, .. } | Action::Withdraw { id, .. } => Some(*id),
            Action::Part(
                PartAction::Create { id, .. } | PartAction::Update { id, .. } | PartAction::Delete { id, .. },
            ) => Some(*id),
            Action::Read { .. } | Action::ReadSecret { .. } | Action::Part(PartAction::Read { .. }) => None,
            Action::Watch(_) | Action::Emit(_) | Action::WakeAt(_) => None,
        }
    }
}

/// One request about parts, the objects that implement resources.
#[derive(Clone, Debug, PartialEq)]
pub enum PartAction {
    /// Create a part.
    Create {
        /// The answer repeats it.
        id: WriteId,
        /// The new part.
        part: Box<Part>,
    },
    /// Apply what a part is rendered from now, if it is still the one we mean. Fields that we own and no longer want are
    /// removed; those of other clients stay.
    Update {
        /// The answer repeats it.
        id: WriteId,
        /// The part as it should be.
        part: Box<Part>,
        /// Its UID.
        uid: Uid,
        /// As we last saw it.
        revision: Revision,
    },
    /// Delete a part, if it is still the one we mean.
    Delete {
        /// The answer repeats it.
        id: WriteId,
        /// Where it is.
        key: PartKey,
        /// Its UID.
        uid: Uid,
        /// As we last read it.
        revision: Revision,
    },
    /// Read a part live, past every cache, whatever its labels are.
    Read {
        /// Where it is.
        key: PartKey,
    },
}

/// A change of one object.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// The answer repeats it.
    pub id: WriteId,
    /// The object's kind.
    pub kind: Kind,
    /// Where it is.
    pub key: ObjectKey,
    /// Its UID: a write never lands on a successor.
    pub uid: Uid,
    /// The revision that the change was computed from, where landing on a newer one would be wrong.
    pub revision: Option<Revision>,
    /// Whether nothing waits for it, nor for the next write of the object: it has low priority.
    pub may_wait: bool,
    /// What changes.
    pub change: Change,
}

/// A Kubernetes Event about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The kind of the object.
    pub kind: Kind,
    /// The name of the object.
    pub key: ObjectKey,
    /// Its UID.
    pub uid: Uid,
    /// Whether something is wrong.
    pub warning: bool,
    /// The reason, for scripts.
    pub reason: &'static str,
    /// The message, for users.
    pub message: String,
}

/// What changes. Each change owns the fields that it names and touches no other.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// The commit point of a binding, and its undoing.
    ResourceSpec {
        /// Who holds the resource or is to have it.
        claim_refs: Vec<ClaimRef>,
        /// All finalizers, ours among them or not.
        finalizers: Vec<Name>,
    },
    /// What a resource is rendered from, updated from its class.
    ResourceRecipe {
        /// As a merge patch.
        patch: Value,
    },
    /// The status of a resource.
    ResourceStatus {
        /// Its phase.
        phase: ResourcePhase,
        /// What its claims take.
        allocated: Capacity,
        /// The names of the amounts that they no longer take: a patch leaves what it does not name.
        no_longer: Vec<Name>,
        /// All conditions.
        conditions: Vec<ConditionView>,
        /// The generation that this was computed from.
        observed_generation: i64,
        /// The version that its implementation reports; nothing leaves what is written.
        version: Option<Name>,
        /// What implements it; absent leaves what is recorded.
        implementation: Option<Vec<PartRef>>,
    },
    /// The claim's own record of its resource, and its protection.
    ClaimSpec {
        /// The resource's name; absent leaves what the user wrote.
        resource_name: Option<Name>,
        /// All finalizers.
        finalizers: Vec<Name>,
    },
    /// The status of a claim.
    ClaimStatus {
        /// Its phase.
        phase: ClaimPhase,
        /// Its resource: namespace, name, UID. Not written where the claim is Lost, which keeps what it has.
        resource: Option<(ObjectKey, Uid)>,
        /// All conditions.
        conditions: Vec<ConditionView>,
        /// The generation that this was computed from.
        observed_generation: i64,
        /// The Secret with the connection, once it is published.
        binding: Option<Name>,
        /// What its spec said when it was bound. Not written where the claim is Lost, which keeps what it has.
        bound_spec: Option<SpecRecord>,
    },
    /// Which classes failed a claim: written before what they provisioned is released.
    ClaimRefusals {
        /// All of them.
        refused_by: Vec<ClassRefusal>,
    },
    /// A class's protection while it is in use.
    ClassFinalizers {
        /// All finalizers.
        finalizers: Vec<Name>,
    },
    /// The usage of a quota.
    QuotaStatus {
        /// `status.used`, limit by limit.
        used: Value,
        /// The same in one line, for users.
        summary: String,
    },
}

impl Change {
    /// Whether the change goes to the status subresource.
    pub fn is_status(&self) -> bool {
        match self {
            Change::ResourceStatus { .. }
            | Change::ClaimStatus { .. }
            | Change::ClaimRefusals { .. }
            | Change::QuotaStatus { .. } => true,
            Change::ResourceSpec { .. }
            | Change::ResourceRecipe { .. }
            | Change::ClaimSpec { .. }
            | Change::ClassFinalizers { .. } => false,
        }
    }

    /// The change as a JSON merge patch.
    pub fn merge_patch(&self) -> Value {
        match self {
            Change::ResourceSpec { claim_refs, finalizers } => json!({
                "metadata": {"finalizers": finalizers},
                "spec": {"claimRefs": claim_refs.iter().map(claim_ref_json).collect::<Vec<_>>()},
            }),
            Change::ResourceRecipe { patch } => patch.clone(),
            Change::ResourceStatus {
                phase,
                allocated,
                no_longer,
                conditions,
                observed_generation,
                version,
                implementation,
            } => {
                let mut patch = json!({
                    "status": {
                        "phase": phase.name(),
                        "allocated": allocated_json(allocated, no_longer),
                        "conditions": conditions_json(conditions),
                        "observedGeneration": observed_generation,
                    },
                });
                if let Some(version) = version {
                    patch["status"]["version"] = Value::from(&**version);
                }
                if let Some(parts) = implementation {
                    patch["status"]["implementationRef"] = record_json(parts);
                }
                patch
            }
            Change::ClaimSpec { resource_name, finalizers } => {
                let mut patch = json!({"metadata": {"finalizers": finalizers}});
                if let Some(name) = resource_name {
                    patch["spec"] = json!({"resourceName": &**name});
                }
                patch
            }
            Change::ClaimStatus { phase, resource, conditions, observed_generation, binding, bound_spec } => {
                let mut status = json!({
                    "phase": phase.name(),
                    "conditions": conditions_json(conditions),
                    "observedGeneration": observed_generation,
                    "binding": binding.as_ref().map(|name| json!({"name": &**name})),
                });
                // A lost claim keeps the record of what it lost: only that resource can end the loss.
                if *phase != ClaimPhase::Lost {
                    status["resourceRef"] = resource.as_ref().map_or(
                        Value::Null,
                        |(key, uid)| json!({"namespace": &*key.namespace, "name": &*key.name, "uid": &**uid}),
                    );
                    status["boundSpec"] = json!(bound_spec.as_ref().map(|spec| &**spec.text()));
                }
                json!({"status": status})
            }
            Change::ClaimRefusals { refused_by } => {
                json!({"status": {"refusedBy": refused_by.iter().map(refusal_json).collect::<Vec<_>>()}})
            }
            Change::ClassFinalizers { finalizers } => json!({"metadata": {"finalizers": finalizers}}),
            Change::QuotaStatus { used, summary } => json!({"status": {"used": used, "summary": summary}}),
        }
    }
}

fn allocated_json(allocated: &Capacity, no_longer: &[Name]) -> Value {
    if allocated.is_empty() {
        return Value::Null;
    }
    let mut json = allocated.to_json();
    no_longer.iter().for_each(|name| json[&**name] = Value::Null);
    json
}

/// A reference to a claim as it stands in a resource's spec.
pub fn claim_ref_json(claim_ref: &ClaimRef) -> Value {
    let ClaimRef { claim, uid, requests, reserved } = claim_ref;
    let mut json = Map::new();
    json.insert("namespace".to_owned(), Value::from(&*claim.namespace));
    json.insert("name".to_owned(), Value::from(&*claim.name));
    if let Some(uid) = uid {
        json.insert("uid".to_owned(), Value::from(&**uid));
    }
    if !requests.is_empty() {
        json.insert("requests".to_owned(), requests.to_json());
    }
    if *reserved {
        json.insert("reserved".to_owned(), Value::from(true));
    }
    Value::Object(json)
}

fn refusal_json(refusal: &ClassRefusal) -> Value {
    let ClassRefusal { class, class_uid, class_generation, generation, resource_uid, message } = refusal;
    let mut json = json!({
        "class": &**class, "classUid": &**class_uid, "classGeneration": class_generation,
        "generation": generation, "message": &**message,
    });
    if let Some(uid) = resource_uid {
        json["resourceUid"] = Value::from(&**uid);
    }
    json
}

fn conditions_json(conditions: &[ConditionView]) -> Vec<Value> {
    let json = |c: &ConditionView| {
        let ConditionView { kind, status, reason, message, since } = c;
        json!({
            "type": &**kind, "status": &**status, "reason": &**reason,
            "message": &**message, "lastTransitionTime": &**since,
        })
    };
    conditions.iter().map(json).collect()
}

/// `finalizers` with ours of this kind added or removed.
pub fn with_finalizer(kind: Kind, finalizers: &[Name], present: bool) -> Vec<Name> {
    let ours = match kind {
        Kind::Claim(_) => CLAIM_PROTECTION,
        Kind::Resource(_) => RESOURCE_PROTECTION,
        Kind::Class(_) => CLASS_PROTECTION,
        Kind::Quota | Kind::ClusterQuota | Kind::Limits | Kind::Profile | Kind::Namespace => {
            return finalizers.to_vec();
        }
    };
    let mut all: Vec<Name> = finalizers.iter().filter(|f| &***f != ours).cloned().collect();
    if present {
        all.push(Name::from(ours));
    }
    all
}
