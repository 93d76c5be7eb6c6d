//! A verdict as SARIF 2.1.0: each failure is a finding at the policy file under review.

use super::document::{CheckKind, Verdict};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Formats the verdict as SARIF. Findings point at the `policies` and at their case in the suite (`lines`: the line of
/// each case); without policies, at the case alone.
pub fn sarif(verdict: &Verdict, suite: &str, policies: &[String], lines: &BTreeMap<String, usize>) -> Value {
    let place = |file: &str, line: usize| json!({"physicalLocation": {"artifactLocation": {"uri": uri(file)}, "region": {"startLine": line}}});
    let case = |name: &str| place(suite, lines.get(name).copied().unwrap_or(1));
    let locations = |name: &str| -> Vec<Value> {
        match policies.is_empty() {
            true => vec![case(name)],
            false => policies.iter().map(|file| place(file, 1)).collect(),
        }
    };
    let failed = verdict.judged.iter().filter(|j| !j.passed);
    let mut results: Vec<Value> = failed
        .flat_map(|judged| judged.failures.iter().map(move |why| (judged, why)))
        .map(|(judged, why)| {
            json!({
                "ruleId": rule(judged.kind), "level": "error", "locations": locations(&judged.name),
                "relatedLocations": [case(&judged.name)],
                "message": {"text": format!("{}: {why}", judged.name)},
            })
        })
        .collect();
    if verdict.inconclusive {
        let text = "there is no baseline yet: create one with --bless";
        results.push(json!({"ruleId": rule(CheckKind::Baseline), "level": "warning", "locations": locations(""), "message": {"text": text}}));
    }
    let rules = [CheckKind::Case, CheckKind::Threshold, CheckKind::Baseline]
        .map(|kind| json!({"id": rule(kind), "shortDescription": {"text": describe(kind)}}));
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "conductor sim gate", "version": env!("CARGO_PKG_VERSION"), "rules": rules}},
            "results": results,
        }],
    })
}

fn rule(kind: CheckKind) -> &'static str {
    match kind {
        CheckKind::Case => "gate/case",
        CheckKind::Threshold => "gate/threshold",
        CheckKind::Baseline => "gate/baseline",
    }
}

fn describe(kind: CheckKind) -> &'static str {
    match kind {
        CheckKind::Case => "An expectation about claims is not met",
        CheckKind::Threshold => "A figure exceeds its limit",
        CheckKind::Baseline => "Claims have other outcomes than in the accepted plan",
    }
}

/// Everything but these characters and alphanumeric ones is percent-encoded, as SARIF readers require.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A path as a URI: relative to the repository, or absolute on this machine.
fn uri(path: &str) -> String {
    let scheme = if path.starts_with('/') { "file://" } else { "" };
    format!("{scheme}{}", utf8_percent_encode(path, ESCAPED))
}

#[cfg(test)]
mod tests {
    use super::uri;

    #[test]
    fn paths_are_uris() {
        for (path, expected) in [
            ("policies/quota.yaml", "policies/quota.yaml"),
            ("./a b/100%.yaml", "./a%20b/100%25.yaml"),
            ("c:d#e?f.yaml", "c%3Ad%23e%3Ff.yaml"),
            ("/srv/repo/quota.yaml", "file:///srv/repo/quota.yaml"),
            ("zähler.yaml", "z%C3%A4hler.yaml"),
        ] {
            assert_eq!(uri(path), expected);
        }
    }
}
