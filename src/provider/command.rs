//! What people ask of one database by hand: another login now, or a database back from quarantine. Both only leave a
//! note on its record; whoever leads carries it out.

use super::clock;
use crate::api::database::logical::{DatabasePhase, LogicalDatabase};
use crate::api::database::{ROTATE, UNDELETE};
use kube::api::{Api, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::json;

/// Why it cannot be asked.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// No record fits.
    #[error("{0}")]
    NotFound(String),
    /// The API does not answer, or refuses.
    #[error("the cluster cannot be asked: {0}")]
    Api(#[from] kube::Error),
}

/// Asks for another login for a claim's database; gives the record's name. A hard change also ends every session and
/// every older password.
///
/// # Errors
/// The claim has no database that is in use, or the cluster cannot be asked.
pub async fn rotate(
    client: &Client,
    system_namespace: &str,
    (namespace, name): (&str, &str),
    is_hard: bool,
) -> Result<String, Refused> {
    let record = find(client, system_namespace, (namespace, name), DatabasePhase::Ready).await?;
    let record = record.ok_or_else(|| {
        Refused::NotFound(format!(
            "claim {namespace}/{name} has no database in use on a server of Conductor's: see kubectl get ldb -n {system_namespace}"
        ))
    })?;
    let word = if is_hard { "hard" } else { "soft" };
    note(client, system_namespace, &record, ROTATE, &format!("{word}-{}", clock::now().0)).await
}

/// Asks for a claim's database back from quarantine; gives the record's name.
///
/// # Errors
/// There is none in quarantine, or the cluster cannot be asked.
pub async fn undelete(
    client: &Client,
    system_namespace: &str,
    (namespace, name): (&str, &str),
) -> Result<String, Refused> {
    let record = find(client, system_namespace, (namespace, name), DatabasePhase::Quarantined).await?;
    let record = record.ok_or_else(|| {
        Refused::NotFound(format!(
            "no database of claim {namespace}/{name} is in quarantine: what is dropped is gone"
        ))
    })?;
    note(client, system_namespace, &record, UNDELETE, "true").await
}

/// The newest record of a claim's database in a phase.
async fn find(
    client: &Client,
    system_namespace: &str,
    (namespace, name): (&str, &str),
    phase: DatabasePhase,
) -> Result<Option<LogicalDatabase>, Refused> {
    let api: Api<LogicalDatabase> = Api::namespaced(client.clone(), system_namespace);
    let records = api.list(&ListParams::default()).await?;
    let is_meant = |record: &LogicalDatabase| {
        record.spec.claim.namespace == namespace
            && record.spec.claim.name == name
            && record.status.as_ref().and_then(|status| status.phase) == Some(phase)
    };
    let mut found: Vec<LogicalDatabase> = records.into_iter().filter(is_meant).collect();
    found.sort_by_key(|record| record.status.as_ref().and_then(|status| status.created_at.clone()));
    Ok(found.pop())
}

async fn note(
    client: &Client,
    system_namespace: &str,
    record: &LogicalDatabase,
    key: &str,
    value: &str,
) -> Result<String, Refused> {
    let api: Api<LogicalDatabase> = Api::namespaced(client.clone(), system_namespace);
    let patch = Patch::Merge(json!({"metadata": {"uid": record.uid(), "annotations": {key: value}}}));
    api.patch(&record.name_any(), &PatchParams::default(), &patch).await?;
    Ok(record.name_any())
}
