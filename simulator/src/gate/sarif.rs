//! A verdict as SARIF 2.1.0: each failure is a finding at the policy file that is judged, where reviewers look.

use super::document::{Finding, Verdict};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The verdict as SARIF. Findings point at the `policies`, and beside them at their case in the suite, whose `lines` are
/// by case; where there are no policies, at the case alone.
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
        let text = "there is no baseline yet: make one with --bless";
        results.push(json!({"ruleId": rule(Finding::Baseline), "level": "warning", "locations": locations(""), "message": {"text": text}}));
    }
    let rules = [Finding::Case, Finding::Threshold, Finding::Baseline]
        .map(|kind| json!({"id": rule(kind), "shortDescription": {"text": describe(kind)}}));
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "conductor sim gate", "version": env!("CARGO_PKG_VERSION"), "rules": rules}},
            "results": results,
        }],
    })
}

fn rule(kind: Finding) -> &'static str {
    match kind {
        Finding::Case => "gate/case",
        Finding::Threshold => "gate/threshold",
        Finding::Baseline => "gate/baseline",
    }
}

fn describe(kind: Finding) -> &'static str {
    match kind {
        Finding::Case => "An expectation about claims does not hold",
        Finding::Threshold => "A figure is above what is allowed",
        Finding::Baseline => "Claims fare otherwise than in the plan that was found good",
    }
}

/// A path as the URI that it is within the repository, or on this machine where it is absolute. What is no letter of a
/// URI is written by its bytes; readers of SARIF take no other.
fn uri(path: &str) -> String {
    let mut uri = if path.starts_with('/') { "file://".to_owned() } else { String::new() };
    for byte in path.bytes() {
        match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' => uri.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => uri.push(char::from(byte)),
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
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
