//! A plan and an explanation as they are printed: the field names, and their order, are a contract.
//! Nothing here is computed but the sums.

use conductor::model::ObjectKey;
use serde::{Serialize, Serializer};
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// Version of both documents.
pub const API_VERSION: &str = "simulator.conductor.io/v1alpha1";

/// What would become of every claim and resource.
///
/// # Guarantees
/// The same objects in any order give the same bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// [`API_VERSION`].
    pub api_version: &'static str,
    /// `Plan`.
    pub kind: &'static str,
    /// `sha256:` over the compact JSON of the summary and the SHA-256 of that of every row, in this order.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// Claims counted by outcome.
    pub summary: Summary,
    /// By namespace, name, kind.
    pub claims: Vec<PlannedClaim>,
    /// By namespace, name.
    pub resources: Vec<PlannedResource>,
}

impl Plan {
    /// A plan that has no digest yet.
    pub(super) fn unsealed(claims: Vec<PlannedClaim>, resources: Vec<PlannedResource>) -> Plan {
        let summary = Summary::of(&claims);
        Plan { api_version: API_VERSION, kind: "Plan", digest: String::new(), summary, claims, resources }
    }
}

/// Claims counted by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// All of them.
    pub claims: usize,
    /// Bound to a resource that exists.
    pub bound: usize,
    /// Served by a resource that would be made.
    pub provision: usize,
    /// Waiting.
    pub pending: usize,
    /// Lost for good.
    pub lost: usize,
}

impl Summary {
    fn of(claims: &[PlannedClaim]) -> Summary {
        let mut summary = Summary { claims: claims.len(), ..Summary::default() };
        for claim in claims {
            match claim.outcome {
                Outcome::Bound => summary.bound += 1,
                Outcome::Provision => summary.provision += 1,
                Outcome::Pending => summary.pending += 1,
                Outcome::Lost => summary.lost += 1,
            }
        }
        summary
    }
}

/// What becomes of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Outcome {
    /// It has a resource that exists, newly or already.
    Bound,
    /// A resource would be made for it.
    Provision,
    /// It waits.
    Pending,
    /// Its resource is gone for good.
    Lost,
}

impl Outcome {
    /// The word in the document.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Bound => "Bound",
            Outcome::Provision => "Provision",
            Outcome::Pending => "Pending",
            Outcome::Lost => "Lost",
        }
    }
}

/// One claim's part of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlannedClaim {
    /// Its kind.
    pub kind: &'static str,
    /// Where it is.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// What becomes of it.
    pub outcome: Outcome,
    /// The resource that it is bound to.
    pub resource: Option<Place>,
    /// The class that a resource is made from, or under which a bound claim counts.
    pub class: Option<Arc<str>>,
    /// In one sentence.
    pub message: Arc<str>,
    /// Why it waits, predicate by predicate.
    pub reasons: Arc<[PlannedReason]>,
    /// Why no class makes one for it, predicate by predicate. Apart from `reasons`, which count resources: whoever looks
    /// one up by its predicate finds one.
    #[serde(rename = "classReasons", skip_serializing_if = "is_empty")]
    pub class_reasons: Arc<[PlannedReason]>,
    /// Changes of which each alone would serve it, and it alone: of two claims that wait each may be told to raise a
    /// quota by one, and then one of them still waits.
    pub nearest: Arc<[PlannedChange]>,
    /// Whether the binding was there before the plan. Told in the message; not a field of the document.
    #[serde(skip)]
    pub kept: bool,
    /// Whether it is being deleted. Told in the message; not a field of the document.
    #[serde(skip)]
    pub leaving: bool,
}

impl PlannedClaim {
    /// The order of the document.
    pub fn cmp_place(&self, other: &PlannedClaim) -> Ordering {
        (&self.namespace, &self.name, self.kind).cmp(&(&other.namespace, &other.name, other.kind))
    }
}

fn is_empty(reasons: &Arc<[PlannedReason]>) -> bool {
    reasons.is_empty()
}

/// Where a resource is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
}

/// One predicate's part in a refusal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlannedReason {
    /// Which predicate.
    pub predicate: &'static str,
    /// How many it refused, of resources or of classes.
    pub count: usize,
    /// In words.
    pub message: String,
}

/// A change that would serve a claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlannedChange {
    /// In words.
    pub change: String,
    /// The resource that it would be bound to; absent where one would be made.
    pub binds: Option<Arc<str>>,
}

/// A claim that holds a resource; in the document `namespace/name`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Holder(pub ObjectKey);

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Holder {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// One resource's part of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlannedResource {
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// How far it would be.
    pub phase: &'static str,
    /// Who would hold it, as `namespace/name`.
    pub claims: Vec<Holder>,
    /// `Delete` or `Retain` where the plan releases it.
    pub reclaim: Option<&'static str>,
}

impl PlannedResource {
    /// The order of the document.
    pub fn cmp_place(&self, other: &PlannedResource) -> Ordering {
        (&self.namespace, &self.name).cmp(&(&other.namespace, &other.name))
    }
}

/// Why claims are where they are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explained {
    /// [`API_VERSION`].
    pub api_version: &'static str,
    /// `Explanation`.
    pub kind: &'static str,
    /// By namespace, name, kind.
    pub claims: Vec<ExplainedClaim>,
}

/// Everything there is to say about one claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExplainedClaim {
    /// As in the plan.
    #[serde(flatten)]
    pub claim: PlannedClaim,
    /// The resources that lack least, best first.
    #[serde(rename = "nearMisses")]
    pub near_misses: Arc<[ExplainedMiss]>,
}

/// A resource that almost fits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExplainedMiss {
    /// Where it is.
    pub resource: Place,
    /// Everything that it lacks.
    pub lacks: Vec<ExplainedLack>,
}

/// One thing that a resource lacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExplainedLack {
    /// Which predicate asks for it.
    pub predicate: &'static str,
    /// In words.
    pub message: String,
}
