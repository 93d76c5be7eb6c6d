//! Plans: what the production engine would do with these objects, without a cluster.
//! Decisions are the engine's, explanations the scheduler's; here they are only asked for and written down.
//!
//! ```text
//! objects -> identity (UIDs, order) -> stage (engine, until it rests) -> claims, resources -> document
//! ```
//!
//! A [`Base`] is a state that is planned again and again with a few objects changed. Not here: reading files (`load`),
//! tables (the command line), which objects change (what-if), time.

mod base;
mod check;
mod claims;
mod document;
mod identity;
mod moving;
mod resources;
mod rest;
mod seal;
mod stage;
mod turns;

pub(crate) use identity::NOT_YET_MS;

pub use base::{Base, Replaced};
pub use check::{Fault, Findings, check, unlabelled, unreadable};
pub use document::{
    API_VERSION, Explained, ExplainedClaim, ExplainedLack, ExplainedMiss, Holder, Outcome, Place, Plan,
    PlannedChange, PlannedClaim, PlannedReason, PlannedResource, Summary,
};

use claims::{Explainer, Subject};
use conductor::engine::Config;
use conductor::model::{Name, Object, ObjectKey};
use conductor::scheduler::{lacks, prepare};
use resources::{Holding, Known};
use seal::Seals;
use stage::Stage;
use std::sync::Arc;

/// What a plan is made under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Where resources and classes live; those elsewhere do not take part.
    pub system_namespace: Name,
    /// Whether a resource with a template and without a phase counts as Available: true for manifests, false
    /// for what a cluster says, where somebody would have written the phase.
    pub absent_phase_is_available: bool,
}

impl Default for Options {
    fn default() -> Self {
        let system_namespace = Config::default().system_namespace;
        Options { system_namespace, absent_phase_is_available: true }
    }
}

/// Plans: every claim among `objects` with its outcome, every resource with what becomes of it.
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
        // A plan makes no parts: how they are is asked by nobody.
        makes_parts: false,
        adapters: Arc::default(),
        ..Config::default()
    }
}

/// A claim by its kind, namespace and name.
pub type PlaceOfClaim<'a> = (&'a str, &'a str, &'a str);

/// A plan with everything behind it, to be asked further.
pub struct Planned {
    stage: Stage,
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
        let moving = moving::all_moving(&objects);
        let stage = Stage::see(objects, &moving, config(options), 0).settled(now);
        Planned { stage, subjects, holdings, options: options.clone() }
    }

    /// The plan as a document.
    pub fn plan(&self) -> Plan {
        let mut plan = self.unsealed_plan(None);
        plan.digest = Seals::of(&plan).digest(&plan);
        plan
    }

    /// The plan without its digest. What is `known` of the base is taken over for whoever fares alike.
    fn unsealed_plan(&self, known: Option<Known<'_>>) -> Plan {
        let resources = self.resources(known);
        let mut explainer = Explainer::new(&self.stage, &self.options, &resources);
        let claims = self.subjects.iter().map(|subject| {
            let row = known.zip(subject.row).and_then(|(known, at)| known.plan.claims.get(at));
            row.cloned().unwrap_or_else(|| explainer.plan(subject))
        });
        let claims = claims.collect();
        Plan::unsealed(claims, resources)
    }

    /// Why claims are where they are: the one at `namespace/name`, or, where none is named, all that wait.
    /// Empty where there is none.
    pub fn explain(&self, claim: Option<(&str, &str)>) -> Explained {
        let resources = self.resources(None);
        let mut explainer = Explainer::new(&self.stage, &self.options, &resources);
        let asked = self.subjects.iter().filter(|s| claim.is_none_or(|claim| s.is_at(claim)));
        let explained = asked.map(|subject| explainer.explain(subject));
        let told = explained.filter(|e| claim.is_some() || e.claim.outcome == Outcome::Pending);
        Explained { api_version: API_VERSION, kind: "Explanation", claims: told.collect() }
    }

    /// Where every claim is, in the order of the plan.
    pub fn claims(&self) -> impl Iterator<Item = &ObjectKey> {
        self.subjects.iter().map(|subject| &subject.key)
    }

    /// Everything that a resource lacks for a claim at the end of the plan, as the predicate's name and a sentence:
    /// nothing where it would serve, absent where claim or resource is not there or cannot be read. What is lacking only
    /// because of claims whose turn came after this one's was not lacking when it was decided about, and is left out.
    pub fn lacks(&self, claim: PlaceOfClaim<'_>, resource: &str) -> Option<Vec<(&'static str, String)>> {
        let state = self.stage.engine.state();
        let subject = self.find(claim)?;
        let request = prepare(state, subject.claim(state)?).ok()?;
        let resource = Name::from(resource);
        let lacks = lacks(state, &request, &resource)?;
        let then = turns::Then::of(state, &request, &resource, self.stage.now, subject.is_bound)?;
        let lacks = lacks.into_iter().filter(|(predicate, _)| then.lacks(*predicate));
        Some(lacks.map(|(predicate, message)| (predicate.name(), message)).collect())
    }

    /// Whether a claim that was given without a resource names the one that it wants.
    pub fn names_resource(&self, claim: PlaceOfClaim<'_>) -> bool {
        self.find(claim).is_some_and(|subject| subject.names_resource && !subject.is_bound)
    }

    fn find(&self, (kind, namespace, name): PlaceOfClaim<'_>) -> Option<&Subject> {
        let place = |s: &Subject| (&*s.key.namespace, &*s.key.name, s.kind()).cmp(&(namespace, name, kind));
        Some(&self.subjects[self.subjects.binary_search_by(place).ok()?])
    }

    fn resources(&self, known: Option<Known<'_>>) -> Vec<PlannedResource> {
        self.holdings.iter().map(|holding| holding.plan(self.stage.engine.state(), known)).collect()
    }
}
