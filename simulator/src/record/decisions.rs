//! The live engine's decisions, derived from its writes: `claimRefs` with a claim's UID, resources provisioned for a
//! claim, the reason of a claim's condition. The writes are the decisions, so no other source can disagree.

use super::line::{Decision, Outcome, Verdict};
use conductor::api::{names, reasons};
use conductor::model::{Kind, TypeId};
use serde_json::Value;

/// Returns the decisions that a change of an object shows. `old` is `None` for a new object.
pub(crate) fn decisions(kind: Kind, old: Option<&Value>, new: &Value, at: u64) -> Vec<Decision> {
    match kind {
        Kind::Resource(ty) => {
            bindings(ty, old, new, at).into_iter().chain(provision(ty, old, new, at)).collect()
        }
        Kind::Claim(ty) => refused(ty, old, new, at).into_iter().collect(),
        _ => Vec::new(),
    }
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn holders(resource: &Value) -> impl Iterator<Item = &Value> {
    let refs = resource.pointer("/spec/claimRefs").and_then(Value::as_array).into_iter().flatten();
    refs.filter(|r| r.get("uid").is_some_and(|uid| uid.as_str().is_some_and(|uid| !uid.is_empty())))
}

fn bindings(ty: TypeId, old: Option<&Value>, new: &Value, at: u64) -> Vec<Decision> {
    let known = |uid: &Value| old.is_some_and(|old| holders(old).any(|r| r.get("uid") == Some(uid)));
    let added = holders(new).filter(|r| !known(&r["uid"]));
    // A resource provisioned for a claim names it from the start; that is the provision, not a second decision.
    let made_for = made_for(new).unwrap_or_default();
    let added = added.filter(|r| r["uid"].as_str() != Some(made_for));
    let decision = |r: &Value| Decision {
        at,
        kind: ty.rules().claim.to_owned(),
        ns: text(r, "/namespace").to_owned(),
        name: text(r, "/name").to_owned(),
        uid: text(r, "/uid").to_owned(),
        verdict: Verdict::Bind { resource: text(new, "/metadata/name").to_owned() },
    };
    added.map(decision).collect()
}

/// The UID of the claim that a resource was provisioned for.
pub(crate) fn made_for(resource: &Value) -> Option<&str> {
    resource.get("metadata")?.get("annotations")?.get(names::PROVISIONED_FOR)?.as_str()
}

fn provision(ty: TypeId, old: Option<&Value>, new: &Value, at: u64) -> Option<Decision> {
    let uid = made_for(new).filter(|_| old.is_none())?;
    let holder = holders(new).find(|r| r["uid"].as_str() == Some(uid));
    let field = |name: &str| holder.and_then(|r| r.get(name)).and_then(Value::as_str).unwrap_or_default();
    Some(Decision {
        at,
        kind: ty.rules().claim.to_owned(),
        ns: field("namespace").to_owned(),
        name: field("name").to_owned(),
        uid: uid.to_owned(),
        verdict: Verdict::Provision { class: text(new, "/spec/class").to_owned() },
    })
}

/// The reason of a claim's condition Bound, unless it is True.
pub(crate) fn refusal(claim: &Value) -> Option<&str> {
    let conditions = claim.pointer("/status/conditions")?.as_array()?;
    let bound = conditions.iter().find(|c| c["type"] == reasons::BOUND)?;
    (bound["status"] != "True").then(|| bound["reason"].as_str()).flatten()
}

fn refused(ty: TypeId, old: Option<&Value>, new: &Value, at: u64) -> Option<Decision> {
    let reason = refusal(new)?;
    if !is_decision(reason) || old.and_then(refusal) == Some(reason) {
        return None;
    }
    let reason = reason.to_owned();
    let verdict = match new.pointer("/status/phase").and_then(Value::as_str) {
        Some("Lost") => Verdict::Lost { reason },
        _ => Verdict::Refuse { reason },
    };
    Some(Decision {
        at,
        kind: ty.rules().claim.to_owned(),
        ns: text(new, "/metadata/namespace").to_owned(),
        name: text(new, "/metadata/name").to_owned(),
        uid: text(new, "/metadata/uid").to_owned(),
        verdict,
    })
}

/// Whether a reason of the condition Bound states a decision, not progress.
pub(crate) fn is_decision(reason: &str) -> bool {
    use reasons::bound;
    let progress =
        [bound::SCHEDULING, bound::PROVISIONING, bound::PROVISIONING_FAILED, bound::DELETING, bound::BOUND];
    !progress.contains(&reason)
}

/// How the provisioning of a resource ended, if this change shows it. `since`: when the resource was first seen.
pub(crate) fn outcome(
    kind: Kind,
    old: Option<&Value>,
    new: &Value,
    since: Option<u64>,
    at: u64,
) -> Option<Outcome> {
    let Kind::Resource(ty) = kind else { return None };
    new.pointer("/spec/template")?;
    let phase = |o: &Value| o.pointer("/status/phase").and_then(Value::as_str).unwrap_or_default().to_owned();
    let ends = |phase: &str| matches!(phase, "Available" | "Bound" | "Failed");
    let (was, is) = (old.map(phase).unwrap_or_default(), phase(new));
    if ends(&was) || !ends(&is) {
        return None;
    }
    Some(Outcome {
        at,
        kind: ty.rules().resource.to_owned(),
        resource: text(new, "/metadata/name").to_owned(),
        uid: text(new, "/metadata/uid").to_owned(),
        phase: if is == "Failed" { is } else { "Available".to_owned() },
        took_ms: since.map(|since| at.saturating_sub(since)),
    })
}
