//! Every manifest of the seed document is accepted as written and parsed without loss. In the three skeletons only the
//! placeholders are filled in.

mod schema;

use conductor::api::{
    RelationalDatabase, RelationalDatabaseClaim, RelationalDatabaseClass, claim::ClaimPhase,
    common::ReclaimPolicy, crds, relational_database::ResourcePhase, selector::Operator,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::path::Path;

fn text(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/seed-004").join(name);
    std::fs::read_to_string(path).expect("the fixture exists")
}

fn read<T: DeserializeOwned>(name: &str) -> T {
    serde_saphyr::from_str(&text(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn each_is_accepted_as_written() {
    let crds = crds();
    for name in [
        "relational-database.yaml",
        "relational-database-claim.yaml",
        "relational-database-class.yaml",
        "resource-skeleton.yaml",
        "claim-skeleton.yaml",
        "class-skeleton.yaml",
    ] {
        let object: Value = read(name);
        assert_eq!(schema::objections(&crds, &object), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn reads_the_database() {
    let database: RelationalDatabase = read("relational-database.yaml");
    let spec = database.spec;
    assert_eq!(spec.engine, "mysql");
    assert_eq!(spec.version.expect("has a version").to_string(), "5.6");
    assert_eq!(spec.highly_available, Some(true));
    assert_eq!(spec.capacity.expect("has capacity").0["storage"], "50Gi".into());
    assert_eq!(spec.reclaim_policy, ReclaimPolicy::Delete);
    assert_eq!(spec.template.expect("has a template").0["metadata"]["label"], "foo");
    let status = database.status.expect("has a status");
    assert_eq!(status.phase, Some(ResourcePhase::Available), "Created is the old name of Available");
    assert_eq!(status.implementation_ref.expect("it is set").0, "rds-instance-6763d");
}

#[test]
fn reads_the_claim() {
    let claim: RelationalDatabaseClaim = read("relational-database-claim.yaml");
    let spec = claim.spec;
    assert_eq!(spec.engine.as_deref(), Some("mysql"));
    assert_eq!(spec.version.expect("has a version").to_string(), ">= 5.6");
    let requests = spec.resources.and_then(|r| r.requests).expect("has requests");
    assert_eq!(requests.0["storage"], "25Gi".into());
    assert_eq!(spec.class.as_deref(), Some("performance"));
    assert_eq!(spec.resource_name.as_deref(), Some("database-445"));
    let expressions = spec.selector.and_then(|s| s.match_expressions).expect("has expressions");
    assert_eq!(expressions[0].operator, Operator::In);
    assert_eq!(claim.status.and_then(|s| s.phase), Some(ClaimPhase::Bound));
}

#[test]
fn reads_both_forms_of_the_class_alike() {
    let top: RelationalDatabaseClass = read("relational-database-class.yaml");
    let under_spec: RelationalDatabaseClass = read("class-skeleton.yaml");
    assert_eq!(top.spec.effective().reclaim_policy, Some(ReclaimPolicy::Retain));
    assert_eq!(top.spec.effective(), under_spec.spec.effective());
}

#[test]
fn writes_what_it_read() {
    fn check<T: DeserializeOwned + Serialize>(name: &str) {
        let written = serde_json::to_value(read::<T>(name)).expect("it is JSON");
        let mut given: Value = read(name);
        if let Some(phase) = given.pointer_mut("/status/phase").filter(|phase| **phase == "Created") {
            *phase = "Available".into();
        }
        assert!(schema::holds(&written, &given), "{name}: {written}");
    }
    check::<RelationalDatabase>("relational-database.yaml");
    check::<RelationalDatabaseClaim>("relational-database-claim.yaml");
    check::<RelationalDatabaseClass>("relational-database-class.yaml");
    check::<RelationalDatabase>("resource-skeleton.yaml");
    check::<RelationalDatabaseClaim>("claim-skeleton.yaml");
    check::<RelationalDatabaseClass>("class-skeleton.yaml");
}
