//! The state over time, looked at so many times between the beginning and the end.

use super::document::Sample;
use super::stage::Stage;
use conductor::engine::Stand;
use conductor::model::{Kind, Lookup, Object, ObjectKey, Quantity};
use serde_json::Value;
use std::collections::BTreeMap;

/// The resources that are held, and all, by class, kept with every change: looking at all of them each time would
/// take longer than what happens in between.
#[derive(Debug, Default)]
pub(super) struct Holdings {
    known: Lookup<(Kind, ObjectKey), (String, bool)>,
    classes: BTreeMap<String, (usize, usize)>,
}

impl Holdings {
    /// An object is there, new or changed.
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

    /// A resource that is there is held, or no longer.
    pub fn hold(&mut self, kind: Kind, key: &ObjectKey, is_held: bool) {
        let Some((class, was_held)) = self.known.get_mut(&(kind, key.clone())) else { return };
        if let Some(figures) = self.classes.get_mut(class) {
            figures.0 += usize::from(is_held);
            figures.0 -= usize::from(*was_held);
        }
        *was_held = is_held;
    }

    /// An object is gone.
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

/// The state now.
pub(super) fn sample(stage: &Stage, at: u64) -> Sample {
    let mut sample = Sample { at, classes: stage.holdings.classes.clone(), ..Sample::default() };
    for (stand, count) in stage.engine.count_claims() {
        match stand {
            Stand::Bound | Stand::Unmanaged => sample.bound += count,
            Stand::Provisioning => sample.provisioning += count,
            Stand::Lost => sample.lost += count,
            Stand::Waiting(reason) => {
                sample.waiting += count;
                *sample.reasons.entry(reason.unwrap_or("Scheduling").to_owned()).or_default() += count;
            }
            Stand::Leaving => {}
        }
    }
    for quota in [Kind::Quota, Kind::ClusterQuota].into_iter().flat_map(|kind| stage.world.of(kind)) {
        sample.quotas.insert(crate::world::key_of(quota).to_string(), used(quota));
    }
    sample
}

/// How far a quota is used, in per cent of its tightest limit, by what the engine wrote in its status.
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
