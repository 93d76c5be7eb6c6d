//! A server that was made for its first claim goes with its last one where its RelationalDatabase says Delete. It must
//! stay while a database on it outlasts its claim: one that is kept, or that can still be restored. Such a resource is
//! held: its policy reads Retain, an annotation remembers Delete, and it takes claims again after the last one is gone,
//! so that the claim of a kept database finds its server. Deliberately absent: servers that no class made.

use super::health::give_out_again;
use super::leaving::records_on;
use super::pass::Provider;
use super::trouble::Trouble;
use super::world::{self, Assignment, holders};
use conductor::api::common::ReclaimPolicy;
use conductor::api::database::logical::{LogicalDatabaseSpec, ServerRef};
use conductor::api::database::{HELD, ON_SERVER};
use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::{Value, json};

/// What a resource's own policy is, whether it is held or not.
pub(super) fn policy_of(resource: &DynamicObject) -> ReclaimPolicy {
    let held = resource.annotations().get(HELD).map(String::as_str);
    match held.unwrap_or_else(|| world::text(resource, "/spec/reclaimPolicy")) {
        "Delete" => ReclaimPolicy::Delete,
        _ => ReclaimPolicy::Retain,
    }
}

/// Holds the resource of a claim before anything is written down of a database that outlasts the claim.
pub(super) async fn hold(
    provider: &Provider,
    assignment: &Assignment,
    (policy, quarantine_minutes): (ReclaimPolicy, i32),
) -> Result<(), Trouble> {
    let resource = &assignment.resource;
    let goes = world::text(resource, "/spec/reclaimPolicy") == "Delete";
    let is_ours = !resource.annotations().contains_key(ON_SERVER);
    let is_going = resource.metadata.deletion_timestamp.is_some();
    if !goes || !is_ours || is_going || !outlasts(policy, quarantine_minutes) {
        return Ok(());
    }
    set(provider, resource, json!("Delete"), ReclaimPolicy::Retain).await
}

/// Looks at the resource that a server was made for: gives it out again, or lets it go.
pub(super) async fn look(
    provider: &Provider,
    reference: &ServerRef,
    server: &DynamicObject,
    is_well: bool,
) -> Result<(), Trouble> {
    let Some(resource) = provider.world.resource_of_server(server) else { return Ok(()) };
    if resource.annotations().contains_key(ON_SERVER) || resource.metadata.deletion_timestamp.is_some() {
        return Ok(());
    }
    let is_held = resource.annotations().contains_key(HELD);
    let keeps = |record: &LogicalDatabaseSpec| outlasts(record.reclaim_policy, record.quarantine_minutes);
    let on_it = provider.world.records_on(reference);
    if on_it.iter().any(keeps) {
        // A server for one claim alone that is retained is its administrator's to give out again.
        let is_shared = resource.data.pointer("/spec/sharing/maxClaims").and_then(Value::as_i64) > Some(1);
        let gives = is_well && (is_held || is_shared);
        return if gives { give_out_again(provider, &resource).await } else { Ok(()) };
    }
    if !is_held {
        return Ok(());
    }
    let used: Vec<String> =
        holders(&resource).into_iter().filter(|uid| provider.world.assignment(uid).is_some()).collect();
    if used.iter().any(|uid| !provider.world.has_record_of(uid)) {
        // It was held for a database that is about to be written down.
        return Ok(());
    }
    let is_used = !used.is_empty();
    if is_used || world::text(&resource, "/status/phase") == "Released" {
        // From here on the controller of resources does what the policy says.
        return set(provider, &resource, json!(null), policy_of(&resource)).await;
    }
    if records_on(provider, reference).await? > 0 {
        return Ok(());
    }
    // Nothing is on it any more, and no claim holds it. The policy first: it decides what becomes of the server.
    set(provider, &resource, json!("Delete"), policy_of(&resource)).await?;
    let desk = &provider.desk;
    let api = desk.others(&world::resources(), &desk.namespace);
    let Some(found) = desk.find(&api, &resource.name_any()).await? else { return Ok(()) };
    if found.uid() != resource.uid() || !holders(&found).is_empty() {
        return Ok(());
    }
    desk.may_destroy().await?;
    desk.delete_as_read(&api, &found).await
}

/// Whether a database is still there after its claim.
fn outlasts(policy: ReclaimPolicy, quarantine_minutes: i32) -> bool {
    policy == ReclaimPolicy::Retain || quarantine_minutes > 0
}

async fn set(
    provider: &Provider,
    resource: &DynamicObject,
    held: Value,
    policy: ReclaimPolicy,
) -> Result<(), Trouble> {
    let desk = &provider.desk;
    let api = desk.others(&world::resources(), &desk.namespace);
    let change = json!({
        "metadata": {"uid": resource.uid(), "resourceVersion": resource.resource_version(), "annotations": {HELD: held}},
        "spec": {"reclaimPolicy": policy},
    });
    desk.merge::<DynamicObject>(&api, &resource.name_any(), change).await.map(drop)
}
