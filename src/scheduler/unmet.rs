//! What a bound claim asks for and does not get: claims are edited after they were bound, resources under their claims.
//! Told, never acted on: what is bound stays bound. What a resource does not say of itself contradicts nobody, and phase
//! and neighbours are not asked: they come and go. So do labels, and a claim may name a resource that its selector or class
//! does not match: those two are reported where the claim was edited since it was bound, until the mismatch ends. Nor is
//! asked what the claim's profile does not ask.

use super::request::find_profile;
use crate::api::reasons;
use crate::cache::{Ask, ClassAsk, ResourceEntry, Standing, State};
use crate::framework::Seen;
use crate::model::claim::parameters_digest;
use crate::model::{
    Capacity, Claim, ClaimPhase, ClaimRef, ClassWant, Dim, FieldValue, Name, Offer, Predicate, Quantity,
    Wants,
};
use crate::plugins;

/// What the resource of a bound claim lacks, in words, or nothing where the claim has what it asks for.
pub fn unmet(state: &State, claim: &Claim, entry: &ResourceEntry) -> Option<String> {
    let wants = match &claim.wants {
        Ok(wants) => wants,
        Err(error) => return Some(error.to_string()),
    };
    let offer = entry.resource.offer.as_ref().ok()?;
    let own = entry.resource.claim_refs.iter().find(|r| r.uid.as_ref() == Some(&claim.meta.uid));
    // Who else is on it is not asked: nobody looks at a claim again because of its neighbours.
    let is_alone = offer.max_claims <= 1 || wants.exclusive;
    let shared = own.filter(|_| !is_alone).map(|own| &own.requests);
    let rules = claim.ty.rules();
    let contradicted = (0..rules.fields.len()).filter(|at| contradicts(wants, offer, *at));
    let class = is_of_another_class(wants, own, offer).then_some(Predicate::Class);
    let contradicted = contradicted.map(|at| rules.fields[at].predicate);
    let mut lacking: Vec<Predicate> = class.into_iter().chain(contradicted).collect();
    let mut short: Vec<String> =
        wants.requests.iter().filter_map(|(dim, want)| short(offer, shared, dim, want)).collect();
    let mut edits = edited(claim, wants, own, offer);
    let parameters = other_parameters(claim, entry);
    if lacking.is_empty() && short.is_empty() && edits.is_empty() && parameters.is_none() {
        return None;
    }
    let profile = find_profile(state, claim).ok()?;
    lacking.retain(|predicate| profile.asks(*predicate));
    short.retain(|_| profile.asks(Predicate::Capacity));
    edits.retain(|(predicate, _)| profile.asks(*predicate));
    let mut told = words(claim, wants, entry, offer, &lacking);
    told.append(&mut short);
    told.extend(edits.into_iter().map(|(_, words)| words));
    told.extend(parameters);
    (!told.is_empty()).then(|| told.join("; "))
}

/// What a claim lacks of one amount: of a resource that it shares it holds what it was given, of another all there is.
fn short(offer: &Offer, shared: Option<&Capacity>, dim: &Dim, want: Quantity) -> Option<String> {
    let listed = offer.capacity.iter().find(|(listed, _)| *listed == dim);
    let (_, has) = listed?;
    let held = shared.map_or(has, |given| given.get(dim.name()));
    if has < want {
        return Some(format!("it has {dim} {has}, and {want} is asked"));
    }
    (held < want).then(|| format!("it holds {dim} {held}, and {want} is asked"))
}

/// Class and selector as the claim has them now, where the resource does not match and that is because of an edit: the
/// status speaks of an older generation, or reports the mismatch already.
fn edited(claim: &Claim, wants: &Wants, own: Option<&ClaimRef>, offer: &Offer) -> Vec<(Predicate, String)> {
    let status = &claim.status;
    if status.phase != ClaimPhase::Bound {
        return Vec::new();
    }
    let bound = status.conditions.iter().find(|condition| &*condition.kind == reasons::BOUND);
    let is_told = |words: &str| {
        bound.is_some_and(|bound| {
            &*bound.reason == reasons::bound::NOT_AS_ASKED && bound.message.contains(words)
        })
    };
    let is_edited = claim.meta.generation > status.observed_generation;
    let is_kept = own.is_some_and(|own| own.reserved);
    let mut mismatches = Vec::new();
    if let (ClassWant::Named(names), None, false) = (&wants.class, &offer.class, is_kept) {
        let names: Vec<&str> = names.iter().map(|name| &**name).collect();
        mismatches.push((Predicate::Class, format!("it has no class, not class {}", names.join(" or "))));
    }
    if !wants.selector.matches(|key| offer.labels.get(key)) && !is_kept {
        mismatches
            .push((Predicate::Selector, format!("its labels do not match the selector {}", wants.selector)));
    }
    mismatches.retain(|(_, words)| is_edited || is_told(words));
    mismatches
}

/// Parameters are read when a resource is made, and never again: a claim that has others now is told so.
fn other_parameters(claim: &Claim, entry: &ResourceEntry) -> Option<String> {
    let resource = &entry.resource;
    let script =
        resource.script.as_ref().filter(|_| resource.provisioned_for.as_ref() == Some(&claim.meta.uid))?;
    let made_from = script.inputs.pointer("/claim/spec")?;
    let was = made_from.get("parameters").and_then(parameters_digest);
    // What no template takes from there changes nothing: databases on servers follow their claims by themselves.
    let is_used = script.source.to_string().contains("parameters");
    (is_used && was != claim.parameters).then(|| {
        let name = &resource.meta.key.name;
        format!("spec.parameters was edited after {name} was made, which keeps those that it was made from")
    })
}

fn contradicts(wants: &Wants, offer: &Offer, at: usize) -> bool {
    offer.fields[at] != FieldValue::Absent && !wants.fields[at].accepts(&offer.fields[at])
}

/// A resource that an administrator keeps for a claim is given whatever its class.
fn is_of_another_class(wants: &Wants, own: Option<&ClaimRef>, offer: &Offer) -> bool {
    let is_kept = own.is_some_and(|own| own.reserved);
    match (&wants.class, &offer.class) {
        (ClassWant::Named(names), Some(class)) => !is_kept && !names.contains(class),
        (ClassWant::Classless, Some(_)) => !is_kept,
        (ClassWant::Named(_) | ClassWant::Classless, None) | (ClassWant::Absent | ClassWant::Any, _) => false,
    }
}

/// The same words as in a refusal.
fn words(
    claim: &Claim,
    wants: &Wants,
    entry: &ResourceEntry,
    offer: &Offer,
    lacking: &[Predicate],
) -> Vec<String> {
    let classes: Vec<Option<Name>> = match &wants.class {
        ClassWant::Named(names) => names.iter().cloned().map(Some).collect(),
        ClassWant::Absent | ClassWant::Classless | ClassWant::Any => vec![None],
    };
    let ask =
        Ask { namespace: &claim.meta.key.namespace, class: ClassAsk::OneOf(&classes), wants, headroom: None };
    let seen = Seen {
        name: &entry.resource.meta.key.name,
        offer,
        standing: Standing::Vacant,
        phase: "Bound",
        free: Capacity::default(),
        holders: Vec::new(),
    };
    let filters = plugins::filters(claim.ty);
    let asked = filters.iter().filter(|filter| lacking.contains(&filter.predicate()));
    asked.filter_map(|filter| filter.lack(&ask, &seen)).collect()
}
