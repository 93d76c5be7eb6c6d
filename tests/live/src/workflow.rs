//! The workflows that trials repeat, each time with another fault. A workflow is data: the objects before it, its trigger,
//! and the condition of its end.

use crate::fault::Fault;
use crate::kinds::{CLAIM, CLASS, INSTANCE, NAMESPACE, PUBLISHED, QUOTA, RESOURCE, SECRET};
use crate::observer::State;
use serde_json::{Value, json};

/// An act of a user or another client. `NS` is the trial's namespace, `NS-system` the other.
#[derive(Clone, Debug)]
pub enum Act {
    /// Creates an object.
    Create(Value),
    /// Changes one: kind, name, merge patch.
    Patch(&'static str, &'static str, Value),
    /// Deletes one: kind, name.
    Delete(&'static str, &'static str),
    /// Waits for a condition and an idle controller.
    Wait(&'static str, fn(&State) -> bool),
}

/// One workflow.
#[derive(Clone, Debug)]
pub struct Workflow {
    /// The name.
    pub name: &'static str,
    /// Whether the controller starts only with the trigger: then the faults cover its first lists too.
    pub begins_cold: bool,
    /// The acts before it.
    pub before: Vec<Act>,
    /// The trigger.
    pub trigger: Vec<Act>,
    /// Whether it is over.
    pub done: fn(&State) -> bool,
}

/// The faults of the long workflows: the process dies, the answer is lost, another client was faster. The short ones cover
/// every kind of refusal.
const FAULTS_OF_LONG: [Fault; 4] = [Fault::CrashBefore, Fault::CrashAfter, Fault::Status(409), Fault::Reset];

impl Workflow {
    /// The faults at each of its calls.
    pub fn faults(&self) -> &'static [Fault] {
        if self.name.starts_with("graph") { &FAULTS_OF_LONG } else { &Fault::ALL }
    }
}

/// A workflow of the caller's own.
pub fn custom(begins_cold: bool) -> Workflow {
    Workflow { name: "custom", begins_cold, before: vec![], trigger: vec![], done: |_| true }
}

/// Every workflow that needs no controller of Kubernetes' own.
pub fn all() -> Vec<Workflow> {
    vec![
        start(),
        static_bind(),
        release_retain(),
        release_delete(),
        rebind(),
        quota_change(),
        provision(),
        class_edit(),
        release_provisioned(),
        graph_provision(),
        graph_release(),
        another_name(),
    ]
}

/// The phase of an object.
pub fn phase<'a>(state: &'a State, kind: &str, name: &str) -> Option<&'a str> {
    let found = state.iter().find(|((k, _, n), _)| k == kind && n == name)?;
    found.1["status"]["phase"].as_str()
}

/// Whether the object does not exist.
pub fn is_gone(state: &State, kind: &str, name: &str) -> bool {
    !state.keys().any(|(k, _, n)| k == kind && n == name)
}

/// Whether a claim is Bound.
pub fn is_bound(state: &State, claim: &str) -> bool {
    phase(state, CLAIM, claim) == Some("Bound")
}

/// A claim is created.
pub fn claim(name: &str, spec: Value) -> Act {
    Act::Create(json!({"kind": CLAIM, "metadata": {"name": name, "namespace": "NS"}, "spec": spec}))
}

/// The spec of a claim for so much storage.
pub fn wants(storage: &str) -> Value {
    json!({"engine": "mysql", "version": "8.0", "resources": {"requests": {"storage": storage}}})
}

/// A resource is created.
pub fn resource(name: &str, policy: &str, storage: &str) -> Act {
    Act::Create(json!({
        "kind": RESOURCE, "metadata": {"name": name, "namespace": "NS-system"},
        "spec": {"engine": "mysql", "version": "8.0.36", "reclaimPolicy": policy, "capacity": {"storage": storage}},
    }))
}

/// A class with a template: without one it would only group databases.
fn class(most: &str) -> Value {
    json!({
        "kind": CLASS, "metadata": {"name": "small", "namespace": "NS-system"},
        "reclaimPolicy": "Delete", "engine": "mysql", "versions": ["8.0.36"],
        "capacity": {"storage": {"min": "1Gi", "max": most, "step": "1Gi"}},
        "template": {"apiVersion": "database.aws.conductor.io/v1alpha1", "kind": "RDSInstance",
            "spec": {"class": "db.t2.small"}},
    })
}

fn wants_class(storage: &str) -> Value {
    let mut spec = wants(storage);
    spec["class"] = Value::from("small");
    spec
}

/// Everything exists before the controller starts.
fn start() -> Workflow {
    Workflow {
        name: "start",
        begins_cold: true,
        before: vec![resource("db-1", "Retain", "10Gi"), claim("app", wants("5Gi"))],
        trigger: vec![],
        done: |state| is_bound(state, "app") && phase(state, RESOURCE, "db-1") == Some("Bound"),
    }
}

fn static_bind() -> Workflow {
    Workflow {
        name: "static bind",
        begins_cold: false,
        before: vec![
            resource("db-1", "Retain", "10Gi"),
            Act::Wait("db-1 is offered", |state| phase(state, RESOURCE, "db-1") == Some("Available")),
        ],
        trigger: vec![claim("app", wants("5Gi"))],
        done: |state| is_bound(state, "app") && phase(state, RESOURCE, "db-1") == Some("Bound"),
    }
}

fn bound(policy: &str) -> Vec<Act> {
    vec![
        resource("db-1", policy, "10Gi"),
        claim("app", wants("5Gi")),
        Act::Wait("app is bound", |state| is_bound(state, "app")),
    ]
}

fn release_retain() -> Workflow {
    Workflow {
        name: "release Retain",
        begins_cold: false,
        before: bound("Retain"),
        trigger: vec![Act::Delete(CLAIM, "app")],
        done: |state| is_gone(state, CLAIM, "app") && phase(state, RESOURCE, "db-1") == Some("Released"),
    }
}

fn release_delete() -> Workflow {
    Workflow {
        name: "release Delete",
        begins_cold: false,
        before: bound("Delete"),
        trigger: vec![Act::Delete(CLAIM, "app")],
        done: |state| is_gone(state, CLAIM, "app") && is_gone(state, RESOURCE, "db-1"),
    }
}

/// An administrator gives a retained resource to a claim by name, and the claim comes.
fn rebind() -> Workflow {
    let mut before = bound("Retain");
    before.push(Act::Delete(CLAIM, "app"));
    before.push(Act::Wait("db-1 is released", |state| {
        is_gone(state, CLAIM, "app") && phase(state, RESOURCE, "db-1") == Some("Released")
    }));
    let reservation = json!({"spec": {"claimRefs": [{"namespace": "NS", "name": "next"}]}});
    Workflow {
        name: "rebind",
        begins_cold: false,
        before,
        trigger: vec![
            Act::Patch(RESOURCE, "db-1", reservation),
            // Whether the claim or the reservation is seen first is chance: here it is the reservation.
            Act::Wait("db-1 is reserved", |state| phase(state, RESOURCE, "db-1") == Some("Available")),
            claim("next", wants("5Gi")),
        ],
        done: |state| is_bound(state, "next") && phase(state, RESOURCE, "db-1") == Some("Bound"),
    }
}

fn quota_change() -> Workflow {
    let limits = |claims: u64| json!({"limits": [{"claims": claims}]});
    let quota = json!({"kind": QUOTA, "metadata": {"name": "quota", "namespace": "NS"}, "spec": limits(1)});
    Workflow {
        name: "quota change",
        begins_cold: false,
        before: vec![
            Act::Create(quota),
            resource("db-1", "Retain", "5Gi"),
            resource("db-2", "Retain", "10Gi"),
            claim("app", wants("5Gi")),
            Act::Wait("app is bound", |state| is_bound(state, "app")),
            claim("late", wants("10Gi")),
            Act::Wait("late waits", |state| phase(state, CLAIM, "late") == Some("Pending")),
        ],
        trigger: vec![Act::Patch(QUOTA, "quota", json!({"spec": limits(2)}))],
        done: |state| is_bound(state, "late") && phase(state, RESOURCE, "db-2") == Some("Bound"),
    }
}

fn provision() -> Workflow {
    Workflow {
        name: "provision",
        begins_cold: false,
        before: vec![Act::Create(class("10Gi"))],
        trigger: vec![claim("app", wants_class("5Gi"))],
        done: |state| is_bound(state, "app"),
    }
}

/// A class that could not provision the requested size, and now can.
fn class_edit() -> Workflow {
    let edit = json!({"capacity": {"storage": {"min": "1Gi", "max": "20Gi", "step": "1Gi"}}});
    Workflow {
        name: "class edit",
        begins_cold: false,
        before: vec![
            Act::Create(class("10Gi")),
            claim("big", wants_class("20Gi")),
            Act::Wait("big waits", |state| phase(state, CLAIM, "big") == Some("Pending")),
        ],
        trigger: vec![Act::Patch(CLASS, "small", edit)],
        done: |state| is_bound(state, "big"),
    }
}

fn release_provisioned() -> Workflow {
    Workflow {
        name: "release provisioned",
        begins_cold: false,
        before: vec![
            Act::Create(class("10Gi")),
            claim("app", wants_class("5Gi")),
            Act::Wait("app is bound", |state| is_bound(state, "app")),
        ],
        trigger: vec![Act::Delete(CLAIM, "app")],
        done: |state| {
            is_gone(state, CLAIM, "app")
                && !state.keys().any(|(kind, _, _)| kind == RESOURCE || kind == "RDSInstance")
        },
    }
}

/// Three objects, each of which needs an output of the one before, and a connection from the last one and a Secret.
fn graph_class() -> Vec<Act> {
    let object = |id: &str, spec: Value| {
        let template = json!({
            "apiVersion": "database.aws.conductor.io/v1alpha1", "kind": INSTANCE, "spec": spec,
        });
        json!({"id": id, "template": template})
    };
    let class = json!({
        "kind": CLASS, "metadata": {"name": "graph", "namespace": "NS-system"}, "reclaimPolicy": "Delete",
        "templates": [
            object("proxy", json!({"to": "${objects.server.status.address}"})),
            object("server", json!({"in": "${objects.net.status.address}"})),
            object("net", json!({"for": "${claim.metadata.name}"})),
        ],
        "connection": {
            "host": "${objects.proxy.status.address}", "port": 3306, "database": "${claim.metadata.name}",
            "username": "${secret.username}", "password": "${secret.password}", "secretRef": {"name": "login"},
        },
    });
    vec![login(), Act::Create(class)]
}

/// What connections come from.
fn login() -> Act {
    Act::Create(json!({
        "kind": SECRET, "metadata": {"name": "login", "namespace": "NS-system",
            "labels": {"conductor.io/publishable": "true"}},
        "stringData": {"username": "app", "password": "of-the-test"},
    }))
}

fn graph_claim() -> Act {
    let mut spec = wants("5Gi");
    spec["class"] = Value::from("graph");
    claim("app", spec)
}

/// Whether a claim has its connection: a Secret, a ConfigMap and a Service.
fn is_ready(state: &State, claim: &str) -> bool {
    let Some((_, found)) = state.iter().find(|((kind, _, name), _)| kind == CLAIM && name == claim) else {
        return false;
    };
    let conditions = found["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|c| c["type"] == "Ready" && c["status"] == "True")
}

/// Three objects are created one after the other, and their outputs are published.
fn graph_provision() -> Workflow {
    Workflow {
        name: "graph provision",
        begins_cold: false,
        before: graph_class(),
        trigger: vec![graph_claim()],
        done: |state| is_bound(state, "app") && is_ready(state, "app"),
    }
}

/// The published objects are withdrawn, and three objects are deleted one after the other.
fn graph_release() -> Workflow {
    let mut before = graph_class();
    before.push(graph_claim());
    before.push(Act::Wait("app is ready", |state| is_bound(state, "app") && is_ready(state, "app")));
    Workflow {
        name: "graph release",
        begins_cold: false,
        before,
        trigger: vec![Act::Delete(CLAIM, "app")],
        done: |state| {
            is_gone(state, CLAIM, "app")
                && !state.keys().any(|(kind, _, _)| {
                    [RESOURCE, INSTANCE].contains(&kind.as_str()) || PUBLISHED.contains(&kind.as_str())
                })
        },
    }
}

/// A claim with a connection requests it under another name: the Secret of the first name is not forgotten.
fn another_name() -> Workflow {
    let stands = json!({
        "kind": RESOURCE, "metadata": {"name": "db-1", "namespace": "NS-system"},
        "spec": {
            "engine": "mysql", "version": "8.0.36", "capacity": {"storage": "10Gi"},
            "connection": {"host": "db.example.com", "port": 3306, "database": "app", "secretRef": "login"},
        },
    });
    Workflow {
        name: "another name",
        begins_cold: false,
        before: vec![
            login(),
            Act::Create(stands),
            claim("app", wants("5Gi")),
            Act::Wait("app is ready", |state| is_bound(state, "app") && is_ready(state, "app")),
        ],
        trigger: vec![Act::Patch(CLAIM, "app", json!({"spec": {"connection": {"secretName": "other"}}}))],
        done: |state| {
            let secrets =
                state.keys().filter(|(kind, _, _)| kind == SECRET).map(|(_, _, name)| name.as_str());
            let claim = state.iter().find(|((kind, _, _), _)| kind == CLAIM).map(|(_, claim)| claim);
            secrets.eq(["other"]) && claim.is_some_and(|claim| claim["status"]["binding"]["name"] == "other")
        },
    }
}

/// Requires the controllers of Kubernetes, which empty the namespace.
pub fn namespace_deletion() -> Workflow {
    let mut keep = wants("5Gi");
    keep["resourceName"] = Value::from("kept");
    let mut lose = wants("5Gi");
    lose["resourceName"] = Value::from("lost");
    Workflow {
        name: "namespace deletion",
        begins_cold: false,
        before: vec![
            resource("kept", "Retain", "5Gi"),
            resource("lost", "Delete", "5Gi"),
            claim("keep", keep),
            claim("lose", lose),
            Act::Wait("both are bound", |state| is_bound(state, "keep") && is_bound(state, "lose")),
        ],
        trigger: vec![Act::Delete(NAMESPACE, "")],
        done: |state| {
            // Two namespaces a trial: the one with the resources stays.
            let namespaces = state.keys().filter(|(kind, _, _)| kind == NAMESPACE).count();
            namespaces == 1
                && phase(state, RESOURCE, "kept") == Some("Released")
                && is_gone(state, RESOURCE, "lost")
        },
    }
}
