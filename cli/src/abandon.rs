//! `conductor abandon`: releases a resource whose deletion is stuck, and keeps the objects that implement it. It lists
//! them, and requires a confirmation.

use crate::args::AbandonArguments;
use crate::fields::{condition, holders};
use crate::{cluster, output};
use anyhow::{Context, Result, bail, ensure};
use conductor::api::names::RESOURCE_PROTECTION;
use conductor::model::{Kind, ObjectKey, PartKind, TypeId};
use conductor_controller::AdminClient;
use serde_json::{Value, json};
use std::io::{IsTerminal, Write};

/// `conductor abandon`.
pub fn abandon(arguments: &AbandonArguments) -> Result<()> {
    let name = arguments.name.as_str();
    if let Some(repeated) = arguments.yes.as_deref().filter(|repeated| *repeated != name) {
        bail!("--yes {repeated} does not match {name}: repeat the name of the resource");
    }
    cluster::block_on(async {
        let (client, _) = cluster::connect(&arguments.cluster).await?;
        let admin = AdminClient::new(client);
        let kind = Kind::Resource(TypeId::RELATIONAL_DATABASE);
        let kind = PartKind::new(kind.api_version().as_str(), kind.name());
        let key = ObjectKey::new(arguments.cluster.system_namespace.as_str(), name);
        let resource =
            admin.read(&kind, &key).await?.with_context(|| format!("{kind} {key} does not exist"))?;
        check(&resource, name)?;
        let remaining = remaining(&admin, &resource).await;
        output::diagnostic(&format!("{name} is being deleted: {}", reason(&resource)));
        output::diagnostic(&format!("abandon deletes {name} and keeps, for you to manage: {remaining}"));
        if arguments.yes.is_none() {
            confirm(name)?;
        }
        admin.patch(&kind, &key, &release(&resource)).await?;
        let mut out = output::stdout();
        writeln!(out, "{name} abandoned; remaining objects: {remaining}")?;
        Ok(out.flush()?)
    })
}

/// Refuses a resource that is not stuck in its deletion: there is a better way for it.
fn check(resource: &Value, name: &str) -> Result<()> {
    let is_deleting = resource.pointer("/metadata/deletionTimestamp").is_some();
    ensure!(is_deleting, "{name} is not being deleted: delete its claim, or the resource itself, first");
    ensure!(
        finalizers(resource).contains(&RESOURCE_PROTECTION),
        "{name} does not wait for Conductor: its finalizers are {}",
        finalizers(resource).join(", ")
    );
    let mut refs = resource.pointer("/spec/claimRefs").and_then(Value::as_array).into_iter().flatten();
    let is_bound = resource.pointer("/status/phase").is_some_and(|phase| phase == "Bound");
    ensure!(
        !is_bound || refs.all(|by| by.get("uid").is_none()),
        "{name} is bound to claim {}, which would be Lost for good: delete that first",
        holders(resource).join(", ")
    );
    Ok(())
}

fn finalizers(resource: &Value) -> Vec<&str> {
    let all = resource.pointer("/metadata/finalizers").and_then(Value::as_array);
    all.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The message of its condition `Ready`.
fn reason(resource: &Value) -> String {
    let ready = condition(resource, conductor::api::reasons::READY);
    let message = ready.and_then(|c| c["message"].as_str()).filter(|message| !message.is_empty());
    message.unwrap_or("its condition Ready gives no reason").to_owned()
}

/// The objects of its implementation that exist, or may exist if they cannot be read.
async fn remaining(admin: &AdminClient, resource: &Value) -> String {
    let mut seen = Vec::new();
    for entry in parts(resource) {
        seen.push((shown(entry), exists(admin, entry).await));
    }
    list(seen)
}

fn list(seen: Vec<(String, Result<bool>)>) -> String {
    let left = seen.into_iter().filter_map(|(part, exists)| match exists {
        Ok(true) => Some(part),
        Ok(false) => None,
        Err(why) => Some(format!("{part} (unknown: {why:#})")),
    });
    let left: Vec<String> = left.collect();
    if left.is_empty() { "none known".to_owned() } else { left.join(", ") }
}

/// Whether the recorded object exists, with the recorded UID.
async fn exists(admin: &AdminClient, entry: &Value) -> Result<bool> {
    let text = |field: &str| entry[field].as_str();
    let (Some(version), Some(kind), Some(name)) = (text("apiVersion"), text("kind"), text("name")) else {
        bail!("implementationRef is incomplete");
    };
    let key = ObjectKey::new(text("namespace").unwrap_or_default(), name);
    let found = admin.read(&PartKind::new(version, kind), &key).await?;
    let is_meant = |found: &Value| text("uid").is_none_or(|uid| found["metadata"]["uid"] == uid);
    Ok(found.as_ref().is_some_and(is_meant))
}

/// The recorded objects of its implementation.
fn parts(resource: &Value) -> Vec<&Value> {
    match resource.pointer("/status/implementationRef") {
        Some(Value::Array(entries)) => entries.iter().collect(),
        Some(entry) => vec![entry],
        None => Vec::new(),
    }
}

fn shown(entry: &Value) -> String {
    let text = |field: &str| entry[field].as_str().unwrap_or_default();
    match entry.as_str() {
        Some(name) => name.to_owned(),
        None => format!("{} {}/{}", text("kind"), text("namespace"), text("name")),
    }
}

fn confirm(name: &str) -> Result<()> {
    ensure!(std::io::stdin().is_terminal(), "no terminal to confirm on: confirm with --yes {name}");
    let _ = write!(std::io::stderr(), "type {name} to confirm: ");
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).context("cannot read the confirmation")?;
    ensure!(answer.trim() == name, "not confirmed: nothing was changed");
    Ok(())
}

/// The patch: Retain, without our finalizer, and tied to the version that was shown.
fn release(resource: &Value) -> Value {
    let left: Vec<&str> = finalizers(resource).into_iter().filter(|f| *f != RESOURCE_PROTECTION).collect();
    json!({
        "metadata": {
            "uid": resource.pointer("/metadata/uid"),
            "resourceVersion": resource.pointer("/metadata/resourceVersion"),
            "finalizers": left,
        },
        "spec": {"reclaimPolicy": "Retain"},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stuck() -> Value {
        json!({
            "metadata": {"name": "db", "uid": "u", "resourceVersion": "7", "deletionTimestamp": "2026-01-01T00:00:00Z",
                "finalizers": ["theirs", RESOURCE_PROTECTION]},
            "spec": {"reclaimPolicy": "Delete"},
            "status": {
                "implementationRef": {"kind": "RDSInstance", "namespace": "s", "name": "i"},
                "conditions": [{"type": "Ready", "message": "it waits for RDSInstance i to be gone"}],
            },
        })
    }

    #[test]
    fn a_release_keeps_other_finalizers_and_is_tied_to_its_version() {
        let change = release(&stuck());
        assert_eq!(change["metadata"], json!({"uid": "u", "resourceVersion": "7", "finalizers": ["theirs"]}));
        assert_eq!(change["spec"]["reclaimPolicy"], "Retain");
        assert_eq!(parts(&stuck()).into_iter().map(shown).collect::<Vec<_>>(), ["RDSInstance s/i"]);
        assert_eq!(reason(&stuck()), "it waits for RDSInstance i to be gone");
    }

    #[test]
    fn a_deleted_object_is_not_listed_as_remaining() {
        let part = |name: &str| format!("Instance s/{name}");
        let seen =
            vec![(part("a"), Ok(false)), (part("b"), Ok(true)), (part("c"), Err(anyhow::anyhow!("403")))];
        assert_eq!(list(seen), "Instance s/b, Instance s/c (unknown: 403)");
        assert_eq!(list(vec![(part("a"), Ok(false))]), "none known");
    }

    #[test]
    fn only_a_resource_stuck_on_conductor_is_released() {
        assert!(check(&stuck(), "db").is_ok());
        let mut stays = stuck();
        stays["metadata"]["deletionTimestamp"].take();
        stays["metadata"].as_object_mut().map(|m| m.remove("deletionTimestamp"));
        assert!(check(&stays, "db").is_err_and(|e| e.to_string().contains("is not being deleted")));
        let mut theirs = stuck();
        theirs["metadata"]["finalizers"] = json!(["theirs"]);
        assert!(check(&theirs, "db").is_err_and(|e| e.to_string().contains("finalizers are theirs")));
    }

    #[test]
    fn a_bound_resource_is_not_released() {
        let mut held = stuck();
        held["spec"]["claimRefs"] = json!([{"namespace": "a", "name": "x", "uid": "u1"}]);
        held["status"]["phase"] = json!("Bound");
        assert!(check(&held, "db").is_err_and(|e| e.to_string().contains("is bound to claim a/x")));
        held["status"]["phase"] = json!("Deleting");
        assert!(check(&held, "db").is_ok(), "its claim was deleted, and only its name is left");
    }
}
