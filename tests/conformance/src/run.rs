//! A check's requests, sent to one API, and its answers as they came. Comparing them is done elsewhere.

use crate::check::{Check, Step, Until};
use http::{HeaderMap, Request};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Longest wait for a step that repeats its request. Generous: tests share the machine with builds.
const PATIENCE: Duration = Duration::from_secs(60);
/// The same user agent for both: it names the manager of fields.
const USER_AGENT: &str = "conformance/1.0";

/// What came back.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// Its media type.
    pub media_type: String,
    /// The texts of its warnings.
    pub warnings: Vec<String>,
    /// JSON as it is, the lines of a watch as a list, anything else as text.
    pub body: Value,
}

/// The variables of a script, and their values in this run.
#[derive(Clone, Debug)]
pub struct Variables(BTreeMap<String, String>);

impl Variables {
    /// The variables of the check with this number: names that no other check uses.
    pub fn new(number: usize) -> Variables {
        let ns = format!("c-{number:03}");
        let group = "/apis/conformance.example.com/v1";
        let variables = [
            ("core", format!("/api/v1/namespaces/{ns}")),
            ("apps", format!("/apis/apps/v1/namespaces/{ns}")),
            ("widgets", format!("{group}/namespaces/{ns}/widgets")),
            ("gears", format!("{group}/gears")),
            ("crds", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions".to_owned()),
            ("id", format!("n{number:03}")),
            ("ns", ns),
        ];
        Variables(variables.map(|(name, value)| (name.to_owned(), value)).into())
    }

    /// The namespace.
    pub fn namespace(&self) -> &str {
        &self.0["ns"]
    }

    /// A text with its variables replaced, longest names first.
    fn fill(&self, text: &str) -> String {
        // Backwards, `core` comes after `core-x`: a longer name is never cut short.
        self.0.iter().rev().fold(text.to_owned(), |text, (name, value)| {
            if text.contains('$') { text.replace(&format!("${name}"), value) } else { text }
        })
    }

    fn fill_value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::from(self.fill(text)),
            Value::Array(items) => items.iter().map(|item| self.fill_value(item)).collect(),
            Value::Object(fields) => Value::Object(
                fields.iter().map(|(key, value)| (self.fill(key), self.fill_value(value))).collect(),
            ),
            other => other.clone(),
        }
    }
}

/// Runs a check in a namespace of its own.
///
/// # Errors
/// What could not be sent, or never came about.
pub async fn run(client: &Client, check: &Check, number: usize) -> Result<Vec<Answer>, String> {
    let mut variables = Variables::new(number);
    create_namespace(client, variables.namespace()).await?;
    let mut answers = Vec::new();
    for (at, step) in check.steps.iter().enumerate() {
        let failed = |error: String| format!("step {}: {error}", at + 1);
        let answer = take(client, step, &variables).await.map_err(failed)?;
        for (name, pointer) in &step.save {
            let found = answer.body.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
            let missing = || failed(format!("nothing to save at {pointer} in {}", answer.body));
            variables.0.insert(name.clone(), found.ok_or_else(missing)?);
        }
        answers.push(answer);
    }
    Ok(answers)
}

/// Makes objects that checks share, and waits for what they define.
///
/// # Errors
/// The API refused a definition.
pub async fn install(client: &Client, definitions: &[Value]) -> Result<(), String> {
    for definition in definitions {
        let created = send(client, "POST", &Variables::new(0).0["crds"], definition).await?;
        if created.status != 201 {
            return Err(format!("{}: {}", definition["metadata"]["name"], created.body));
        }
    }
    for definition in definitions {
        let spec = &definition["spec"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let version = text(&spec["versions"][0]["name"]);
        let path = format!("/apis/{}/{version}/{}", text(&spec["group"]), text(&spec["names"]["plural"]));
        let until = Until { status: Some(200), ..Until::default() };
        repeat(&until, async || send(client, "GET", &path, &Value::Null).await).await?;
    }
    Ok(())
}

async fn create_namespace(client: &Client, name: &str) -> Result<(), String> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let created = send(client, "POST", "/api/v1/namespaces", &namespace).await?;
    if created.status == 201 { Ok(()) } else { Err(format!("namespace {name}: {}", created.body)) }
}

async fn send(client: &Client, method: &str, path: &str, body: &Value) -> Result<Answer, String> {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    exchange(client, request.body(Body::from(body)).map_err(|error| error.to_string())?).await
}

async fn take(client: &Client, step: &Step, variables: &Variables) -> Result<Answer, String> {
    let until = step.until.clone().unwrap_or_default();
    repeat(&until, async || exchange(client, build(step, variables)?).await).await
}

fn build(step: &Step, variables: &Variables) -> Result<Request<Body>, String> {
    let (method, path) = step.request().ok_or("no method")?;
    let body = match (&step.body, &step.text) {
        (Some(value), _) => variables.fill_value(value).to_string(),
        (None, Some(text)) => variables.fill(text),
        (None, None) => String::new(),
    };
    let mut request =
        Request::builder().method(method).uri(variables.fill(path)).header("user-agent", USER_AGENT);
    if !step.headers.contains_key("Content-Type") && !body.is_empty() {
        request = request.header("content-type", step.media_type());
    }
    for (name, value) in &step.headers {
        request = request.header(name, variables.fill(value));
    }
    request.body(Body::from(body.into_bytes())).map_err(|error| error.to_string())
}

async fn repeat(
    until: &Until,
    mut request: impl AsyncFnMut() -> Result<Answer, String>,
) -> Result<Answer, String> {
    let end = Instant::now() + PATIENCE;
    loop {
        let answer = request().await?;
        if is_met(until, &answer) {
            return Ok(answer);
        }
        if Instant::now() > end {
            return Err(format!("{until:?} never came about: {} {}", answer.status, answer.body));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn is_met(until: &Until, answer: &Answer) -> bool {
    let found = until.at.as_deref().map(|at| answer.body.pointer(at).unwrap_or(&Value::Null));
    until.status.is_none_or(|status| status == answer.status)
        && match (found, &until.is) {
            (Some(found), Some(wanted)) => found == wanted,
            (Some(found), None) => !found.is_null(),
            (None, _) => true,
        }
}

async fn exchange(client: &Client, request: Request<Body>) -> Result<Answer, String> {
    let is_watch = request.uri().query().is_some_and(|query| query.contains("watch="));
    let what = format!("{} {}", request.method(), request.uri());
    let sent = tokio::time::timeout(PATIENCE, client.send(request)).await;
    let response = sent.map_err(|_| format!("{what}: no answer"))?.map_err(|e| format!("{what}: {e}"))?;
    let (head, body) = response.into_parts();
    let read = tokio::time::timeout(PATIENCE, body.collect()).await;
    let bytes = read.map_err(|_| format!("{what}: no end"))?.map_err(|e| format!("{what}: {e}"))?.to_bytes();
    Ok(Answer {
        status: head.status.as_u16(),
        media_type: header(&head.headers, "content-type").into_iter().next().unwrap_or_default(),
        warnings: header(&head.headers, "warning"),
        body: read_body(&bytes, is_watch && head.status.is_success()),
    })
}

fn header(headers: &HeaderMap, name: &str) -> Vec<String> {
    headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
}

fn read_body(bytes: &[u8], is_watch: bool) -> Value {
    if is_watch {
        let lines = serde_json::Deserializer::from_slice(bytes).into_iter::<Value>();
        return lines.map_while(Result::ok).collect();
    }
    match bytes {
        [] => Value::Null,
        _ => serde_json::from_slice(bytes)
            .unwrap_or_else(|_| Value::from(String::from_utf8_lossy(bytes).into_owned())),
    }
}
