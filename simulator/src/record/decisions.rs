//! The live engine's decisions, read off what it wrote: `claimRefs` that name a claim by its UID, resources made for
//! one, the reason on a claim's condition. These writes are the decisions: nothing was asked of the engine, and no
//! other stream could disagree with them.

use super::line::{Decision, Outcome, Verdict};
use conductor::api::{names, reasons};
use conductor::model::{Kind, TypeId};
use serde_json::Value;

/// What a change of an object says was decided. `old` is absent where the object is new.
pub fn decisions(kind: Kind, old: Option<&Value>, new: &Value, at: u64) -> Vec<Decision> {
    match kind {
        Kind::Resource(ty) => {
            bindings(ty, old, new, at).into_iter().chain(provision(ty, old, new, at)).collect()
        }
        Kind::Claim(ty) => told(ty, old, new, at).into_iter().collect(),
        Kind::Class(_)
        | Kind::Quota
        | Kind::ClusterQuota
        | Kind::Limits
        | Kind::Profile
        | Kind::Namespace => Vec::new(),
    }
}

fn word<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn holders(resource: &Value) -> impl Iterator<Item = &Value> {
    let refs = resource.pointer("/spec/claimRefs").and_then(Value::as_array).into_iter().flatten();
    refs.filter(|r| r.get("uid").is_some_and(|uid| uid.as_str().is_some_and(|uid| !uid.is_empty())))
}

fn bindings(ty: TypeId, old: Option<&Value>, new: &Value, at: u64) -> Vec<Decision> {
    let known = |uid: &Value| old.is_some_and(|old| holders(old).any(|r| r.get("uid") == Some(uid)));
    let added = holders(new).filter(|r| !known(&r["uid"]));
    // One that was made for a claim names it from the start: that is its provision, and no second decision.
    let made_for = made_for(new).unwrap_or_default();
    let added = added.filter(|r| r["uid"].as_str() != Some(made_for));
    let decision = |r: &Value| Decision {
        at,
        kind: ty.rules().claim.to_owned(),
        ns: word(r, "/namespace").to_owned(),
        name: word(r, "/name").to_owned(),
        uid: word(r, "/uid").to_owned(),
        verdict: Verdict::Bind { resource: word(new, "/metadata/name").to_owned() },
    };
    added.map(decision).collect()
}

/// The UID of the claim that a resource was made for.
pub fn made_for(resource: &Value) -> Option<&str> {
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
        verdict: Verdict::Provision { class: word(new, "/spec/class").to_owned() },
    })
}

/// The reason on a claim's condition Bound, where it says no.
pub fn refusal(claim: &Value) -> Option<&str> {
    let conditions = claim.pointer("/status/conditions")?.as_array()?;
    let bound = conditions.iter().find(|c| c["type"] == reasons::BOUND)?;
    (bound["status"] != "True").then(|| bound["reason"].as_str()).flatten()
}

fn told(ty: TypeId, old: Option<&Value>, new: &Value, at: u64) -> Option<Decision> {
    use reasons::bound;
    let reason = refusal(new)?;
    // Not yet looked at, on its way, or leaving: nothing was decided.
    let silent =
        [bound::SCHEDULING, bound::PROVISIONING, bound::PROVISIONING_FAILED, bound::DELETING, bound::BOUND];
    if silent.contains(&reason) || old.and_then(refusal) == Some(reason) {
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
        ns: word(new, "/metadata/namespace").to_owned(),
        name: word(new, "/metadata/name").to_owned(),
        uid: word(new, "/metadata/uid").to_owned(),
        verdict,
    })
}

/// How the making of a resource ended, where a change says so. `since` is when it was first seen.
pub fn outcome(kind: Kind, old: Option<&Value>, new: &Value, since: Option<u64>, at: u64) -> Option<Outcome> {
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
        resource: word(new, "/metadata/name").to_owned(),
        uid: word(new, "/metadata/uid").to_owned(),
        phase: if is == "Failed" { is } else { "Available".to_owned() },
        took_ms: since.map(|since| at.saturating_sub(since)),
    })
}
