//! Kubernetes Events: what users learn about an object that its status does not say, or that has no status. An engine
//! that has not started emits none but `OutsideSystemNamespace` and those about edits of bound claims: a replica that
//! stands by would repeat what the leader emits.

use super::memory::Target;
use super::{Binding, Engine};
use crate::action::{Change, Note};
use crate::api::names::{IS_DEFAULT_CLASS, RESOURCE_PROTECTION};
use crate::api::reasons;
use crate::cache::ResourceEntry;
use crate::lifecycle::retained_parts;
use crate::model::meta::ConditionView;
use crate::model::{
    Claim, ClaimPhase, Class, FieldError, Kind, Meta, Name, Object, PartId, Resource, ResourcePhase, TypeId,
};

impl Engine {
    /// A class or resource in another namespace is ignored, and has no status of ours to say so.
    pub(super) fn emit_outside(&mut self, object: &Object) {
        let meta = Meta::read(&object.metadata);
        let system = &self.config.system_namespace;
        let message = format!(
            "it is ignored: {} is read in namespace {system} only, the system namespace of this controller; if that is the \
             right one, create it there. What exists here is left as it is",
            object.kind.name()
        );
        self.work.emit(object.kind, &meta, true, reasons::event::OUTSIDE_SYSTEM_NAMESPACE, message);
    }

    /// A class that declares nothing of what it provisions serves claims of any size, and no check promises it.
    pub(super) fn emit_unchecked(&mut self, class: &Class) {
        if !class.meta.deleting && class.recipe.as_ref().is_ok_and(|recipe| recipe.checks_no_sizes()) {
            self.work.emit(
                Kind::Class(class.ty),
                &class.meta,
                true,
                reasons::event::SIZES_NOT_CHECKED,
                SIZES_NOT_CHECKED.to_owned(),
            );
        }
    }

    /// Of several default classes the newest is used: the others get an Event that names it.
    pub(super) fn emit_unused_defaults(&mut self, ty: TypeId) {
        let Some(used) = self.state.default_class(ty).map(|class| &class.meta.key.name) else { return };
        let classes = self.state.classes.values().filter(|class| class.ty == ty && class.is_default);
        for class in classes.filter(|class| !class.meta.deleting && class.meta.key.name != *used) {
            let message = format!(
                "it is not used as the default class: of several the newest counts, which is {used}; take the annotation {IS_DEFAULT_CLASS} off all others"
            );
            self.work.emit(Kind::Class(ty), &class.meta, true, reasons::event::DEFAULT_NOT_USED, message);
        }
    }

    /// A class that is deleted and has resources has no status that says why it stays.
    pub(super) fn emit_in_use(&mut self, class: &Class) {
        let count = self.state.class_use(class.ty, &class.meta.key.name);
        if count > 0 && self.bindings.is_started() {
            let message = format!(
                "its deletion waits until {count} resources of it are gone (conductor get resources); it makes no new ones"
            );
            self.work.emit(Kind::Class(class.ty), &class.meta, true, reasons::event::IN_USE, message);
        }
    }

    pub(super) fn emit_unreadable(&mut self, kind: Kind, meta: &Meta, error: &FieldError) {
        if self.bindings.is_started() {
            self.work.emit(kind, meta, true, reasons::event::INVALID_SPEC, error.to_string());
        }
    }

    /// Every object that could not be read and has no status that says so.
    pub(super) fn emit_all_unreadable(&mut self) {
        let state = &self.state;
        let mut unreadable = Vec::new();
        let classes = state.classes.values();
        unreadable
            .extend(classes.filter_map(|c| Some((Kind::Class(c.ty), &c.meta, c.recipe.as_ref().err()?))));
        unreadable.extend(state.quota_usage.quotas().filter_map(|(key, quota, _)| {
            let kind = if key.namespace.is_empty() { Kind::ClusterQuota } else { Kind::Quota };
            Some((kind, &quota.meta, quota.limits.as_ref().err()?))
        }));
        unreadable
            .extend(state.limits().filter_map(|l| Some((Kind::Limits, &l.meta, l.bounds.as_ref().err()?))));
        let profiles = state.profiles.values();
        unreadable.extend(profiles.filter_map(|p| Some((Kind::Profile, &p.meta, p.profile.as_ref().err()?))));
        for (kind, meta, error) in unreadable {
            self.work.emit(kind, meta, true, reasons::event::INVALID_SPEC, error.to_string());
        }
    }

    /// Edits of a bound claim that its status cannot show: one is undone, and the other has effect only for what is
    /// decided afterwards.
    pub(super) fn emit_edits(&mut self, claim: &Claim) {
        let Some(known) = self.state.claim(&claim.meta.uid) else { return };
        let Some(Binding::Bound { resource }) = self.bindings.get(&claim.meta.uid) else { return };
        let is_renamed = known.resource_name.as_ref() == Some(resource)
            && claim.resource_name.as_ref() != Some(resource)
            && !claim.meta.deleting;
        let is_closed = !known.is_exclusive() && claim.is_exclusive();
        if !is_renamed && !is_closed {
            return;
        }
        let (kind, meta) = (Kind::Claim(claim.ty), &claim.meta);
        if is_renamed {
            let message = format!(
                "spec.resourceName is the record of the binding to {resource} and is restored: a bound claim does not move. \
                 To use another resource, create a claim that names it"
            );
            self.work.emit(kind, meta, true, reasons::event::RESOURCE_NAME_RESTORED, message);
        }
        let entry = self.state.resource_named(claim.ty, resource);
        let others =
            |entry: &ResourceEntry| entry.refs().filter(|r| r.uid.as_ref() != Some(&meta.uid)).count();
        let others = entry.filter(|_| is_closed).map_or(0, others);
        if others > 0 {
            let message = format!(
                "spec.exclusive keeps further claims off {resource}; {others} other claims hold it already and stay"
            );
            self.work.emit(kind, meta, true, reasons::event::SHARED_WITH_OTHERS, message);
        }
    }

    /// The reasons that a write of a claim's status changes.
    pub(super) fn emit_claim(&mut self, claim: &Claim, change: &Change) {
        let Change::ClaimStatus { phase, conditions, .. } = change else { return };
        let (kind, meta) = (Kind::Claim(claim.ty), &claim.meta);
        if let Some(ready) = changed_reason(&claim.status.conditions, conditions, reasons::READY)
            && let Some((reason, warning)) = emitted_of_ready(&ready.reason)
        {
            self.work.emit(kind, meta, warning, reason, ready.message.to_string());
        }
        if let Some(bound) = changed_reason(&claim.status.conditions, conditions, reasons::BOUND) {
            let reason = reasons::known_bound(&bound.reason);
            let warning = match phase {
                ClaimPhase::Bound => reason == reasons::bound::NOT_AS_ASKED,
                ClaimPhase::Lost => true,
                ClaimPhase::Pending => reason != reasons::bound::PROVISIONING,
            };
            self.work.emit(kind, meta, warning, reason, bound.message.to_string());
        }
    }

    /// The API accepted a write that changed nothing.
    pub(super) fn emit_idle_write(&mut self, target: &Target) {
        let message =
            "the API took our write and nothing changed: it is tried again with growing pauses".to_owned();
        self.emit_write(target, reasons::event::WRITE_WITHOUT_EFFECT, message);
    }

    pub(super) fn emit_refused_write(&mut self, target: &Target, why: &str) {
        self.emit_write(target, reasons::event::WRITE_REFUSED, format!("the API refused our write: {why}"));
    }

    /// About the object that was written; where that does not exist yet, about the claim that it is created for.
    fn emit_write(&mut self, target: &Target, reason: &'static str, message: String) {
        let (kind, meta) = match target {
            Target::Claim(uid) => match self.state.claim(uid) {
                Some(claim) => (Kind::Claim(claim.ty), &claim.meta),
                None => return,
            },
            Target::Resource(ty, name) | Target::Part(PartId { ty, resource: name, .. }) => {
                let entry = self.state.resource_named(*ty, name);
                let owner = || self.provisioning.owner(*ty, name).and_then(|uid| self.state.claim(uid));
                match (entry, owner()) {
                    (Some(entry), _) => (Kind::Resource(*ty), &entry.resource.meta),
                    (None, Some(claim)) => (Kind::Claim(*ty), &claim.meta),
                    (None, None) => return,
                }
            }
            Target::Class(..) | Target::Quota(_) | Target::Publication(_) | Target::Published(..) => return,
        };
        self.work.emit(kind, meta, true, reason, message);
    }
}

/// The Event about a class that declares nothing, with the fields to add.
const SIZES_NOT_CHECKED: &str = "it declares nothing of what it makes, so it serves claims of any size and version \
                                 unchecked: declare capacity, and version or versions, or let its \
                                 template take them (${resource.spec.capacity.storage})";

/// Our condition of this type, where its reason is another than before.
fn changed_reason<'a>(
    was: &[ConditionView],
    is: &'a [ConditionView],
    kind: &str,
) -> Option<&'a ConditionView> {
    let condition = is.iter().find(|condition| &*condition.kind == kind)?;
    let known = was.iter().find(|known| known.kind == condition.kind);
    known.is_none_or(|known| known.reason != condition.reason).then_some(condition)
}

/// The reasons of a claim's Ready condition that get an Event, and whether it is a warning. While a connection waits for
/// others, the condition alone says so.
fn emitted_of_ready(reason: &str) -> Option<(&'static str, bool)> {
    let emitted = [
        (reasons::ready::CONNECTION_PUBLISHED, false),
        (reasons::ready::SECRET_CONFLICT, true),
        (reasons::ready::SECRET_NOT_ALLOWED, true),
        (reasons::ready::LOGIN_REVOKED, true),
    ];
    emitted.into_iter().find(|(known, _)| *known == reason)
}

/// The Event about a write of a resource, if it gets one.
pub(super) fn note_about(resource: &Resource, change: &Change) -> Option<Note> {
    let (warning, reason, message) = match change {
        Change::ResourceSpec { finalizers, .. } => note_of_retained(resource, finalizers)?,
        Change::ResourceStatus { phase, conditions, .. } => {
            let ready = conditions.iter().find(|c| &*c.kind == reasons::READY)?;
            let is_news = changed_reason(&resource.status.conditions, conditions, reasons::READY).is_some();
            let (warning, reason) = match phase {
                ResourcePhase::Released => (false, reasons::event::RELEASED),
                ResourcePhase::Failed => (true, reasons::event::FAILED),
                ResourcePhase::Creating if is_news => (true, reasons::provisioning_obstacle(&ready.reason)?),
                ResourcePhase::Creating
                | ResourcePhase::Pending
                | ResourcePhase::Available
                | ResourcePhase::Bound
                | ResourcePhase::Deleting => return None,
            };
            (warning, reason, ready.message.to_string())
        }
        _ => return None,
    };
    let Meta { key, uid, .. } = resource.meta.clone();
    Some(Note { kind: Kind::Resource(resource.ty), key, uid, warning, reason, message })
}

/// A resource that is deleted and leaves its implementation behind names it: afterwards there is no record of it.
fn note_of_retained(resource: &Resource, finalizers: &[Name]) -> Option<(bool, &'static str, String)> {
    let goes = resource.meta.deleting && !finalizers.iter().any(|f| &**f == RESOURCE_PROTECTION);
    let parts = retained_parts(resource).filter(|_| goes)?;
    let message = format!("it goes, its implementation stays: {parts}");
    Some((false, reasons::event::IMPLEMENTATION_RETAINED, message))
}
