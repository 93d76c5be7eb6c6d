//! Ten thousand malformed requests: each gets a Status or a proper answer, none a panic. Seeded, so that a
//! failure can be reproduced.

use super::custom::with_widgets;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tower::ServiceExt;

const REQUESTS: usize = 10_000;
const SEED: u64 = 0x00c0_ffee;

/// A small generator of our own: the same numbers everywhere.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap_or(0)
    }

    fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }
}

const PARTS: [&str; 30] = [
    "api",
    "apis",
    "v1",
    "namespaces",
    "default",
    "configmaps",
    "pods",
    "secrets",
    "services",
    "events",
    "leases",
    "deployments",
    "apps",
    "example.com",
    "widgets",
    "one",
    "status",
    "scale",
    "finalize",
    "watch",
    "log",
    "customresourcedefinitions",
    "apiextensions.k8s.io",
    "coordination.k8s.io",
    "..",
    "%2F",
    "%00",
    "",
    "é",
    "openapi",
];
const QUERIES: [&str; 22] = [
    "watch=1&timeoutSeconds=1",
    "limit=1",
    "limit=-1",
    "limit=x",
    "continue=abc",
    "resourceVersion=99999999999",
    "resourceVersion=x",
    "resourceVersion=1&resourceVersionMatch=Exact",
    "labelSelector=a%3Db",
    "labelSelector=((",
    "fieldSelector=metadata.name%3Done",
    "fieldSelector=zzz",
    "dryRun=All",
    "dryRun=Some",
    "fieldValidation=Strict",
    "fieldValidation=Odd",
    "fieldManager=a%00b",
    "force=true",
    "propagationPolicy=Orphan",
    "propagationPolicy=Odd",
    "gracePeriodSeconds=-5",
    "sendInitialEvents=true",
];
const MEDIA: [&str; 9] = [
    "application/json",
    "application/yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "text/plain",
    "application/vnd.kubernetes.protobuf",
    "",
];
const ACCEPTS: [&str; 6] = [
    "application/json",
    "*/*",
    "application/yaml",
    "application/json;as=Table;g=meta.k8s.io;v=v1",
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    "text/html",
];
const METHODS: [&str; 8] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "BREW"];

fn value(dice: &mut Dice, depth: usize) -> Value {
    match dice.below(if depth > 4 { 6 } else { 9 }) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(dice.next() as i64),
        3 => json!(1.5),
        4 => json!("text"),
        5 => json!(""),
        6 => (0..dice.below(4)).map(|_| value(dice, depth + 1)).collect(),
        _ => object(dice, depth + 1),
    }
}

fn object(dice: &mut Dice, depth: usize) -> Value {
    const NAMES: [&str; 34] = [
        "apiVersion",
        "kind",
        "metadata",
        "spec",
        "status",
        "name",
        "namespace",
        "labels",
        "annotations",
        "finalizers",
        "ownerReferences",
        "uid",
        "data",
        "stringData",
        "containers",
        "template",
        "selector",
        "ports",
        "replicas",
        "versions",
        "group",
        "names",
        "schema",
        "openAPIV3Schema",
        "properties",
        "type",
        "items",
        "size",
        "parts",
        "tags",
        "$patch",
        "managedFields",
        "resourceVersion",
        "x-kubernetes-validations",
    ];
    let count = dice.below(7);
    Value::Object((0..count).map(|_| ((*dice.pick(&NAMES)).to_owned(), value(dice, depth))).collect())
}

fn body(dice: &mut Dice) -> String {
    let kinds = [
        ("v1", "ConfigMap"),
        ("v1", "Pod"),
        ("v1", "Secret"),
        ("v1", "Service"),
        ("v1", "Namespace"),
        ("v1", "Event"),
        ("apps/v1", "Deployment"),
        ("example.com/v1", "Widget"),
        ("coordination.k8s.io/v1", "Lease"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ];
    match dice.below(10) {
        0 => String::new(),
        1 => "{".to_owned(),
        2 => "not json at all: [".to_owned(),
        3 => value(dice, 0).to_string(),
        4 => {
            let operations = ["add", "remove", "replace", "move", "copy", "test", "odd"];
            let paths = [
                "/metadata/labels",
                "/spec",
                "",
                "/spec/size",
                "/spec/parts/0",
                "/metadata/name",
                "x",
                "/spec/parts/-",
            ];
            let many = (0..dice.below(4)).map(|_| {
                json!({
                    "op": dice.pick(&operations), "path": dice.pick(&paths), "from": dice.pick(&paths),
                    "value": value(dice, 2),
                })
            });
            Value::Array(many.collect()).to_string()
        }
        _ => {
            let (version, kind) = *dice.pick(&kinds);
            let mut made = object(dice, 0);
            made["apiVersion"] = version.into();
            made["kind"] = kind.into();
            if dice.below(3) > 0 {
                made["metadata"] = json!({"name": dice.pick(&["one", "two", "Bad Name", ""])});
            }
            if dice.below(3) == 0 {
                made["spec"] = value(dice, 0);
            }
            made.to_string()
        }
    }
}

fn path(dice: &mut Dice) -> String {
    const REAL: [&str; 12] = [
        "/api/v1/namespaces/default/configmaps",
        "/api/v1/namespaces/default/configmaps/one",
        "/api/v1/namespaces/default/pods/one",
        "/api/v1/namespaces",
        "/api/v1/namespaces/two",
        "/api/v1/namespaces/default/secrets",
        "/apis/apps/v1/namespaces/default/deployments/one",
        "/apis/example.com/v1/namespaces/default/widgets",
        "/apis/example.com/v1/namespaces/default/widgets/one",
        "/apis/example.com/v1/namespaces/default/widgets/one/status",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        "/api/v1/namespaces/default/services/one",
    ];
    let mut path = match dice.below(3) {
        0 => (0..dice.below(8)).map(|_| format!("/{}", dice.pick(&PARTS))).collect::<String>(),
        _ => (*dice.pick(&REAL)).to_owned(),
    };
    if path.is_empty() {
        path.push('/');
    }
    let queries = dice.below(3);
    for at in 0..queries {
        path.push(if at == 0 { '?' } else { '&' });
        path.push_str(dice.pick::<&str>(&QUERIES));
    }
    path
}

#[tokio::test(flavor = "multi_thread")]
async fn random_requests_get_a_status() {
    let api = with_widgets().await;
    let mut dice = Dice(SEED);
    let mut refused = 0;
    for number in 0..REQUESTS {
        let (method, path) = (Method::from_bytes(dice.pick(&METHODS).as_bytes()).unwrap(), path(&mut dice));
        let (media, accept, body) = (*dice.pick(&MEDIA), *dice.pick(&ACCEPTS), body(&mut dice));
        let Ok(request) = Request::builder()
            .method(&method)
            .uri(&path)
            .header("content-type", media)
            .header("accept", accept)
            .body(Full::new(bytes::Bytes::from(body.clone())))
        else {
            continue;
        };
        let shown = format!("request {number}: {method} {path} {media} {accept} {body}");
        let service = api.service();
        let answered = tokio::spawn(async move {
            let Ok(response) = service.oneshot(request).await;
            let code = response.status().as_u16();
            let media = response.headers().get("content-type").cloned();
            let is_watch = path.contains("watch");
            // A watch goes on; that it began is enough.
            let bytes = match is_watch && code == 200 {
                true => bytes::Bytes::new(),
                false => {
                    response.into_body().collect().await.unwrap_or_else(|never| match never {}).to_bytes()
                }
            };
            (code, media, bytes)
        });
        let (code, media, bytes) = answered.await.unwrap_or_else(|error| panic!("{shown}: {error}"));
        assert!(code < 500 || code == 501 || code == 504 || is_known_refusal(&bytes), "{shown}: {code}");
        if code >= 400 {
            refused += 1;
            let media = media.map(|media| media.to_str().unwrap_or_default().to_owned()).unwrap_or_default();
            let status: Value = match media.as_str() {
                "application/yaml" => {
                    serde_saphyr::from_str(&String::from_utf8_lossy(&bytes)).unwrap_or_default()
                }
                _ => serde_json::from_slice(&bytes).unwrap_or_default(),
            };
            assert_eq!(status["kind"], "Status", "{shown}: {code} {}", String::from_utf8_lossy(&bytes));
            assert_eq!(status["code"], code, "{shown}");
            assert!(status["message"].as_str().is_some_and(|message| !message.is_empty()), "{shown}");
        }
    }
    assert!(refused > REQUESTS / 4, "the requests are not odd enough: {refused}");
}

/// The one refusal that Kubernetes itself calls an internal error.
fn is_known_refusal(bytes: &[u8]) -> bool {
    String::from_utf8_lossy(bytes).contains("resourceVersion should not be set on objects to be created")
}
