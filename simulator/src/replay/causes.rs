//! Changes that may have been in flight when the live engine decided, and whether one explains its decision. It must
//! concern the claim, the chosen or rejected resource, or a competing claim; a busy cluster alone explains nothing. The
//! rules must explain the rest.

use super::cluster::{self, ReplayCluster};
use super::preference::{Evidence, PreferenceCheck};
use super::verify::{elapsed, rule_against};
use crate::record::{RecordedObjects, Verdict, into_object, made_for, refusal};
use conductor::api::names::DEFAULT_PROFILE;
use conductor::api::reasons::bound;
use conductor::model::{Claim, ClassWant, Kind, Lookup, Name, ObjectKey, Resource, TypeId, Uid};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Changes this close may have reached the live engine in another order.
pub(super) const RACE_MS: u64 = 2_000;
/// A busy live engine decides at most this long before its write lands.
pub(super) const SLOW_MS: u64 = 10_000;

/// A change by a user, an administrator or an implementation.
pub(super) struct UserChange {
    pub at: u64,
    pub kind: Kind,
    pub key: ObjectKey,
    pub uid: String,
    /// Whether it created the object.
    pub is_new: bool,
    /// Whether it deleted the object or requested that.
    pub is_deletion: bool,
    /// The resource that a claim leaves by it.
    pub leaves: Option<String>,
}

/// Recent changes, and claims that the live engine has not decided since.
#[derive(Default)]
pub(super) struct InFlight {
    recent: VecDeque<UserChange>,
    undecided: BTreeMap<String, u64>,
    /// Recent bindings of the live engine: time, claim's UID, resource.
    bound: VecDeque<(u64, String, String)>,
}

impl InFlight {
    pub fn changed(&mut self, change: UserChange) {
        while self.recent.front().is_some_and(|known| known.at + SLOW_MS + RACE_MS < change.at) {
            self.recent.pop_front();
        }
        if let Kind::Claim(_) = change.kind {
            match change.is_deletion {
                true => drop(self.undecided.remove(&change.uid)),
                false => drop(self.undecided.insert(change.uid.clone(), change.at)),
            }
        }
        self.recent.push_back(change);
    }

    /// Notes a decision of the live engine.
    pub fn decided(&mut self, at: u64, uid: &str, verdict: &Verdict) {
        self.undecided.remove(uid);
        if let Verdict::Bind { resource } = verdict {
            while self.bound.front().is_some_and(|(then, ..)| then + SLOW_MS + RACE_MS < at) {
                self.bound.pop_front();
            }
            self.bound.push_back((at, uid.to_owned(), resource.clone()));
        }
    }

    /// UIDs of the claims that the live engine bound to a resource since a time, in order.
    pub fn bound_to(&self, resource: &str, since: u64) -> impl Iterator<Item = &str> {
        let lately = self.bound.iter().filter(move |(at, _, to)| *at >= since && to == resource);
        lately.map(|(_, uid, _)| uid.as_str())
    }

    /// The time since which changes count for a decision: an engine that decides late has seen less.
    pub fn since(&self, uid: &str, at: u64) -> u64 {
        let waited_from = self.undecided.get(uid).copied().unwrap_or(at);
        waited_from.clamp(at.saturating_sub(SLOW_MS), at).saturating_sub(RACE_MS)
    }
}

/// How the recording contradicts one of its own decisions, which must match the write that it was derived from.
pub(super) fn contradiction(
    truth: &RecordedObjects,
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
            (!is_named).then(|| format!("claimRefs of {name} do not name the claim at that time"))
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
            let is_stated = says_so && is_lost == matches!(verdict, Verdict::Lost { .. });
            (!is_stated).then(|| format!("the claim's condition does not have reason {reason} at that time"))
        }
    }
}

/// One decision and everything that could explain it.
pub(super) struct Case<'a> {
    pub flight: &'a InFlight,
    pub cluster: &'a ReplayCluster,
    pub truth: &'a RecordedObjects,
    pub created: &'a Lookup<Uid, u64>,
    pub claim: &'a Claim,
    pub at: u64,
    pub began: i64,
}

impl Case<'_> {
    /// The change that explains why the live engine decided differently; `None` if none does.
    pub fn race(&self, live: Option<&Verdict>, simulated: Option<&Verdict>) -> Option<String> {
        use Verdict::{Bind, Lost, Provision, Refuse};
        // No profile makes a resource Lost.
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

    /// Explains why the live engine chose this resource.
    fn choice(&self, chosen: &str, simulated: Option<&Verdict>) -> Option<String> {
        let refused = rule_against(self.cluster, &self.claim.meta.uid, chosen);
        match refused.as_ref().map(|(rule, _)| rule.as_str()) {
            // Another claim took it, or is taking it: the order matters.
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
                    changed.or_else(|| self.preference(chosen, resource)?.explain(self.evidence()))
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

    /// Prepares the question which of two resources the rules prefer for the claim.
    pub fn preference(&self, chosen: &str, given: &str) -> Option<PreferenceCheck> {
        let since = self.flight.since(&self.claim.meta.uid, self.at);
        PreferenceCheck::new(self.evidence(), self.claim, chosen, given, since)
    }

    pub fn evidence(&self) -> Evidence<'_> {
        Evidence { cluster: self.cluster, truth: self.truth, flight: self.flight }
    }

    /// Explains why the live engine may not have offered a resource that the replay's engine bound.
    fn passed_over(&self, resource: &str) -> Option<String> {
        self.change_of_resource(resource).or_else(|| self.taken_by_another(resource))
    }

    fn recent(&self) -> impl Iterator<Item = &UserChange> {
        let from = self.flight.since(&self.claim.meta.uid, self.at);
        self.flight.recent.iter().rev().filter(move |change| (from..=self.at).contains(&change.at))
    }

    fn ty(&self) -> TypeId {
        self.claim.ty
    }

    fn message(&self, change: &UserChange) -> String {
        let before = self.at.saturating_sub(change.at);
        format!("{} {} changed {before} ms before", change.kind.name(), change.key)
    }

    fn find(&self, concerns: impl Fn(&UserChange) -> bool) -> Option<String> {
        self.recent().find(|change| concerns(change)).map(|change| self.message(change))
    }

    /// The claim was edited, or something that affects how it is read. Not its creation, which the live engine knew.
    fn change_of_claim(&self, is_scheduled: bool) -> Option<String> {
        let key = &self.claim.meta.key;
        let is_its_class = |name: &Name| match self.claim.wants.as_ref().map(|wants| &wants.class) {
            Ok(ClassWant::Named(names)) => names.contains(name),
            Ok(ClassWant::Classless) | Err(_) => false,
            Ok(ClassWant::Absent | ClassWant::Any) => true,
        };
        self.find(|change| match change.kind {
            Kind::Claim(ty) => ty == self.ty() && change.key == *key && !change.is_new,
            Kind::Class(ty) => ty == self.ty() && is_its_class(&change.key.name),
            Kind::Limits => change.key.namespace == key.namespace,
            // Other profiles do not matter.
            Kind::Profile => {
                is_scheduled && *change.key.name == *self.claim.profile.as_deref().unwrap_or(DEFAULT_PROFILE)
            }
            Kind::Namespace => change.key.name == key.namespace,
            Kind::Resource(_) | Kind::Quota | Kind::ClusterQuota => false,
        })
    }

    fn change_of_class(&self, class: &str) -> Option<String> {
        self.find(|change| change.kind == Kind::Class(self.ty()) && *change.key.name == *class)
    }

    /// The resource was created, edited or deleted.
    fn edit_of_resource(&self, name: &str) -> Option<String> {
        self.find(|change| change.kind == Kind::Resource(self.ty()) && *change.key.name == *name)
    }

    /// As [`Case::edit_of_resource`], or a claim left it.
    fn change_of_resource(&self, name: &str) -> Option<String> {
        let frees = |change: &UserChange| {
            change.kind == Kind::Claim(self.ty())
                && change.uid != *self.claim.meta.uid
                && change.leaves.as_deref() == Some(name)
        };
        self.edit_of_resource(name).or_else(|| self.find(frees))
    }

    /// The resource changed between the decisions of the two engines.
    fn change_since_decided(&self, name: &str) -> Option<String> {
        let decided = self.cluster.decided.get(&self.claim.meta.uid).and_then(|d| d.last());
        let since = decided.map_or(u64::MAX, |(_, at)| elapsed(*at, self.began));
        self.find(|change| {
            change.kind == Kind::Resource(self.ty()) && *change.key.name == *name && change.at > since
        })
    }

    /// The resource named in the claim's spec changed.
    fn change_of_named(&self) -> Option<String> {
        self.claim.resource_name.as_ref().and_then(|name| self.change_of_resource(name))
    }

    fn quota_behind(&self, reasons: &[&String]) -> Option<String> {
        let is_quota = |reason: &&String| reason.as_str() == bound::QUOTA_EXCEEDED;
        reasons.iter().any(is_quota).then(|| self.change_of_quota()).flatten()
    }

    /// A quota of the claim changed, or another claim under it was created or deleted.
    fn change_of_quota(&self) -> Option<String> {
        let namespace = &self.claim.meta.key.namespace;
        let quotas = self.cluster.engine.state().quota_usage.keys_for(namespace);
        let reaches_all = quotas.iter().any(|quota| quota.namespace.is_empty());
        self.find(|change| match change.kind {
            Kind::Quota => change.key.namespace == *namespace,
            Kind::ClusterQuota => true,
            Kind::Claim(_) => {
                let is_counted = reaches_all || change.key.namespace == *namespace;
                change.uid != *self.claim.meta.uid && !quotas.is_empty() && is_counted
            }
            Kind::Resource(_) | Kind::Class(_) | Kind::Limits | Kind::Profile | Kind::Namespace => false,
        })
    }

    fn recorded(&self, name: &str) -> Option<Resource> {
        let (kind, key) = (Kind::Resource(self.ty()), self.cluster.resource_key(name));
        let object = into_object(kind, self.truth.get(kind, &key)?).ok()?;
        Some(Resource::read(self.ty(), &object))
    }

    /// Whether the recording binds more claims to a resource than it has slots.
    fn is_overfull(&self, name: &str) -> bool {
        let is_over = |resource: Resource| {
            resource.offer.as_ref().is_ok_and(|offer| resource.holders().count() > offer.max_claims as usize)
        };
        self.edit_of_resource(name).is_none() && self.recorded(name).is_some_and(is_over)
    }

    /// A claim that has the resource in the replay but not in the recording, and that the live engine was just deciding.
    fn competitor(&self, name: &str) -> Option<String> {
        let (kind, key) = (Kind::Resource(self.ty()), self.cluster.resource_key(name));
        let here = self.cluster.world.get(kind, &key).map(cluster::holders).unwrap_or_default();
        let there: BTreeSet<String> =
            self.truth.get(kind, &key).iter().flat_map(super::uids).map(str::to_owned).collect();
        let from = self.flight.since(&self.claim.meta.uid, self.at);
        let is_near = |at: u64| (from..=self.at).contains(&at);
        let is_undecided =
            |uid: &str| self.flight.undecided.get(uid).is_some_and(|created| *created <= self.at);
        let was_decided = |uid: &str| {
            let decided = self.cluster.decided.get(uid).and_then(|d| d.last());
            decided.is_some_and(|(_, at)| is_near(elapsed(*at, self.began)))
        };
        let is_changed = |uid: &str| self.recent().any(|change| change.uid == uid);
        let found = here
            .difference(&there)
            .filter(|uid| **uid != *self.claim.meta.uid)
            .find(|uid| is_undecided(uid) || was_decided(uid) || is_changed(uid))?;
        let claim = self.cluster.engine.state().claim(&Uid::from(found.as_str()));
        let who = claim.map_or_else(|| found.clone(), |claim| claim.meta.key.to_string());
        Some(format!("{who} competed for {name}"))
    }

    /// Another claim took the resource in the recording at about that time.
    fn taken_by_another(&self, name: &str) -> Option<String> {
        let (kind, key) = (Kind::Resource(self.ty()), self.cluster.resource_key(name));
        let here = self.cluster.world.get(kind, &key).map(cluster::holders).unwrap_or_default();
        let mut lately = self.flight.bound.iter().rev();
        let taker = lately.find(|(then, uid, resource)| {
            let is_near = then + SLOW_MS >= self.at;
            is_near && resource == name && **uid != *self.claim.meta.uid && !here.contains(uid)
        });
        taker.and_then(|(_, uid, _)| self.taken_by(name, uid))
    }

    /// Whether the taker explains the decision: the resource is full, or only claims of the same moment hold it, which the
    /// live engine may have decided together.
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

    /// The resource was provisioned for a claim created at the same time: which of the two got it depends on their order.
    fn made_for_neighbour(&self, name: &str) -> Option<String> {
        let key = self.cluster.resource_key(name);
        let recorded = self.truth.get(Kind::Resource(self.ty()), &key)?;
        let (mine, other) =
            (self.created.get(&self.claim.meta.uid)?, self.created.get(made_for(&recorded)?)?);
        (mine.abs_diff(*other) <= RACE_MS)
            .then(|| format!("{name} was provisioned for a claim created at the same time"))
    }
}
