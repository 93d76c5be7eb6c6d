//! Whether a class can make a resource for a claim. Making it is the lifecycle's business.

use super::Request;
use crate::cache::State;
use crate::model::Name;

/// What a class says to a claim.
pub(super) enum Verdict {
    /// It would make one.
    Makes(Name),
    /// It would not, for this reason.
    Refuses(String),
    /// There is no class to ask: the claim is classless.
    NoClass,
}

/// Asks a class.
pub(super) fn check(state: &State, request: &Request<'_>, class: Option<&Name>) -> Verdict {
    let Some(name) = class else { return Verdict::NoClass };
    let ty = request.claim.ty;
    let Some(class) = state.classes.get(&(ty, name.clone())) else {
        return Verdict::Refuses(format!("class {name} does not exist"));
    };
    if let Some(refusal) = request.claim.refusal_by(&class.meta) {
        return Verdict::Refuses(format!("class {name}: {}", refusal.message));
    }
    if class.meta.deleting {
        return Verdict::Refuses(format!("class {name} is being deleted"));
    }
    let recipe = match &class.recipe {
        Ok(recipe) => recipe,
        Err(error) => return Verdict::Refuses(format!("class {name} cannot be read: {error}")),
    };
    if recipe.template.is_none() {
        return Verdict::Refuses(format!("class {name} has no template to make one from"));
    }
    let unsatisfied =
        recipe.fields.iter().zip(&request.wants.fields).position(|(offer, want)| !offer.satisfies(want));
    if let Some(at) = unsatisfied {
        return Verdict::Refuses(format!(
            "class {name} does not offer the {} asked",
            ty.rules().fields[at].claim
        ));
    }
    if !request.wants.selector.matches(|key| recipe.labels.get(key)) {
        return Verdict::Refuses(format!("class {name} does not have the labels that the selector asks for"));
    }
    match recipe.size_for(ty.rules().primary_capacity, &request.wants.requests) {
        Ok(_) => Verdict::Makes(name.clone()),
        Err((what, asked, most)) => {
            Verdict::Refuses(format!("class {name} makes {what} up to {most}, and {asked} is asked"))
        }
    }
}
