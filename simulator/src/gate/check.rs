//! Checks cases and thresholds against a plan. A case that selects no claim fails: it proves nothing.

use super::cel::Expression;
use super::document::{BaselineChange, BaselineDifference, CheckKind, CheckResult};
use super::suite::{Case, Count, Expect, Select, Thresholds};
use crate::plan::{Plan, PlannedClaim};
use conductor::model::{Kind, Object};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A plan with the specs and labels of its claims.
pub(super) struct Subject<'a> {
    plan: &'a Plan,
    document: Value,
    claims: Vec<(&'a PlannedClaim, Value, Value, Value)>,
}

impl<'a> Subject<'a> {
    pub fn new(plan: &'a Plan, objects: &[Object]) -> Subject<'a> {
        let mut specs: BTreeMap<(&str, String), (&Object, Value)> = BTreeMap::new();
        for object in objects.iter().filter(|o| matches!(o.kind, Kind::Claim(_))) {
            let key = crate::world::key_of(object).to_string();
            let labels = json!(object.metadata.labels.clone().unwrap_or_default());
            specs.insert((object.kind.name(), key), (object, labels));
        }
        let claims = plan.claims.iter().map(|claim| {
            let known = specs.get(&(claim.kind, format!("{}/{}", claim.namespace, claim.name)));
            let spec = known.and_then(|(o, _)| o.body.get("spec").cloned()).unwrap_or(json!({}));
            let labels = known.map(|(_, labels)| labels.clone()).unwrap_or(json!({}));
            (claim, json!(claim), spec, labels)
        });
        let document = json!({"summary": plan.summary, "resources": plan.resources});
        Subject { plan, document, claims: claims.collect() }
    }

    /// Checks one case.
    ///
    /// # Errors
    /// An expression that is invalid or cannot be evaluated: an error in the suite.
    pub fn judge(&self, case: &Case) -> Result<CheckResult, String> {
        let Select { cel, .. } = &case.select;
        let chosen = cel.as_deref().map(Expression::read).transpose()?;
        let mut selected = Vec::new();
        for entry in
            self.claims.iter().filter(|(claim, _, spec, labels)| select(&case.select, claim, spec, labels))
        {
            if chosen.as_ref().map_or(Ok(true), |q| {
                q.evaluate(&[("claim", &entry.1), ("spec", &entry.2), ("labels", &entry.3)])
            })? {
                selected.push(entry);
            }
        }
        let Expect { outcome, resources, count, every, any, plan } = &case.expect;
        let every = every.as_deref().map(Expression::read).transpose()?;
        let any = any.as_deref().map(Expression::read).transpose()?;
        let mut failures = Vec::new();
        let about_claims = outcome.is_some() || !resources.is_empty() || every.is_some() || any.is_some();
        // Selecting no claim is fine for a case that counts, or one about the plan alone.
        if selected.is_empty() && (about_claims || (count.is_none() && plan.is_none())) {
            failures.push("selects no claim, so it proves nothing".to_owned());
        }
        if let Some(count) = count {
            failures.extend(miscounted(*count, selected.len()));
        }
        let mut some = any.is_none();
        for (claim, document, spec, labels) in &selected {
            let values = [("claim", document), ("spec", spec), ("labels", labels)];
            let who = format!("{}/{}", claim.namespace, claim.name);
            if let Some(outcome) = outcome
                && claim.outcome.name() != outcome
            {
                failures.push(format!("{who} is {}, not {outcome}: {}", claim.outcome.name(), claim.message));
            }
            let bound = claim.resource.as_ref().map(|r| &*r.name).unwrap_or_default();
            if !resources.is_empty() && !resources.iter().any(|pattern| is_like(pattern, bound)) {
                let got = if bound.is_empty() { claim.outcome.name() } else { bound };
                failures.push(format!("{who} gets {got}, not {}", resources.join(" or ")));
            }
            if let Some(question) = &every
                && !question.evaluate(&values)?
            {
                failures.push(format!("{who}: `every` is false: {}", claim.message));
            }
            if let Some(question) = &any {
                some = some || question.evaluate(&values)?;
            }
        }
        if !some && !selected.is_empty() {
            failures.push("`any` is false for every claim".to_owned());
        }
        if let Some(plan) = plan
            && !Expression::read(plan)?.evaluate(&[("plan", &self.document)])?
        {
            failures.push(format!("`plan` is false: {}", json!(self.plan.summary)));
        }
        Ok(CheckResult::new(CheckKind::Case, &case.name, selected.len(), failures))
    }
}

fn select(select: &Select, claim: &PlannedClaim, spec: &Value, labels: &Value) -> bool {
    let any =
        |patterns: &[String], text: &str| patterns.is_empty() || patterns.iter().any(|p| is_like(p, text));
    let class = spec.get("class").and_then(Value::as_str).unwrap_or_default();
    any(&select.namespaces, &claim.namespace)
        && any(&select.names, &claim.name)
        && any(&select.classes, class)
        && select.labels.iter().all(|(key, value)| labels.get(key).and_then(Value::as_str) == Some(value))
}

/// Matches a text against a pattern in which `*` stands for any text.
fn is_like(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

fn miscounted(count: Count, found: usize) -> Option<String> {
    let Count { min, max } = count;
    let few =
        min.filter(|min| found < *min).map(|min| format!("selects {found} claims, expected at least {min}"));
    few.or_else(|| {
        max.filter(|max| found > *max).map(|max| format!("selects {found} claims, expected at most {max}"))
    })
}

/// Checks each threshold. `difference`: from the baseline, if there is one.
pub(super) fn thresholds(
    thresholds: &Thresholds,
    plan: &Plan,
    difference: Option<&BaselineDifference>,
) -> Vec<CheckResult> {
    let Thresholds { pending, pending_percent, lost, changed, unserved, moved, deleted } = thresholds;
    let claims = plan.summary.claims;
    let of = |is: fn(&BaselineChange) -> bool| {
        difference.map_or(0, |d| d.claims.iter().filter(|change| is(change)).count())
    };
    let destroyed = plan.resources.iter().filter(|r| r.reclaim == Some("Delete")).count();
    let percent = if claims == 0 { 0.0 } else { plan.summary.pending as f64 * 100.0 / claims as f64 };
    let mut judged = Vec::new();
    for (name, most, found) in [
        ("pending", pending, plan.summary.pending),
        ("lost", lost, plan.summary.lost),
        ("changed", changed, of(|_| true)),
        ("unserved", unserved, of(is_unserved)),
        ("moved", moved, of(is_moved)),
        ("deleted", deleted, destroyed),
    ] {
        if let Some(most) = most {
            judged.push(threshold(name, found > *most, format!("{found}, limit {most}"), found));
        }
    }
    if let Some(most) = pending_percent {
        let message = format!("{percent:.1} % of {claims}, limit {most} %");
        judged.push(threshold("pendingPercent", percent > *most, message, plan.summary.pending));
    }
    judged
}

fn is_served(fate: Option<&String>) -> bool {
    fate.is_some_and(|fate| fate.starts_with("Bound") || fate.starts_with("Provision"))
}

fn is_unserved(change: &BaselineChange) -> bool {
    is_served(change.before.as_ref()) && change.after.is_some() && !is_served(change.after.as_ref())
}

fn is_moved(change: &BaselineChange) -> bool {
    let is_bound = |fate: &Option<String>| fate.as_ref().is_some_and(|fate| fate.starts_with("Bound"));
    is_bound(&change.before) && is_bound(&change.after)
}

fn threshold(name: &str, failed: bool, message: String, matched: usize) -> CheckResult {
    let failures = failed.then_some(message).into_iter().collect();
    CheckResult::new(CheckKind::Threshold, &format!("threshold {name}"), matched, failures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_stand_for_what_they_say() {
        for (pattern, text, is) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("*", "", true),
            ("a*", "abc", true),
            ("*c", "abc", true),
            ("a*c", "abc", true),
            ("a*b*c", "a-x-b-y-c", true),
            ("a*b*c", "acb", false),
            ("*b*", "abc", true),
        ] {
            assert_eq!(is_like(pattern, text), is, "{pattern} {text}");
        }
    }
}
