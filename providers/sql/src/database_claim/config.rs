//! Applies the configuration of servers: a file, as mounted into a Pod, or a ConfigMap in the system namespace, read
//! periodically. Each instance becomes a DatabaseServer, and each without a host a class that creates one on demand. The
//! server of a removed instance stays, because it may have databases.

use super::reconcile::class_fields;
use crate::error::Error;
use crate::informers;
use crate::reconcile::Provider;
use conductor::api::database::FROM_CONFIGURATION;
use conductor::api::database::logical::ServerKind;
use conductor::model::FieldError;
use conductor_sql_plan::server_config::{Pattern, ServerConfig, config_of};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{Api, ApiResource, DynamicObject};
use serde_json::{Value, json};
use std::time::Duration;

/// Pause between two reads: kubelet takes longer to update a mounted file.
const EVERY: Duration = Duration::from_secs(5);
/// The prefix that names a ConfigMap.
const IN_CLUSTER: &str = "configmap/";

/// Applies a configuration until it is dropped.
pub(crate) async fn run(provider: Provider, source: String) {
    let mut known = String::new();
    loop {
        if provider.cluster.leadership.leads() {
            match follow(&provider, &source, &known).await {
                Ok(Some(text)) => {
                    tracing::info!(source, "the configuration of servers is in force");
                    known = text;
                }
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(source, %error, "the configuration of servers is not in force")
                }
            }
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// Writes the servers and classes of a changed configuration; returns its text.
async fn follow(provider: &Provider, source: &str, known: &str) -> Result<Option<String>, Error> {
    let text = read(provider, source).await?;
    let invalid = |error: FieldError| Error::Invalid(error.to_string());
    let server_config = ServerConfig::read(&text).map_err(invalid)?;
    let patterns = match server_config.on_demand.is_empty() {
        true => Vec::new(),
        false => patterns(provider).await?,
    };
    let made_of = format!("{text}{patterns:?}");
    if made_of == known {
        return Ok(None);
    }
    let namespace = &provider.cluster.namespace;
    let servers = informers::servers(ServerKind::DatabaseServer);
    let mut desired: Vec<(ApiResource, Value)> =
        server_config.to_servers(namespace).into_iter().map(|server| (servers.clone(), server)).collect();
    let mut classless = None;
    for (label, on_demand) in &server_config.on_demand {
        match on_demand.to_class(namespace, label, &patterns).map_err(invalid) {
            Ok(class) => desired.push((informers::classes(), class)),
            Err(error) => classless = Some(error),
        }
    }
    // The longest label first: a claim that arrives meanwhile must not find its fallback only.
    desired.sort_by_key(|(_, object)| std::cmp::Reverse(label_of(object).len()));
    for (kind, object) in desired {
        put(provider, source, &kind, object).await?;
    }
    // A class that cannot be created yet holds up no other, and is retried.
    classless.map_or(Ok(Some(made_of)), Err)
}

/// The label of a server, or of a class's servers.
fn label_of(object: &Value) -> &str {
    let found = object.pointer("/spec/offer/labels/instance").or_else(|| object.pointer("/labels/instance"));
    found.and_then(Value::as_str).unwrap_or_default()
}

/// The classes that can be copied for instances, by name: those of administrators without an instance label.
async fn patterns(provider: &Provider) -> Result<Vec<Pattern>, Error> {
    let cluster = &provider.cluster;
    let classes = cluster.list(&cluster.others(&informers::classes(), &cluster.namespace)).await?;
    let ours = |class: &DynamicObject| class.annotations().contains_key(FROM_CONFIGURATION);
    let read = |class: DynamicObject| {
        let fields = class_fields(&class).filter(|_| !ours(&class))?;
        let labels = fields.labels.clone().unwrap_or_default();
        let (shape, engine) = (labels.get("shape").cloned(), fields.engine.clone());
        (!labels.contains_key("instance")).then(|| Pattern { shape, engine, fields: json!(fields) })
    };
    Ok(classes.into_iter().filter_map(read).collect())
}

async fn read(provider: &Provider, source: &str) -> Result<String, Error> {
    let cluster = &provider.cluster;
    let unread = |why: &str| Error::Invalid(format!("{source}: {why}"));
    let Some(name) = source.strip_prefix(IN_CLUSTER) else {
        let path = source.to_owned();
        let text = tokio::task::spawn_blocking(move || std::fs::read_to_string(path)).await;
        let text = text.map_err(|_| unread("reading it was interrupted"))?;
        let text = text.map_err(|error| unread(&error.to_string()))?;
        return config_of(&text).map_err(|error| unread(&error.to_string()));
    };
    let api: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let found = cluster.find(&api, name).await?;
    let found = found.ok_or_else(|| unread(&format!("does not exist in namespace {}", cluster.namespace)))?;
    let text = found.data.and_then(|mut data| data.remove("config.yaml"));
    text.ok_or_else(|| unread("it has no key config.yaml"))
}

/// Applies one server or class, unless another client created the object with its name.
async fn put(provider: &Provider, source: &str, kind: &ApiResource, mut object: Value) -> Result<(), Error> {
    let cluster = &provider.cluster;
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let api = cluster.others(kind, &cluster.namespace);
    let found = cluster.find(&api, &name).await?;
    if found.is_some_and(|found| !found.annotations().contains_key(FROM_CONFIGURATION)) {
        return Err(Error::Invalid(format!(
            "{} {name} exists and is not from this configuration: remove one of the two",
            kind.kind
        )));
    }
    object["metadata"]["annotations"][FROM_CONFIGURATION] = Value::from(source);
    cluster.apply(&api, &name, &object).await
}
