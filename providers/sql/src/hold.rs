//! Holds servers that databases outlast. A server that was created for its first claim is deleted with its last one where
//! its RelationalDatabase says Delete. It must stay while it has a database without a claim: one that is retained, or that
//! can still be restored. Such a resource is held: its policy reads Retain, an annotation keeps Delete, and it takes claims
//! again after the last one, so that the claim of a retained database finds its server. Deliberately absent: servers that
//! no class created.

use super::error::Error;
use super::health::make_available;
use super::informers::{self, Assignment, holders};
use super::reconcile::Provider;
use super::server_finalizer::records_on;
use conductor::api::common::ReclaimPolicy;
use conductor::api::database::logical::{LogicalDatabaseSpec, ServerRef};
use conductor::api::database::{HELD, ON_SERVER};
use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::{Value, json};

/// A resource's own policy, whether it is held or not.
pub(super) fn reclaim_policy_of(resource: &DynamicObject) -> ReclaimPolicy {
    let held = resource.annotations().get(HELD).map(String::as_str);
    match held.unwrap_or_else(|| informers::text(resource, "/spec/reclaimPolicy")) {
        "Delete" => ReclaimPolicy::Delete,
        _ => ReclaimPolicy::Retain,
    }
}

/// Holds the resource of a claim before anything is recorded about a database that outlasts the claim.
pub(super) async fn hold(
    provider: &Provider,
    assignment: &Assignment,
    (reclaim_policy, quarantine_minutes): (ReclaimPolicy, i32),
) -> Result<(), Error> {
    let resource = &assignment.resource;
    let goes = informers::text(resource, "/spec/reclaimPolicy") == "Delete";
    let is_ours = !resource.annotations().contains_key(ON_SERVER);
    let is_going = resource.metadata.deletion_timestamp.is_some();
    if !goes || !is_ours || is_going || !outlasts(reclaim_policy, quarantine_minutes) {
        return Ok(());
    }
    set(provider, resource, json!("Delete"), ReclaimPolicy::Retain).await
}

/// Checks the resource that a server was created for: makes it available again, or releases it.
pub(super) async fn check(
    provider: &Provider,
    reference: &ServerRef,
    server: &DynamicObject,
    is_well: bool,
) -> Result<(), Error> {
    let Some(resource) = provider.informers.resource_of_server(server) else { return Ok(()) };
    if resource.annotations().contains_key(ON_SERVER) || resource.metadata.deletion_timestamp.is_some() {
        return Ok(());
    }
    let is_held = resource.annotations().contains_key(HELD);
    let keeps = |record: &LogicalDatabaseSpec| outlasts(record.reclaim_policy, record.quarantine_minutes);
    let on_it = provider.informers.records_on(reference);
    if on_it.iter().any(keeps) {
        // Only an administrator makes a retained server for a single claim available again.
        let is_shared = resource.data.pointer("/spec/sharing/maxClaims").and_then(Value::as_i64) > Some(1);
        let gives = is_well && (is_held || is_shared);
        return if gives { make_available(provider, &resource).await } else { Ok(()) };
    }
    if !is_held {
        return Ok(());
    }
    let used: Vec<String> =
        holders(&resource).into_iter().filter(|uid| provider.informers.assignment(uid).is_some()).collect();
    if used.iter().any(|uid| !provider.informers.has_record_of(uid)) {
        // It was held for a database that is about to be recorded.
        return Ok(());
    }
    let is_used = !used.is_empty();
    if is_used || informers::text(&resource, "/status/phase") == "Released" {
        // From here on the resource's controller follows the policy.
        return set(provider, &resource, json!(null), reclaim_policy_of(&resource)).await;
    }
    if records_on(provider, reference).await? > 0 {
        return Ok(());
    }
    // It has no databases and no claims. The policy first: it decides what happens to the server.
    set(provider, &resource, json!("Delete"), reclaim_policy_of(&resource)).await?;
    let cluster = &provider.cluster;
    let api = cluster.others(&informers::resources(), &cluster.namespace);
    let Some(found) = cluster.find(&api, &resource.name_any()).await? else { return Ok(()) };
    if found.uid() != resource.uid() || !holders(&found).is_empty() {
        return Ok(());
    }
    cluster.may_destroy().await?;
    cluster.delete_as_read(&api, &found).await
}

/// Whether a database outlasts its claim.
fn outlasts(reclaim_policy: ReclaimPolicy, quarantine_minutes: i32) -> bool {
    reclaim_policy == ReclaimPolicy::Retain || quarantine_minutes > 0
}

async fn set(
    provider: &Provider,
    resource: &DynamicObject,
    held: Value,
    reclaim_policy: ReclaimPolicy,
) -> Result<(), Error> {
    let cluster = &provider.cluster;
    let api = cluster.others(&informers::resources(), &cluster.namespace);
    let change = json!({
        "metadata": {"uid": resource.uid(), "resourceVersion": resource.resource_version(), "annotations": {HELD: held}},
        "spec": {"reclaimPolicy": reclaim_policy},
    });
    cluster.merge::<DynamicObject>(&api, &resource.name_any(), change).await.map(drop)
}
