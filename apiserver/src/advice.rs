//! Warnings about objects that the API accepts: no controller reads the object in its namespace, or its version may have lost
//! digits. A real API server says the same by the policy `conductor-advice` of `deploy/admission-policy.yaml`.
//! Deliberately absent: refusing anything.

use super::call::Call;
use super::decode::read_yaml;
use super::scope::{Scope, Sub};
use http::Method;
use serde_json::Value;

/// Where objects with a version are, and whether they are read in the system namespace only.
const KINDS: [(&str, &str, bool); 5] = [
    ("storage.conductor.io", "relationaldatabases", true),
    ("storage.conductor.io", "relationaldatabaseclasses", true),
    ("storage.conductor.io", "relationaldatabaseclaims", false),
    ("database.conductor.io", "databaseservers", true),
    ("database.conductor.io", "localservers", true),
];

/// Warnings about what a request writes, where this API has a system namespace.
pub(super) fn of(call: &Call, scope: &Scope, system_namespace: Option<&str>) -> Vec<String> {
    let is_write = [Method::POST, Method::PUT, Method::PATCH].contains(&call.method);
    let resource = &scope.served.resource;
    let found =
        KINDS.iter().find(|(group, plural, _)| *group == resource.group && *plural == resource.plural);
    let (Some(system), Some((_, _, is_of_system))) = (system_namespace, found) else { return Vec::new() };
    if !is_write || scope.sub != Sub::Whole {
        return Vec::new();
    }
    let mut warnings = Vec::new();
    if *is_of_system && scope.namespace != system {
        warnings.push(format!(
            "it is ignored: {} is read in the system namespace only, {system}, not in {}",
            resource.kind, scope.namespace
        ));
    }
    let body = read_yaml(&call.body).map(|decoded| decoded.value).unwrap_or_default();
    for (path, pointer) in [("spec.version", "/spec/version"), ("version", "/version")] {
        let number = body.pointer(pointer).filter(|version| version.is_f64());
        warnings.extend(number.map(|number| rounded(path, number)));
    }
    warnings
}

/// What arrives here is a number already: only its writer knows whether it had another digit.
fn rounded(path: &str, number: &Value) -> String {
    format!(
        "{path} is the number {number}, and a number has no trailing zeros: write it in quotes, because 5.10 without them is 5.1"
    )
}
