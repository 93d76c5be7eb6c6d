//! CRDs take effect when they are created, and their schemas are kept to.

use super::ask::{Reply, ask_as, get, merge, post, put};
use conductor_apiserver::Embedded;
use http::Method;
use serde_json::{Value, json};

const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

/// An API with one custom kind.
pub async fn with_widgets() -> Embedded {
    let api = Embedded::in_memory();
    let created = post(&api, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", widgets()).await;
    assert_eq!(created.code, 201, "{}", created.body);
    api
}

pub fn widgets() -> Value {
    let spec = json!({
        "type": "object",
        "required": ["size"],
        "properties": {
            "size": {"type": "integer", "minimum": 1, "maximum": 10},
            "color": {"type": "string", "default": "red", "enum": ["red", "blue"]},
            "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "parts": {
                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "required": ["name"], "properties": {
                    "name": {"type": "string"}, "count": {"type": "integer", "default": 1},
                }},
            },
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "replicas": {"type": "integer"},
            "port": {"x-kubernetes-int-or-string": true},
        },
        "x-kubernetes-validations": [
            {"rule": "!has(self.tags) || self.size >= size(self.tags)", "message": "more tags than size"},
            {"rule": "self.size >= oldSelf.size", "message": "may not shrink"},
        ],
    });
    let schema = json!({"type": "object", "properties": {
        "spec": spec,
        "status": {"type": "object", "properties": {"phase": {"type": "string"}, "replicas": {"type": "integer"}}},
    }});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"], "categories": ["all"]},
            "versions": [
                {
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}, "scale": {
                        "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
                    }},
                    "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
                },
                {
                    "name": "v1beta1", "served": true, "storage": false, "deprecated": true,
                    "schema": {"openAPIV3Schema": schema},
                },
            ],
        },
    })
}

fn widget(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec})
}

async fn create(api: &Embedded, spec: Value) -> Reply {
    let mut made = widget("", spec);
    made["metadata"] = json!({"generateName": "w-"});
    post(api, WIDGETS, made).await
}

#[tokio::test]
async fn a_kind_is_served_as_soon_as_it_is_defined() {
    let api = with_widgets().await;
    let crd = get(&api, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com").await;
    let holds: Vec<_> =
        crd.body["status"]["conditions"].as_array().unwrap().iter().map(|c| &c["status"]).collect();
    assert_eq!(holds, ["True", "True"]);
    let found = get(&api, "/apis/example.com/v1").await;
    assert_eq!(found.body["resources"][0]["shortNames"], json!(["wd"]));
    assert_eq!(get(&api, WIDGETS).await.body["kind"], "WidgetList");
    assert_eq!(get(&api, "/apis/example.com/v1/namespaces/default/gadgets").await.code, 404);
}

#[tokio::test]
async fn defaults_are_set_and_unknown_fields_are_dropped_with_a_warning() {
    let api = with_widgets().await;
    let made = create(&api, json!({"size": 2, "odd": 1, "free": {"any": 1}, "parts": [{"name": "a"}]})).await;
    assert_eq!(made.code, 201, "{}", made.body);
    assert_eq!(
        made.body["spec"],
        json!({"size": 2, "color": "red", "free": {"any": 1}, "parts": [{"name": "a", "count": 1}]})
    );
    assert_eq!(made.warnings, ["299 - \"unknown field \\\"spec.odd\\\"\""]);
    let strict =
        post(&api, &format!("{WIDGETS}?fieldValidation=Strict"), widget("s", json!({"size": 1, "odd": 1})))
            .await;
    assert_eq!(strict.code, 400);
    assert_eq!(
        strict.body["message"],
        "Widget in version \"v1\" cannot be handled as a Widget: strict decoding error: unknown field \"spec.odd\""
    );
}

#[tokio::test]
async fn what_does_not_fit_its_schema_is_refused_by_field() {
    let api = with_widgets().await;
    for (spec, expected) in [
        (json!({}), "spec.size: Required value"),
        (
            json!({"size": 11}),
            "spec.size: Invalid value: 11: spec.size in body should be less than or equal to 10",
        ),
        (
            json!({"size": "x"}),
            "spec.size: Invalid value: \"string\": spec.size in body must be of type integer: \"string\"",
        ),
        (
            json!({"size": 1, "color": "green"}),
            "spec.color: Unsupported value: \"green\": supported values: \"red\", \"blue\"",
        ),
        (json!({"size": 3, "tags": ["a", "a"]}), "spec.tags[1]: Duplicate value: \"a\""),
        (
            json!({"size": 1, "parts": [{"name": "a"}, {"name": "a"}]}),
            "spec.parts[1]: Duplicate value: {\"name\":\"a\"}",
        ),
        (json!({"size": 1, "tags": ["a", "b"]}), "spec: Invalid value: more tags than size"),
    ] {
        let refused = create(&api, spec.clone()).await;
        assert_eq!((refused.code, &refused.body["reason"]), (422, &json!("Invalid")), "{spec}");
        let message = refused.body["message"].as_str().unwrap();
        let why = message.split_once("is invalid: ").expect("it says why").1;
        // Rules are not asked about what is wrong in itself, and the refusal says so.
        let why = why.split_once(", <nil>: Invalid value: null: some").map_or(why, |(why, _)| &why[1..]);
        assert_eq!(why, expected, "{spec}");
    }
}

#[tokio::test]
async fn rules_see_the_old_object_and_generations_count_changes() {
    let api = with_widgets().await;
    let path = format!("{WIDGETS}/one");
    let made = post(&api, WIDGETS, widget("one", json!({"size": 2}))).await;
    assert_eq!(made.body["metadata"]["generation"], 1);
    let shrunk = merge(&api, &path, json!({"spec": {"size": 1}})).await;
    assert_eq!(shrunk.code, 422);
    let grown = merge(&api, &path, json!({"spec": {"size": 3}, "status": {"phase": "ignored"}})).await;
    assert_eq!((&grown.body["metadata"]["generation"], grown.body.get("status")), (&json!(2), None));
    let written =
        merge(&api, &format!("{path}/status"), json!({"status": {"phase": "Up"}, "spec": {"size": 9}})).await;
    assert_eq!((&written.body["status"]["phase"], &written.body["spec"]["size"]), (&json!("Up"), &json!(3)));
    assert_eq!(written.body["metadata"]["generation"], 2);
    let blind = put(&api, &path, widget("one", json!({"size": 4}))).await;
    assert_eq!(blind.code, 422, "an update must name the revision that it saw");
}

#[tokio::test]
async fn versions_differ_in_name_only_and_old_ones_warn() {
    let api = with_widgets().await;
    post(&api, WIDGETS, widget("one", json!({"size": 2}))).await;
    let old = get(&api, "/apis/example.com/v1beta1/namespaces/default/widgets/one").await;
    assert_eq!(old.body["apiVersion"], "example.com/v1beta1");
    assert_eq!(old.warnings, ["299 - \"example.com/v1beta1 Widget is deprecated\""]);
}

#[tokio::test]
async fn a_scale_is_read_and_written_on_its_own() {
    let api = with_widgets().await;
    post(&api, WIDGETS, widget("one", json!({"size": 2, "replicas": 3}))).await;
    let path = format!("{WIDGETS}/one/scale");
    assert_eq!(get(&api, &path).await.body["spec"]["replicas"], 3);
    let scaled = merge(&api, &path, json!({"spec": {"replicas": 5}})).await;
    assert_eq!((scaled.code, &scaled.body["spec"]["replicas"]), (200, &json!(5)));
    assert_eq!(get(&api, &format!("{WIDGETS}/one")).await.body["spec"]["replicas"], 5);
}

#[tokio::test]
async fn a_table_has_the_columns_of_the_definition() {
    let api = with_widgets().await;
    post(&api, WIDGETS, widget("one", json!({"size": 2}))).await;
    let request = http::Request::builder()
        .uri(WIDGETS)
        .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json")
        .body(http_body_util::Full::new(bytes::Bytes::new()))
        .unwrap();
    use tower::ServiceExt;
    let Ok(response) = api.service().oneshot(request).await;
    use http_body_util::BodyExt;
    let bytes = response.into_body().collect().await.unwrap_or_else(|never| match never {}).to_bytes();
    let table: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(table["rows"][0]["cells"], json!(["one", 2]));
}

#[tokio::test]
async fn an_applied_configuration_owns_what_it_says() {
    let api = with_widgets().await;
    let path = format!("{WIDGETS}/one");
    let apply = async |manager: &str, spec: Value, force: bool| {
        let mut config = widget("one", spec);
        config["metadata"] = json!({"name": "one"});
        let path = format!("{path}?fieldManager={manager}&force={force}");
        ask_as(&api, Method::PATCH, &path, "application/apply-patch+yaml", config.to_string()).await
    };
    let first = apply("a", json!({"size": 2, "parts": [{"name": "x"}]}), false).await;
    assert_eq!(first.code, 201, "{}", first.body);
    let second = apply("b", json!({"size": 2, "parts": [{"name": "y"}]}), false).await;
    assert_eq!(second.code, 200, "{}", second.body);
    let names = |reply: &Reply| -> Vec<Value> {
        reply.body["spec"]["parts"].as_array().unwrap().iter().map(|part| part["name"].clone()).collect()
    };
    assert_eq!(names(&second), ["x", "y"]);
    let conflict = apply("b", json!({"size": 3}), false).await;
    assert_eq!((conflict.code, &conflict.body["reason"]), (409, &json!("Conflict")));
    assert_eq!(conflict.body["details"]["causes"][0]["field"], ".spec.size");
    let forced = apply("b", json!({"size": 3}), true).await;
    assert_eq!((forced.code, &forced.body["spec"]["size"]), (200, &json!(3)));
    assert_eq!(names(&forced), ["x"], "what b no longer says goes");
}
