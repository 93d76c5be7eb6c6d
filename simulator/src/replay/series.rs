//! Samples the state over time.

use super::cluster::ReplayCluster;
use super::document::Sample;
use conductor::engine::ClaimState;
use conductor::model::{Kind, Lookup, Object, ObjectKey, Quantity};
use serde_json::Value;
use std::collections::BTreeMap;

/// Held and all resources by class, updated with every change: counting them for each sample would dominate the replay.
#[derive(Debug, Default)]
pub(super) struct Holdings {
    known: Lookup<(Kind, ObjectKey), (String, bool)>,
    classes: BTreeMap<String, (usize, usize)>,
}

impl Holdings {
    /// Notes a new or changed object.
    pub fn see(&mut self, object: &Object) {
        let Kind::Resource(_) = object.kind else { return };
        let class = object.body.pointer("/spec/class").and_then(Value::as_str).unwrap_or_default();
        let refs = object.body.pointer("/spec/claimRefs").and_then(Value::as_array);
        let is_held = refs.is_some_and(|refs| !refs.is_empty());
        let key = crate::world::key_of(object);
        self.forget(object.kind, &key);
        let figures = self.classes.entry(class.to_owned()).or_default();
        figures.0 += usize::from(is_held);
        figures.1 += 1;
        self.known.insert((object.kind, key), (class.to_owned(), is_held));
    }

    /// Notes that a resource is held, or no longer.
    pub fn hold(&mut self, kind: Kind, key: &ObjectKey, is_held: bool) {
        let Some((class, was_held)) = self.known.get_mut(&(kind, key.clone())) else { return };
        if let Some(figures) = self.classes.get_mut(class) {
            figures.0 += usize::from(is_held);
            figures.0 -= usize::from(*was_held);
        }
        *was_held = is_held;
    }

    /// Notes a deletion.
    pub fn forget(&mut self, kind: Kind, key: &ObjectKey) {
        let Kind::Resource(_) = kind else { return };
        let Some((class, was_held)) = self.known.remove(&(kind, key.clone())) else { return };
        if let Some(figures) = self.classes.get_mut(&class) {
            figures.0 -= usize::from(was_held);
            figures.1 -= 1;
            if figures.1 == 0 {
                self.classes.remove(&class);
            }
        }
    }
}

/// Samples the state.
pub(super) fn sample(cluster: &ReplayCluster, at: u64) -> Sample {
    let mut sample = Sample { at, classes: cluster.holdings.classes.clone(), ..Sample::default() };
    for (stand, count) in cluster.engine.count_claims() {
        match stand {
            ClaimState::Bound | ClaimState::Unmanaged => sample.bound += count,
            ClaimState::Provisioning => sample.provisioning += count,
            ClaimState::Lost => sample.lost += count,
            ClaimState::Waiting(reason) => {
                sample.waiting += count;
                *sample.reasons.entry(reason.unwrap_or("Scheduling").to_owned()).or_default() += count;
            }
            ClaimState::Leaving => {}
        }
    }
    for quota in [Kind::Quota, Kind::ClusterQuota].into_iter().flat_map(|kind| cluster.world.of(kind)) {
        sample.quotas.insert(crate::world::key_of(quota).to_string(), used(quota));
    }
    sample
}

/// Use of a quota in per cent of its tightest limit, from the status that the engine wrote.
fn used(quota: &Object) -> u64 {
    let list = |pointer: &str| quota.body.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
    let shares = list("/spec/limits").zip(list("/status/used")).flat_map(|(limit, used)| {
        let claims =
            limit["claims"].as_u64().zip(used["claims"].as_u64()).map(|(most, is)| is * 100 / most.max(1));
        let requests = limit["requests"].as_object().into_iter().flatten().filter_map(|(name, most)| {
            let most = Quantity::from_json(most).ok()?.nanos().max(1);
            let is = Quantity::from_json(used["requests"].get(name)?).ok()?.nanos();
            u64::try_from(is.saturating_mul(100) / most).ok()
        });
        claims.into_iter().chain(requests).collect::<Vec<_>>()
    });
    shares.max().unwrap_or(0)
}
