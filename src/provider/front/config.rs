//! The configuration of a fleet, read again and again: a file, as it is mounted into a Pod, or a ConfigMap in the system
//! namespace. Each instance becomes a DatabaseServer; one that is struck from it stays, for there may be databases on it.

use crate::api::database::FROM_CONFIGURATION;
use crate::api::database::logical::{ServerKind, ServerRef};
use crate::database::fleet::{Fleet, config_of};
use crate::provider::pass::Provider;
use crate::provider::trouble::Trouble;
use crate::provider::world;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::Api;
use serde_json::Value;
use std::time::Duration;

/// How often it is read: kubelet itself takes longer to bring a change.
const EVERY: Duration = Duration::from_secs(5);
/// What the name of a ConfigMap begins with.
const IN_CLUSTER: &str = "configmap/";

/// Keeps the servers of a configuration in line with it until it is dropped.
pub(crate) async fn run(provider: Provider, source: String) {
    let mut known = String::new();
    loop {
        if provider.desk.leader.leads() {
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

/// Writes the servers of a configuration that is not known yet; gives its text.
async fn follow(provider: &Provider, source: &str, known: &str) -> Result<Option<String>, Trouble> {
    let text = read(provider, source).await?;
    if text == known {
        return Ok(None);
    }
    let fleet = Fleet::read(&text).map_err(|error| Trouble::Invalid(error.to_string()))?;
    for server in fleet.to_servers(&provider.desk.namespace) {
        put(provider, source, server).await?;
    }
    Ok(Some(text))
}

async fn read(provider: &Provider, source: &str) -> Result<String, Trouble> {
    let desk = &provider.desk;
    let unread = |why: &str| Trouble::Invalid(format!("{source}: {why}"));
    let Some(name) = source.strip_prefix(IN_CLUSTER) else {
        let path = source.to_owned();
        let text = tokio::task::spawn_blocking(move || std::fs::read_to_string(path)).await;
        let text = text.map_err(|_| unread("reading it was interrupted"))?;
        return text.map(|text| config_of(&text)).map_err(|error| unread(&error.to_string()));
    };
    let api: Api<ConfigMap> = Api::namespaced(desk.client.clone(), &desk.namespace);
    let found = desk.find(&api, name).await?;
    let found = found.ok_or_else(|| unread(&format!("there is none in namespace {}", desk.namespace)))?;
    let text = found.data.and_then(|mut data| data.remove("config.yaml"));
    text.ok_or_else(|| unread("it has no key config.yaml"))
}

/// One server. What somebody else made by that name stays as it is.
async fn put(provider: &Provider, source: &str, mut server: Value) -> Result<(), Trouble> {
    let name = server["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let reference = ServerRef { kind: ServerKind::DatabaseServer, name: name.clone() };
    if let Some(found) = provider.world.server(&reference)
        && !found.annotations().contains_key(FROM_CONFIGURATION)
    {
        return Err(Trouble::Invalid(format!(
            "DatabaseServer {name} exists and is not from a configuration: remove one of the two"
        )));
    }
    server["metadata"]["annotations"][FROM_CONFIGURATION] = Value::from(source);
    let api = provider.desk.others(&world::servers(ServerKind::DatabaseServer), &provider.desk.namespace);
    provider.desk.apply(&api, &name, &server).await
}
