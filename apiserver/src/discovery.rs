//! Discovery: legacy (group by group) and aggregated (one document).

use super::accept::{Shape, Wanted};
use super::answer::Answer;
use super::call::Call;
use super::registry::{Common, Registry, Resource, Version, api_version};
use super::review;
use super::status::Status;
use http::header;
use serde_json::{Map, Value, json};

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
/// The version of Kubernetes whose behaviour this follows.
const MINOR: &str = "36";

pub(super) fn version() -> Value {
    json!({
        "major": "1",
        "minor": MINOR,
        "gitVersion": format!("v1.{MINOR}.0+conductor"),
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}

/// The paths that there are.
pub(super) fn index(registry: &Registry) -> Value {
    let mut paths = vec!["/api".to_owned(), "/api/v1".to_owned(), "/apis".to_owned()];
    for (group, versions) in groups_of(registry).into_iter().filter(|(group, _)| !group.is_empty()) {
        paths.push(format!("/apis/{group}"));
        paths.extend(versions.iter().map(|version| format!("/apis/{group}/{version}")));
    }
    for path in ["/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"] {
        paths.push(path.to_owned());
    }
    paths.sort();
    json!({ "paths": paths })
}

/// `/api`
pub(super) fn legacy(call: &Call, registry: &Registry) -> Result<Answer, Status> {
    if wants_aggregated(call)? {
        return Ok(aggregated(registry, |group| group.is_empty()));
    }
    Ok(Answer::value(json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1"}],
    })))
}

/// `/apis`
pub(super) fn groups(call: &Call, registry: &Registry) -> Result<Answer, Status> {
    if wants_aggregated(call)? {
        return Ok(aggregated(registry, |group| !group.is_empty()));
    }
    let groups: Vec<Value> = groups_of(registry)
        .into_iter()
        .filter(|(group, _)| !group.is_empty())
        .map(|(group, versions)| group_value(&group, &versions, false))
        .collect();
    Ok(Answer::value(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})))
}

/// `/apis/GROUP`
pub(super) fn group(registry: &Registry, name: &str) -> Result<Answer, Status> {
    let found = groups_of(registry).into_iter().find(|(group, _)| group == name && !name.is_empty());
    let (group, versions) = found.ok_or_else(Status::no_such_path)?;
    Ok(Answer::value(group_value(&group, &versions, true)))
}

/// `/api/v1`, `/apis/GROUP/VERSION`
pub(super) fn resources(registry: &Registry, group: &str, version: &str) -> Result<Answer, Status> {
    let known = groups_of(registry);
    let has =
        known.iter().any(|(found, versions)| found == group && versions.iter().any(|one| one == version));
    if !has {
        return Err(Status::no_such_path());
    }
    let mut list: Vec<Value> = Vec::new();
    for (resource, served) in served(registry, group, version) {
        list.push(resource_value(resource, served));
        list.extend(subresources(resource, served).into_iter().map(|sub| sub_value(resource, &sub)));
    }
    list.extend(review::resources(group));
    list.sort_by_key(|entry| entry["name"].as_str().unwrap_or_default().to_owned());
    Ok(Answer::value(json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": api_version(group, version),
        "resources": list,
    })))
}

fn wants_aggregated(call: &Call) -> Result<bool, Status> {
    let wanted = Wanted::read(call.header(header::ACCEPT), &[Shape::Discovery])?;
    Ok(wanted.shape == Shape::Discovery)
}

/// The groups of resources, and those of reviews.
fn groups_of(registry: &Registry) -> Vec<(String, Vec<String>)> {
    let mut groups = registry.groups();
    groups.extend(review::GROUPS.map(|group| (group.to_owned(), vec!["v1".to_owned()])));
    groups
}

fn served<'a>(
    registry: &'a Registry,
    group: &'a str,
    version: &'a str,
) -> impl Iterator<Item = (&'a Resource, &'a Version)> {
    registry.all().filter(move |resource| resource.group == group).filter_map(move |resource| {
        let found = resource.versions.iter().find(|found| found.served && found.name == version)?;
        Some((resource.as_ref(), found))
    })
}

fn group_value(group: &str, versions: &[String], alone: bool) -> Value {
    let listed: Vec<Value> = versions
        .iter()
        .map(|version| json!({"groupVersion": api_version(group, version), "version": version}))
        .collect();
    let mut value = json!({
        "name": group,
        "versions": listed,
        "preferredVersion": listed.first().cloned().unwrap_or(Value::Null),
    });
    if alone && let Some(fields) = value.as_object_mut() {
        fields.insert("kind".to_owned(), "APIGroup".into());
        fields.insert("apiVersion".to_owned(), "v1".into());
    }
    value
}

fn verbs(resource: &Resource) -> Vec<&'static str> {
    let common = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
    // A CRD's resources come in another order.
    let custom = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
    let all = if resource.is_custom() { custom } else { common };
    let is_namespace = resource.group.is_empty() && resource.plural == "namespaces";
    all.into_iter().filter(|verb| !(is_namespace && *verb == "deletecollection")).collect()
}

fn resource_value(resource: &Resource, version: &Version) -> Value {
    let mut value = Map::new();
    value.insert("name".to_owned(), resource.plural.as_str().into());
    value.insert("singularName".to_owned(), resource.singular.as_str().into());
    value.insert("namespaced".to_owned(), resource.namespaced.into());
    value.insert("kind".to_owned(), resource.kind.as_str().into());
    value.insert("verbs".to_owned(), verbs(resource).into());
    if !resource.short_names.is_empty() {
        value.insert("shortNames".to_owned(), resource.short_names.clone().into());
    }
    if !resource.categories.is_empty() {
        value.insert("categories".to_owned(), resource.categories.clone().into());
    }
    let place = match resource.common() {
        Some(Common::NewEvent) => "/v1/Event".to_owned(),
        Some(Common::Crd) => "apiextensions.k8s.io/v1beta1/CustomResourceDefinition".to_owned(),
        _ => format!("{}/{}/{}", resource.group, version.name, resource.kind),
    };
    value.insert("storageVersionHash".to_owned(), hash(&place).into());
    Value::Object(value)
}

/// The hash that identifies a storage version.
fn hash(place: &str) -> String {
    use base64::Engine;
    use sha2::{Digest, Sha256};
    base64::engine::general_purpose::STANDARD.encode(&Sha256::digest(place.as_bytes())[..8])
}

/// A part of a resource: its name, kind, group, version and verbs.
struct Part {
    name: &'static str,
    kind: String,
    group: String,
    version: String,
    verbs: Vec<&'static str>,
}

fn subresources(resource: &Resource, version: &Version) -> Vec<Part> {
    let mut parts = Vec::new();
    // The core group does not state its version here.
    let part = |name, verbs| Part {
        name,
        kind: resource.kind.clone(),
        group: resource.group.clone(),
        version: listed_version(resource, version),
        verbs,
    };
    if resource.group.is_empty() && resource.plural == "namespaces" {
        parts.push(part("finalize", vec!["update"]));
    }
    if version.scale.is_some() {
        parts.push(Part {
            kind: "Scale".to_owned(),
            group: "autoscaling".to_owned(),
            version: "v1".to_owned(),
            ..part("scale", vec!["get", "patch", "update"])
        });
    }
    if version.status {
        parts.push(part("status", vec!["get", "patch", "update"]));
    }
    if resource.is_custom() {
        // A CRD's resources come in another order.
        parts.reverse();
    }
    parts
}

fn listed_version(resource: &Resource, version: &Version) -> String {
    if resource.group.is_empty() { String::new() } else { version.name.clone() }
}

fn sub_value(resource: &Resource, part: &Part) -> Value {
    let mut value = json!({
        "name": format!("{}/{}", resource.plural, part.name),
        "singularName": "",
        "namespaced": resource.namespaced,
        "kind": part.kind,
        "verbs": part.verbs,
    });
    if part.name == "scale" {
        value["group"] = part.group.as_str().into();
        value["version"] = part.version.as_str().into();
    }
    value
}

fn aggregated(registry: &Registry, belongs: impl Fn(&str) -> bool) -> Answer {
    let items: Vec<Value> = groups_of(registry)
        .into_iter()
        .filter(|(group, _)| belongs(group))
        .map(|(group, versions)| {
            let versions: Vec<Value> = versions
                .iter()
                .map(|version| {
                    let own = served(registry, &group, version)
                        .map(|(resource, found)| discovered(resource, found));
                    let list: Vec<Value> = own.chain(review::discovered(&group)).collect();
                    json!({"version": version, "resources": list, "freshness": "Current"})
                })
                .collect();
            let metadata = if group.is_empty() { json!({}) } else { json!({"name": group}) };
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    let mut answer = Answer::value(json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    }));
    answer.media = Some(AGGREGATED);
    answer
}

fn discovered(resource: &Resource, version: &Version) -> Value {
    let scope = if resource.namespaced { "Namespaced" } else { "Cluster" };
    let mut value = json!({
        "resource": resource.plural,
        "responseKind": {"group": resource.group, "version": listed_version(resource, version), "kind": resource.kind},
        "scope": scope,
        "singularResource": resource.singular,
        "verbs": verbs(resource),
    });
    if !resource.short_names.is_empty() {
        value["shortNames"] = resource.short_names.clone().into();
    }
    if !resource.categories.is_empty() {
        value["categories"] = resource.categories.clone().into();
    }
    let parts: Vec<Value> = subresources(resource, version)
        .into_iter()
        .map(|part| {
            json!({
                "subresource": part.name,
                "responseKind": {"group": part.group, "version": part.version, "kind": part.kind},
                "verbs": part.verbs,
            })
        })
        .collect();
    if !parts.is_empty() {
        value["subresources"] = parts.into();
    }
    value
}
