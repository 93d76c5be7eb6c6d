//! How many resources more, so that nothing waits for one: copies of a resource are added until no more claims
//! would be served by another. The answer is searched for by halving: more resources never serve fewer claims.

use super::{Edit, EditError, Questions, Target};
use crate::plan::{API_VERSION, Options, Outcome, Plan};
use conductor::model::Object;
use serde::Serialize;

/// How many resources more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Size {
    /// [`API_VERSION`].
    pub api_version: &'static str,
    /// `Size`.
    pub kind: &'static str,
    /// The resource that the new ones are like.
    pub like: String,
    /// How many more of it; none where no claim waits for one.
    pub resources: usize,
    /// How many claims wait now.
    pub waiting_before: usize,
    /// How many would wait with that many more: those whom no number of them helps.
    pub waiting_after: usize,
    /// Claims that the new ones would serve, as `namespace/name`.
    pub served: Vec<String>,
    /// Claims that wait for something else, as `namespace/name`, with the reason.
    pub waiting: Vec<Waiting>,
}

/// A claim whom no number of resources like this helps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Waiting {
    /// As `namespace/name`.
    pub claim: String,
    /// In one sentence.
    pub message: String,
}

/// The least number of resources like `like` with which as few claims wait as with any number.
///
/// # Errors
/// There is no such resource.
pub fn size(objects: &[Object], like: &Target, options: &Options) -> Result<Size, EditError> {
    let questions = Questions::new(objects.to_vec(), options);
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
