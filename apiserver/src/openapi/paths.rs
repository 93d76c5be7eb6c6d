//! The paths of a resource, as far as clients look: which verbs there are, of which kind, and that they take
//! field validation and dry runs.

use crate::registry::{Resource, Version};
use serde_json::{Map, Value, json};

/// Paths and their operations.
pub(super) fn of(resource: &Resource, version: &Version, definition: &str) -> Map<String, Value> {
    let base = match resource.group.is_empty() {
        true => format!("/api/{}", version.name),
        false => format!("/apis/{}/{}", resource.group, version.name),
    };
    let home = match resource.namespaced {
        true => format!("{base}/namespaces/{{namespace}}/{}", resource.plural),
        false => format!("{base}/{}", resource.plural),
    };
    let kind = json!({"group": resource.group, "version": version.name, "kind": resource.kind});
    let operation = |action: &str, writes: bool, reads: &str| {
        let mut value = json!({
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": kind,
            "responses": {"200": {"description": "OK", "content": {"application/json": {
                "schema": {"$ref": format!("#/components/schemas/{reads}")},
            }}}},
        });
        if writes {
            value["parameters"] = json!([query("dryRun"), query("fieldManager"), query("fieldValidation")]);
        }
        if writes && action != "patch" {
            value["requestBody"] = json!({"content": {"*/*": {
                "schema": {"$ref": format!("#/components/schemas/{definition}")},
            }}});
        }
        if action == "patch" {
            let content: Map<String, Value> = resource
                .patch_media()
                .iter()
                .map(|media| ((*media).to_owned(), json!({"schema": {"type": "object"}})))
                .collect();
            value["requestBody"] = json!({ "content": content });
        }
        value
    };
    let list = format!("{definition}List");
    let mut paths = Map::new();
    paths.insert(
        home.clone(),
        json!({"get": operation("list", false, &list), "post": operation("post", true, definition)}),
    );
    paths.insert(
        format!("{home}/{{name}}"),
        json!({
            "get": operation("get", false, definition),
            "put": operation("put", true, definition),
            "patch": operation("patch", true, definition),
            "delete": operation("delete", false, definition),
        }),
    );
    if version.status {
        paths.insert(
            format!("{home}/{{name}}/status"),
            json!({
                "get": operation("get", false, definition),
                "put": operation("put", true, definition),
                "patch": operation("patch", true, definition),
            }),
        );
    }
    paths
}

fn query(name: &str) -> Value {
    json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}})
}
