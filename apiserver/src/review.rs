//! Self-reviews: which user this is, and what it may do. There is no RBAC: every known user may do everything, and reviews say so.

use super::answer::Answer;
use super::api::Api;
use super::call::Call;
use super::decode::decode;
use super::route::Target;
use super::status::{Cause, Named, Status};
use http::Method;
use serde_json::{Value, json};

/// The groups that have reviews and nothing else.
pub(super) const GROUPS: [&str; 2] = [AUTHENTICATION, AUTHORIZATION];
const AUTHENTICATION: &str = "authentication.k8s.io";
const AUTHORIZATION: &str = "authorization.k8s.io";

/// What a review is about.
#[derive(Clone, Copy, Debug)]
pub(super) enum Review {
    Access,
    Rules,
    Self_,
}

const ALL: [(Review, &str, &str, &str); 3] = [
    (Review::Self_, AUTHENTICATION, "selfsubjectreviews", "SelfSubjectReview"),
    (Review::Access, AUTHORIZATION, "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
    (Review::Rules, AUTHORIZATION, "selfsubjectrulesreviews", "SelfSubjectRulesReview"),
];

/// The review that a path names.
pub(super) fn find(target: &Target) -> Option<Review> {
    if target.version != "v1" || !target.name.is_empty() || !target.namespace.is_empty() {
        return None;
    }
    let found = ALL.iter().find(|(_, group, plural, _)| target.group == *group && target.plural == *plural);
    found.map(|(review, ..)| *review)
}

pub(super) fn answer(_api: &Api, call: &Call, review: Review) -> Result<Answer, Status> {
    if call.method != Method::POST {
        return Err(Status::method_not_allowed());
    }
    let sent = decode(call)?.value;
    let spec = sent.get("spec").cloned().unwrap_or_else(|| json!({}));
    if matches!(review, Review::Access) {
        check_access(&spec)?;
    }
    let value = match review {
        Review::Access => json!({
            "kind": "SelfSubjectAccessReview",
            "apiVersion": "authorization.k8s.io/v1",
            "metadata": {},
            "spec": spec,
            "status": {"allowed": true, "reason": "the embedded API has no RBAC: every known user may do everything"},
        }),
        Review::Rules => json!({
            "kind": "SelfSubjectRulesReview",
            "apiVersion": "authorization.k8s.io/v1",
            "metadata": {},
            "spec": {},
            "status": {
                "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
                "incomplete": false,
            },
        }),
        Review::Self_ => json!({
            "kind": "SelfSubjectReview",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {},
            "status": {"userInfo": {"username": call.user.name, "groups": call.user.groups}},
        }),
    };
    Ok(Answer::created(value))
}

/// A review is about exactly one thing.
fn check_access(spec: &Value) -> Result<(), Status> {
    let has = |field: &str| spec.get(field).is_some_and(|value| !value.is_null());
    let cause = match (has("resourceAttributes"), has("nonResourceAttributes")) {
        (true, false) | (false, true) => return Ok(()),
        (false, false) => {
            let why = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            Cause::invalid("spec.resourceAttributes", &Value::Null, why)
        }
        (true, true) => {
            let why = "cannot be specified in combination with resourceAttributes";
            let value = spec.get("nonResourceAttributes").cloned().unwrap_or_default();
            Cause::invalid("spec.nonResourceAttributes", &value, why)
        }
    };
    let named = Named { group: AUTHORIZATION.to_owned(), name: String::new() };
    Err(Status::invalid(&named, "", &[cause]))
}

/// As discovery lists them.
pub(super) fn resources(group: &str) -> Vec<Value> {
    let all = ALL.iter().filter(|(_, of, ..)| group == *of);
    all.map(|(_, _, plural, kind)| {
        json!({
            "name": plural, "singularName": kind.to_lowercase(), "namespaced": false, "kind": kind, "verbs": ["create"],
        })
    })
    .collect()
}

/// As aggregated discovery lists them.
pub(super) fn discovered(group: &str) -> Vec<Value> {
    let all = ALL.iter().filter(|(_, of, ..)| group == *of);
    all.map(|(_, group, plural, kind)| {
        json!({
            "resource": plural,
            "responseKind": {"group": group, "version": "v1", "kind": kind},
            "scope": "Cluster",
            "singularResource": kind.to_lowercase(),
            "verbs": ["create"],
        })
    })
    .collect()
}
