//! Whether a class can make a resource for a claim, asked in the order in which resources are, and whether one that it
//! is making already will do. SharedPending it is the lifecycle's business.

use super::{Decision, Request, gate_made, request, shares};
use crate::cache::{ResourceId, State};
use crate::model::class::SizeRefusal;
use crate::model::{FieldOffer, Name};
use crate::predicates::{Predicate, of_field};

/// What a class says to a claim.
pub(super) enum Verdict {
    /// It would make one.
    Makes(Name),
    /// It would not: the predicate, and a sentence.
    Refuses(Predicate, String),
    /// There is no class to ask: the claim is classless.
    NoClass,
}

/// Asks a class.
pub(super) fn check(state: &State, request: &Request<'_>, class: Option<&Name>) -> Verdict {
    let Some(name) = class else { return Verdict::NoClass };
    match refusal(state, request, name) {
        None => Verdict::Makes(name.clone()),
        Some((predicate, why)) => Verdict::Refuses(predicate, why),
    }
}

/// Before a class makes another, one that it is making takes the claim: several that come together share as those do that
/// come one by one. What was not seen yet cannot be judged; the claim waits for it.
pub(super) fn make_or_join(state: &State, request: &Request<'_>, class: Name) -> Decision {
    let ty = request.claim.ty;
    if shares(&request.profile) && !request.wants.exclusive {
        if let Some(resource) = find_open(state, request, &class) {
            return Decision::Bind { resource, class: Some(class) };
        }
        if let Some(resource) = state.shared_pending.find_promised(ty, &class).cloned() {
            return Decision::Await { class, resource };
        }
    }
    Decision::Provision { class }
}

/// Of what a class is making, the one with the least left over that would take the claim.
fn find_open(state: &State, request: &Request<'_>, class: &Name) -> Option<ResourceId> {
    let fits = |id: &ResourceId| request::while_made_refusal(state, request, *id).is_none();
    state
        .shared_pending
        .open(request.claim.ty, class)
        .filter(fits)
        .min_by_key(|id| request::left_over(state, *id))
}

/// Why a class makes nothing for a claim. What is wrong with the class itself counts as its class.
fn refusal(state: &State, request: &Request<'_>, name: &Name) -> Option<(Predicate, String)> {
    let ty = request.claim.ty;
    let unfit = |why: String| Some((Predicate::Class, why));
    let Some(class) = state.classes.get(&(ty, name.clone())) else {
        return unfit(format!("class {name} does not exist"));
    };
    if let Some(refusal) = request.claim.refusal_by(&class.meta) {
        return unfit(format!("class {name}: {}", refusal.message));
    }
    if class.meta.deleting {
        return unfit(format!("class {name} is being deleted"));
    }
    let recipe = match &class.recipe {
        Ok(recipe) => recipe,
        Err(error) => return unfit(format!("class {name} cannot be read: {error}")),
    };
    if recipe.template.is_none() {
        return unfit(format!("class {name} has no template to make one from"));
    }
    let mut fields =
        ty.rules().fields.iter().zip(recipe.fields.iter().zip(&request.wants.fields)).enumerate();
    if let Some((at, (rule, (offer, want)))) = fields.find(|(_, (_, (offer, want)))| !offer.satisfies(want)) {
        let why = match offer.names_beside(want) {
            _ if *offer == FieldOffer::Absent => undeclared(name, rule.resource, rule.claim),
            Some((made, asked)) => format!("class {name} makes {made}, and {asked} is requested"),
            None => format!("class {name} does not offer the {} asked", rule.claim),
        };
        return Some((of_field(ty, at), why));
    }
    if !request.wants.selector.matches(|key| recipe.labels.get(key)) {
        let why = format!("class {name} does not have the labels that the selector requires");
        return Some((Predicate::Selector, why));
    }
    let Err(refused) = class.counted_for(recipe, &request.wants) else {
        return gate_made(state, request, class).map(|refusal| (Predicate::Quota, refusal.message));
    };
    let SizeRefusal { name: what, asked, most } = refused;
    let why = match most {
        Some(most) => format!("class {name} makes {what} up to {most}, and {asked} is requested"),
        None => undeclared(name, &format!("capacity.{what}"), &format!("resources.requests.{what}")),
    };
    Some((Predicate::Capacity, why))
}

/// What a class does not declare it does not offer: the message, with what either side can do about it.
fn undeclared(class: &Name, field: &str, asked: &str) -> String {
    format!(
        "class {class} declares no {field}: take spec.{asked} out of the claim, or declare it in the class"
    )
}
