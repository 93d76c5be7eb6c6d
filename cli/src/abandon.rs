//! `conductor abandon`: a resource whose end waits for what never comes is let go of, and what implements it stays
//! behind. It says what that is, and asks before it does it.

use crate::args::AbandonArguments;
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
        bail!("--yes {repeated} is not {name}: repeat the name that is meant");
    }
    cluster::block_on(async {
        let (client, _) = cluster::connect(&arguments.cluster).await?;
        let admin = AdminClient::new(client);
        let kind = Kind::Resource(TypeId::RELATIONAL_DATABASE);
        let kind = PartKind::new(kind.api_version().as_str(), kind.name());
        let key = ObjectKey::new(arguments.cluster.system_namespace.as_str(), name);
        let resource = admin.read(&kind, &key).await?.with_context(|| format!("there is no {kind} {key}"))?;
        check(&resource, name)?;
        let stays = staying(&admin, &resource).await;
        output::complain(&format!("{name} {}", waits_for(&resource)));
        output::complain(&format!("it would be gone, and this would stay, for you to look after: {stays}"));
        if arguments.yes.is_none() {
            confirm(name)?;
        }
        admin.patch(&kind, &key, &letting_go(&resource)).await?;
        let mut out = output::stdout();
        writeln!(out, "{name} abandoned; what stays: {stays}")?;
        Ok(out.flush()?)
    })
}

/// Only what is on its way out is let go of: anything else has a better way.
fn check(resource: &Value, name: &str) -> Result<()> {
    let going = resource.pointer("/metadata/deletionTimestamp").is_some();
    ensure!(going, "{name} is not being deleted: delete its claim, or it, first");
    ensure!(
        finalizers(resource).contains(&RESOURCE_PROTECTION),
        "{name} does not wait for Conductor, but for {}",
        finalizers(resource).join(", ")
    );
    let held = resource.pointer("/status/phase").is_some_and(|phase| phase == "Bound");
    let holders = holders(resource);
    ensure!(
        !held || holders.is_empty(),
        "{name} waits for {}, which would be Lost for good: delete what holds it first",
        holders.join(", ")
    );
    Ok(())
}

/// The claims that hold it.
fn holders(resource: &Value) -> Vec<String> {
    let refs = resource.pointer("/spec/claimRefs").and_then(Value::as_array).into_iter().flatten();
    let held = refs.filter(|r| r.get("uid").is_some());
    let name = |r: &Value, field: &str| r[field].as_str().unwrap_or_default().to_owned();
    held.map(|r| format!("claim {}/{}", name(r, "namespace"), name(r, "name"))).collect()
}

fn finalizers(resource: &Value) -> Vec<&str> {
    let all = resource.pointer("/metadata/finalizers").and_then(Value::as_array);
    all.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// What its condition says.
fn waits_for(resource: &Value) -> String {
    let conditions = resource.pointer("/status/conditions").and_then(Value::as_array);
    let ready = conditions.into_iter().flatten().find(|c| c["type"] == conductor::api::reasons::READY);
    let message = ready.and_then(|c| c["message"].as_str()).filter(|message| !message.is_empty());
    message.map_or_else(|| "does not say what it waits for".to_owned(), |message| format!("says: {message}"))
}

/// What implements it and is still there, for people. What cannot be looked at may be.
async fn staying(admin: &AdminClient, resource: &Value) -> String {
    let mut seen = Vec::new();
    for entry in parts(resource) {
        seen.push((shown(entry), look(admin, entry).await));
    }
    list(seen)
}

fn list(seen: Vec<(String, Result<bool>)>) -> String {
    let left = seen.into_iter().filter_map(|(part, is_there)| match is_there {
        Ok(true) => Some(part),
        Ok(false) => None,
        Err(why) => Some(format!("{part} (perhaps: {why:#})")),
    });
    let left: Vec<String> = left.collect();
    if left.is_empty() { "nothing that is known".to_owned() } else { left.join(", ") }
}

/// Whether what is on record is there, in the life that is on record.
async fn look(admin: &AdminClient, entry: &Value) -> Result<bool> {
    let text = |field: &str| entry[field].as_str();
    let (Some(version), Some(kind), Some(name)) = (text("apiVersion"), text("kind"), text("name")) else {
        bail!("the record does not say where it is");
    };
    let key = ObjectKey::new(text("namespace").unwrap_or_default(), name);
    let found = admin.read(&PartKind::new(version, kind), &key).await?;
    let is_meant = |found: &Value| text("uid").is_none_or(|uid| found["metadata"]["uid"] == uid);
    Ok(found.as_ref().is_some_and(is_meant))
}

/// What is on record as its implementation.
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
    ensure!(
        std::io::stdin().is_terminal(),
        "nobody is there to be asked: repeat the name, --yes {name}, if that is meant"
    );
    let _ = write!(std::io::stderr(), "type {name} to let go of it: ");
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).context("the answer cannot be read")?;
    ensure!(answer.trim() == name, "not done");
    Ok(())
}

/// The change: it is kept for nobody, and tied to what was shown.
fn letting_go(resource: &Value) -> Value {
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
    fn what_is_let_go_of_keeps_everybody_elses_finalizers_and_is_tied_to_what_was_seen() {
        let change = letting_go(&stuck());
        assert_eq!(change["metadata"], json!({"uid": "u", "resourceVersion": "7", "finalizers": ["theirs"]}));
        assert_eq!(change["spec"]["reclaimPolicy"], "Retain");
        assert_eq!(parts(&stuck()).into_iter().map(shown).collect::<Vec<_>>(), ["RDSInstance s/i"]);
        assert_eq!(waits_for(&stuck()), "says: it waits for RDSInstance i to be gone");
    }

    #[test]
    fn what_is_gone_already_is_not_said_to_stay() {
        let part = |name: &str| format!("Instance s/{name}");
        let seen =
            vec![(part("a"), Ok(false)), (part("b"), Ok(true)), (part("c"), Err(anyhow::anyhow!("403")))];
        assert_eq!(list(seen), "Instance s/b, Instance s/c (perhaps: 403)");
        assert_eq!(list(vec![(part("a"), Ok(false))]), "nothing that is known");
    }

    #[test]
    fn only_what_is_stuck_on_us_is_let_go_of() {
        assert!(check(&stuck(), "db").is_ok());
        let mut stays = stuck();
        stays["metadata"]["deletionTimestamp"].take();
        stays["metadata"].as_object_mut().map(|m| m.remove("deletionTimestamp"));
        assert!(check(&stays, "db").is_err_and(|e| e.to_string().contains("is not being deleted")));
        let mut theirs = stuck();
        theirs["metadata"]["finalizers"] = json!(["theirs"]);
        assert!(check(&theirs, "db").is_err_and(|e| e.to_string().contains("but for theirs")));
    }

    #[test]
    fn what_a_claim_holds_is_not_let_go_of_under_it() {
        let mut held = stuck();
        held["spec"]["claimRefs"] = json!([{"namespace": "a", "name": "x", "uid": "u1"}]);
        held["status"]["phase"] = json!("Bound");
        assert!(check(&held, "db").is_err_and(|e| e.to_string().contains("waits for claim a/x")));
        held["status"]["phase"] = json!("Deleting");
        assert!(check(&held, "db").is_ok(), "its claim is gone, and only its name is left");
    }
}
