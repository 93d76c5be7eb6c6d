//! The baseline: an accepted plan, stored beside the suite, and the differences from it.

use super::document::{Baseline, BaselineChange, BaselineDifference};
use crate::diff::Difference;
use crate::plan::{API_VERSION, Plan, PlannedClaim};
use std::collections::BTreeMap;

impl Baseline {
    /// The baseline of a plan.
    pub fn of(plan: &Plan) -> Baseline {
        let claims = plan.claims.iter().map(|c| (format!("{}/{}", c.namespace, c.name), fate(c)));
        let reclaims =
            plan.resources.iter().filter_map(|r| Some((r.name.to_string(), r.reclaim?.to_owned())));
        Baseline {
            api_version: API_VERSION.to_owned(),
            kind: "GateBaseline".to_owned(),
            claims: claims.collect(),
            reclaims: reclaims.collect(),
        }
    }

    /// Returns the differences to `now`. `policies`: what the policies change, with causes.
    pub fn differs(&self, now: &Baseline, policies: Option<Difference>) -> BaselineDifference {
        let causes: BTreeMap<String, String> = policies
            .iter()
            .flat_map(|d| &d.claims)
            .map(|c| {
                (format!("{}/{}", c.namespace, c.name), format!("{}: {}", c.cause.rule, c.cause.message))
            })
            .collect();
        BaselineDifference {
            claims: changes(&self.claims, &now.claims, &causes),
            resources: changes(&self.reclaims, &now.reclaims, &BTreeMap::new()),
            policies,
        }
    }
}

fn fate(claim: &PlannedClaim) -> String {
    match (&claim.resource, &claim.class) {
        (Some(resource), _) => format!("{} {}", claim.outcome.name(), resource.name),
        (None, Some(class)) => format!("{} {class}", claim.outcome.name()),
        (None, None) => claim.outcome.name().to_owned(),
    }
}

fn changes(
    before: &BTreeMap<String, String>,
    after: &BTreeMap<String, String>,
    causes: &BTreeMap<String, String>,
) -> Vec<BaselineChange> {
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort();
    names.dedup();
    let differ = names.into_iter().filter(|name| before.get(*name) != after.get(*name));
    let change = |name: &String| BaselineChange {
        name: name.clone(),
        before: before.get(name).cloned(),
        after: after.get(name).cloned(),
        cause: causes.get(name).cloned(),
    };
    differ.map(change).collect()
}
