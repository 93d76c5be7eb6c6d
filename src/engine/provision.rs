//! Provisioning a resource for a claim, step by step: the claim's protection, the resource, the condition. What failed for
//! good is recorded; what was provisioned follows its class where that says so. The class was decided before.

use super::Engine;
use super::memory::{Effect, Target};
use crate::action::{Action, Change};
use crate::api::names::CLAIM_PROTECTION;
use crate::api::reasons;
use crate::cache::{ResourceId, Sight};
use crate::lifecycle::{
    ClaimSide, cannot_be_made, make_resource, plan_claim, plan_class_update, provisioned_name,
};
use crate::model::part::WhyMissing;
use crate::model::{Claim, Kind, Name, PartKey, Resource, Time, TypeId, Wants};
use crate::predicates::{Predicate, Refusal};
use crate::queue::{EquivalenceKey, Wait};
use crate::scheduler::prepare;
use std::sync::Arc;

impl Engine {
    /// First the claim's protection, then the resource, then the condition.
    pub(super) fn reconcile_provisioning(&mut self, claim: &Claim, class: &Name, resource: &Name, now: Time) {
        if provisioned_name(claim, class) != *resource {
            return self.reconcile_sharing(claim, class, resource, now);
        }
        let message =
            self.with_trouble(claim, resource, format!("making resource {resource} from class {class}"));
        let change = plan_claim(claim, &ClaimSide::Provisioning { message: &message }, now);
        let protected = claim.meta.has_finalizer(CLAIM_PROTECTION);
        let target = Target::Resource(claim.ty, resource.clone());
        let exists = self.state.find_resource(claim.ty, resource);
        if let Some(id) = exists
            && !self.state.holders_of(&claim.meta.uid).any(|holder| holder == id)
        {
            return self.refuse_taken_name(claim, resource, now);
        }
        if let Some(refusals) = exists.and_then(|id| self.give_up(claim, class, id)) {
            return self.write_claim(claim, refusals);
        }
        if protected && exists.is_none() && !self.writes.is_busy(&target) {
            self.create_resource(claim, class, target, now);
        }
        // What was just found out may be in flight already.
        if let Some(change) = change.filter(|_| !self.writes.is_busy(&Target::Claim(claim.meta.uid.clone())))
        {
            self.emit_claim(claim, &change);
            self.write_claim(claim, change);
        }
    }

    /// A claim that waits to share what is provisioned for another. Nothing is provisioned for it, so nothing protects it yet.
    fn reconcile_sharing(&mut self, claim: &Claim, class: &Name, resource: &Name, now: Time) {
        let holds = self
            .state
            .find_resource(claim.ty, resource)
            .is_some_and(|id| self.state.holders_of(&claim.meta.uid).any(|holder| holder == id));
        // It exists now, or will not be created: either way the claim is decided about.
        if !holds && !self.state.shared_pending.is_promised(claim.ty, class, resource) {
            return self.retry_claim(&claim.meta.uid, now);
        }
        // What was promised may have been revoked and promised again since: each waiting claim registers again.
        self.state.shared_pending.wait(claim.ty, class, resource, claim.meta.uid.clone());
        let message = format!("waiting for resource {resource}, which is being made from class {class}");
        let message = self.with_trouble(claim, resource, message);
        let side = ClaimSide::Pending { reason: reasons::bound::PROVISIONING, message: &message };
        if let Some(change) = plan_claim(claim, &side, now) {
            self.emit_claim(claim, &change);
            self.write_claim(claim, change);
        }
    }

    /// The message of a claim while its resource is provisioned, with what keeps that from succeeding until an
    /// administrator acts: a user who may read the claim may not read the resource.
    fn with_trouble(&self, claim: &Claim, resource: &Name, message: String) -> String {
        let entry = self.state.resource_named(claim.ty, resource);
        let conditions = entry.iter().flat_map(|entry| &entry.resource.status.conditions);
        let mut ready = conditions.filter(|c| &*c.kind == reasons::READY);
        let trouble = ready.find(|ready| reasons::provisioning_obstacle(&ready.reason).is_some());
        let refused = self.writes.refusal(Target::Resource(claim.ty, resource.clone()), Effect::Change);
        match (trouble, refused) {
            (Some(trouble), _) => format!("{message}: {}: {}", trouble.reason, trouble.message),
            (None, Some(why)) if entry.is_none() => format!("{message}: the API refuses it: {why}"),
            (None, _) => message,
        }
    }

    /// What the claim must record of a resource that was provisioned for it and has failed for good.
    fn give_up(&self, claim: &Claim, class: &Name, id: ResourceId) -> Option<Change> {
        let resource = &self.state.resource(id)?.resource;
        let class = self.state.classes.get(&(claim.ty, class.clone()))?;
        let made = resource.provisioned_for.as_ref() == Some(&claim.meta.uid);
        let why = cannot_be_made(resource).or_else(|| self.never_made(resource));
        let why = why.filter(|_| made && !claim.has_given_up(&resource.meta.uid))?;
        let uid = Some(&resource.meta.uid);
        Some(Change::ClaimRefusals { refused_by: claim.refusals_with(&class.meta, uid, why) })
    }

    /// The message of a resource with a part of a kind that has no namespace: none of those is ever created.
    fn never_made<'a>(&self, resource: &'a Resource) -> Option<&'a str> {
        let is_never = |key: &PartKey| {
            let sight = self.state.parts.sight(key, &resource.meta.uid);
            matches!(sight, Sight::KindMissing(WhyMissing::NotNamespaced))
        };
        let nothing_made = resource.status.implementation.parts().iter().all(|part| part.uid.is_none());
        let never = resource.template.objects().iter().any(|part| is_never(&part.key));
        let ready = resource.status.conditions.iter().find(|c| &*c.kind == reasons::READY)?;
        let is_reported = &*ready.reason == reasons::resource::KIND_NOT_ALLOWED;
        (nothing_made && never && is_reported).then_some(&*ready.message)
    }

    /// The name derives from the claim's UID, so another client took it on purpose: the claim is refused and waits.
    fn refuse_taken_name(&mut self, claim: &Claim, resource: &Name, now: Time) {
        let entry = self.state.resource_named(claim.ty, resource);
        let own = entry.is_some_and(|e| e.resource.provisioned_for.as_ref() == Some(&claim.meta.uid));
        let namespace = &self.config.system_namespace;
        let whose = match own {
            true => "what was made for this claim before could not be used and is kept, as its policy says",
            false => "it exists and is not this claim's",
        };
        let rules = claim.ty.rules();
        let fix =
            "use a claim of another name, or have an administrator check what it is before they delete it";
        let message = format!("cannot make {} {namespace}/{resource}: {whose}; {fix}", rules.resource);
        self.retry_claim(&claim.meta.uid, now);
        self.queue.take(&claim.meta.uid);
        let refusal = Arc::new(Refusal::single(Predicate::ResourceName, message));
        let group = EquivalenceKey {
            ty: claim.ty,
            wait: Wait::Resource(resource.clone()),
            wants: claim.wants.clone().unwrap_or_else(|_| Arc::new(Wants::least())),
            profile: claim.profile.clone(),
            alone: None,
        };
        self.refuse(claim, reasons::bound::PROVISIONING_FAILED, refusal, group, now);
    }

    fn create_resource(&mut self, claim: &Claim, class: &Name, target: Target, now: Time) {
        let class = self.state.classes.get(&(claim.ty, class.clone())).filter(|c| !c.meta.deleting);
        // What is created is what was decided and charged: other defaults since then are decided about anew.
        let charged = self.state.quota_usage.find_charge(&claim.meta.uid);
        let request = prepare(&self.state, claim).ok();
        let request = request.filter(|r| class.is_some_and(|class| r.charge_made(class).as_ref() == charged));
        // A plan creates nothing, and has to know all the same whether the claim's parameters are allowed.
        let inputs = class.and_then(|class| class.recipe.as_ref().ok()?.inputs.as_ref());
        let computed =
            inputs.is_some_and(|class| self.config.makes_parts || class.get("parameterSchema").is_some());
        let written = self.provisioning.text(&claim.meta.uid);
        if computed && written.is_none() {
            // The cache lacks what expressions see of the claim: it is read live, once.
            self.provisioning.await_text(&claim.meta.uid);
            return self.read(Kind::Claim(claim.ty), claim.meta.key.clone(), None);
        }
        let object = class.zip(request.map(|request| request.wants)).map_or(Ok(None), |(class, wants)| {
            make_resource(class, claim, &wants, written, &self.config.system_namespace)
        });
        let class = class.map(|class| class.meta.clone());
        self.provisioning.drop_text(&claim.meta.uid);
        match (object, class) {
            (Ok(Some(object)), _) => {
                let id = self.writes.send(target, Effect::Change, None);
                self.work.push(Action::Create { id, object });
            }
            // Recorded before anything is created; another class may allow it.
            (Err(error), Some(class)) if claim.refusal_by(&class).is_none() => {
                let refused_by = claim.refusals_with(&class, None, &error.to_string());
                self.write_claim(claim, Change::ClaimRefusals { refused_by });
            }
            // The class was deleted, or no longer provisions what was decided: the claim is decided about anew.
            (Ok(None) | Err(_), _) => self.retry_claim(&claim.meta.uid, now),
        }
    }

    /// The change that brings a resource in line with its class, where the class says Follow.
    pub(super) fn class_update(&self, ty: TypeId, name: &Name) -> Option<Change> {
        let entry = self.state.resource_named(ty, name)?;
        let class = entry.resource.provisioned_by.clone().filter(|_| self.config.makes_parts)?;
        let class = self.state.classes.get(&(ty, class))?;
        let follows = class.recipe.as_ref().is_ok_and(|recipe| recipe.follows);
        (follows && !entry.is_released()).then(|| plan_class_update(class, &entry.resource)).flatten()
    }
}
