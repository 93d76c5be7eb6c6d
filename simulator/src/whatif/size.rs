//! How many more resources to add until more of them would serve no further claim. Searches by bisection: more resources
//! never serve fewer claims.

use super::{Edit, EditError, Target, WhatIfSession};
use crate::plan::{API_VERSION, Options, Outcome, Plan};
use conductor::model::Object;
use serde::Serialize;

/// How many resources to add.
#[allow(missing_docs, reason = "the fields are named as in the printed document")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Size {
    pub api_version: &'static str,
    pub kind: &'static str,
    /// The resource to copy.
    pub like: String,
    /// How many copies to add; 0 if no claim waits for one.
    pub resources: usize,
    /// Number of claims that wait now.
    pub waiting_before: usize,
    /// Number of claims that still wait with the copies.
    pub waiting_after: usize,
    /// Claims that the copies serve, as `namespace/name`.
    pub served: Vec<String>,
    /// Claims that still wait, with the reason.
    pub waiting: Vec<Waiting>,
}

/// A claim that copies of this resource do not help.
#[allow(missing_docs, reason = "the fields are named as in the printed document")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Waiting {
    pub claim: String,
    /// Why it waits.
    pub message: String,
}

/// Returns the least number of copies with which as few claims wait as with any number.
///
/// # Errors
/// There is no such resource.
pub fn size(objects: &[Object], like: &Target, options: &Options) -> Result<Size, EditError> {
    let questions = WhatIfSession::new(objects.to_vec(), options);
    let with = |count: usize| -> Result<Plan, EditError> {
        Ok(questions.edited(&[Edit::Copies { like: like.clone(), count }])?.plan)
    };
    let before = with(0)?;
    let most = waiting(&before).count();
    let best = with(most)?;
    let least = waiting(&best).count();
    let (mut low, mut high, mut found) = (0, most, best);
    while low < high {
        let middle = low + (high - low) / 2;
        let plan = with(middle)?;
        if waiting(&plan).count() == least {
            (high, found) = (middle, plan);
        } else {
            low = middle + 1;
        }
    }
    let still: Vec<Waiting> =
        waiting(&found).map(|(claim, message)| Waiting { claim, message: message.to_owned() }).collect();
    let is_still = |claim: &String| still.iter().any(|w| w.claim == *claim);
    Ok(Size {
        api_version: API_VERSION,
        kind: "Size",
        like: like.key.name.to_string(),
        resources: high,
        waiting_before: most,
        waiting_after: least,
        served: waiting(&before).map(|(claim, _)| claim).filter(|claim| !is_still(claim)).collect(),
        waiting: still,
    })
}

fn waiting(plan: &Plan) -> impl Iterator<Item = (String, &str)> {
    let waiting = plan.claims.iter().filter(|c| c.outcome == Outcome::Pending && !c.leaving);
    waiting.map(|c| (format!("{}/{}", c.namespace, c.name), &*c.message))
}
