//! Every reply of the API and its answer. The bodies are those of kube-apiserver.

use super::*;
use conductor::model::TypeId;
use http::StatusCode;
use serde_json::json;

const CLAIM: Kind = Kind::Claim(TypeId::RELATIONAL_DATABASE);

fn reply(code: u16, body: Value) -> Reply {
    let status = StatusCode::from_u16(code).expect("it is a code");
    Reply::Answered { status, body, retry_after: None }
}

fn failure(code: u16, reason: &str, details: Value) -> Reply {
    let body = json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure",
        "message": "so it is", "reason": reason, "details": details, "code": code,
    });
    reply(code, body)
}

fn name_of(answer: Answer) -> &'static str {
    match answer {
        Answer::Written(_) => "written",
        Answer::PartWritten(_) => "part written",
        Answer::Published(_) => "published",
        Answer::Incomplete(_) => "incomplete",
        Answer::Taken(_) => "taken",
        Answer::Deleted => "deleted",
        Answer::Conflict => "conflict",
        Answer::Missing => "missing",
        Answer::Exists => "exists",
        Answer::Invalid(_) => "invalid",
        Answer::Unknown(_) => "unknown",
    }
}

#[test]
fn refusals_are_distinguished() {
    let named = || json!({"name": "db", "kind": "relationaldatabaseclaims"});
    let uid = || json!({"name": "db", "causes": [{"reason": "FieldValueInvalid", "field": "metadata.uid"}]});
    let spec =
        || json!({"name": "db", "causes": [{"reason": "FieldValueInvalid", "field": "spec.claimRefs"}]});
    for (verb, code, reason, details, expected) in [
        (WriteVerb::Patch, 409, "Conflict", named(), "conflict"),
        (WriteVerb::Delete, 409, "Conflict", named(), "conflict"),
        (WriteVerb::Create, 409, "AlreadyExists", named(), "exists"),
        (WriteVerb::Create, 409, "Conflict", named(), "conflict"),
        (WriteVerb::Patch, 404, "NotFound", named(), "missing"),
        (WriteVerb::Delete, 404, "NotFound", named(), "missing"),
        (WriteVerb::Patch, 404, "NotFound", json!({}), "unknown"),
        (
            WriteVerb::Create,
            404,
            "NotFound",
            json!({"name": "conductor-system", "kind": "namespaces"}),
            "invalid",
        ),
        (WriteVerb::Create, 404, "NotFound", json!({}), "invalid"),
        (WriteVerb::Patch, 422, "Invalid", uid(), "conflict"),
        (WriteVerb::Patch, 422, "Invalid", spec(), "invalid"),
        (WriteVerb::Create, 422, "Invalid", named(), "invalid"),
        (WriteVerb::Patch, 400, "BadRequest", json!({}), "invalid"),
        (WriteVerb::Patch, 403, "Forbidden", named(), "invalid"),
        (WriteVerb::Patch, 401, "Unauthorized", json!({}), "unknown"),
        (WriteVerb::Patch, 429, "TooManyRequests", json!({}), "unknown"),
        (WriteVerb::Patch, 500, "InternalError", json!({}), "unknown"),
        (WriteVerb::Patch, 503, "ServiceUnavailable", json!({}), "unknown"),
        (WriteVerb::Delete, 504, "Timeout", json!({}), "unknown"),
    ] {
        let answer = to_write(verb, CLAIM, failure(code, reason, details.clone()));
        assert_eq!(name_of(answer), expected, "{verb:?} {code} {reason} {details}");
    }
}

#[test]
fn what_never_came_back_is_unknown() {
    assert_eq!(name_of(to_write(WriteVerb::Create, CLAIM, Reply::Lost("reset".to_owned()))), "unknown");
    assert_eq!(
        name_of(to_write(WriteVerb::Patch, CLAIM, reply(502, json!("<html>bad gateway</html>")))),
        "unknown"
    );
    assert_eq!(
        name_of(to_write(WriteVerb::Patch, CLAIM, reply(404, json!("404 page not found")))),
        "unknown"
    );
    assert_eq!(name_of(to_write(WriteVerb::Patch, CLAIM, reply(200, json!("not JSON")))), "unknown");
}

#[test]
fn done_says_whether_the_object_is_still_there() {
    let object = |metadata: Value| json!({"apiVersion": "x/v1", "kind": "X", "metadata": metadata});
    let alive = object(json!({"name": "db", "uid": "u"}));
    let leaving = object(json!({
        "name": "db", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a/b"],
    }));
    let gone = object(json!({"name": "db", "deletionTimestamp": "2026-01-01T00:00:00Z"}));
    let status = json!({"apiVersion": "v1", "kind": "Status", "status": "Success"});
    for (verb, code, body, expected) in [
        (WriteVerb::Patch, 200, &alive, "written"),
        (WriteVerb::Create, 201, &alive, "written"),
        (WriteVerb::Delete, 200, &leaving, "written"),
        (WriteVerb::Delete, 202, &status, "deleted"),
        (WriteVerb::Delete, 200, &status, "deleted"),
        (WriteVerb::Patch, 200, &gone, "deleted"),
    ] {
        assert_eq!(name_of(to_write(verb, CLAIM, reply(code, body.clone()))), expected, "{verb:?} {body}");
    }
}

#[test]
fn only_a_404_about_the_object_says_that_it_is_not_there() {
    let named = json!({"name": "db", "kind": "relationaldatabaseclaims"});
    assert_eq!(to_read(CLAIM, failure(404, "NotFound", named)), Ok(None));
    assert!(to_read(CLAIM, failure(404, "NotFound", json!({}))).is_err(), "the kind is not served");
    assert!(to_read(CLAIM, reply(404, json!("404 page not found"))).is_err());
    assert!(to_read(CLAIM, failure(503, "ServiceUnavailable", json!({}))).is_err());
    assert!(to_read(CLAIM, Reply::Lost("reset".to_owned())).is_err());
    let found = to_read(CLAIM, reply(200, json!({"metadata": {"name": "db"}})));
    assert!(matches!(found, Ok(Some(object)) if object.metadata.name.as_deref() == Some("db")));
}

#[test]
fn a_part_is_answered_for_as_a_part() {
    let kind = PartKind::new("postgresql.cnpg.io/v1", "Cluster");
    let body = json!({"apiVersion": "postgresql.cnpg.io/v1", "kind": "Cluster", "metadata": {"name": "c"}});
    match to_part_write(WriteVerb::Create, &kind, reply(201, body)) {
        Answer::PartWritten(part) => assert_eq!(part.kind, kind),
        other => panic!("{other:?}"),
    }
    let named = json!({"name": "c", "kind": "clusters"});
    assert_eq!(
        name_of(to_part_write(WriteVerb::Create, &kind, failure(409, "AlreadyExists", named))),
        "exists"
    );
    assert_eq!(
        name_of(to_part_write(WriteVerb::Create, &kind, failure(404, "NotFound", json!({})))),
        "invalid"
    );
}
