//! The files under `crds/` are generated from the types, are valid for an API server, and accept or refuse each object in
//! `fixtures/admission.yaml` as expected. `seeds.rs` has the manifests of the seed.

mod schema;

use conductor::api::{
    ClaimLimits, ClaimQuota, ClusterClaimQuota, RelationalDatabase, RelationalDatabaseClaim,
    RelationalDatabaseClass, SchedulingProfile, crds,
    database::{
        DatabaseClaim, DatabaseGrant, DatabaseRole, DatabaseServer, GROUP, LocalServer, LogicalDatabase,
        front::FRONT_GROUP,
    },
    names::CATEGORY,
};
use conductor::model::object::{CONDUCTOR_GROUP, Kind};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion,
};
use kube::core::cel::{compile_schema, estimate_rule_cost};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::path::{Path, PathBuf};

const HEADER: &str = "# Generated from src/api by `make crds`. Do not edit.\n";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn path(crd: &CustomResourceDefinition) -> PathBuf {
    root().join("crds").join(format!("{}.{}.yaml", crd.spec.names.plural, crd.spec.group))
}

#[test]
fn files_are_what_the_types_generate() {
    let update = std::env::var_os("UPDATE_CRDS").is_some();
    for crd in crds() {
        let wanted = format!("{HEADER}{}", serde_saphyr::to_string(&crd).expect("a CRD is YAML"));
        let path = path(&crd);
        if update {
            std::fs::write(&path, &wanted).expect("crds/ can be written");
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(found == wanted, "{} is stale: run `UPDATE_CRDS=1 cargo test --test crds`", path.display());
    }
}

#[test]
fn files_and_no_others() {
    let mut found: Vec<_> = std::fs::read_dir(root().join("crds"))
        .expect("crds/ exists")
        .map(|entry| entry.expect("it can be read").path())
        .collect();
    let mut wanted: Vec<_> = crds().iter().map(path).collect();
    wanted.push(root().join("crds/Kustomization"));
    found.sort();
    wanted.sort();
    assert_eq!(found, wanted, "remove what no type generates any more");
}

#[test]
fn kustomize_finds_every_definition() {
    let text = std::fs::read_to_string(root().join("crds/Kustomization")).expect("it exists");
    let list: Value = serde_saphyr::from_str(&text).expect("it can be read");
    let mut listed: Vec<_> =
        list["resources"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    let wanted: Vec<_> = crds().iter().map(path).collect();
    let mut wanted: Vec<_> = wanted.iter().filter_map(|path| path.file_name()?.to_str()).collect();
    listed.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(listed, wanted);
}

#[test]
fn files_read_back_as_the_same_definition() {
    for crd in crds() {
        let text = serde_saphyr::to_string(&crd).expect("a CRD is YAML");
        let back: Value = serde_saphyr::from_str(&text).expect("it can be read");
        assert_eq!(back, serde_json::to_value(&crd).expect("a CRD is JSON"), "{:?}", crd.metadata.name);
    }
}

#[test]
fn names_are_what_users_type() {
    let found: Vec<String> = crds()
        .iter()
        .map(|crd| {
            let names = &crd.spec.names;
            let short = names.short_names.as_ref().map(|n| n.join(",")).unwrap_or_default();
            let singular = names.singular.as_deref().unwrap_or_default();
            format!("{} {} {singular} {short} {}", names.kind, names.plural, crd.spec.scope)
        })
        .collect();
    expect_test::expect![[r#"
        RelationalDatabase relationaldatabases relationaldatabase rdb Namespaced
        RelationalDatabaseClaim relationaldatabaseclaims relationaldatabaseclaim rdbc Namespaced
        RelationalDatabaseClass relationaldatabaseclasses relationaldatabaseclass rdbclass Namespaced
        ClaimQuota claimquotas claimquota cquota Namespaced
        ClusterClaimQuota clusterclaimquotas clusterclaimquota ccquota Cluster
        ClaimLimits claimlimits claimlimits climits Namespaced
        SchedulingProfile schedulingprofiles schedulingprofile cprofile Cluster
        DatabaseServer databaseservers databaseserver dbserver Namespaced
        LocalServer localservers localserver dblocal Namespaced
        LogicalDatabase logicaldatabases logicaldatabase ldb Namespaced
        DatabaseRole databaseroles databaserole dbrole Namespaced
        DatabaseGrant databasegrants databasegrant dbgrant Namespaced
        DatabaseClaim databaseclaims databaseclaim dbc Namespaced"#]]
    .assert_eq(&found.join("\n"));
    for crd in crds() {
        assert_eq!(crd.spec.names.categories, Some(vec![CATEGORY.to_owned()]));
    }
}

#[test]
fn the_engine_or_a_provider_reads_each_kind() {
    for crd in crds().into_iter().filter(|crd| ![GROUP, FRONT_GROUP].contains(&crd.spec.group.as_str())) {
        let api_version = format!("{}/{}", crd.spec.group, crd.spec.versions[0].name);
        let kind = Kind::find(&api_version, &crd.spec.names.kind).expect("the engine reads it");
        assert_eq!(kind.name(), crd.spec.names.kind);
        assert_eq!(kind.api_version(), api_version);
        assert_eq!(kind.is_cluster_scoped(), crd.spec.scope == "Cluster");
        assert!(crd.spec.group == CONDUCTOR_GROUP || crd.spec.group == "storage.conductor.io");
    }
}

fn version(crd: &CustomResourceDefinition) -> &CustomResourceDefinitionVersion {
    assert_eq!(crd.spec.versions.len(), 1);
    &crd.spec.versions[0]
}

#[test]
fn all_but_the_class_have_a_status() {
    for crd in crds() {
        let has_status = version(&crd).subresources.as_ref().is_some_and(|s| s.status.is_some());
        let is_class = crd.spec.names.kind == "RelationalDatabaseClass";
        assert_eq!(has_status, !is_class, "{}", crd.spec.names.kind);
        assert_eq!(schema::schema_of(&crd)["properties"].get("status").is_some(), !is_class);
    }
}

#[test]
fn columns_show_the_important_fields_first() {
    let columns: Vec<String> = crds()
        .iter()
        .map(|crd| {
            let columns = version(crd).additional_printer_columns.iter().flatten();
            let names = columns.map(|c| match c.priority {
                Some(1) => format!("({})", c.name),
                _ => c.name.clone(),
            });
            format!(
                "{}: {}",
                crd.spec.names.singular.as_deref().unwrap_or(""),
                names.collect::<Vec<_>>().join(" ")
            )
        })
        .collect();
    expect_test::expect![[r#"
        relationaldatabase: Engine Version Class Storage Phase Unschedulable Claim Claim-Namespace (Reported) (Reclaim) (HA) (Reason) Age
        relationaldatabaseclaim: Phase Resource Class Reason Ready Since Age (Engine) (Version) (Message)
        relationaldatabaseclass: Reclaim Default Engine (Implementation) Age
        claimquota: Used (Claims-Used) (Claims-Limit) Age
        clusterclaimquota: Used (Claims-Used) (Claims-Limit) Age
        claimlimits: Min-Storage Max-Storage Default-Storage Age
        schedulingprofile: Batch Order Prefer-Newest Accepted Age
        databaseserver: Engine Host Version Databases Ready (Message) Age
        localserver: Engine Port Version Databases Ready (Message) Age
        logicaldatabase: Server Phase Claim-Namespace Claim Database Rotated (Reclaim) (Message) Age
        databaserole: Claim-Namespace Claim Access Secret Ready Reason (Rotated) (Message) Age
        databasegrant: From Claims Access Age
        databaseclaim: Label Database Updated Error Age"#]]
    .assert_eq(&columns.join("\n"));
}

/// Every node of the schema with its path.
fn walk<'a>(schema: &'a Value, at: String, visit: &mut impl FnMut(&str, &'a Value)) {
    visit(&at, schema);
    for (name, child) in schema["properties"].as_object().into_iter().flatten() {
        walk(child, format!("{at}.{name}"), visit);
    }
    for (key, suffix) in [("items", "[]"), ("additionalProperties", "{}")] {
        if let Some(child) = schema.get(key) {
            walk(child, format!("{at}{suffix}"), visit);
        }
    }
}

fn each_node(mut visit: impl FnMut(&str, &Value)) {
    for crd in crds() {
        walk(&schema::schema_of(&crd), crd.spec.names.kind.clone(), &mut visit);
    }
}

#[test]
fn schemas_are_structural() {
    each_node(|at, node| {
        let open = ["x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields"];
        let typed = node["type"].is_string() || open.iter().any(|key| node[key] == true);
        assert!(typed, "{at} has no type");
        for forbidden in ["$ref", "allOf", "anyOf", "oneOf", "definitions", "uniqueItems"] {
            assert!(node.get(forbidden).is_none(), "{at} has {forbidden}");
        }
        let both = node.get("properties").is_some() && node.get("additionalProperties").is_some();
        assert!(!both, "{at} is a map and an object at once");
        if let Some(format) = node["format"].as_str() {
            assert!(["int32", "int64", "date-time"].contains(&format), "{at}: format {format}");
        }
        if node["type"] == "array" {
            assert!(node["x-kubernetes-list-type"].is_string(), "{at} has no list type");
        }
    });
}

// An unbounded node makes every rule above it too expensive for the API server.
#[test]
fn schemas_are_bounded() {
    each_node(|at, node| match node["type"].as_str() {
        Some("array") => assert!(node["maxItems"].is_number(), "{at} has no maxItems"),
        Some("object") if node.get("additionalProperties").is_some() => {
            assert!(node["maxProperties"].is_number(), "{at} has no maxProperties");
        }
        Some("string") if node.get("enum").is_none() && node.get("format").is_none() => {
            assert!(node["maxLength"].is_number() || at.ends_with("{}"), "{at} has no maxLength");
        }
        _ => {}
    });
}

#[test]
fn every_field_is_explained_on_a_line() {
    each_node(|at, node| {
        let is_property = !at.ends_with("[]") && !at.ends_with("{}");
        let description = node["description"].as_str().unwrap_or_default();
        assert!(!is_property || !description.is_empty(), "{at} has no description");
        assert!(description.len() <= 200 && !description.contains('\n'), "{at}: {description}");
    });
}

#[test]
fn rules_compile_and_have_messages() {
    let mut count = 0;
    each_node(|at, node| {
        let compiled = compile_schema(node);
        assert!(!compiled.has_errors(), "{at}: {:?}", compiled.compilation_errors());
        for rule in node["x-kubernetes-validations"].as_array().into_iter().flatten() {
            count += 1;
            assert!(rule["message"].is_string(), "{at}: a rule without a message");
            let text = rule["rule"].as_str().expect("a rule has a text");
            let warnings = estimate_rule_cost(text, &compiled);
            assert!(warnings.is_empty(), "{at}: {warnings:?}");
        }
    });
    assert!(count >= 15, "only {count} rules were found");
}

/// Reads an object into its type and writes it again.
fn read(object: Value) -> serde_json::Result<Value> {
    fn through<T: DeserializeOwned + Serialize>(object: Value) -> serde_json::Result<Value> {
        serde_json::to_value(serde_json::from_value::<T>(object)?)
    }
    match object["kind"].as_str().unwrap_or_default() {
        "RelationalDatabase" => through::<RelationalDatabase>(object),
        "RelationalDatabaseClaim" => through::<RelationalDatabaseClaim>(object),
        "RelationalDatabaseClass" => through::<RelationalDatabaseClass>(object),
        "ClaimQuota" => through::<ClaimQuota>(object),
        "ClusterClaimQuota" => through::<ClusterClaimQuota>(object),
        "ClaimLimits" => through::<ClaimLimits>(object),
        "SchedulingProfile" => through::<SchedulingProfile>(object),
        "DatabaseServer" => through::<DatabaseServer>(object),
        "LocalServer" => through::<LocalServer>(object),
        "LogicalDatabase" => through::<LogicalDatabase>(object),
        "DatabaseRole" => through::<DatabaseRole>(object),
        "DatabaseGrant" => through::<DatabaseGrant>(object),
        "DatabaseClaim" => through::<DatabaseClaim>(object),
        other => panic!("no type for kind {other:?}"),
    }
}

#[derive(Deserialize)]
struct Case {
    case: String,
    refuses: Option<String>,
    object: Value,
}

#[test]
fn nonsense_is_refused_and_sense_is_not() {
    let crds = crds();
    let text = std::fs::read_to_string(root().join("tests/fixtures/admission.yaml")).expect("it exists");
    let cases: Vec<Case> = serde_saphyr::from_str(&text).expect("the table can be read");
    for Case { case, refuses, object } in cases {
        let found = schema::objections(&crds, &object).join("; ");
        match refuses {
            None => {
                assert_eq!(found, "", "{case}: {object}");
                let kept = read(object.clone()).unwrap_or_else(|error| panic!("{case}: {error}"));
                assert!(schema::holds(&kept, &object), "{case}: the type loses a field: {kept}");
            }
            Some(part) => assert!(found.contains(&part), "{case}: wanted {part:?}, found {found:?}"),
        }
    }
}

#[test]
fn examples_are_accepted() {
    let crds = crds();
    let files = |folder: &str| std::fs::read_dir(root().join(folder)).expect("the folder exists");
    let mut count = 0;
    for path in
        files("examples").chain(files("examples/classes")).map(|entry| entry.expect("it can be read").path())
    {
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("it can be read");
        let objects: Vec<Value> = serde_saphyr::from_multiple(&text).expect("it is YAML");
        for object in objects.into_iter().filter(is_ours) {
            count += 1;
            let found = schema::objections(&crds, &object);
            assert!(found.is_empty(), "{}: {found:?}", path.display());
        }
    }
    assert!(count >= 28, "only {count} examples were found");
}

fn is_ours(object: &Value) -> bool {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    crds().iter().any(|crd| api_version.starts_with(&format!("{}/", crd.spec.group)))
}
