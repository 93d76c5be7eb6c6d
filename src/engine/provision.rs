//! Making a resource for a claim, step by step: its protection, the resource, what people read. What failed for good is
//! put on record; what was made follows its class where that says so. Which class makes it was decided before.

use super::{Effect, Engine, Target};
use crate::action::{Action, Change};
use crate::api::names::CLAIM_PROTECTION;
use crate::api::reasons;
use crate::cache::{ResourceId, Sight};
use crate::framework::Refusal;
use crate::lifecycle::{ClaimSide, cannot_be_made, make_resource, plan_claim, plan_follow, provisioned_name};
use crate::model::part::WhyMissing;
use crate::model::{Claim, Class, Kind, Name, PartKey, Predicate, Resource, Time, TypeId, Wants};
use crate::queue::{LaneKey, Wait};
use crate::scheduler::prepare;
use std::sync::Arc;

impl Engine {
    /// First the claim's protection, then the resource, then what people read.
    pub(super) fn sync_provisioning(&mut self, claim: &Claim, class: &Name, resource: &Name, now: Time) {
        if provisioned_name(claim, class) != *resource {
            return self.sync_sharing(claim, class, resource, now);
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
        if protected && exists.is_none() && !self.busy.contains(&target) {
            self.create_resource(claim, class, target, now);
        }
        // What was just found out may be on its way already.
        if let Some(change) = change.filter(|_| !self.busy.contains(&Target::Claim(claim.meta.uid.clone()))) {
            self.tell_claim(claim, &change);
            self.write_claim(claim, change);
        }
    }

    /// A claim that is to share what is being made for another. Nothing is made for it, so nothing protects it yet.
    fn sync_sharing(&mut self, claim: &Claim, class: &Name, resource: &Name, now: Time) {
        let holds = self
            .state
            .find_resource(claim.ty, resource)
            .is_some_and(|id| self.state.holders_of(&claim.meta.uid).any(|holder| holder == id));
        // It can be looked at now, or will not be made: either way the claim is decided about.
        if !holds && !self.state.making.is_promised(claim.ty, class, resource) {
            return self.retry_claim(&claim.meta.uid, now);
        }
        // What was promised may have been taken back and promised again since: whoever waits says so to each.
        self.state.making.wait(claim.ty, class, resource, claim.meta.uid.clone());
        let message = format!("waiting for resource {resource}, which is being made from class {class}");
        let message = self.with_trouble(claim, resource, message);
        let side = ClaimSide::Pending { reason: reasons::bound::PROVISIONING, message: &message };
        if let Some(change) = plan_claim(claim, &side, now) {
            self.tell_claim(claim, &change);
            self.write_claim(claim, change);
        }
    }

    /// What a claim is told while its resource is made, with what keeps that from being made until somebody does something:
    /// whoever may read the claim may not read the resource.
    fn with_trouble(&self, claim: &Claim, resource: &Name, message: String) -> String {
        let entry = self.state.find_resource(claim.ty, resource).and_then(|id| self.state.resource(id));
        let conditions = entry.iter().flat_map(|entry| &entry.resource.status.conditions);
        let mut ready = conditions.filter(|c| &*c.kind == reasons::READY);
        let told = ready.find(|ready| reasons::resource::find_trouble(&ready.reason).is_some());
        let refused = self.troubles.get(&(Target::Resource(claim.ty, resource.clone()), Effect::Change));
        match (told, refused) {
            (Some(trouble), _) => format!("{message}: {}: {}", trouble.reason, trouble.message),
            (None, Some(why)) if entry.is_none() => format!("{message}: the API refuses it: {why}"),
            (None, _) => message,
        }
    }

    /// What the claim should have on record of a resource that was made for it and has failed for good.
    fn give_up(&self, claim: &Claim, class: &Name, id: ResourceId) -> Option<Change> {
        let resource = &self.state.resource(id)?.resource;
        let class = self.state.classes.get(&(claim.ty, class.clone()))?;
        let made = resource.provisioned_for.as_ref() == Some(&claim.meta.uid);
        let why = cannot_be_made(resource).or_else(|| self.never_made(resource));
        let why = why.filter(|_| made && !claim.has_given_up(&resource.meta.uid))?;
        let uid = Some(&resource.meta.uid);
        Some(Change::ClaimRefusals { refused_by: claim.refusals_with(&class.meta, uid, why) })
    }

    /// What a resource says that is to be made of a kind that lives in no namespace: none of those is ever made.
    fn never_made<'a>(&self, resource: &'a Resource) -> Option<&'a str> {
        let is_never = |key: &PartKey| {
            let sight = self.state.parts.sight(key, &resource.meta.uid);
            matches!(sight, Sight::KindMissing(WhyMissing::NotNamespaced))
        };
        let nothing_made = resource.status.implementation.parts().iter().all(|part| part.uid.is_none());
        let never = resource.template.objects().iter().any(|part| is_never(&part.key));
        let ready = resource.status.conditions.iter().find(|c| &*c.kind == reasons::READY)?;
        let is_told = &*ready.reason == reasons::resource::KIND_NOT_ALLOWED;
        (nothing_made && never && is_told).then_some(&*ready.message)
    }

    /// The name derives from the claim's UID, so whoever has it took it on purpose: that is told, and waited out.
    fn refuse_taken_name(&mut self, claim: &Claim, resource: &Name, now: Time) {
        let entry = self.state.find_resource(claim.ty, resource).and_then(|id| self.state.resource(id));
        let own = entry.is_some_and(|e| e.resource.provisioned_for.as_ref() == Some(&claim.meta.uid));
        let namespace = &self.config.system_namespace;
        let whose = match own {
            true => "what was made for this claim before could not be used and is kept, as its policy says",
            false => "it exists and is not this claim's",
        };
        let rules = claim.ty.rules();
        let fix = "use a claim of another name, or have an administrator look at what it stands for before they remove it";
        let message = format!("cannot make {} {namespace}/{resource}: {whose}; {fix}", rules.resource);
        self.retry_claim(&claim.meta.uid, now);
        self.queue.take(&claim.meta.uid);
        let refusal = Arc::new(Refusal::single(Predicate::ResourceName, message));
        let lane = LaneKey {
            ty: claim.ty,
            wait: Wait::Resource(resource.clone()),
            wants: claim.wants.clone().unwrap_or_else(|_| Arc::new(Wants::least())),
            profile: claim.profile.clone(),
            alone: None,
        };
        self.refuse(claim, reasons::bound::PROVISIONING_FAILED, refusal, lane, now);
    }

    fn create_resource(&mut self, claim: &Claim, class: &Name, target: Target, now: Time) {
        let class = self.state.classes.get(&(claim.ty, class.clone())).filter(|c| !c.meta.deleting);
        // What is made is what was decided and charged: other defaults since then are decided about anew.
        let charged = self.state.ledger.find_charge(&claim.meta.uid);
        let request = prepare(&self.state, claim).ok();
        let request = request.filter(|r| class.is_some_and(|class| r.charge_made(class).as_ref() == charged));
        // A plan makes nothing, and has to know all the same whether the claim's parameters are allowed.
        let inputs = class.and_then(|class| class.recipe.as_ref().ok()?.inputs.as_ref());
        let computed =
            inputs.is_some_and(|class| self.config.makes_parts || class.get("parameterSchema").is_some());
        let written = self.written_claims.get(&claim.meta.uid);
        if computed && written.is_none() {
            // What expressions see of the claim is not kept: it is read live, once.
            self.claims_to_keep.insert(claim.meta.uid.clone());
            return self.read(Kind::Claim(claim.ty), claim.meta.key.clone(), None);
        }
        let object = class.zip(request.map(|request| request.wants)).map_or(Ok(None), |(class, wants)| {
            make_resource(class, claim, &wants, written, &self.config.system_namespace)
        });
        let class = class.map(|class| class.meta.clone());
        self.written_claims.remove(&claim.meta.uid);
        match (object, class) {
            (Ok(Some(object)), _) => {
                let id = self.send(target, Effect::Change);
                self.actions.push(Action::Create { id, object });
            }
            // Told before anything is made; another class may allow it.
            (Err(error), Some(class)) if claim.refusal_by(&class).is_none() => {
                let refused_by = claim.refusals_with(&class, None, &error.to_string());
                self.write_claim(claim, Change::ClaimRefusals { refused_by });
            }
            // The class went, or no longer makes what was decided: the claim is decided about anew.
            (Ok(None) | Err(_), _) => self.retry_claim(&claim.meta.uid, now),
        }
    }

    /// A class that is deleted and has resources has no status to say on why it stays. Whoever stands by tells nobody.
    pub(super) fn tell_in_use(&mut self, class: &Class) {
        let count = self.state.class_use(class.ty, &class.meta.key.name);
        if count > 0 && self.synced {
            let message = format!(
                "its deletion waits until {count} resources of it are gone (conductor get resources); it makes no new ones"
            );
            self.tell(Kind::Class(class.ty), &class.meta.key, &class.meta.uid, true, "InUse", message);
        }
    }

    /// The change that brings a resource in line with its class, where the class says Follow.
    pub(super) fn follow_class(&self, ty: TypeId, name: &Name) -> Option<Change> {
        let entry = self.state.resource(self.state.find_resource(ty, name)?)?;
        let class = entry.resource.provisioned_by.clone().filter(|_| self.config.makes_parts)?;
        let class = self.state.classes.get(&(ty, class))?;
        let follows = class.recipe.as_ref().is_ok_and(|recipe| recipe.follows);
        (follows && !entry.is_released()).then(|| plan_follow(class, &entry.resource)).flatten()
    }
}
