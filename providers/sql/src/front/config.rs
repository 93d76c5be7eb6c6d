//! The configuration of a fleet, read again and again: a file, as it is mounted into a Pod, or a ConfigMap in the system
//! namespace. Each instance becomes a DatabaseServer, and each without a host a class that makes one on demand; one that
//! is struck from it stays, for there may be databases on it.

use super::pass::class_fields;
use crate::pass::Provider;
use crate::trouble::Trouble;
use crate::world;
use conductor::api::database::FROM_CONFIGURATION;
use conductor::api::database::logical::ServerKind;
use conductor::model::FieldError;
use conductor_sql_plan::fleet::{Fleet, Pattern, config_of};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{Api, ApiResource, DynamicObject};
use serde_json::{Value, json};
use std::time::Duration;

/// How often it is read: kubelet itself takes longer to bring a change.
const EVERY: Duration = Duration::from_secs(5);
/// What the name of a ConfigMap begins with.
const IN_CLUSTER: &str = "configmap/";

/// Keeps the servers of a configuration in line with it until it is dropped.
pub(crate) async fn run(provider: Provider, source: String) {
    let mut known = String::new();
    loop {
        if provider.desk.leadership.leads() {
            match follow(&provider, &source, &known).await {
                Ok(Some(text)) => {
                    tracing::info!(source, "the configuration of servers is in force");
                    known = text;
                }
                Ok(None) => {}
                Err(trouble) => {
                    tracing::warn!(source, %trouble, "the configuration of servers is not in force")
                }
            }
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// Writes the servers and classes of a configuration that is not known yet; gives what they were made of.
async fn follow(provider: &Provider, source: &str, known: &str) -> Result<Option<String>, Trouble> {
    let text = read(provider, source).await?;
    let invalid = |error: FieldError| Trouble::Invalid(error.to_string());
    let fleet = Fleet::read(&text).map_err(invalid)?;
    let patterns = match fleet.on_demand.is_empty() {
        true => Vec::new(),
        false => patterns(provider).await?,
    };
    let made_of = format!("{text}{patterns:?}");
    if made_of == known {
        return Ok(None);
    }
    let namespace = &provider.desk.namespace;
    let servers = world::servers(ServerKind::DatabaseServer);
    let mut wanted: Vec<(ApiResource, Value)> =
        fleet.to_servers(namespace).into_iter().map(|server| (servers.clone(), server)).collect();
    let mut classless = None;
    for (label, on_demand) in &fleet.on_demand {
        match on_demand.to_class(namespace, label, &patterns).map_err(invalid) {
            Ok(class) => wanted.push((world::classes(), class)),
            Err(trouble) => classless = Some(trouble),
        }
    }
    // The longest label first: a claim that comes meanwhile must not find only what it would fall back to.
    wanted.sort_by_key(|(_, object)| std::cmp::Reverse(label_of(object).len()));
    for (kind, object) in wanted {
        put(provider, source, &kind, object).await?;
    }
    // One that cannot be made yet holds up no other, and is looked at again.
    classless.map_or(Ok(Some(made_of)), Err)
}

/// The label under which a server, or what a class makes, can be had.
fn label_of(object: &Value) -> &str {
    let found = object.pointer("/spec/offer/labels/instance").or_else(|| object.pointer("/labels/instance"));
    found.and_then(Value::as_str).unwrap_or_default()
}

/// The classes that others can be made after, by name: those that administrators wrote and that have no label yet.
async fn patterns(provider: &Provider) -> Result<Vec<Pattern>, Trouble> {
    let desk = &provider.desk;
    let classes = desk.list(&desk.others(&world::classes(), &desk.namespace)).await?;
    let ours = |class: &DynamicObject| class.annotations().contains_key(FROM_CONFIGURATION);
    let read = |class: DynamicObject| {
        let fields = class_fields(&class).filter(|_| !ours(&class))?;
        let labels = fields.labels.clone().unwrap_or_default();
        let (shape, engine) = (labels.get("shape").cloned(), fields.engine.clone());
        (!labels.contains_key("instance")).then(|| Pattern { shape, engine, fields: json!(fields) })
    };
    Ok(classes.into_iter().filter_map(read).collect())
}

async fn read(provider: &Provider, source: &str) -> Result<String, Trouble> {
    let desk = &provider.desk;
    let unread = |why: &str| Trouble::Invalid(format!("{source}: {why}"));
    let Some(name) = source.strip_prefix(IN_CLUSTER) else {
        let path = source.to_owned();
        let text = tokio::task::spawn_blocking(move || std::fs::read_to_string(path)).await;
        let text = text.map_err(|_| unread("reading it was interrupted"))?;
        let text = text.map_err(|error| unread(&error.to_string()))?;
        return config_of(&text).map_err(|error| unread(&error.to_string()));
    };
    let api: Api<ConfigMap> = Api::namespaced(desk.client.clone(), &desk.namespace);
    let found = desk.find(&api, name).await?;
    let found = found.ok_or_else(|| unread(&format!("there is none in namespace {}", desk.namespace)))?;
    let text = found.data.and_then(|mut data| data.remove("config.yaml"));
    text.ok_or_else(|| unread("it has no key config.yaml"))
}

/// One server or class. What somebody else made by that name stays as it is.
async fn put(
    provider: &Provider,
    source: &str,
    kind: &ApiResource,
    mut object: Value,
) -> Result<(), Trouble> {
    let desk = &provider.desk;
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let api = desk.others(kind, &desk.namespace);
    let found = desk.find(&api, &name).await?;
    if found.is_some_and(|found| !found.annotations().contains_key(FROM_CONFIGURATION)) {
        return Err(Trouble::Invalid(format!(
            "{} {name} exists and is not from a configuration: remove one of the two",
            kind.kind
        )));
    }
    object["metadata"]["annotations"][FROM_CONFIGURATION] = Value::from(source);
    desk.apply(&api, &name, &object).await
}
