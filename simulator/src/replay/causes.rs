//! What may have been on its way to the live engine when it decided, and whether it explains one decision. That a cluster
//! is busy explains nothing: the change must concern the claim, the resource that was chosen or passed over, or another
//! claim that competes for it. What no such change explains is left to the rules.

use super::stage::{self, Stage};
use super::trial::{Seen, Trial};
use super::verify::{elapsed, rule_against};
use crate::record::{Recorded, Verdict, into_object, made_for, refusal};
use conductor::api::names::DEFAULT_PROFILE;
use conductor::api::reasons::bound;
use conductor::model::{Claim, ClassWant, Kind, Lookup, Name, ObjectKey, Resource, TypeId, Uid};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Changes as near as this may have reached the live engine in another order.
pub(super) const RACE_MS: u64 = 2_000;
/// A live engine with many writes to make decides this much before its write lands, at most.
pub(super) const SLOW_MS: u64 = 10_000;

/// Something that a user, an administrator or an implementation changed.
pub(super) struct Wish {
    pub at: u64,
    pub kind: Kind,
    pub key: ObjectKey,
    pub uid: String,
    /// Whether the object is new with it.
    pub comes: bool,
    /// Whether its deletion was asked for, or it is gone.
    pub ends: bool,
    /// The resource that a claim lets go with it.
    pub leaves: Option<String>,
}

/// What changed lately, and which claims the live engine has not answered since.
#[derive(Default)]
pub(super) struct InFlight {
    recent: VecDeque<Wish>,
    undecided: BTreeMap<String, u64>,
    /// Bindings of the live engine: when, whose, and to what.
    bound: VecDeque<(u64, String, String)>,
}

impl InFlight {
    pub fn wished(&mut self, wish: Wish) {
        while self.recent.front().is_some_and(|known| known.at + SLOW_MS + RACE_MS < wish.at) {
            self.recent.pop_front();
        }
        if let Kind::Claim(_) = wish.kind {
            match wish.ends {
                true => drop(self.undecided.remove(&wish.uid)),
                false => drop(self.undecided.insert(wish.uid.clone(), wish.at)),
            }
        }
        self.recent.push_back(wish);
    }

    /// The live engine answered a claim.
    pub fn decided(&mut self, at: u64, uid: &str, verdict: &Verdict) {
        self.undecided.remove(uid);
        if let Verdict::Bind { resource } = verdict {
            while self.bound.front().is_some_and(|(then, ..)| then + SLOW_MS + RACE_MS < at) {
                self.bound.pop_front();
            }
            self.bound.push_back((at, uid.to_owned(), resource.clone()));
        }
    }

    /// Whom the live engine bound to a resource since a time, in order.
    pub fn bound_to(&self, resource: &str, since: u64) -> impl Iterator<Item = &str> {
        let lately = self.bound.iter().filter(move |(at, _, to)| *at >= since && to == resource);
        lately.map(|(_, uid, _)| uid.as_str())
    }

    /// Since when changes count for a claim that was answered at a time: a live engine that answers late has seen less.
    pub fn since(&self, uid: &str, at: u64) -> u64 {
        let waited_from = self.undecided.get(uid).copied().unwrap_or(at);
        waited_from.clamp(at.saturating_sub(SLOW_MS), at).saturating_sub(RACE_MS)
    }
}

/// What a recording says against a decision of its own: a decision is read off a write, and the write is there too.
pub(super) fn contradiction(
    truth: &Recorded,
    ty: TypeId,
    claim: &ObjectKey,
    uid: &str,
    system: &Name,
    verdict: &Verdict,
) -> Option<String> {
    let resource = |name: &str| truth.get(Kind::Resource(ty), &ObjectKey::new(system.clone(), name));
    match verdict {
        Verdict::Bind { resource: name } => {
            let is_named = resource(name).is_some_and(|r| super::names(&r, uid));
            (!is_named).then(|| format!("claimRefs of {name} do not name the claim then"))
        }
        Verdict::Provision { class } => {
            let mut made = truth.mentioning(Kind::Resource(ty), uid);
            let is_made = made.any(|(_, r)| {
                made_for(&r) == Some(uid)
                    && r.pointer("/spec/class").and_then(Value::as_str).unwrap_or_default() == class
            });
            (!is_made).then(|| format!("no resource of class {class} was created for the claim by then"))
        }
        Verdict::Refuse { reason } | Verdict::Lost { reason } => {
            let claim = truth.get(Kind::Claim(ty), claim);
            let is_lost =
                claim.as_ref().is_some_and(|c| c.pointer("/status/phase").is_some_and(|p| p == "Lost"));
            let says_so = claim.as_ref().is_some_and(|c| {
                c.pointer("/metadata/uid").is_some_and(|known| known == uid) && refusal(c) == Some(reason)
            });
            let is_said = says_so && is_lost == matches!(verdict, Verdict::Lost { .. });
            (!is_said).then(|| format!("the claim's condition does not say {reason} then"))
        }
    }
}

/// One decision, and everything that could explain it.
pub(super) struct Case<'a> {
    pub flight: &'a InFlight,
    pub stage: &'a Stage,
    pub truth: &'a Recorded,
    pub came: &'a Lookup<Uid, u64>,
    pub claim: &'a Claim,
    pub at: u64,
    pub began: i64,
}

impl Case<'_> {
    /// The change that explains why the live engine decided otherwise; nothing where none does.
    pub fn race(&self, live: Option<&Verdict>, simulated: Option<&Verdict>) -> Option<String> {
        use Verdict::{Bind, Lost, Provision, Refuse};
        // That a resource is lost no profile decides.
        let is_lost = [live, simulated].iter().any(|verdict| matches!(verdict, Some(Lost { .. })));
        let by_claim = self.change_of_claim(!is_lost);
        by_claim.or_else(|| match (live, simulated) {
            (Some(Bind { resource }), simulated) => self.choice(resource, simulated),
            (Some(Provision { class }), Some(Bind { resource })) => {
                self.passed_over(resource).or_else(|| self.change_of_class(class))
            }
            (Some(Provision { class }), Some(Provision { class: other })) => {
                let classes = self.change_of_class(class).or_else(|| self.change_of_class(other));
                classes.or_else(|| self.change_of_quota())
            }
            (Some(Provision { class }), Some(Refuse { reason } | Lost { reason })) => {
                self.change_of_class(class).or_else(|| self.quota_behind(&[reason]))
            }
            (Some(Provision { class }), None) => self.change_of_class(class),
            (Some(Refuse { reason }), Some(Bind { resource })) => {
                self.passed_over(resource).or_else(|| self.quota_behind(&[reason]))
            }
            (Some(Refuse { reason }), Some(Provision { class })) => {
                self.change_of_class(class).or_else(|| self.quota_behind(&[reason]))
            }
            (Some(Refuse { reason }), Some(Refuse { reason: other } | Lost { reason: other })) => {
                self.change_of_named().or_else(|| self.quota_behind(&[reason, other]))
            }
            (None, Some(Bind { resource })) => self.passed_over(resource).or_else(|| self.change_of_quota()),
            (None, Some(Provision { class })) => {
                self.change_of_class(class).or_else(|| self.change_of_quota())
            }
            (Some(Lost { .. }), Some(Bind { resource })) => self.change_of_resource(resource),
            (Some(Lost { .. }), Some(Lost { .. } | Refuse { .. })) => self.change_of_named(),
            (Some(Lost { .. }), Some(Provision { .. }) | None)
            | (Some(Refuse { .. }) | None, None)
            | (None, Some(Refuse { .. } | Lost { .. })) => None,
        })
    }

    /// What explains that the live engine chose this resource.
    fn choice(&self, chosen: &str, simulated: Option<&Verdict>) -> Option<String> {
        let refused = rule_against(self.stage, &self.claim.meta.uid, chosen);
        match refused.as_ref().map(|(rule, _)| rule.as_str()) {
            // What another claim has taken, or is taking, is a matter of which came first.
            Some("Reserved" | "Sharing" | "Capacity" | "Phase") => {
                if self.is_overfull(chosen) {
                    return None;
                }
                self.change_of_resource(chosen).or_else(|| self.competitor(chosen))
            }
            Some("Gone") => self.edit_of_resource(chosen).or_else(|| self.made_for_neighbour(chosen)),
            Some(_) => self.edit_of_resource(chosen),
            None => match simulated {
                Some(Verdict::Bind { resource }) => {
                    let changed = self.passed_over(resource).or_else(|| self.change_since_decided(chosen));
                    changed.or_else(|| self.trial(chosen, resource)?.explain(self.seen()))
                }
                Some(Verdict::Provision { class }) => {
                    self.change_of_resource(chosen).or_else(|| self.change_of_class(class))
                }
                Some(Verdict::Refuse { reason } | Verdict::Lost { reason }) => {
                    self.change_of_resource(chosen).or_else(|| self.quota_behind(&[reason]))
                }
                None => self.change_of_resource(chosen),
            },
        }
    }

    /// What asks the rules which of two resources they prefer for the claim.
    pub fn trial(&self, chosen: &str, given: &str) -> Option<Trial> {
        let since = self.flight.since(&self.claim.meta.uid, self.at);
        Trial::new(self.seen(), self.claim, chosen, given, since)
    }

    pub fn seen(&self) -> Seen<'_> {
        Seen { stage: self.stage, truth: self.truth, flight: self.flight }
    }

    /// Why the live engine may not have had a resource to give that this one gave.
    fn passed_over(&self, resource: &str) -> Option<String> {
        self.change_of_resource(resource).or_else(|| self.taken_by_another(resource))
    }

    fn recent(&self) -> impl Iterator<Item = &Wish> {
        let from = self.flight.since(&self.claim.meta.uid, self.at);
        self.flight.recent.iter().rev().filter(move |wish| (from..=self.at).contains(&wish.at))
    }

    fn ty(&self) -> TypeId {
        self.claim.ty
    }

    fn message(&self, wish: &Wish) -> String {
        let before = self.at.saturating_sub(wish.at);
        format!("{} {} changed {before} ms before", wish.kind.name(), wish.key)
    }

    fn find(&self, concerns: impl Fn(&Wish) -> bool) -> Option<String> {
        self.recent().find(|wish| concerns(wish)).map(|wish| self.message(wish))
    }

    /// The claim was edited, or what says how it is read and decided. Of its coming the live engine knew.
    fn change_of_claim(&self, is_scheduled: bool) -> Option<String> {
        let key = &self.claim.meta.key;
        let is_its_class = |name: &Name| match self.claim.wants.as_ref().map(|wants| &wants.class) {
            Ok(ClassWant::Named(names)) => names.contains(name),
            Ok(ClassWant::Classless) | Err(_) => false,
            Ok(ClassWant::Absent | ClassWant::Any) => true,
        };
        self.find(|wish| match wish.kind {
            Kind::Claim(ty) => ty == self.ty() && wish.key == *key && !wish.comes,
            Kind::Class(ty) => ty == self.ty() && is_its_class(&wish.key.name),
            Kind::Limits => wish.key.namespace == key.namespace,
            // Another profile has no say in it.
            Kind::Profile => {
                is_scheduled && *wish.key.name == *self.claim.profile.as_deref().unwrap_or(DEFAULT_PROFILE)
            }
            Kind::Namespace => wish.key.name == key.namespace,
            Kind::Resource(_) | Kind::Quota | Kind::ClusterQuota => false,
        })
    }

    fn change_of_class(&self, class: &str) -> Option<String> {
        self.find(|wish| wish.kind == Kind::Class(self.ty()) && *wish.key.name == *class)
    }

    /// The resource came, was edited, or went.
    fn edit_of_resource(&self, name: &str) -> Option<String> {
        self.find(|wish| wish.kind == Kind::Resource(self.ty()) && *wish.key.name == *name)
    }

    /// As [`Case::edit_of_resource`], or a claim let it go.
    fn change_of_resource(&self, name: &str) -> Option<String> {
        let frees = |wish: &Wish| {
            wish.kind == Kind::Claim(self.ty())
                && wish.uid != *self.claim.meta.uid
                && wish.leaves.as_deref() == Some(name)
        };
        self.edit_of_resource(name).or_else(|| self.find(frees))
    }

    /// The resource changed after this engine had decided, and before the live one had.
    fn change_since_decided(&self, name: &str) -> Option<String> {
        let decided = self.stage.decided.get(&self.claim.meta.uid).and_then(|d| d.last());
        let since = decided.map_or(u64::MAX, |(_, at)| elapsed(*at, self.began));
        self.find(|wish| wish.kind == Kind::Resource(self.ty()) && *wish.key.name == *name && wish.at > since)
    }

    /// The resource that the claim names changed.
    fn change_of_named(&self) -> Option<String> {
        self.claim.resource_name.as_ref().and_then(|name| self.change_of_resource(name))
    }

    fn quota_behind(&self, reasons: &[&String]) -> Option<String> {
        let is_quota = |reason: &&String| reason.as_str() == bound::QUOTA_EXCEEDED;
        reasons.iter().any(is_quota).then(|| self.change_of_quota()).flatten()
    }

    /// A quota of the claim changed, or another claim that is counted in it came or went.
    fn change_of_quota(&self) -> Option<String> {
        let namespace = &self.claim.meta.key.namespace;
        let quotas = self.stage.engine.state().ledger.keys_for(namespace);
        let reaches_all = quotas.iter().any(|quota| quota.namespace.is_empty());
        self.find(|wish| match wish.kind {
            Kind::Quota => wish.key.namespace == *namespace,
            Kind::ClusterQuota => true,
            Kind::Claim(_) => {
                let is_counted = reaches_all || wish.key.namespace == *namespace;
                wish.uid != *self.claim.meta.uid && !quotas.is_empty() && is_counted
            }
            Kind::Resource(_) | Kind::Class(_) | Kind::Limits | Kind::Profile | Kind::Namespace => false,
        })
    }

    fn recorded(&self, name: &str) -> Option<Resource> {
        let (kind, key) = (Kind::Resource(self.ty()), self.stage.resource_key(name));
        let object = into_object(kind, self.truth.get(kind, &key)?).ok()?;
        Some(Resource::read(self.ty(), &object))
    }

    /// Whether the recording gives a resource to more claims than it has places for.
    fn is_overfull(&self, name: &str) -> bool {
        let is_over = |resource: Resource| {
            resource.offer.as_ref().is_ok_and(|offer| resource.holders().count() > offer.max_claims as usize)
        };
        self.edit_of_resource(name).is_none() && self.recorded(name).is_some_and(is_over)
    }

    /// A claim that has the resource here, does not have it in the recording, and was just being decided about there.
    fn competitor(&self, name: &str) -> Option<String> {
        let (kind, key) = (Kind::Resource(self.ty()), self.stage.resource_key(name));
        let here = self.stage.world.get(kind, &key).map(stage::holders).unwrap_or_default();
        let there: BTreeSet<String> =
            self.truth.get(kind, &key).iter().flat_map(super::uids).map(str::to_owned).collect();
        let from = self.flight.since(&self.claim.meta.uid, self.at);
        let is_near = |at: u64| (from..=self.at).contains(&at);
        let is_undecided = |uid: &str| self.flight.undecided.get(uid).is_some_and(|came| *came <= self.at);
        let was_decided = |uid: &str| {
            let decided = self.stage.decided.get(uid).and_then(|d| d.last());
            decided.is_some_and(|(_, at)| is_near(elapsed(*at, self.began)))
        };
        let is_changed = |uid: &str| self.recent().any(|wish| wish.uid == uid);
        let found = here
            .difference(&there)
            .filter(|uid| **uid != *self.claim.meta.uid)
            .find(|uid| is_undecided(uid) || was_decided(uid) || is_changed(uid))?;
        let claim = self.stage.engine.state().claim(&Uid::from(found.as_str()));
        let who = claim.map_or_else(|| found.clone(), |claim| claim.meta.key.to_string());
        Some(format!("{who} competed for {name}"))
    }

    /// Another claim took the resource in the recording at about that time.
    fn taken_by_another(&self, name: &str) -> Option<String> {
        let (kind, key) = (Kind::Resource(self.ty()), self.stage.resource_key(name));
        let here = self.stage.world.get(kind, &key).map(stage::holders).unwrap_or_default();
        let mut lately = self.flight.bound.iter().rev();
        let taker = lately.find(|(then, uid, resource)| {
            let is_near = then + SLOW_MS >= self.at;
            is_near && resource == name && **uid != *self.claim.meta.uid && !here.contains(uid)
        });
        taker.and_then(|(_, uid, _)| self.taken_by(name, uid))
    }

    /// Whether it explains the decision that this claim took the resource: there is no place left in it, or only claims
    /// of the same moment hold it, which the live engine may have placed together.
    pub fn taken_by(&self, name: &str, taker: &str) -> Option<String> {
        let resource = self.recorded(name)?;
        let holders: Vec<String> =
            resource.holders().filter_map(|r| r.uid.as_ref()).map(|uid| uid.to_string()).collect();
        if !holders.iter().any(|uid| uid == taker) {
            return None;
        }
        let offer = resource.offer.as_ref().ok()?;
        let wanted = self.claim.wants.as_ref().ok()?;
        let with_it = resource.held_capacity().saturating_add(&wanted.requests);
        let is_full = holders.len() >= offer.max_claims as usize
            || wanted.exclusive
            || with_it.iter().any(|(dim, needed)| needed > offer.capacity.get(dim.name()));
        let is_recent =
            |uid: &String| self.flight.bound.iter().any(|(_, whose, to)| whose == uid && to == name);
        (is_full || holders.iter().all(is_recent)).then(|| format!("another claim took {name} at that time"))
    }

    /// The resource was made for a claim that came together with this one: for which of the two is a matter of order.
    fn made_for_neighbour(&self, name: &str) -> Option<String> {
        let key = self.stage.resource_key(name);
        let recorded = self.truth.get(Kind::Resource(self.ty()), &key)?;
        let (mine, other) = (self.came.get(&self.claim.meta.uid)?, self.came.get(made_for(&recorded)?)?);
        (mine.abs_diff(*other) <= RACE_MS)
            .then(|| format!("{name} was created for a claim that came together with it"))
    }
}
