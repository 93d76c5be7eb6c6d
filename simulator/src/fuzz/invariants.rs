//! What must hold in the world after every write that lands, whatever the engine believes. The numbers are those of the
//! reliability notes.

use super::TYPE;
use super::oracle::{Amounts, Ask, Charge, Db, Oracle, amounts};
use crate::world::World;
use conductor::action::{Action, Change, PartAction};
use conductor::api::reasons;
use conductor::engine::Engine;
use conductor::model::{Kind, Object, Part, Quantity, Time, Uid};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub struct Invariants {
    /// References written by a crashed engine; only these may create a second holder.
    late_references: BTreeSet<(String, String)>,
    /// Whether any write of a crashed engine has landed.
    late: bool,
    /// Claims whose status a crashed engine wrote. The next engine did not know, and may rebind them.
    late_claims: BTreeSet<String>,
    /// Claims that a resource was provisioned for, and whether a user has deleted it since.
    made: BTreeMap<String, bool>,
    /// Lost claims with the UID of their lost resource.
    lost: BTreeMap<String, String>,
    /// Whether each resource may be deleted, by its last live read.
    doomed: BTreeMap<String, bool>,
    /// All versions of each claim's requests: a decision may be older than the last edit.
    asks: BTreeMap<String, Vec<Ask>>,
    /// The last reclaim policy of every resource that ever existed.
    policies: BTreeMap<String, String>,
    /// Whether a crashed engine created a part.
    late_parts: bool,
}

/// UID of the resource that owns a part.
pub fn owner_of(part: &Part) -> String {
    let annotations = part.metadata.annotations.as_ref();
    annotations.and_then(|a| a.get("conductor.io/resource-uid")).cloned().unwrap_or_default()
}

fn uid_of(object: &Object) -> String {
    object.metadata.uid.clone().unwrap_or_default()
}

fn made_for(object: &Object) -> Option<String> {
    object.metadata.annotations.as_ref()?.get("conductor.io/provisioned-for").cloned()
}

fn references(object: &Object) -> Vec<&Value> {
    object.body["spec"]["claimRefs"].as_array().into_iter().flatten().collect()
}

pub fn holders(object: &Object) -> BTreeSet<String> {
    references(object).iter().filter_map(|r| r["uid"].as_str()).map(str::to_owned).collect()
}

pub fn resources(world: &World) -> impl Iterator<Item = &Object> {
    world.objects().filter(|o| o.kind == Kind::Resource(TYPE))
}

pub fn claims(world: &World) -> impl Iterator<Item = &Object> {
    world.objects().filter(|o| o.kind == Kind::Claim(TYPE))
}

fn find_claim<'a>(world: &'a World, uid: &str) -> Option<&'a Object> {
    claims(world).find(|c| c.metadata.uid.as_deref() == Some(uid))
}

impl Invariants {
    pub fn user_deletes(&mut self, object: &Object) {
        if let Some(made) = made_for(object).and_then(|uid| self.made.get_mut(&uid)) {
            *made = true;
        }
    }

    /// Notes the answer to a live read.
    pub fn was_read(&mut self, object: &Object) {
        if let Kind::Resource(_) = object.kind {
            let going = object.metadata.deletion_timestamp.is_some();
            let doomed = going && object.body["spec"]["reclaimPolicy"] == "Delete";
            self.doomed.insert(uid_of(object), doomed);
        }
    }

    /// Notes a version of a claim's requests.
    pub fn note_requests(&mut self, object: &Object, now: Time) {
        if let Kind::Claim(_) = object.kind {
            self.asks.entry(uid_of(object)).or_default().push(Ask::read(object, now.0));
        }
    }

    /// Notes every resource's reclaim policy.
    pub fn note_policies(&mut self, world: &World) {
        for resource in resources(world) {
            let policy = resource.body["spec"]["reclaimPolicy"].as_str().unwrap_or("Retain");
            self.policies.insert(uid_of(resource), policy.to_owned());
        }
    }

    /// Checks a part that was just created.
    pub fn check_part_landed(
        &mut self,
        action: &PartAction,
        world: &World,
        late: bool,
    ) -> Result<(), String> {
        let PartAction::Create { part, .. } = action else { return Ok(()) };
        let owner = owner_of(part);
        self.late_parts |= late;
        let alive = world.parts().filter(|p| owner_of(p) == owner).count();
        if alive > 1 {
            return Err(format!("I2: {alive} parts of {owner}"));
        }
        let resource = resources(world).find(|o| uid_of(o) == owner);
        let name = &part.metadata.name;
        let recorded = resource.is_some_and(|o| {
            let ours =
                o.metadata.finalizers.iter().flatten().any(|f| f == "conductor.io/resource-protection");
            ours && o.body["status"]["implementationRef"]["name"].as_str() == name.as_deref()
        });
        if !recorded && !late {
            return Err(format!("I5: a part of {owner} is created without a record on its resource"));
        }
        Ok(())
    }

    /// Checks a part whose resource no longer exists.
    pub fn check_orphan(&self, owner: &str) -> Result<(), String> {
        match self.policies.get(owner).map(String::as_str) {
            Some("Delete") if !self.late_parts => Err(format!("I5: a part of {owner} is left behind")),
            _ => Ok(()),
        }
    }

    /// Checks that no claim is bound or provisioned for while it is being deleted (rule 24).
    pub fn check_sent(&self, action: &Action, engine: &Engine) -> Result<(), String> {
        if let Action::Part(PartAction::Delete { key, .. }) = action {
            let part = engine.state().parts.find(key);
            let owner = part.and_then(|part| part.owner.clone()).unwrap_or_default();
            if self.doomed.get(&*owner) != Some(&true) {
                return Err(format!("I3, I4: {key} is deleted although its resource {owner} is kept"));
            }
        }
        let added: Vec<String> = match action {
            Action::Write(write) => match &write.change {
                Change::ResourceSpec { claim_refs, .. } => {
                    let known = engine.state().find_resource(TYPE, &write.key.name);
                    let known = known.and_then(|id| engine.state().resource(id));
                    let before: BTreeSet<String> = known
                        .into_iter()
                        .flat_map(|e| e.resource.claim_refs.iter().filter_map(|r| r.uid.as_ref()))
                        .map(|u| u.to_string())
                        .collect();
                    let refs = claim_refs.iter().filter_map(|r| r.uid.as_ref()).map(|u| u.to_string());
                    refs.filter(|u| !before.contains(u)).collect()
                }
                _ => Vec::new(),
            },
            Action::Create { object, .. } => made_for(object).into_iter().collect(),
            _ => Vec::new(),
        };
        for uid in added {
            match engine.state().claim(&Uid::from(uid.as_str())) {
                Some(claim) if !claim.meta.deleting => {}
                Some(_) => return Err(format!("rule 24: claim {uid} is bound while it is being deleted")),
                None => return Err(format!("unknown claim {uid} is bound")),
            }
        }
        Ok(())
    }

    /// Checks the world after a write of the engine.
    pub fn check_landed(
        &mut self,
        action: &Action,
        before: Option<&Object>,
        world: &World,
        late: bool,
        calm: bool,
        now: Time,
    ) -> Result<(), String> {
        self.late |= late;
        match action {
            Action::Write(write) => {
                let after = world.get(write.kind, &write.key);
                if let (true, Kind::Claim(_), Some(after)) = (late, write.kind, after) {
                    self.late_claims.insert(uid_of(after));
                }
                if let (Some(before), Some(after), Kind::Resource(_)) = (before, after, write.kind) {
                    let added: Vec<String> = holders(after).difference(&holders(before)).cloned().collect();
                    for uid in added {
                        self.check_bound(&uid, after, world, late, calm, now)?;
                    }
                }
                if let (Some(after), Kind::Claim(_)) = (after, write.kind) {
                    self.check_lost(after)?;
                }
                Ok(())
            }
            Action::Create { object, .. } => self.check_made(object, world, late, calm, now),
            Action::Delete { .. } => {
                before.map_or(Ok(()), |before| self.check_destroyed(before, world, late))
            }
            _ => Ok(()),
        }
    }

    fn check_bound(
        &mut self,
        uid: &str,
        resource: &Object,
        world: &World,
        late: bool,
        calm: bool,
        now: Time,
    ) -> Result<(), String> {
        let name = resource.metadata.name.clone().unwrap_or_default();
        if late {
            self.late_references.insert((name.clone(), uid.to_owned()));
        }
        for other in resources(world).filter(|o| o.metadata.name.as_deref() != Some(&name)) {
            let known = (other.metadata.name.clone().unwrap_or_default(), uid.to_owned());
            let is_excused = late || self.late_references.contains(&known) || self.late_claims.contains(uid);
            if holders(other).contains(uid) && !is_excused {
                return Err(format!("I1: claim {uid} is bound to {name} while {} holds it", known.0));
            }
        }
        let slots = resource.body["spec"]["sharing"]["maxClaims"].as_u64().unwrap_or(1);
        if holders(resource).len() as u64 > slots {
            return Err(format!("I1: {name} has {slots} slots and is bound to {:?}", holders(resource)));
        }
        let Some(claim) = find_claim(world, uid) else { return Ok(()) };
        let is_another = |lost: &String| resource.metadata.uid.as_ref() != Some(lost);
        if self.lost.get(uid).is_some_and(is_another) && !late {
            return Err(format!("claim {uid} is Lost and is bound to {name}"));
        }
        let restored = !claim.body["status"]["resourceRef"].is_null();
        if restored {
            return Ok(());
        }
        // The write requires the revision that the decision saw, so its state counts.
        let filled = references(resource).iter().any(|r| r["uid"] == uid && r["reserved"] == true);
        let its_own = made_for(resource).as_deref() == Some(uid);
        if !late && !filled && !its_own && resource.body["spec"]["unschedulable"] == true {
            return Err(format!("cordoned {name} is bound to claim {uid}"));
        }
        if !late && !filled && !its_own {
            self.check_requests(uid, resource)?;
        }
        // A resource that its only claim names may be smaller than requested, and so may one provisioned for its only claim,
        // if it shrank since.
        if slots > 1 && !(its_own && references(resource).len() == 1) {
            check_capacity(uid, resource)?;
        }
        if calm && !self.late { check_quota(uid, world, now) } else { Ok(()) }
    }

    fn check_requests(&self, uid: &str, resource: &Object) -> Result<(), String> {
        let (db, asks) = (Db::read(resource), self.asks.get(uid).map_or(&[][..], Vec::as_slice));
        let lacks: Vec<&str> = asks.iter().filter_map(|ask| db.lacks(ask)).collect();
        if asks.is_empty() || lacks.len() < asks.len() {
            return Ok(());
        }
        Err(format!("{} is bound to claim {uid}, which requests another {}", db.name, lacks[lacks.len() - 1]))
    }

    fn check_lost(&mut self, claim: &Object) -> Result<(), String> {
        let (uid, status) = (uid_of(claim), &claim.body["status"]);
        let recorded = status["resourceRef"]["uid"].as_str().unwrap_or_default().to_owned();
        if status["phase"] == "Lost" {
            self.lost.insert(uid, recorded);
            return Ok(());
        }
        match self.lost.get(&uid) {
            Some(lost) if *lost != recorded || lost.is_empty() => {
                Err(format!("Lost must end with the same resource: {uid} is {status}"))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn check_made(
        &mut self,
        object: &Object,
        world: &World,
        late: bool,
        calm: bool,
        now: Time,
    ) -> Result<(), String> {
        let Some(uid) = made_for(object) else {
            return Err("a resource is provisioned for no claim".to_owned());
        };
        if late {
            let name = object.metadata.name.clone().unwrap_or_default();
            self.late_references.insert((name, uid.clone()));
        }
        let alive = resources(world).filter(|o| made_for(o).as_ref() == Some(&uid)).count();
        if alive > 1 {
            return Err(format!("I2: {alive} resources are provisioned for {uid}"));
        }
        if self.made.insert(uid.clone(), false) == Some(false) {
            return Err(format!(
                "I2: a second resource is provisioned for {uid}, although no user deleted the first"
            ));
        }
        if calm && !self.late && find_claim(world, &uid).is_some() {
            check_quota(&uid, world, now)
        } else {
            Ok(())
        }
    }

    fn check_destroyed(&self, resource: &Object, world: &World, late: bool) -> Result<(), String> {
        let name = resource.metadata.name.as_deref().unwrap_or("");
        let policy = resource.body["spec"]["reclaimPolicy"].as_str().unwrap_or("Retain");
        if policy != "Delete" && !was_never_made(resource) {
            return Err(format!("I4: {name} is deleted, and its policy is {policy}"));
        }
        if holders(resource).is_empty() {
            return Err(format!("I3: {name} is deleted, and no claim ever held it"));
        }
        for uid in holders(resource) {
            let alive = find_claim(world, &uid).is_some_and(|c| c.metadata.deletion_timestamp.is_none());
            let elsewhere =
                resources(world).any(|o| uid_of(o) != uid_of(resource) && holders(o).contains(&uid));
            if alive && !elsewhere && !late {
                return Err(format!("I3: {name} is deleted under claim {uid}"));
            }
        }
        Ok(())
    }
}

/// Whether provisioning failed before anything was created, so that there is nothing to retain.
fn was_never_made(resource: &Object) -> bool {
    let status = &resource.body["status"];
    let ready = status["conditions"].as_array().into_iter().flatten().find(|c| c["type"] == "Ready");
    let reason = ready.and_then(|ready| ready["reason"].as_str()).unwrap_or_default();
    made_for(resource).is_some()
        && status["implementationRef"].is_null()
        && ["Creating", "Pending"].iter().any(|phase| status["phase"] == *phase)
        && reasons::provisioning_obstacle(reason).is_some()
}

fn check_capacity(uid: &str, resource: &Object) -> Result<(), String> {
    let capacity = amounts(&resource.body["spec"]["capacity"]);
    let mut taken = Amounts::new();
    let mut own = Amounts::new();
    for reference in references(resource) {
        for (name, amount) in amounts(&reference["requests"]) {
            let sum = taken.get(&name).copied().unwrap_or_default().saturating_add(amount);
            taken.insert(name.clone(), sum);
            if reference["uid"] == uid {
                own.insert(name, amount);
            }
        }
    }
    for name in own.keys() {
        // The size is unknown if the class declares none; the resource is then its claim's alone.
        if made_for(resource).as_deref() == Some(uid) && !capacity.contains_key(name) {
            continue;
        }
        let (have, sum) = (capacity.get(name).copied().unwrap_or_default(), taken[name]);
        if sum > have && own[name] > Quantity::default() {
            return Err(format!("I1: {sum} of {name} is used of {have}: {}", resource.body));
        }
    }
    Ok(())
}

/// Checks that no quota that counts this claim is exceeded.
fn check_quota(uid: &str, world: &World, now: Time) -> Result<(), String> {
    let mut oracle = Oracle::read(world.objects(), now.0);
    oracle.charge_holders();
    let Some(charge): Option<Charge> = oracle.charges.remove(uid) else { return Ok(()) };
    match oracle.exceeds_quota(&charge) {
        None => Ok(()),
        Some(over) => Err(format!("I6: claim {uid} is bound {over}")),
    }
}
