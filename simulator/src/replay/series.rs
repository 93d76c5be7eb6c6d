//! The state over time, looked at so many times between the beginning and the end.

use super::document::Sample;
use super::stage::Stage;
use conductor::engine::Binding;
use conductor::model::{Kind, Object, Quantity};
use serde_json::Value;

/// The state now.
pub(super) fn sample(stage: &Stage, at: u64) -> Sample {
    let mut sample = Sample { at, ..Sample::default() };
    let state = stage.engine.state();
    for claim in state.claims() {
        match stage.engine.binding(&claim.meta.uid) {
            Some(Binding::Bound { .. } | Binding::Assumed { .. }) => sample.bound += 1,
            Some(Binding::Provisioning { .. }) => sample.provisioning += 1,
            Some(Binding::Lost { .. }) => sample.lost += 1,
            Some(Binding::Waiting(refused)) => {
                sample.waiting += 1;
                let reason = refused.as_ref().map_or("Scheduling", |r| r.reason);
                *sample.reasons.entry(reason.to_owned()).or_default() += 1;
            }
            Some(Binding::Leaving) | None => {}
        }
    }
    for object in stage.world.objects() {
        match object.kind {
            Kind::Resource(_) => {}
            Kind::Quota | Kind::ClusterQuota => {
                sample.quotas.insert(crate::world::key_of(object).to_string(), used(object));
                continue;
            }
            _ => continue,
        }
        let class = object.body.pointer("/spec/class").and_then(|c| c.as_str()).unwrap_or_default();
        let held =
            object.body.pointer("/spec/claimRefs").and_then(|r| r.as_array()).is_some_and(|r| !r.is_empty());
        let figures = sample.classes.entry(class.to_owned()).or_default();
        figures.0 += usize::from(held);
        figures.1 += 1;
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
