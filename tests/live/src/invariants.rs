//! What must hold at every revision of a trial's history, whatever faults the controller had. The numbers are those of the
//! reliability notes; the wire checks I10, that a settled controller writes nothing.

use crate::kinds::{CLAIM, INSTANCE, PUBLISHED, QUOTA, RESOURCE};
use crate::observer::Seen;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Checks a history and returns the first violation.
///
/// # Errors
/// The invariant, the revision and the objects.
pub fn check(history: &[Seen]) -> Result<(), String> {
    let mut laws = Laws::default();
    for seen in history {
        laws.see(seen).map_err(|broken| format!("{broken}, at revision {}", seen.revision))?;
    }
    laws.no_orphans()
}

#[derive(Debug, Default)]
struct Laws {
    claims: BTreeMap<String, Value>,
    resources: BTreeMap<String, Value>,
    instances: BTreeMap<String, Value>,
    quotas: BTreeMap<String, Value>,
    /// Resources that were ever made for a claim, by its UID.
    made: BTreeMap<String, BTreeSet<String>>,
    /// Objects that were ever made for one part of a resource, by the resource's UID and the part's id.
    parts: BTreeMap<(String, String), BTreeSet<String>>,
    /// What was published for claims and is still there.
    published: BTreeMap<String, Value>,
    /// Each deletion is checked once: when it begins.
    ending: BTreeSet<String>,
}

impl Laws {
    fn see(&mut self, seen: &Seen) -> Result<(), String> {
        let uid = word(&seen.object["metadata"]["uid"]).to_owned();
        let kind = word(&seen.object["kind"]);
        let ends = seen.gone || !seen.object["metadata"]["deletionTimestamp"].is_null();
        if kind == RESOURCE && ends && self.ending.insert(uid.clone()) {
            self.may_be_destroyed(&seen.object)?;
        }
        if kind == INSTANCE && ends && self.ending.insert(uid.clone()) {
            self.may_be_unmade(&seen.object)?;
        }
        if kind == INSTANCE {
            self.is_made_once(&seen.object)?;
        }
        let shelf = match kind {
            CLAIM => &mut self.claims,
            kind if PUBLISHED.contains(&kind) => &mut self.published,
            RESOURCE => &mut self.resources,
            INSTANCE => &mut self.instances,
            QUOTA => &mut self.quotas,
            _ => return Ok(()),
        };
        match seen.gone {
            true => drop(shelf.remove(&uid)),
            false => drop(shelf.insert(uid, seen.object.clone())),
        }
        if kind == RESOURCE && !seen.gone { self.is_held_rightly(&seen.object) } else { Ok(()) }
    }

    /// I1, I2 and I6, for a resource that has just changed.
    fn is_held_rightly(&mut self, resource: &Value) -> Result<(), String> {
        let name = name(resource);
        let own = word(&resource["metadata"]["uid"]);
        let slots = resource["spec"]["sharing"]["maxClaims"].as_u64().unwrap_or(1);
        if holders(resource).len() as u64 > slots {
            return Err(format!("I1: {name} has {slots} slots and is held by {:?}", holders(resource)));
        }
        for (uid, other) in self.resources.iter().filter(|(uid, _)| uid.as_str() != own) {
            if let Some(claim) = holders(resource).intersection(&holders(other)).next() {
                return Err(format!("I1: claim {claim} is held by {name} and by {uid}"));
            }
        }
        if let Some(claim) = resource["metadata"]["annotations"]["conductor.io/provisioned-for"].as_str() {
            let made = self.made.entry(claim.to_owned()).or_default();
            made.insert(own.to_owned());
            if made.len() > 1 {
                return Err(format!("I2: {} resources were made for claim {claim}", made.len()));
            }
        }
        self.keeps_quota()
    }

    /// I2, for the objects of a resource: none is ever created twice.
    fn is_made_once(&mut self, instance: &Value) -> Result<(), String> {
        let meta = &instance["metadata"];
        let owner = meta["annotations"]["conductor.io/resource-uid"].as_str();
        let part = meta["labels"]["conductor.io/part"].as_str();
        let Some((owner, part)) = owner.zip(part) else { return Ok(()) };
        let made = self.parts.entry((owner.to_owned(), part.to_owned())).or_default();
        made.insert(word(&meta["uid"]).to_owned());
        match made.len() {
            1 => Ok(()),
            times => Err(format!("I2: {} was made {times} times for {owner}", name(instance))),
        }
    }

    /// I6, for quotas that count claims.
    fn keeps_quota(&self) -> Result<(), String> {
        let held: BTreeSet<String> = self.resources.values().flat_map(holders).collect();
        let alive = held.iter().filter(|uid| self.claims.contains_key(*uid)).count() as u64;
        for quota in self.quotas.values() {
            for limit in quota["spec"]["limits"].as_array().into_iter().flatten() {
                if let Some(most) = limit["claims"].as_u64().filter(|most| alive > *most) {
                    return Err(format!("I6: {alive} claims are held, {} allows {most}", name(quota)));
                }
            }
        }
        Ok(())
    }

    /// I3 and I4. Only the controller deletes a resource in a trial.
    fn may_be_destroyed(&self, resource: &Value) -> Result<(), String> {
        let name = name(resource);
        let policy = resource["spec"]["reclaimPolicy"].as_str().unwrap_or("Retain");
        if policy != "Delete" {
            return Err(format!("I4: {name} is destroyed, and its policy is {policy}"));
        }
        if holders(resource).is_empty() {
            return Err(format!("I3: {name} is destroyed without ever having been held"));
        }
        let alive = |uid: &String| {
            self.claims.get(uid).is_some_and(|claim| claim["metadata"]["deletionTimestamp"].is_null())
        };
        match holders(resource).iter().find(|uid| alive(uid)) {
            Some(uid) => Err(format!("I3: {name} is destroyed under claim {uid}")),
            None => Ok(()),
        }
    }

    /// I3 and I4, for the objects of a resource: deleted only with a resource whose policy is Delete.
    fn may_be_unmade(&self, instance: &Value) -> Result<(), String> {
        let Some(owner) = self.owner_of(instance) else { return Ok(()) };
        let policy = owner["spec"]["reclaimPolicy"].as_str().unwrap_or("Retain");
        if policy != "Delete" || owner["metadata"]["deletionTimestamp"].is_null() {
            return Err(format!("I4: {} is unmade, its resource {} stays", name(instance), name(owner)));
        }
        Ok(())
    }

    fn owner_of(&self, instance: &Value) -> Option<&Value> {
        self.resources.values().find(|resource| {
            let made = &resource["status"]["implementationRef"];
            let is_it = |made: &Value| {
                made["name"] == instance["metadata"]["name"] || made == &instance["metadata"]["name"]
            };
            is_it(made) || made.as_array().into_iter().flatten().any(is_it)
        })
    }

    /// I5, at the end: every object has an owner.
    fn no_orphans(&self) -> Result<(), String> {
        for resource in self.resources.values() {
            let annotations = &resource["metadata"]["annotations"];
            let made = annotations["conductor.io/provisioned-for"].as_str();
            let phase = word(&resource["status"]["phase"]);
            let kept = matches!(phase, "Released" | "Failed");
            if made.is_some_and(|claim| !self.claims.contains_key(claim)) && !kept {
                return Err(format!("I5: {} is {phase} and belongs to no claim", name(resource)));
            }
        }
        let claim_of =
            |object: &Value| word(&object["metadata"]["annotations"]["conductor.io/claim-uid"]).to_owned();
        if let Some(left) =
            self.published.values().find(|object| !self.claims.contains_key(&claim_of(object)))
        {
            return Err(format!("I5: {} is published for no claim", name(left)));
        }
        let orphan = self.instances.values().find(|instance| self.owner_of(instance).is_none());
        match orphan.filter(|orphan| orphan["metadata"]["labels"]["kept"].is_null()) {
            Some(orphan) => Err(format!("I5: {} belongs to no resource", name(orphan))),
            None => Ok(()),
        }
    }
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn name(object: &Value) -> String {
    format!("{} {}", word(&object["kind"]), word(&object["metadata"]["name"]))
}

/// The UIDs of the claims that hold a resource.
fn holders(resource: &Value) -> BTreeSet<String> {
    let refs = resource["spec"]["claimRefs"].as_array().into_iter().flatten();
    refs.filter_map(|r| r["uid"].as_str()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn seen(revision: u64, gone: bool, object: Value) -> Seen {
        Seen { revision, gone, object }
    }

    fn resource(uid: &str, policy: &str, claims: &[&str], made_for: Option<&str>) -> Value {
        let refs: Vec<_> = claims.iter().map(|claim| json!({"uid": claim})).collect();
        json!({"kind": RESOURCE, "metadata": {"name": uid, "uid": uid,
            "annotations": {"conductor.io/provisioned-for": made_for}},
            "spec": {"reclaimPolicy": policy, "claimRefs": refs}})
    }

    fn claim(uid: &str) -> Value {
        json!({"kind": CLAIM, "metadata": {"name": uid, "uid": uid}})
    }

    fn quota(claims: u64) -> Value {
        json!({"kind": QUOTA, "metadata": {"name": "q", "uid": "q"}, "spec": {"limits": [{"claims": claims}]}})
    }

    fn part_of_a(uid: &str) -> Value {
        json!({"kind": INSTANCE, "metadata": {"name": "i", "uid": uid, "labels": {"conductor.io/part": "main"},
            "annotations": {"conductor.io/resource-uid": "a"}}})
    }

    /// Breaks each once to prove that the check sees it.
    #[test]
    fn every_broken_law_is_seen() {
        let table = [
            ("I1", vec![resource("a", "Retain", &["c", "d"], None)]),
            ("I1", vec![resource("a", "Retain", &["c"], None), resource("b", "Retain", &["c"], None)]),
            ("I2", vec![resource("a", "Delete", &[], Some("c")), resource("b", "Delete", &[], Some("c"))]),
            ("I6", vec![quota(0), claim("c"), resource("a", "Retain", &["c"], None)]),
            ("I5", vec![resource("a", "Delete", &[], Some("c"))]),
            ("I5", vec![json!({"kind": INSTANCE, "metadata": {"name": "i", "uid": "i"}})]),
            (
                "I5",
                vec![json!({"kind": "Secret", "metadata": {"name": "s", "uid": "s",
                "annotations": {"conductor.io/claim-uid": "c"}}})],
            ),
            ("I2", ["i", "j"].map(part_of_a).to_vec()),
        ];
        for (law, objects) in table {
            let history: Vec<_> =
                objects.into_iter().enumerate().map(|(at, object)| seen(at as u64, false, object)).collect();
            let broken = check(&history).unwrap_err();
            assert!(broken.starts_with(law), "{law}: {broken}");
        }
        for (law, policy, holders, alive) in [
            ("I3", "Delete", &["c"][..], true),
            ("I4", "Retain", &["c"], false),
            ("I3", "Delete", &[], false),
        ] {
            let mut history = vec![seen(0, false, resource("a", policy, holders, None))];
            history.extend(alive.then(|| seen(1, false, claim("c"))));
            history.push(seen(2, true, resource("a", policy, holders, None)));
            let broken = check(&history).unwrap_err();
            assert!(broken.starts_with(law), "{law}: {broken}");
        }
    }

    #[test]
    fn a_good_history_passes() {
        let history = [
            seen(1, false, quota(1)),
            seen(2, false, claim("c")),
            seen(3, false, resource("a", "Delete", &["c"], Some("c"))),
            seen(4, true, claim("c")),
            seen(5, true, resource("a", "Delete", &["c"], Some("c"))),
        ];
        assert_eq!(check(&history), Ok(()));
    }
}
