//! A control plane with a database controller, and the objects of administrators and applications.

use crate::login::Login;
use crate::server::RealServer;
use conductor::api::database::front::{FRONT_GROUP, FRONT_VERSION};
use conductor::api::database::{ADMIN_HOSTS, DATABASE_ID, ROTATE};
use conductor::api::names::PUBLISHED;
use conductor_controller::Options;
use conductor_live::{Controller, Turn, turn, until};
use conductor_sql_plan::sql::Dialect;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The namespace of servers and LogicalDatabases.
pub const SYSTEM: &str = "conductor-system";

/// One test's turn on the control plane.
pub struct Cluster {
    /// The control plane.
    pub turn: Turn,
    /// The test's own client.
    pub client: Client,
}

/// The kinds of `database.conductor.io` that there are.
fn kind(name: &str) -> ApiResource {
    let gvk = GroupVersionKind::gvk("database.conductor.io", "v1alpha1", name);
    ApiResource::from_gvk_with_plural(&gvk, &format!("{}s", name.to_lowercase()))
}

/// How the controllers of these tests run.
pub fn options() -> Options {
    Options { lease: None, databases: true, ..Options::default() }
}

impl Cluster {
    /// Waits for its turn and removes what other tests left.
    pub async fn enter() -> Cluster {
        let turn = turn().await;
        let client = turn.client();
        let cluster = Cluster { turn, client };
        cluster.clear().await;
        cluster
    }

    /// Removes everything of ours that another test left.
    async fn clear(&self) {
        for name in ["LogicalDatabase", "DatabaseServer", "LocalServer", "DatabaseRole", "DatabaseGrant"] {
            self.strip(&kind(name), None).await;
        }
        let gvk = GroupVersionKind::gvk(FRONT_GROUP, FRONT_VERSION, "DatabaseClaim");
        self.strip(&ApiResource::from_gvk(&gvk), None).await;
        // What stopped controllers published: there is no garbage collector here.
        for label in [DATABASE_ID, PUBLISHED] {
            self.strip(&ApiResource::erase::<Secret>(&()), Some(label)).await;
            self.strip(&ApiResource::erase::<ConfigMap>(&()), Some(label)).await;
        }
    }

    /// Removes every object of a kind, wherever it is and whatever holds it up.
    async fn strip(&self, kind: &ApiResource, label: Option<&str>) {
        let all: Api<DynamicObject> = Api::all_with(self.client.clone(), kind);
        let listed = label.map_or_else(ListParams::default, |label| ListParams::default().labels(label));
        for object in all.list(&listed).await.expect("the API lists") {
            let namespace = object.namespace().unwrap_or_default();
            let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), &namespace, kind);
            if !object.finalizers().is_empty() {
                let bare = Patch::Merge(json!({"metadata": {"finalizers": null}}));
                let _ = api.patch(&object.name_any(), &PatchParams::default(), &bare).await;
            }
            let _ = api.delete(&object.name_any(), &DeleteParams::default()).await;
        }
    }

    /// Objects of one of our kinds, in the system namespace.
    pub fn api(&self, name: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), SYSTEM, &kind(name))
    }

    /// Objects of one of our kinds, in any namespace.
    pub fn api_in(&self, name: &str, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), namespace, &kind(name))
    }

    /// Secrets of a namespace.
    pub fn secrets(&self, namespace: &str) -> Api<Secret> {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// Starts a controller.
    pub fn controller(&self) -> Controller {
        Controller::start(self.turn.controller_client(), options())
    }

    /// Registers a server that offers itself; `rules` is its `databases`.
    pub async fn register(&self, name: &str, server: &RealServer, rules: Value) {
        self.register_at(name, server, server.plan.port, rules).await;
    }

    /// Registers a server that is reached by another port than its own.
    pub async fn register_at(&self, name: &str, server: &RealServer, port: u16, rules: Value) {
        let access = server.access();
        self.administrator(name, port, (&access.username, access.password.expose())).await;
        let engine = match server.plan.dialect {
            Dialect::Postgresql => "postgresql",
            Dialect::Mariadb => "mariadb",
            Dialect::Mysql => "mysql",
        };
        self.turn
            .put(json!({
                "apiVersion": "database.conductor.io/v1alpha1", "kind": "DatabaseServer",
                "metadata": {"name": name, "namespace": SYSTEM},
                "spec": {
                    "engine": engine, "host": access.host, "port": port,
                    "admin": {"secretName": format!("{name}-admin")},
                    "databases": rules, "offer": {"labels": {"server": name}},
                },
            }))
            .await;
    }

    /// Writes who administers the server behind a port of this machine.
    pub async fn administrator(&self, server: &str, port: u16, (username, password): (&str, &str)) {
        self.turn
            .put(json!({
                "apiVersion": "v1", "kind": "Secret",
                "metadata": {"name": format!("{server}-admin"), "namespace": SYSTEM,
                    "annotations": {ADMIN_HOSTS: format!("127.0.0.1:{port}")}},
                "stringData": {"username": username, "password": password},
            }))
            .await;
    }

    /// Creates a claim for a database on a server.
    pub async fn claim(&self, namespace: &str, name: &str, server: &str, more: Value) -> String {
        self.turn.namespace(namespace).await;
        let mut spec = json!({"selector": {"matchLabels": {"server": server}}});
        for (key, value) in more.as_object().into_iter().flatten() {
            spec[key] = value.clone();
        }
        let made = self
            .turn
            .put(json!({
                "apiVersion": "storage.conductor.io/v1alpha1", "kind": "RelationalDatabaseClaim",
                "metadata": {"name": name, "namespace": namespace}, "spec": spec,
            }))
            .await;
        made.uid().expect("it has a UID")
    }

    /// Deletes a claim and waits until it no longer exists.
    pub async fn release(&self, namespace: &str, name: &str) {
        let claims = conductor::model::Kind::Claim(conductor::model::TypeId::RELATIONAL_DATABASE);
        let api = self.turn.objects(claims, namespace);
        let _ = api.delete(name, &DeleteParams::default()).await;
        until(&format!("claim {name} is gone"), async || {
            self.turn.claim(namespace, name).await.is_none().then_some(())
        })
        .await;
    }

    /// A claim's `Ready` condition, in one line.
    pub async fn readiness(&self, namespace: &str, name: &str) -> String {
        let claim = self.turn.claim(namespace, name).await;
        let conditions = claim.and_then(|claim| claim.data["status"]["conditions"].as_array().cloned());
        let conditions = conditions.unwrap_or_default();
        let ready = conditions.iter().find(|c| c["type"] == "Ready").cloned().unwrap_or_default();
        let text = |field: &str| ready[field].as_str().unwrap_or_default().to_owned();
        format!("{} {}: {}", text("status"), text("reason"), text("message"))
    }

    /// Waits until a claim's connection is published, and returns it.
    pub async fn login(&self, dialect: Dialect, namespace: &str, name: &str) -> Login {
        let mut message = String::new();
        until(&format!("claim {name} is ready"), async || {
            let readiness = self.readiness(namespace, name).await;
            if readiness != message {
                println!("claim {namespace}/{name}: {readiness}");
                message.clone_from(&readiness);
            }
            if !readiness.starts_with("True") {
                return None;
            }
            self.published(namespace, name).await.map(|keys| Login::new(dialect, keys))
        })
        .await
    }

    /// Waits until another login than this one is published under a name, and returns it.
    pub async fn next_login(&self, namespace: &str, name: &str, before: &Login) -> Login {
        until("another login is published", async || {
            let now = Login::new(before.dialect, self.published(namespace, name).await?);
            (now != *before).then_some(now)
        })
        .await
    }

    /// Creates a DatabaseRole on a claim of its namespace, and waits for its login. Returns its UID too.
    pub async fn role(&self, dialect: Dialect, namespace: &str, name: &str, claim: &str) -> (String, Login) {
        let role = json!({
            "apiVersion": "database.conductor.io/v1alpha1", "kind": "DatabaseRole",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"claimRef": {"name": claim}, "access": "ReadWrite"},
        });
        let uid = self.turn.put(role).await.uid().expect("it has a UID");
        until(&format!("role {name} is ready"), async || {
            let ready = self.condition("DatabaseRole", (namespace, name), "Ready").await;
            (ready["status"] == "True").then_some(())
        })
        .await;
        let keys = self.published(namespace, name).await.expect("it is published");
        (uid, Login::new(dialect, keys))
    }

    /// A condition of an object of ours; nothing where it has none of that type.
    pub async fn condition(&self, kind: &str, (namespace, name): (&str, &str), type_: &str) -> Value {
        let found = self.api_in(kind, namespace).get_opt(name).await.expect("the API answers");
        let all = found.and_then(|found| found.data["status"]["conditions"].as_array().cloned());
        all.unwrap_or_default().into_iter().find(|one| one["type"] == type_).unwrap_or_default()
    }

    /// Makes the controller reconcile a claim's database.
    pub async fn touch(&self, namespace: &str, name: &str) {
        let claims = conductor::model::Kind::Claim(conductor::model::TypeId::RELATIONAL_DATABASE);
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let note = json!({"test.conductor.io/touched": format!("{:?}", now.unwrap_or_default())});
        let change = Patch::Merge(json!({"metadata": {"annotations": note}}));
        let claims = self.turn.objects(claims, namespace);
        claims.patch(name, &PatchParams::default(), &change).await.expect("the claim is there");
    }

    /// What is published for a claim now.
    pub async fn published(&self, namespace: &str, name: &str) -> Option<BTreeMap<String, String>> {
        let secret = self.secrets(namespace).get_opt(name).await.expect("the API answers")?;
        let data = secret.data.unwrap_or_default();
        Some(data.into_iter().filter_map(|(k, v)| Some((k, String::from_utf8(v.0).ok()?))).collect())
    }

    /// The record of a claim's database.
    pub async fn record(&self, id: &str) -> Option<DynamicObject> {
        self.api("LogicalDatabase").get_opt(&format!("db-{id}")).await.expect("the API answers")
    }

    /// Waits until a record is in a phase, and returns it.
    pub async fn record_in(&self, id: &str, phase: &str) -> DynamicObject {
        until(&format!("the record of {id} is {phase}"), async || {
            let record = self.record(id).await?;
            (record.data["status"]["phase"] == phase).then_some(record)
        })
        .await
    }

    /// Waits until a LogicalDatabase's message contains a text, and returns it.
    pub async fn record_reports(&self, id: &str, part: &str) -> String {
        until(&format!("the record of {id} reports {part:?}"), async || {
            let record = self.record(id).await?;
            let message = record.data.pointer("/status/conditions/0/message").and_then(Value::as_str)?;
            message.contains(part).then(|| message.to_owned())
        })
        .await
    }

    /// Requests a rotation, and waits until it is complete.
    pub async fn rotate(&self, id: &str, token: &str) {
        let note = Patch::Merge(json!({"metadata": {"annotations": {ROTATE: token}}}));
        let api = self.api("LogicalDatabase");
        api.patch(&format!("db-{id}"), &PatchParams::default(), &note).await.expect("the record is there");
        until(&format!("the change {token} is done"), async || {
            let record = self.record(id).await?;
            (record.data["status"]["rotationDone"] == token).then_some(())
        })
        .await;
    }

    /// Waits until a server's `Ready` message contains a text, and returns it.
    pub async fn server_reports(&self, name: &str, part: &str) -> String {
        until(&format!("server {name} reports {part:?}"), async || {
            let server = self.api("DatabaseServer").get(name).await.ok()?;
            let message = server.data.pointer("/status/conditions/0/message").and_then(Value::as_str)?;
            message.contains(part).then(|| message.to_owned())
        })
        .await
    }

    /// Waits until the `Ready` condition of a claim of namespace `app` contains a text, and returns it.
    pub async fn claim_reports(&self, name: &str, part: &str) -> String {
        until(&format!("claim {name} reports {part:?}"), async || {
            Some(self.readiness("app", name).await).filter(|message| message.contains(part))
        })
        .await
    }
}
