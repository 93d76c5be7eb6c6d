//! Keeps a registered server's object while it has databases: it gets a finalizer at the first check; a deleted one is
//! offered to no new claim, and released when no database on it is recorded. The server itself is never changed by this.

use super::error::Error;
use super::finalizer;
use super::informers::{self, holders};
use super::reconcile::Provider;
use conductor::api::database::ON_SERVER;
use conductor::api::database::logical::{ServerKind, ServerRef};
use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::json;
use std::sync::Arc;

/// Kept until no database on the server is recorded.
const FINALIZER: &str = "database.conductor.io/server";

/// Adds the finalizer, before anything is created on the server.
pub(super) async fn protect(
    provider: &Provider,
    reference: &ServerRef,
    object: &DynamicObject,
) -> Result<(), Error> {
    if reference.kind != ServerKind::DatabaseServer {
        return Ok(());
    }
    let api = provider.cluster.others(&informers::servers(reference.kind), &provider.cluster.namespace);
    finalizer::add(&provider.cluster, &api, object, FINALIZER).await
}

/// Releases a deleted server.
///
/// # Errors
/// What it waits for.
pub(super) async fn leave(
    provider: &Provider,
    reference: &ServerRef,
    object: &DynamicObject,
) -> Result<(), Error> {
    let offered = find_offered(provider, reference);
    let databases = records_on(provider, reference).await?;
    let is_used = |uid: &String| provider.informers.assignment(uid).is_some();
    let claims = offered.iter().flat_map(|found| holders(found)).filter(is_used).count();
    if let Some(found) = &offered {
        withhold(provider, found).await?;
    }
    if let Some(why) = waits_for(databases, claims) {
        return Err(Error::Refused(why));
    }
    provider.cluster.may_destroy().await?;
    if let Some(found) = &offered {
        let api = provider.cluster.others(&informers::resources(), &provider.cluster.namespace);
        provider.cluster.delete(&api, &found.name_any(), found.uid()).await?;
    }
    let api = provider.cluster.others(&informers::servers(reference.kind), &provider.cluster.namespace);
    finalizer::remove(&provider.cluster, &api, object, FINALIZER, object.resource_version()).await
}

/// The number of recorded databases on a server, read live: a copy may miss one that was just created.
pub(super) async fn records_on(provider: &Provider, reference: &ServerRef) -> Result<usize, Error> {
    let api = provider.cluster.others(&informers::records(), &provider.cluster.namespace);
    let records = provider.cluster.list(&api).await?;
    let on_it = |record: &&DynamicObject| informers::read(record, "/spec/server").as_ref() == Some(reference);
    Ok(records.iter().filter(on_it).count())
}

fn waits_for(databases: usize, claims: usize) -> Option<String> {
    let kept = "delete the LogicalDatabase of a retained database to release it";
    match (databases, claims) {
        (0, 0) => None,
        (0, claims) => Some(format!("it is being deleted and waits for {claims} claims that hold it")),
        (databases, _) => Some(format!(
            "it is being deleted and waits for {databases} databases on it: delete their claims; {kept}"
        )),
    }
}

/// The resource that was created for the server's offer.
fn find_offered(provider: &Provider, reference: &ServerRef) -> Option<Arc<DynamicObject>> {
    let named = format!("{}/{}", reference.kind.word(), reference.name);
    let found = provider.informers.resource(&reference.name)?;
    (found.annotations().get(ON_SERVER) == Some(&named)).then_some(found)
}

/// Keeps new claims off a server that is being deleted.
async fn withhold(provider: &Provider, found: &DynamicObject) -> Result<(), Error> {
    if found.data.pointer("/spec/unschedulable") == Some(&json!(true)) {
        return Ok(());
    }
    let api = provider.cluster.others(&informers::resources(), &provider.cluster.namespace);
    let change = json!({"metadata": {"uid": found.uid()}, "spec": {"unschedulable": true}});
    provider.cluster.merge::<DynamicObject>(&api, &found.name_any(), change).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deleted_server_reports_what_it_waits_for() {
        assert_eq!(waits_for(0, 0), None);
        assert!(waits_for(0, 2).is_some_and(|message| message.contains("2 claims")));
        let message = waits_for(3, 3).expect("it waits");
        assert!(message.contains("3 databases") && message.contains("LogicalDatabase"), "{message}");
    }
}
