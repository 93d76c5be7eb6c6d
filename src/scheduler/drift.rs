//! What a bound claim wants and does not get: claims are edited after they were bound, resources under their claims.
//! Reported, never acted on: what is bound stays bound. What a resource does not say of itself contradicts no claim, and phase
//! and neighbours do not count: they come and go. So do labels, and a claim may name a resource that its selector or class
//! does not match: those two are reported where the claim was edited since it was bound, until the mismatch ends. What
//! the claim's profile does not check is not checked here either.
//!
//! Every field of the spec is compared with the record of the spec at the time of binding (`status.boundSpec`), so that an
//! edit without effect is reported whichever field it is of: those that take effect are listed in [`TAKES_EFFECT`], and
//! those that are judged by what the resource has are silent only where it has what they say.

use super::request::find_profile;
use crate::api::reasons;
use crate::cache::{ResourceEntry, State};
use crate::model::{
    Capacity, Claim, ClaimPhase, ClaimRef, ClassWant, Dim, FieldValue, FieldWant, Name, Offer, Quantity,
    SpecRecord, TypeId, Wants,
};
use crate::predicates::{
    Candidate, ClassQuery, Described, Key, Predicate, Query, Standing, Step, of_field, steps,
};
use std::borrow::Cow;

/// Fields of a claim that take effect when they are edited while it is bound, and how.
pub const TAKES_EFFECT: [(&str, &str); 3] = [
    ("connection", "the connection is published under the new name"),
    (
        "exclusive",
        "from then on no other claim joins; those that hold the resource already are reported as an Event",
    ),
    (
        "resourceName",
        "it is the controller's record of the binding: it is restored, and an Event reports that",
    ),
];
/// Parameters that a database on a server takes from its claim.
const OF_DATABASES: [&str; 5] = ["databaseName", "userName", "extensions", "schemas", "reclaimPolicy"];
/// Those of them that it follows while it exists. What cannot be followed of them is reported by the provider.
const FOLLOWED: [&str; 3] = ["extensions", "schemas", "reclaimPolicy"];

/// What the spec of a bound claim said when it was bound; for one that is being bound, what it says now. Parameters of a
/// database on a server can be corrected until its connection is published.
pub fn spec_at_binding(claim: &Claim, entry: &ResourceEntry) -> SpecRecord {
    match &claim.status.bound_spec {
        Some(spec) if claim.status.phase == ClaimPhase::Bound => {
            let is_open = entry.resource.is_server && claim.status.binding.is_none();
            if is_open { spec.with_parameters_of(&claim.spec) } else { spec.clone() }
        }
        Some(_) | None => claim.spec.clone(),
    }
}

/// What the resource of a bound claim lacks, or nothing where the claim has what it wants.
pub fn drift(state: &State, claim: &Claim, entry: &ResourceEntry) -> Option<String> {
    let wants = match &claim.wants {
        Ok(wants) => wants,
        Err(error) => return Some(error.to_string()),
    };
    let offer = entry.resource.offer.as_ref().ok()?;
    let own = entry.resource.claim_refs.iter().find(|r| r.uid.as_ref() == Some(&claim.meta.uid));
    // Neighbours do not count: they come and go without a reconcile of this claim.
    let is_alone = offer.max_claims <= 1 || wants.exclusive;
    let shared = own.filter(|_| !is_alone).map(|own| &own.requests);
    let rules = claim.ty.rules();
    let contradicted = (0..rules.fields.len()).filter(|at| contradicts(claim.ty, wants, offer, *at));
    let class = is_of_another_class(wants, own, offer).then_some(Predicate::Class);
    let contradicted = contradicted.map(|at| of_field(claim.ty, at));
    let mut lacking: Vec<Predicate> = class.into_iter().chain(contradicted).collect();
    let mut short: Vec<String> =
        wants.requests.iter().filter_map(|(dim, want)| short(offer, shared, dim, want)).collect();
    let mut edits = edited(claim, wants, own, offer);
    edits.extend(unsaid(claim, wants, entry, offer));
    let without_effect = without_effect(claim, entry);
    if lacking.is_empty() && short.is_empty() && edits.is_empty() && without_effect.is_empty() {
        return None;
    }
    let profile = find_profile(state, claim).ok()?;
    lacking.retain(|predicate| profile.asks(*predicate));
    short.retain(|_| profile.asks(Predicate::Capacity));
    edits.retain(|(predicate, _)| profile.asks(*predicate));
    let mut messages = words(claim, wants, entry, offer, &lacking);
    messages.append(&mut short);
    messages.extend(edits.into_iter().map(|(_, words)| words));
    messages.extend(without_effect);
    (!messages.is_empty()).then(|| messages.join("; "))
}

/// What a claim lacks of one amount: of a resource that it shares it holds what it was given, of another all there is.
fn short(offer: &Offer, shared: Option<&Capacity>, dim: &Dim, want: Quantity) -> Option<String> {
    let listed = offer.capacity.iter().find(|(listed, _)| *listed == dim);
    let (_, has) = listed?;
    let held = shared.map_or(has, |given| given.get(dim.name()));
    if has < want {
        return Some(format!("it has {dim} {has}, and {want} is requested"));
    }
    (held < want).then(|| format!("it holds {dim} {held}, and {want} is requested"))
}

/// Class and selector as the claim has them now, where the resource does not match and that is because of an edit: the
/// status speaks of an older generation, or reports the mismatch already.
fn edited(claim: &Claim, wants: &Wants, own: Option<&ClaimRef>, offer: &Offer) -> Vec<(Predicate, String)> {
    let status = &claim.status;
    if status.phase != ClaimPhase::Bound {
        return Vec::new();
    }
    let bound = status.conditions.iter().find(|condition| &*condition.kind == reasons::BOUND);
    let is_reported = |words: &str| {
        bound.is_some_and(|bound| {
            &*bound.reason == reasons::bound::NOT_AS_ASKED && bound.message.contains(words)
        })
    };
    let edited = status.bound_spec.as_ref().map(|spec| claim.spec.fields_that_differ(spec));
    let is_edited = |fields: &[&str]| match &edited {
        Some(edited) => edited.iter().any(|field| fields.contains(&field.as_str())),
        // Bound by a version that kept no record.
        None => claim.meta.generation > status.observed_generation,
    };
    let is_kept = own.is_some_and(|own| own.reserved);
    let mut mismatches = Vec::new();
    let class = match (&wants.class, &offer.class) {
        (ClassWant::Named(names), None) => Some(format!("it has no class, not class {}", joined(names))),
        // What is not kept for the claim is reported whether the claim was edited or not.
        (ClassWant::Named(names), Some(class)) if is_kept && !names.contains(class) => {
            Some(format!("it is of class {class}, not of class {}", joined(names)))
        }
        (ClassWant::Classless, Some(class)) if is_kept => Some(format!("it is of class {class}")),
        _ => None,
    };
    mismatches.extend(class.map(|message| (Predicate::Class, &["class", "classes"][..], message)));
    if !wants.selector.matches(|key| offer.labels.get(key)) {
        let message = format!("its labels do not match the selector {}", wants.selector);
        mismatches.push((Predicate::Selector, &["selector"], message));
    }
    let has_record = edited.is_some();
    mismatches.retain(|(_, fields, words)| match has_record {
        true => is_edited(fields),
        false => !is_kept && (is_edited(fields) || is_reported(words)),
    });
    mismatches.into_iter().map(|(predicate, _, words)| (predicate, words)).collect()
}

/// Fields and amounts that were edited since the claim was bound, and of which the resource says nothing.
fn unsaid(claim: &Claim, wants: &Wants, entry: &ResourceEntry, offer: &Offer) -> Vec<(Predicate, String)> {
    let edited = claim.spec.fields_that_differ(&spec_at_binding(claim, entry));
    let name = &entry.resource.meta.key.name;
    let rules = claim.ty.rules();
    let message = |field: &str| {
        format!(
            "spec.{field} was edited after the claim was bound, and {name} does not say what it has of that"
        )
    };
    let of_field = |field: &String| {
        if let Some(amount) = field.strip_prefix(AMOUNTS) {
            let is_listed = offer.capacity.iter().any(|(dim, _)| dim.name() == amount);
            let is_wanted = !wants.requests.get(amount).is_zero();
            return (is_wanted && !is_listed).then(|| (Predicate::Capacity, message(field)));
        }
        let at = rules.fields.iter().position(|rule| rule.claim == field)?;
        let is_unsaid = offer.fields[at] == FieldValue::Absent && wants.fields[at] != FieldWant::Any;
        is_unsaid.then(|| (of_field(claim.ty, at), message(field)))
    };
    edited.iter().filter_map(of_field).collect()
}

/// Edits that nothing comes of, and parameters that nothing reads.
fn without_effect(claim: &Claim, entry: &ResourceEntry) -> Vec<String> {
    let rules = claim.ty.rules();
    let is_judged = |field: &str| {
        let top = field.split('.').next().unwrap_or_default();
        let is_matched = ["class", "classes", "selector"].contains(&top) || field.starts_with(AMOUNTS);
        is_matched
            || top == "parameters"
            || rules.fields.iter().any(|rule| rule.claim == top)
            || TAKES_EFFECT.iter().any(|(known, _)| *known == top)
    };
    let edited = claim.spec.fields_that_differ(&spec_at_binding(claim, entry));
    let mut ignored: Vec<&String> = edited.iter().filter(|field| !is_judged(field)).collect();
    let made_from = made_from(claim, entry);
    let is_followed = |field: &str| {
        let parameter = field.strip_prefix(PARAMETERS).and_then(|field| field.split('.').next());
        entry.resource.is_server && parameter.is_some_and(|parameter| FOLLOWED.contains(&parameter))
    };
    // What is taken off a list stays in the database.
    let is_kept = |field: &&String| {
        let parameter = field.strip_prefix(PARAMETERS).and_then(|field| field.split_once('.'));
        let is_list = parameter.is_some_and(|(list, _)| FOLLOWED.contains(&list));
        is_list && entry.resource.is_server && !claim.spec.has(field)
    };
    let is_parameter =
        |field: &&String| field.starts_with(PARAMETERS.trim_end_matches('.')) && !is_followed(field);
    let is_server = entry.resource.is_server && made_from.is_none();
    let unknown: Vec<&str> = match is_server {
        true => claim.spec.parameters().into_iter().filter(|name| !OF_DATABASES.contains(name)).collect(),
        false => Vec::new(),
    };
    let is_unknown = |field: &&String| {
        let parameter = field.strip_prefix(PARAMETERS).and_then(|field| field.split('.').next());
        parameter.is_some_and(|parameter| unknown.contains(&parameter))
    };
    let mut messages = Vec::new();
    match &made_from {
        Some(made_from) => {
            let name = &entry.resource.meta.key.name;
            let differ = claim.spec.fields_that_differ(made_from);
            messages.extend(differ.iter().filter(is_parameter).map(|field| {
                format!("spec.{field} was edited after {name} was made, which keeps what it was made from")
            }));
        }
        // One that is not used at all is reported below, edited or not.
        None => ignored.extend(edited.iter().filter(|field| is_parameter(field) && !is_unknown(field))),
    }
    let has_no_effect =
        |field| format!("spec.{field} was edited after the claim was bound: that has no effect any more");
    messages.extend(ignored.into_iter().map(has_no_effect));
    messages.extend(edited.iter().filter(is_kept).map(|field| {
        format!("spec.{field} was removed after the claim was bound: what exists of it in the database stays")
    }));
    let known = OF_DATABASES.join(", ");
    messages.extend(unknown.iter().map(|parameter| {
        format!("spec.parameters.{parameter} is not used: a database on a server takes {known}")
    }));
    messages
}

/// How amounts and parameters begin in a record of a spec.
const AMOUNTS: &str = "resources.requests.";
const PARAMETERS: &str = "parameters.";

/// The spec that a resource was made from, where it was made for this claim and its templates read parameters: those are
/// read when it is made, and never again.
fn made_from(claim: &Claim, entry: &ResourceEntry) -> Option<SpecRecord> {
    let resource = &entry.resource;
    let script =
        resource.script.as_ref().filter(|_| resource.provisioned_for.as_ref() == Some(&claim.meta.uid))?;
    let made_from = script.inputs.pointer("/claim/spec")?;
    let is_used = script.source.to_string().contains("parameters");
    is_used.then(|| SpecRecord::of(made_from))
}

fn contradicts(ty: TypeId, wants: &Wants, offer: &Offer, at: usize) -> bool {
    let (want, have) = (&wants.fields[at], &offer.fields[at]);
    let of_field = |step: &&Step| step.at == Some(at);
    let refuses = steps(ty).iter().find(of_field).is_some_and(|step| match step.check.key {
        Key::Group { accepts, .. } | Key::Range { accepts, .. } | Key::Attribute(accepts) => {
            !accepts(want, have)
        }
        Key::Class(_) | Key::Namespaces(_) | Key::Labels(_) | Key::Standing { .. } | Key::Capacity(_) => {
            false
        }
    });
    *have != FieldValue::Absent && refuses
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
    let query = Query {
        namespace: &claim.meta.key.namespace,
        class: ClassQuery::OneOf(&classes),
        wants,
        headroom: None,
    };
    let resource = Described {
        candidate: Candidate { offer, standing: Standing::Vacant, free: Cow::Borrowed(&offer.capacity) },
        name: &entry.resource.meta.key.name,
        phase: "Bound",
        holders: Vec::new(),
    };
    let refusing = steps(claim.ty).iter().filter(|step| lacking.contains(&step.predicate));
    refusing.filter_map(|step| step.refusal(&query, &resource)).collect()
}

fn joined(names: &[Name]) -> String {
    names.iter().map(|name| &**name).collect::<Vec<_>>().join(" or ")
}
