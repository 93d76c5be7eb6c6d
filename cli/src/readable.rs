//! Reads as many of the objects that decide about a claim as the user may. A user with access to the whole cluster gets
//! all of them. An application owner reads the claims, quotas and limits of one namespace, and the offered resources and
//! classes; claims of other namespaces are then known only from the resources that they hold. The result names what could
//! not be read, so that the explanation can say so.

use anyhow::Result;
use conductor::api::names::CLAIM_PROTECTION;
use conductor::model::{Kind, Object};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client};
use serde_json::{Value, json};

/// The objects that were read.
#[derive(Debug)]
pub struct Readable {
    pub objects: Vec<Object>,
    /// Whether resources are among them: without them nothing can be planned.
    pub has_resources: bool,
    /// What could not be read in full.
    pub limits: Vec<String>,
}

/// Reads everything, or what may be read for a claim in this namespace.
///
/// # Errors
/// The claims of the namespace cannot be listed.
pub async fn read(client: &Client, system_namespace: &str, namespace: &str) -> Result<Readable> {
    if let Ok(objects) = conductor_controller::list_all(client, system_namespace).await {
        return Ok(Readable { objects, has_resources: true, limits: Vec::new() });
    }
    let mut read = Readable { objects: Vec::new(), has_resources: true, limits: Vec::new() };
    let mut knows_all_claims = true;
    for kind in conductor_controller::kinds() {
        let all = conductor_controller::list(client, kind, None, system_namespace).await;
        match (kind, all) {
            (_, Ok(objects)) => read.objects.extend(objects),
            (Kind::Claim(_) | Kind::Quota | Kind::Limits, Err(_)) => {
                knows_all_claims &= !matches!(kind, Kind::Claim(_));
                let own = conductor_controller::list(client, kind, Some(namespace), system_namespace).await?;
                read.objects.extend(own);
            }
            (Kind::Namespace, Err(_)) => read.objects.push(own_namespace(client, namespace).await),
            (Kind::Resource(_), Err(error)) => {
                read.has_resources = false;
                read.limits.push(error.to_string());
            }
            (Kind::Class(_) | Kind::ClusterQuota | Kind::Profile, Err(error)) => {
                read.limits.push(error.to_string());
            }
        }
    }
    if !knows_all_claims {
        read.limits
            .push(format!("claims outside {namespace} are known only from the resources that they hold"));
        let held = holders(&read.objects, namespace);
        read.objects.extend(held);
    }
    Ok(read)
}

/// The namespace with its labels, which decide about sharing and cluster quotas; without labels if it may not be read.
async fn own_namespace(client: &Client, name: &str) -> Object {
    let found = Api::<Namespace>::all(client.clone()).get(name).await;
    let metadata = found.map(|found| found.metadata).unwrap_or_default();
    let metadata = kube::api::ObjectMeta { name: Some(name.to_owned()), ..metadata };
    Object { kind: Kind::Namespace, metadata, body: json!({}) }
}

/// The claims of other namespaces that hold resources, as the resources name them.
fn holders(objects: &[Object], namespace: &str) -> Vec<Object> {
    let mut held = Vec::new();
    for resource in objects {
        let Kind::Resource(ty) = resource.kind else { continue };
        let refs = resource.body.pointer("/spec/claimRefs").and_then(Value::as_array);
        for by in
            refs.into_iter().flatten().filter(|by| by["uid"].is_string() && by["namespace"] != namespace)
        {
            let metadata = json!({"namespace": by["namespace"], "name": by["name"], "uid": by["uid"],
                "finalizers": [CLAIM_PROTECTION]});
            let Ok(metadata) = serde_json::from_value(metadata) else { continue };
            let name = &resource.metadata.name;
            let mut spec = json!({"engine": resource.body["spec"]["engine"], "resourceName": name});
            if !by["requests"].is_null() {
                spec["resources"] = json!({"requests": by["requests"]});
            }
            let to =
                json!({"namespace": resource.metadata.namespace, "name": name, "uid": resource.metadata.uid});
            let body = json!({"spec": spec, "status": {"phase": "Bound", "resourceRef": to}});
            held.push(Object { kind: Kind::Claim(ty), metadata, body });
        }
    }
    held
}

#[cfg(test)]
mod tests {
    use super::*;
    use conductor::model::TypeId;

    #[test]
    fn claims_elsewhere_are_known_from_resources() {
        let metadata = json!({"name": "db", "namespace": "conductor-system", "uid": "r-1"});
        let refs = json!([
            {"namespace": "shop", "name": "own", "uid": "c-1"},
            {"namespace": "blog", "name": "other", "uid": "c-2", "requests": {"storage": "5Gi"}},
            {"namespace": "blog", "name": "reserved"},
        ]);
        let resource = Object {
            kind: Kind::Resource(TypeId::RELATIONAL_DATABASE),
            metadata: serde_json::from_value(metadata).expect("it is metadata"),
            body: json!({"spec": {"engine": "mysql", "claimRefs": refs}}),
        };
        let held = holders(&[resource], "shop");
        assert_eq!(held.len(), 1);
        assert_eq!(held[0].metadata.name.as_deref(), Some("other"));
        assert_eq!(held[0].body["spec"]["resources"]["requests"]["storage"], "5Gi");
        assert_eq!(held[0].body["status"]["resourceRef"]["uid"], "r-1");
    }
}
