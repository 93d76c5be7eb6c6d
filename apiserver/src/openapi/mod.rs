//! The schemas of what is served, published for clients that explain, complete and validate: OpenAPI v3 by group and
//! version, and version 2 as far as clients still request it.

mod document;
mod paths;

use super::answer::{Answer, Content};
use super::call::Call;
use super::registry::Registry;
use super::status::Status;
use bytes::Bytes;
use http::StatusCode;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// `/openapi/v3`: where the documents are.
pub(super) fn index(registry: &Registry) -> Answer {
    let mut paths = Map::new();
    for (group, versions) in registry.groups() {
        for version in versions {
            let path = path_of(&group, &version);
            let hash = hash(&document::build(registry, &group, &version));
            let url = format!("/openapi/v3/{path}?hash={hash}");
            paths.insert(path, json!({"serverRelativeURL": url}));
        }
    }
    let mut answer = Answer::value(json!({ "paths": paths }));
    // So it is sent by a real server, and clients read it as JSON.
    answer.media = Some("text/plain; charset=utf-8");
    answer
}

/// `/openapi/v3/apis/GROUP/VERSION`
pub(super) fn document(registry: &Registry, path: &str) -> Result<Answer, Status> {
    let (group, version) = match path.split('/').collect::<Vec<_>>().as_slice() {
        ["api", version] => (String::new(), (*version).to_owned()),
        ["apis", group, version] => ((*group).to_owned(), (*version).to_owned()),
        _ => return Err(Status::no_such_path()),
    };
    let known = registry.groups();
    let has = known.iter().any(|(found, versions)| *found == group && versions.contains(&version));
    if !has {
        return Err(Status::no_such_path());
    }
    let document = document::build(registry, &group, &version);
    let etag = format!("\"{}\"", hash(&document));
    let mut answer = Answer::of(StatusCode::OK, Content::Json(Bytes::from(document.to_string())));
    answer.etag = Some(etag);
    Ok(answer)
}

/// How kubectl requests the old document, before it sends a `List`.
const OLD_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
/// A document with a version, a title and no definitions: what is not described is left to the server to check, which
/// it does better.
const NOTHING_SAID: &[u8] = b"\n\x032.0\x12\x18\n\tConductor\x12\x0bunversioned";

/// `/openapi/v2`: all definitions in one document.
pub(super) fn old(call: &Call, registry: &Registry) -> Result<Answer, Status> {
    let accept = call.header(http::header::ACCEPT).unwrap_or("*/*");
    if accept.contains("com.github.proto-openapi.spec.v2") {
        return Ok(Answer::of(StatusCode::OK, Content::Raw(OLD_PROTOBUF, NOTHING_SAID)));
    }
    if !["application/json", "*/*", "application/*"].iter().any(|media| accept.contains(media)) {
        return Err(Status::not_acceptable(&["application/json"]));
    }
    Ok(Answer::value(document::old(registry)))
}

fn path_of(group: &str, version: &str) -> String {
    match group.is_empty() {
        true => format!("api/{version}"),
        false => format!("apis/{group}/{version}"),
    }
}

fn hash(document: &Value) -> String {
    let digest = Sha256::digest(document.to_string().as_bytes());
    digest.iter().map(|byte| format!("{byte:02X}")).collect()
}
