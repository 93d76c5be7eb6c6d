//! The outcome of each claim, read from the engine, and the scheduler's explanation of it.
//! Claims with equal requests share one explanation: a hundred thousand that wait alike are explained once.

use super::Options;
use super::affected::Outline;
use super::document::{
    ExplainedClaim, ExplainedLack, ExplainedMiss, Outcome, PlannedChange, PlannedClaim, PlannedReason,
    PlannedResource, ResourceRef,
};
use super::identity::claim_refs;
use super::plan_engine::PlanEngine;
use conductor::cache::State;
use conductor::engine::{Binding, Engine};
use conductor::lifecycle::bound_message;
use conductor::model::{Claim, Kind, Name, Object, ObjectKey, TypeId, Uid, Wants};
use conductor::predicates::{Considered, Reason, Refusal};
use conductor::scheduler::{NearMiss, Nearest, drift, explain, prepare};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A claim of the input.
#[derive(Clone)]
pub(super) struct Subject {
    ty: TypeId,
    pub key: ObjectKey,
    uid: Uid,
    /// The resource that holds it, if the claim is being deleted.
    leaves: Option<Name>,
    /// Whether its spec names a resource, requested or bound.
    pub names_resource: bool,
    /// Whether its status names a resource.
    pub is_bound: bool,
    /// Its row in the base plan, if no decision about other claims can change it.
    pub row: Option<usize>,
}

/// All claims, sorted by namespace, name and kind.
pub(super) fn subjects(objects: &[Object]) -> Vec<Subject> {
    let mut subjects: Vec<Subject> = objects.iter().filter_map(Subject::read).collect();
    let holders = holders_of_leaving(objects);
    for subject in &mut subjects {
        subject.leaves = holders.get(&*subject.uid).map(|name| Name::from(*name));
    }
    sort(&mut subjects);
    subjects
}

/// Sorts by namespace, name and kind.
pub(super) fn sort(subjects: &mut [Subject]) {
    subjects.sort_by(|a, b| (&a.key, a.kind()).cmp(&(&b.key, b.kind())));
}

/// The resource that holds each claim that is being deleted, by the claim's UID.
fn holders_of_leaving(objects: &[Object]) -> BTreeMap<&str, &str> {
    let leaving = objects.iter().filter(|o| matches!(o.kind, Kind::Claim(_)));
    let leaving = leaving.filter(|o| o.metadata.deletion_timestamp.is_some());
    let leaving: BTreeSet<&str> = leaving.filter_map(|o| o.metadata.uid.as_deref()).collect();
    let mut holders = BTreeMap::new();
    for resource in objects.iter().filter(|o| !leaving.is_empty() && matches!(o.kind, Kind::Resource(_))) {
        for uid in claim_refs(resource).filter_map(|r| r.get("uid")?.as_str()) {
            if let (true, Some(name)) = (leaving.contains(uid), resource.metadata.name.as_deref()) {
                holders.insert(uid, name);
            }
        }
    }
    holders
}

impl Subject {
    /// Returns `None` for other kinds.
    pub fn new(outline: &Outline, leaves: Option<Name>) -> Option<Subject> {
        let Kind::Claim(ty) = outline.kind else { return None };
        let (names_resource, is_bound) = (outline.names_resource, outline.recorded.is_some());
        let (key, uid) = (outline.key.clone(), outline.uid.clone());
        Some(Subject { ty, key, uid, leaves, names_resource, is_bound, row: None })
    }

    /// From the engine's view of a claim that is not being deleted.
    pub fn of(claim: &Claim) -> Subject {
        Subject {
            ty: claim.ty,
            key: claim.meta.key.clone(),
            uid: claim.meta.uid.clone(),
            leaves: None,
            names_resource: claim.resource_name.is_some(),
            is_bound: claim.status.resource.is_some(),
            row: None,
        }
    }

    fn read(object: &Object) -> Option<Subject> {
        let Kind::Claim(_) = object.kind else { return None };
        Subject::new(&Outline::read(object), None)
    }

    /// Compares its address with a key, in the order of the plan.
    pub fn cmp_place(&self, kind: Kind, key: &ObjectKey) -> Ordering {
        (&self.key, self.kind()).cmp(&(key, kind.name()))
    }

    pub fn kind(&self) -> &'static str {
        self.ty.rules().claim
    }

    /// The same claim, to be explained again.
    pub fn without_row(&self) -> Subject {
        Subject { row: None, ..self.clone() }
    }

    /// Whether an engine that has decided nothing already knows its binding.
    pub fn is_decided(&self, engine: &Engine) -> bool {
        engine.binding(&self.uid).is_some()
    }

    /// The engine's current view; `None` if the claim was deleted.
    pub fn claim<'a>(&self, state: &'a State) -> Option<&'a Claim> {
        state.claim(&self.uid).map(|claim| &**claim)
    }

    pub fn is_at(&self, (namespace, name): (&str, &str)) -> bool {
        (&*self.key.namespace, &*self.key.name) == (namespace, name)
    }
}

/// What claims with the same explanation have in common. The key stands for a claim with a reservation of its own.
type Likeness = (TypeId, Name, Arc<Wants>, Option<Name>, Option<Name>, Option<ObjectKey>);

/// Why a claim waits.
#[derive(Clone)]
struct Why {
    message: Arc<str>,
    reasons: Arc<[PlannedReason]>,
    class_reasons: Arc<[PlannedReason]>,
    nearest: Arc<[PlannedChange]>,
    near_misses: Arc<[ExplainedMiss]>,
}

/// Reads outcomes from an idle engine.
pub(super) struct Explainer<'a> {
    engine: &'a Engine,
    plan_engine: &'a PlanEngine,
    options: &'a Options,
    /// Planned rows of the resources, for claims that are being deleted.
    resources: &'a [PlannedResource],
    known: BTreeMap<Likeness, Why>,
}

impl<'a> Explainer<'a> {
    pub fn new(plan_engine: &'a PlanEngine, options: &'a Options, resources: &'a [PlannedResource]) -> Self {
        Explainer { engine: &plan_engine.engine, plan_engine, options, resources, known: BTreeMap::new() }
    }

    pub fn plan(&mut self, subject: &Subject) -> PlannedClaim {
        self.explain(subject).claim
    }

    pub fn explain(&mut self, subject: &Subject) -> ExplainedClaim {
        let state = self.engine.state();
        let claim = state.claim(&subject.uid);
        let blank = PlannedClaim {
            kind: subject.ty.rules().claim,
            namespace: subject.key.namespace.clone(),
            name: subject.key.name.clone(),
            outcome: Outcome::Pending,
            resource: None,
            class: None,
            message: Arc::default(),
            reasons: Arc::default(),
            class_reasons: Arc::default(),
            nearest: Arc::default(),
            kept: false,
            leaving: false,
        };
        let (Some(claim), Some(binding)) = (claim, self.engine.binding(&subject.uid)) else {
            return alone(self.being_deleted(subject, blank));
        };
        match binding {
            Binding::Leaving => alone(self.being_deleted(subject, blank)),
            Binding::Lost { message: engine_message, .. } => {
                let message = self.lost_but_held(claim);
                let message = Arc::from(message.as_deref().unwrap_or(engine_message.as_str()));
                alone(PlannedClaim { outcome: Outcome::Lost, message, ..blank })
            }
            // It shares a resource that is still being provisioned, and binds when that is ready.
            Binding::Assumed { resource, class: Some(class), .. }
                if self.is_provisioning(claim, resource) =>
            {
                alone(self.provisioned(claim, class, resource, blank))
            }
            Binding::Bound { resource } | Binding::Assumed { resource, .. } => {
                alone(self.bound(subject, claim, resource, blank))
            }
            Binding::Unmanaged { namespace, resource } => {
                let message = format!(
                    "bound to {resource} in namespace {namespace}, which is not the system namespace ({}): not checked",
                    self.options.system_namespace
                );
                let place = ResourceRef { namespace: namespace.clone(), name: resource.clone() };
                let (outcome, resource) = (Outcome::Bound, Some(place));
                alone(PlannedClaim { outcome, resource, message: Arc::from(message), ..blank })
            }
            Binding::Provisioning { class, resource } => {
                alone(self.provisioned(claim, class, resource, blank))
            }
            Binding::Waiting(refused) => {
                let refusal = refused.as_ref().map(|r| &*r.refusal);
                let Why { message, reasons, class_reasons, nearest, near_misses } = self.why(claim, refusal);
                let claim = PlannedClaim { message, reasons, class_reasons, nearest, ..blank };
                ExplainedClaim { claim, near_misses }
            }
        }
    }

    /// A claim that is being deleted gets nothing; the message says what happens to the resource that it held.
    fn being_deleted(&self, subject: &Subject, blank: PlannedClaim) -> PlannedClaim {
        // All in one namespace, so sorted by name.
        let at = |name: &Name| self.resources.binary_search_by(|r| r.name.cmp(name)).ok();
        let row = |name: &Name| at(name).map(|at| &self.resources[at]);
        let message = match subject.leaves.as_ref().map(|name| (name, row(name).and_then(|r| r.reclaim))) {
            None => "being deleted".to_owned(),
            Some((name, Some("Delete"))) => format!("being deleted; {name} is deleted with it"),
            Some((name, Some(_))) => format!("being deleted; {name} is released and retained"),
            Some((name, None)) => format!("being deleted; leaves {name}"),
        };
        PlannedClaim { message: Arc::from(message), leaving: true, ..blank }
    }

    fn bound(&self, subject: &Subject, claim: &Claim, resource: &Name, blank: PlannedClaim) -> PlannedClaim {
        let state = self.engine.state();
        let uid = &claim.meta.uid;
        let class = state.quota_usage.find_charge(uid).and_then(|charge| charge.class.clone());
        let entry = state.find_resource(claim.ty, resource).and_then(|id| state.resource(id));
        let is_held = || entry.is_some_and(|e| e.resource.holders().any(|r| r.uid.as_ref() == Some(uid)));
        // In an affected resource the plan may have written the reference itself: ask the input.
        let was_held = || self.plan_engine.held_before(Kind::Resource(claim.ty), resource, uid);
        let kept = subject.is_bound || was_held().unwrap_or_else(is_held);
        let drift = entry.and_then(|entry| drift(state, claim, entry));
        let message = match kept {
            true => bound_message(resource, drift.as_deref()),
            false => format!("would be bound to {resource}"),
        };
        let resource = Some(self.place(resource));
        PlannedClaim { outcome: Outcome::Bound, resource, class, message: Arc::from(message), kept, ..blank }
    }

    /// The message for a lost claim whose resource exists and still holds it: the engine's own message is about a missing
    /// resource. `None` if there is no such resource.
    fn lost_but_held(&self, claim: &Claim) -> Option<String> {
        let (state, uid) = (self.engine.state(), &claim.meta.uid);
        let recorded = claim.status.resource.as_ref().or(claim.resource_name.as_ref());
        let holders = state.holders_of(uid).filter_map(|id| state.resource(id));
        let staying = holders.filter(|entry| !entry.departed.contains_key(uid));
        let names = staying.map(|entry| &entry.resource.meta.key.name);
        let name = names.filter(|name| recorded.is_none_or(|recorded| recorded == *name)).min()?;
        Some(format!(
            "lost: resource {name} references the claim, but the claim does not record the UID of {name} as its own. \
             Deleting the claim releases {name} to its reclaim policy"
        ))
    }

    fn is_provisioning(&self, claim: &Claim, resource: &Name) -> bool {
        let state = self.engine.state();
        let entry = state.find_resource(claim.ty, resource).and_then(|id| state.resource(id));
        entry.is_some_and(|entry| state.is_being_made(&entry.resource))
    }

    fn provisioned(&self, claim: &Claim, class: &Name, resource: &Name, blank: PlannedClaim) -> PlannedClaim {
        let message = match self.engine.state().find_resource(claim.ty, resource) {
            Some(_) => format!("resource {resource} is being provisioned from class {class}"),
            None => format!("a resource would be provisioned from class {class}"),
        };
        let (outcome, class) = (Outcome::Provision, Some(class.clone()));
        PlannedClaim { outcome, class, message: Arc::from(message), ..blank }
    }

    fn place(&self, resource: &Name) -> ResourceRef {
        ResourceRef { namespace: self.options.system_namespace.clone(), name: resource.clone() }
    }

    /// Why a claim waits at the end of the plan; the refusal at its turn may be out of date.
    fn why(&mut self, claim: &Claim, refused: Option<&Refusal>) -> Why {
        let state = self.engine.state();
        let request = match prepare(state, claim) {
            Ok(request) => request,
            Err(refused) => return self.why_of(&refused.0, &[], &[]),
        };
        let likeness = likeness(state, claim, request.wants.clone());
        if let Some(why) = self.known.get(&likeness) {
            return why.clone();
        }
        let why = match explain(state, &request) {
            Some(e) => self.why_of(&e.refusal, &e.nearest, &e.near_misses),
            None => {
                let undecided = Refusal { message: "not decided".to_owned(), reasons: Vec::new() };
                self.why_of(refused.unwrap_or(&undecided), &[], &[])
            }
        };
        self.known.insert(likeness, why.clone());
        why
    }

    fn why_of(&self, refusal: &Refusal, nearest: &[Nearest], misses: &[NearMiss]) -> Why {
        let planned = |r: &Reason| PlannedReason {
            predicate: r.predicate.name(),
            count: r.count,
            message: r.message.clone(),
        };
        let (of_classes, others): (Vec<&Reason>, Vec<&Reason>) =
            refusal.reasons.iter().partition(|reason| reason.of == Considered::Classes);
        let nearest =
            nearest.iter().map(|n| PlannedChange { change: n.change.clone(), binds: n.binds.clone() });
        let miss = |miss: &NearMiss| {
            let lacks = miss.lacks.iter().map(|(predicate, message)| ExplainedLack {
                predicate: predicate.name(),
                message: message.clone(),
            });
            ExplainedMiss { resource: self.place(&miss.resource), lacks: lacks.collect() }
        };
        Why {
            message: Arc::from(refusal.message.as_str()),
            reasons: others.into_iter().map(planned).collect(),
            class_reasons: of_classes.into_iter().map(planned).collect(),
            nearest: nearest.collect(),
            near_misses: misses.iter().map(miss).collect(),
        }
    }
}

fn alone(claim: PlannedClaim) -> ExplainedClaim {
    ExplainedClaim { claim, near_misses: Arc::default() }
}

fn likeness(state: &State, claim: &Claim, wants: Arc<Wants>) -> Likeness {
    let key = &claim.meta.key;
    let kept = state.reserved_for(claim.ty, key).next().is_some();
    let alone = kept.then(|| key.clone());
    let (profile, named) = (claim.profile.clone(), claim.resource_name.clone());
    (claim.ty, key.namespace.clone(), wants, profile, named, alone)
}
