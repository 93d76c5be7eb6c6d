//! A registered server is not taken away from under the databases on it: it is protected from the first look on, and
//! one that is deleted offers itself to no new claim and goes when nothing on it is on record any more. The server
//! itself is not Conductor's, and nothing happens to it.

use super::pass::Provider;
use super::trouble::Trouble;
use super::world::{self, holders};
use conductor::api::database::logical::{ServerKind, ServerRef};
use conductor::api::database::{GROUP, ON_SERVER};
use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::json;
use std::sync::Arc;

/// Kept until nothing on the server is on record any more.
const FINALIZER: &str = "database.conductor.io/server";

/// Protects a server, before anything is made on it.
pub(super) async fn protect(
    provider: &Provider,
    reference: &ServerRef,
    object: &DynamicObject,
) -> Result<(), Trouble> {
    if reference.kind != ServerKind::DatabaseServer || object.finalizers().iter().any(|own| own == FINALIZER)
    {
        return Ok(());
    }
    let all = object.finalizers().iter().map(String::as_str).chain([FINALIZER]).collect();
    set_finalizers(provider, reference, object, all).await
}

/// Lets a deleted server go, or says what it waits for.
///
/// # Errors
/// What it waits for.
pub(super) async fn leave(
    provider: &Provider,
    reference: &ServerRef,
    object: &DynamicObject,
) -> Result<(), Trouble> {
    let offered = find_offered(provider, reference);
    let databases = records_on(provider, reference).await?;
    let is_used = |uid: &String| provider.world.assignment(uid).is_some();
    let claims = offered.iter().flat_map(|found| holders(found)).filter(is_used).count();
    if let Some(found) = &offered {
        withhold(provider, found).await?;
    }
    if let Some(why) = waits_for(databases, claims) {
        return Err(Trouble::Refused(why));
    }
    provider.desk.may_destroy().await?;
    if let Some(found) = &offered {
        let api = provider.desk.others(&world::resources(), &provider.desk.namespace);
        provider.desk.delete(&api, &found.name_any(), found.uid()).await?;
    }
    let rest = object.finalizers().iter().map(String::as_str).filter(|own| *own != FINALIZER).collect();
    set_finalizers(provider, reference, object, rest).await
}

/// Asked live: a copy may not have the record of a database that was begun just now.
pub(super) async fn records_on(provider: &Provider, reference: &ServerRef) -> Result<usize, Trouble> {
    let kind = world::kind(GROUP, "LogicalDatabase", "logicaldatabases");
    let records = provider.desk.list(&provider.desk.others(&kind, &provider.desk.namespace)).await?;
    let on_it = |record: &&DynamicObject| {
        world::text(record, "/spec/server/name") == reference.name
            && world::text(record, "/spec/server/kind") == reference.kind.word()
    };
    Ok(records.iter().filter(on_it).count())
}

fn waits_for(databases: usize, claims: usize) -> Option<String> {
    let kept = "a database that is kept is let go of by deleting its LogicalDatabase";
    match (databases, claims) {
        (0, 0) => None,
        (0, claims) => Some(format!("it is being deleted and waits for {claims} claims that hold it")),
        (databases, _) => Some(format!(
            "it is being deleted and waits for {databases} databases on it that are on record: delete their claims; {kept}"
        )),
    }
}

/// The resource that was made of the server's offer.
fn find_offered(provider: &Provider, reference: &ServerRef) -> Option<Arc<DynamicObject>> {
    let named = format!("{}/{}", reference.kind.word(), reference.name);
    let found = provider.world.resource(&reference.name)?;
    (found.annotations().get(ON_SERVER) == Some(&named)).then_some(found)
}

/// Nobody new is bound to what is on its way out.
async fn withhold(provider: &Provider, found: &DynamicObject) -> Result<(), Trouble> {
    if found.data.pointer("/spec/unschedulable") == Some(&json!(true)) {
        return Ok(());
    }
    let api = provider.desk.others(&world::resources(), &provider.desk.namespace);
    let change = json!({"metadata": {"uid": found.uid()}, "spec": {"unschedulable": true}});
    provider.desk.merge::<DynamicObject>(&api, &found.name_any(), change).await.map(drop)
}

async fn set_finalizers(
    provider: &Provider,
    reference: &ServerRef,
    object: &DynamicObject,
    all: Vec<&str>,
) -> Result<(), Trouble> {
    let api = provider.desk.others(&world::servers(reference.kind), &provider.desk.namespace);
    let patch = json!({"metadata": {"resourceVersion": object.resource_version(), "finalizers": all}});
    provider.desk.merge::<DynamicObject>(&api, &reference.name, patch).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_waits_for_what_is_on_it_and_says_what_ends_the_wait() {
        assert_eq!(waits_for(0, 0), None);
        assert!(waits_for(0, 2).is_some_and(|told| told.contains("2 claims")));
        let told = waits_for(3, 3).expect("it waits");
        assert!(told.contains("3 databases") && told.contains("LogicalDatabase"), "{told}");
    }
}
