//! Whether a class can make a resource for a claim, asked in the order in which resources are. Making it is the
//! lifecycle's business.

use super::Request;
use crate::cache::State;
use crate::model::{Name, Predicate};

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
    let mut fields = ty.rules().fields.iter().zip(recipe.fields.iter().zip(&request.wants.fields));
    if let Some((rule, _)) = fields.find(|(_, (offer, want))| !offer.satisfies(want)) {
        return Some((rule.predicate, format!("class {name} does not offer the {} asked", rule.claim)));
    }
    if !request.wants.selector.matches(|key| recipe.labels.get(key)) {
        let why = format!("class {name} does not have the labels that the selector asks for");
        return Some((Predicate::Selector, why));
    }
    let (what, asked, most) = recipe.size_for(ty.rules().primary_capacity, &request.wants.requests).err()?;
    Some((Predicate::Capacity, format!("class {name} makes {what} up to {most}, and {asked} is asked")))
}
