//! The usage in a quota's status, limit by limit.

use crate::action::Change;
use crate::cache::Use;
use crate::model::Quota;
use crate::model::quota::QuotaLimit;
use serde_json::{Map, Value};

/// The change that brings a quota's status up to date.
pub fn plan_quota(quota: &Quota, used: &[Use]) -> Option<Change> {
    let limits = quota.limits.as_ref().ok()?;
    let entries = limits.iter().zip(used).map(|(limit, used)| {
        let mut entry = Map::new();
        if let Some(class) = &limit.class {
            entry.insert("class".to_owned(), Value::from(&**class));
        }
        if let Some(engine) = &limit.engine {
            entry.insert("engine".to_owned(), Value::from(&**engine));
        }
        entry.insert("claims".to_owned(), Value::from(used.claims));
        let requests = limit
            .requests
            .iter()
            .map(|(name, _)| (name.to_string(), Value::from(used.amounts.get(name).to_string())));
        entry.insert("requests".to_owned(), Value::Object(requests.collect()));
        Value::Object(entry)
    });
    let summary =
        limits.iter().zip(used).map(|(limit, used)| summarise(limit, used)).collect::<Vec<_>>().join("; ");
    let used = Value::Array(entries.collect());
    // The line has the limits too: it changes with them where the use does not.
    let is_current = quota.used.as_ref() == Some(&used) && quota.summary.as_deref() == Some(&*summary);
    (!is_current).then_some(Change::QuotaStatus { used, summary })
}

/// `claims 3/5, storage 30Gi/50Gi`: what people see first.
fn summarise(limit: &QuotaLimit, used: &Use) -> String {
    let claims = limit.claims.map(|most| format!("claims {}/{most}", used.claims));
    let requests =
        limit.requests.iter().map(|(name, most)| format!("{name} {}/{most}", used.amounts.get(name)));
    let amounts = claims.into_iter().chain(requests).collect::<Vec<_>>().join(", ");
    match limit.class.as_ref().or(limit.engine.as_ref()) {
        Some(scope) => format!("{scope}: {amounts}"),
        None => amounts,
    }
}
