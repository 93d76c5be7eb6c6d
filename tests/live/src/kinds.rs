//! The kinds that trials are about, by their names, and how to reach them. No discovery: they are few.

use kube::api::{ApiResource, DynamicObject};
use kube::{Api, Client};

/// A claim.
pub const CLAIM: &str = "RelationalDatabaseClaim";
/// A resource.
pub const RESOURCE: &str = "RelationalDatabase";
/// A class.
pub const CLASS: &str = "RelationalDatabaseClass";
/// A namespace's quota.
pub const QUOTA: &str = "ClaimQuota";
/// A namespace.
pub const NAMESPACE: &str = "Namespace";
/// What stands for an outside world: the test's own kind, with a status of its own.
pub const INSTANCE: &str = "RDSInstance";

/// A Secret: what an operator makes, and what is published of it.
pub const SECRET: &str = "Secret";
/// What else is published, beside a Secret.
pub const CONFIG: &str = "ConfigMap";
/// The name under which applications reach what they claimed.
pub const SERVICE: &str = "Service";

/// Every kind that trials watch.
pub const ALL: [&str; 9] = [CLAIM, RESOURCE, CLASS, QUOTA, NAMESPACE, INSTANCE, SECRET, CONFIG, SERVICE];
/// Kinds of every cluster, of which trials watch published objects only.
pub const PUBLISHED: [&str; 3] = [SECRET, CONFIG, SERVICE];

/// Where a kind is served.
pub fn resource_of(kind: &str) -> ApiResource {
    let (group, version, plural) = match kind {
        CLASS => ("storage.conductor.io", "v1alpha1", "relationaldatabaseclasses".to_owned()),
        CLAIM | RESOURCE => ("storage.conductor.io", "v1alpha1", format!("{}s", kind.to_lowercase())),
        NAMESPACE | SECRET | CONFIG | SERVICE => ("", "v1", format!("{}s", kind.to_lowercase())),
        INSTANCE => ("database.aws.conductor.io", "v1alpha1", "rdsinstances".to_owned()),
        "ClaimLimits" => ("conductor.io", "v1alpha1", "claimlimits".to_owned()),
        "Event" => ("events.k8s.io", "v1", "events".to_owned()),
        _ => ("conductor.io", "v1alpha1", format!("{}s", kind.to_lowercase())),
    };
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version,
        kind: kind.to_owned(),
        plural,
    }
}

/// The API of a kind, in one namespace or over all of them.
pub fn api_of(client: &Client, kind: &str, namespace: Option<&str>) -> Api<DynamicObject> {
    let resource = resource_of(kind);
    match namespace.filter(|_| kind != NAMESPACE) {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}
