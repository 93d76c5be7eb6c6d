//! Plan and explanation as printed. Field names and their order are a contract.
//! Nothing is computed here but the sums.

#![allow(missing_docs, reason = "the fields are named as in the printed document")]

use conductor::model::ObjectKey;
use serde::{Serialize, Serializer};
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// `apiVersion` of the simulator's documents.
pub const API_VERSION: &str = "simulator.conductor.io/v1alpha1";

/// The outcome of every claim and resource.
///
/// # Guarantees
/// The same objects in any order give the same bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    pub api_version: &'static str,
    pub kind: &'static str,
    /// `sha256:` over the summary's compact JSON and each row's SHA-256, in this order.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// Claims counted by outcome.
    pub summary: Summary,
    /// Sorted by namespace, name, kind.
    pub claims: Vec<PlannedClaim>,
    /// Sorted by namespace, name.
    pub resources: Vec<PlannedResource>,
}

impl Plan {
    /// A plan with an empty digest.
    pub(super) fn without_digest(claims: Vec<PlannedClaim>, resources: Vec<PlannedResource>) -> Plan {
        let summary = Summary::of(&claims);
        Plan { api_version: API_VERSION, kind: "Plan", digest: String::new(), summary, claims, resources }
    }
}

/// Claims counted by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    pub claims: usize,
    /// Claims bound to a resource that exists.
    pub bound: usize,
    /// Claims that get a new resource.
    pub provision: usize,
    /// Claims that wait.
    pub pending: usize,
    /// Claims whose resource was deleted.
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

/// The outcome of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Outcome {
    /// The claim has a resource that exists, newly or already.
    Bound,
    /// A class would provision a resource.
    Provision,
    /// The claim waits.
    Pending,
    /// The claim's resource was deleted.
    Lost,
}

impl Outcome {
    /// The name in the document.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Bound => "Bound",
            Outcome::Provision => "Provision",
            Outcome::Pending => "Pending",
            Outcome::Lost => "Lost",
        }
    }
}

/// One claim's row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlannedClaim {
    pub kind: &'static str,
    pub namespace: Arc<str>,
    pub name: Arc<str>,
    pub outcome: Outcome,
    /// The resource that it is bound to.
    pub resource: Option<ResourceRef>,
    /// The class that provisions its resource, or that its binding counts under.
    pub class: Option<Arc<str>>,
    pub message: Arc<str>,
    /// Why it waits: refusals of resources, by predicate.
    pub reasons: Arc<[PlannedReason]>,
    /// Refusals of classes, by predicate. Separate from `reasons`, which count resources, so that a predicate appears at
    /// most once in each.
    #[serde(rename = "classReasons", skip_serializing_if = "is_empty")]
    pub class_reasons: Arc<[PlannedReason]>,
    /// Changes of which each alone would serve this claim. Two waiting claims may name the same change, which then serves
    /// only one of them.
    pub nearest: Arc<[PlannedChange]>,
    /// Whether the binding existed before the plan. Not in the document; the message says it.
    #[serde(skip)]
    pub kept: bool,
    /// Whether the claim is being deleted. Not in the document; the message says it.
    #[serde(skip)]
    pub leaving: bool,
}

impl PlannedClaim {
    /// Compares in the document's order.
    pub fn cmp_place(&self, other: &PlannedClaim) -> Ordering {
        (&self.namespace, &self.name, self.kind).cmp(&(&other.namespace, &other.name, other.kind))
    }
}

fn is_empty(reasons: &Arc<[PlannedReason]>) -> bool {
    reasons.is_empty()
}

/// Namespace and name of a resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ResourceRef {
    pub namespace: Arc<str>,
    pub name: Arc<str>,
}

/// One predicate's share of a refusal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlannedReason {
    /// The predicate's name.
    pub predicate: &'static str,
    /// How many resources, or classes, it refused.
    pub count: usize,
    /// What it refused them for.
    pub message: String,
}

/// A change that would serve a claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlannedChange {
    /// The change in a sentence.
    pub change: String,
    /// The resource that the claim would get; `None` for a new one.
    pub binds: Option<Arc<str>>,
}

/// A claim that holds a resource; `namespace/name` in the document.
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

/// One resource's row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlannedResource {
    pub namespace: Arc<str>,
    pub name: Arc<str>,
    pub phase: &'static str,
    /// The claims that hold it at the end of the plan.
    pub claims: Vec<Holder>,
    /// `Delete` or `Retain` if the plan releases it.
    pub reclaim: Option<&'static str>,
}

impl PlannedResource {
    /// Compares in the document's order.
    pub fn cmp_place(&self, other: &PlannedResource) -> Ordering {
        (&self.namespace, &self.name).cmp(&(&other.namespace, &other.name))
    }
}

/// Explanations of claims.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    pub api_version: &'static str,
    pub kind: &'static str,
    /// Sorted by namespace, name, kind.
    pub claims: Vec<ExplainedClaim>,
}

/// Explanation of one claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExplainedClaim {
    #[serde(flatten)]
    pub claim: PlannedClaim,
    /// The resources with the fewest refusals, best first.
    #[serde(rename = "nearMisses")]
    pub near_misses: Arc<[ExplainedMiss]>,
}

/// A resource that almost fits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExplainedMiss {
    pub resource: ResourceRef,
    /// All its refusals.
    pub lacks: Vec<ExplainedLack>,
}

/// One refusal of a resource that almost fits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExplainedLack {
    /// The predicate that refuses.
    pub predicate: &'static str,
    /// Why it refuses.
    pub message: String,
}
