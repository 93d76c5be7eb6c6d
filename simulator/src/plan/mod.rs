//! Plans: what the production engine would do with a set of objects, without a cluster.
//! The engine decides and the scheduler explains; this module runs them and collects the results.
//!
//! ```text
//! objects -> identity (UIDs, order) -> plan_engine (engine, until it is idle) -> claims, resources -> document
//! ```
//!
//! A [`BasePlan`] replans a state quickly when a few objects change. Not here: reading files (`load`), tables (the

mod affected;
mod check;
mod claims;
mod digest;
mod document;
mod final_plan;
mod identity;
mod incremental;
mod plan_engine;
mod queue_order;
mod resources;

pub(crate) use identity::NOT_YET_MS;

pub use check::{Fault, Findings, check, unlabelled, unreadable};
pub use document::{
    API_VERSION, ExplainedClaim, ExplainedLack, ExplainedMiss, Explanation, Holder, Outcome, Plan,
    PlannedChange, PlannedClaim, PlannedReason, PlannedResource, ResourceRef, Summary,
};
pub use incremental::{BasePlan, ObjectChange};

use claims::{Explainer, Subject};
use conductor::engine::Config;
use conductor::model::{Name, Object, ObjectKey};
use conductor::scheduler::{lacks, prepare};
use digest::RowDigests;
use plan_engine::PlanEngine;
use resources::{Holding, Known};
use std::sync::Arc;

/// Settings of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Namespace of resources and classes; the plan ignores those elsewhere.
    pub system_namespace: Name,
    /// Whether a resource with a template and without a phase counts as Available: true for manifests, false for a
    /// cluster's objects, where the controller would have written a phase.
    pub absent_phase_is_available: bool,
}

impl Default for Options {
    fn default() -> Self {
        let system_namespace = Config::default().system_namespace;
        Options { system_namespace, absent_phase_is_available: true }
    }
}

/// Plans every claim and resource among `objects`.
///
/// # Guarantees
/// Existing bindings are honoured. The order of `objects` does not matter.
pub fn plan(objects: Vec<Object>, options: &Options) -> Plan {
    Planned::new(objects, options).plan()
}

fn config(options: &Options) -> Config {
    Config {
        system_namespace: options.system_namespace.clone(),
        absent_phase_is_available: options.absent_phase_is_available,
        // A plan creates no parts, so nothing reads their state.
        makes_parts: false,
        adapters: Arc::default(),
        ..Config::default()
    }
}

/// A claim by kind, namespace and name.
pub type ClaimAddress<'a> = (&'a str, &'a str, &'a str);

/// A plan with the engine behind it, for explanations and comparisons.
pub struct Planned {
    plan_engine: PlanEngine,
    subjects: Vec<Subject>,
    holdings: Vec<Holding>,
    options: Options,
}

impl Planned {
    /// Lets the engine decide about `objects`.
    pub fn new(objects: Vec<Object>, options: &Options) -> Planned {
        let objects = identity::identified(objects).objects;
        let now = identity::latest(objects.iter().filter_map(identity::created));
        let subjects = claims::subjects(&objects);
        let holdings = resources::holdings(&objects, &options.system_namespace);
        let affected = affected::all_affected(&objects);
        let plan_engine = PlanEngine::new(objects, &affected, config(options), 0).run_until_idle(now);
        Planned { plan_engine, subjects, holdings, options: options.clone() }
    }

    /// Returns the plan as a document.
    pub fn plan(&self) -> Plan {
        let mut plan = self.plan_without_digest(None);
        plan.digest = RowDigests::of(&plan).digest(&plan);
        plan
    }

    /// Returns the plan without its digest. Copies the rows of `known`, the base plan, that no change can affect.
    fn plan_without_digest(&self, known: Option<Known<'_>>) -> Plan {
        let resources = self.resources(known);
        let mut explainer = Explainer::new(&self.plan_engine, &self.options, &resources);
        let claims = self.subjects.iter().map(|subject| {
            let row = known.zip(subject.row).and_then(|(known, at)| known.plan.claims.get(at));
            row.cloned().unwrap_or_else(|| explainer.plan(subject))
        });
        let claims = claims.collect();
        Plan::without_digest(claims, resources)
    }

    /// Explains the claim at `namespace/name`, or every pending claim if `claim` is `None`. Returns no claims if there
    /// is none.
    pub fn explain(&self, claim: Option<(&str, &str)>) -> Explanation {
        let resources = self.resources(None);
        let mut explainer = Explainer::new(&self.plan_engine, &self.options, &resources);
        let selected = self.subjects.iter().filter(|s| claim.is_none_or(|claim| s.is_at(claim)));
        let explained = selected.map(|subject| explainer.explain(subject));
        let claims = explained.filter(|e| claim.is_some() || e.claim.outcome == Outcome::Pending);
        Explanation { api_version: API_VERSION, kind: "Explanation", claims: claims.collect() }
    }

    /// Keys of all claims, in the order of the plan.
    pub fn claims(&self) -> impl Iterator<Item = &ObjectKey> {
        self.subjects.iter().map(|subject| &subject.key)
    }

    /// Every predicate by which the resource refuses the claim at the end of the plan, with a message: empty if it fits,
    /// `None` if either does not exist or cannot be read. Omits refusals caused only by claims scheduled after this one:
    /// the resource was still free when this claim was decided.
    pub fn lacks(&self, claim: ClaimAddress<'_>, resource: &str) -> Option<Vec<(&'static str, String)>> {
        let state = self.plan_engine.engine.state();
        let subject = self.find(claim)?;
        let request = prepare(state, subject.claim(state)?).ok()?;
        let resource = Name::from(resource);
        let lacks = lacks(state, &request, &resource)?;
        let then = queue_order::ResourceAtTurn::of(
            state,
            &request,
            &resource,
            self.plan_engine.now,
            subject.is_bound,
        )?;
        let lacks = lacks.into_iter().filter(|(predicate, _)| then.lacks(*predicate));
        Some(lacks.map(|(predicate, message)| (predicate.name(), message)).collect())
    }

    /// Whether a claim that was unbound in the input requests a resource by name.
    pub fn names_resource(&self, claim: ClaimAddress<'_>) -> bool {
        self.find(claim).is_some_and(|subject| subject.names_resource && !subject.is_bound)
    }

    fn find(&self, (kind, namespace, name): ClaimAddress<'_>) -> Option<&Subject> {
        let place = |s: &Subject| (&*s.key.namespace, &*s.key.name, s.kind()).cmp(&(namespace, name, kind));
        Some(&self.subjects[self.subjects.binary_search_by(place).ok()?])
    }

    fn resources(&self, known: Option<Known<'_>>) -> Vec<PlannedResource> {
        self.holdings.iter().map(|holding| holding.plan(self.plan_engine.engine.state(), known)).collect()
    }
}
