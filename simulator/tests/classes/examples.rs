//! The classes under `examples/classes`: each is applied with its claims, its operators do their work, and the
//! applications find a connection. What is made for each is shown in full, so that a change of it is seen.

use crate::stage::{CLAIM, SYSTEM, Stage, operators, part_kind, root};
use conductor::model::{ObjectKey, PartKind};
use conductor_simulator::load::{LoadOptions, load};
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use std::fmt::Write;

/// The kinds of which any example makes an object.
fn kinds() -> Vec<PartKind> {
    let more = [
        ("generators.external-secrets.io/v1alpha1", "Password"),
        ("external-secrets.io/v1", "ExternalSecret"),
        ("postgresql.cnpg.io/v1", "Pooler"),
        ("postgresql.cnpg.io/v1", "ScheduledBackup"),
    ];
    let operators = operators();
    operators.all().map(|(_, recorded)| recorded.kind()).chain(more).map(part_kind).collect()
}

/// Applies an example; its implementation has no status yet.
fn apply(stage: &mut Stage, file: &str) {
    let path = root("examples/classes").join(file);
    let loaded = load(&[path], &LoadOptions::default()).unwrap_or_else(|error| panic!("{error}"));
    for loaded in loaded.objects {
        stage.harness.put(loaded.object);
    }
}

/// What was made, and what every claim got.
fn shown(stage: &Stage) -> String {
    let mut text = String::new();
    for (key, part) in stage.parts() {
        let _ = writeln!(text, "{} {}", key.kind.kind, part["spec"]);
    }
    for claim in stage.harness.world.objects().filter(|object| object.kind == CLAIM) {
        let of = |name: &Option<String>| name.clone().unwrap_or_default();
        let (namespace, name) = (of(&claim.metadata.namespace), of(&claim.metadata.name));
        let secret = claim.body["status"]["binding"]["name"].as_str().unwrap_or_default().to_owned();
        let uri = stage.published(&namespace, &secret).remove("uri");
        let ready = stage.claim_says(&namespace, &name, "Ready");
        let _ = writeln!(text, "{namespace}/{name}: {ready}");
        let _ = writeln!(text, "  {}", uri.unwrap_or_else(|| stage.claim_says(&namespace, &name, "Bound")));
    }
    text
}

fn check(files: &[&str], expected: Expect) {
    let mut stage = Stage::new(&kinds());
    for file in files {
        apply(&mut stage, file);
        stage.play(&operators());
    }
    expected.assert_eq(&shown(&stage));
    stage.harness.engine.audit().expect("the engine's state is consistent");
}

#[test]
fn rds() {
    check(
        &["rds.yaml"],
        expect![[r#"
        RDSInstance {"class":"db.t3.small","databaseName":"shop_db","engine":"mysql","engineVersion":"8.0","masterUsername":"app","size":30,"tags":{"claim":"shop-db","namespace":"shop"}}
        shop/shop-db: True ConnectionPublished: published as Secret shop-db
          mysql://app:s3cr3t%2F%2B%3D@rdb-uid-000001-5d1adf476447.c9akciq32.eu-west-1.rds.amazonaws.com:3306/shop_db
    "#]],
    );
}

#[test]
fn cloudnative_pg() {
    check(
        &["cloudnative-pg.yaml"],
        expect![[r#"
            Cluster {"bootstrap":{"initdb":{"database":"app","owner":"app"}},"imageName":"ghcr.io/cloudnative-pg/postgresql:16","instances":3,"storage":{"size":"10Gi"}}
            shop/orders-db: True ConnectionPublished: published as Secret orders-db-login
              postgresql://app:Vq1J0uZk@rdb-uid-000001-5d1adf476447-rw.conductor-system.svc:5432/app
        "#]],
    );
}

#[test]
fn percona() {
    check(
        &["percona.yaml"],
        expect![[r#"
        PerconaXtraDBCluster {"crVersion":"1.17.0","haproxy":{"enabled":true,"image":"percona/haproxy:2.8.14","size":2},"pxc":{"image":"percona/percona-xtradb-cluster:8.0.41-32.1","size":3,"volumeSpec":{"persistentVolumeClaim":{"resources":{"requests":{"storage":"12Gi"}}}}},"users":[{"dbs":["app"],"grants":["SELECT","INSERT","UPDATE","DELETE","CREATE","ALTER","INDEX","DROP","REFERENCES"],"hosts":["%"],"name":"app"}]}
        shop/wordpress-db: True ConnectionPublished: published as Secret wordpress-db
          mysql://app:K7%23x@rdb-uid-000001-5d1adf476447-haproxy.conductor-system:3306/app
    "#]],
    );
}

#[test]
fn crossplane_rds() {
    check(
        &["crossplane-rds.yaml"],
        expect![[r#"
        Instance {"forProvider":{"allocatedStorage":45,"autoGeneratePassword":true,"dbName":"billing_db","engine":"postgres","engineVersion":"16","instanceClass":"db.t3.small","passwordSecretRef":{"key":"password","name":"rdb-uid-000001-password"},"region":"eu-west-1","skipFinalSnapshot":true,"username":"app"},"writeConnectionSecretToRef":{"name":"rdb-uid-000001-connection"}}
        shop/billing-db: True ConnectionPublished: published as Secret billing-db
          postgresql://app:hQ9x2b@rdb-uid-000001-5d1adf476447.c9akciq32.eu-west-1.rds.amazonaws.com:5432/billing_db
    "#]],
    );
}

#[test]
fn ack_rds() {
    check(
        &["ack-rds.yaml"],
        expect![[r#"
        ExternalSecret {"dataFrom":[{"sourceRef":{"generatorRef":{"apiVersion":"generators.external-secrets.io/v1alpha1","kind":"Password","name":"rdb-uid-000001-generator-9b091c9e2f4b"}}}],"refreshPolicy":"CreatedOnce","target":{"name":"rdb-uid-000001-master"}}
        Password {"allowRepeat":true,"digits":6,"length":32,"symbols":0}
        DBInstance {"allocatedStorage":20,"dbInstanceClass":"db.t4g.micro","dbInstanceIdentifier":"rdb-uid-000001","dbName":"app","engine":"postgres","engineVersion":"16","masterUserPassword":{"key":"password","name":"rdb-uid-000001-master"},"masterUsername":"app"}
        shop/invoices-db: True ConnectionPublished: published as Secret invoices-db
          postgresql://app:k3Yv-generated@rdb-uid-000001-instance-1eeab168e81d.c9akciq32.eu-west-1.rds.amazonaws.com:5432/app
    "#]],
    );
}

#[test]
fn graph() {
    check(
        &["graph.yaml"],
        expect![[r#"
        Cluster {"bootstrap":{"initdb":{"database":"app","owner":"app"}},"imageName":"ghcr.io/cloudnative-pg/postgresql:16","instances":1,"storage":{"size":"5Gi"}}
        Pooler {"cluster":{"name":"rdb-uid-000001-server-17f4e42ed131"},"instances":1,"pgbouncer":{"parameters":{"default_pool_size":"50"},"poolMode":"transaction"},"type":"rw"}
        ScheduledBackup {"cluster":{"name":"rdb-uid-000001-server-17f4e42ed131"},"schedule":"0 0 3 * * *"}
        shop/sessions-db: True ConnectionPublished: published as Secret sessions-db
          postgresql://app:Vq1J0uZk@rdb-uid-000001-pooler-e878dc9e1957.conductor-system.svc:5432/app
    "#]],
    );
}

#[test]
fn shared_server() {
    check(
        &["shared-server.yaml", "shared-server-next.yaml"],
        expect![[r#"
            Cluster {"bootstrap":{"initdb":{"database":"app","owner":"app"}},"imageName":"ghcr.io/cloudnative-pg/postgresql:17","instances":2,"postgresql":{"parameters":{"max_connections":"200"}},"storage":{"size":"100Gi"}}
            reports/catalogue-reports: True ConnectionPublished: published as Secret catalogue-reports
              postgresql://app:Vq1J0uZk@rdb-uid-000001-5d1adf476447-rw.conductor-system.svc:5432/app
            shop/catalogue-db: True ConnectionPublished: published as Secret catalogue-db
              postgresql://app:Vq1J0uZk@rdb-uid-000001-5d1adf476447-rw.conductor-system.svc:5432/app
        "#]],
    );
}

#[test]
fn defaults() {
    check(
        &["defaults.yaml"],
        expect![[r#"
        postgresql {"databases":{"app":"app_owner"},"numberOfInstances":1,"postgresql":{"version":"16"},"teamId":"standard","users":{"app_owner":[]},"volume":{"size":"5Gi"}}
        shop/notes-db: True ConnectionPublished: published as Secret notes-db
          postgresql://app_owner:W2x9@rdb-uid-000001-5d1adf476447.conductor-system.svc:5432/app?sslmode=require
    "#]],
    );
}

#[test]
fn sizes() {
    check(
        &["sizes.yaml"],
        expect![[r#"
        PerconaPGCluster {"crVersion":"2.6.0","instances":[{"dataVolumeClaimSpec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"50Gi"}}},"name":"instance1","replicas":1,"resources":{"limits":{"cpu":"2","memory":"4Gi"}}}],"postgresVersion":16,"proxy":{"pgBouncer":{"replicas":1}}}
        shop/search-db: True ConnectionPublished: published as Secret search-db
          postgresql://rdb-uid-000001-5d1adf476447:a%3Ab@rdb-uid-000001-5d1adf476447-pgbouncer.conductor-system.svc:5432/rdb-uid-000001-5d1adf476447
    "#]],
    );
}

#[test]
fn a_size_that_is_not_offered_is_reported_before_anything_is_made() {
    for (parameters, reported) in [
        (json!({"size": "huge"}), r#"use one of "small", "medium", "large""#),
        (json!({"replicas": 9}), "spec.parameters.replicas"),
        (json!({"colour": "red"}), "colour"),
    ] {
        let mut stage = Stage::new(&kinds());
        apply(&mut stage, "sizes.yaml");
        stage.harness.delete(CLAIM, &ObjectKey::new("shop", "search-db"));
        let before = stage.parts().len();
        stage.apply(json!({
            "apiVersion": "storage.conductor.io/v1alpha1", "kind": "RelationalDatabaseClaim",
            "metadata": {"name": "other-db", "namespace": "shop"},
            "spec": {"class": "sized-postgres", "engine": "postgresql", "parameters": parameters},
        }));
        let says = stage.claim_says("shop", "other-db", "Bound");
        assert!(says.contains(reported), "{says}");
        assert_eq!(stage.parts().len(), before, "{says}");
    }
}

/// The Secret that an administrator creates for the example's first class.
fn master() -> Value {
    json!({
        "kind": "Secret", "type": "Opaque", "stringData": {"password": "m"},
        "metadata": {"name": "cloud-first-master", "namespace": SYSTEM, "labels": {"conductor.io/publishable": "true"}},
    })
}

#[test]
fn fallback() {
    let mut stage = Stage::new(&kinds());
    stage.apply(master());
    apply(&mut stage, "fallback.yaml");
    stage.play(&operators());
    expect![[r#"
        DBInstance {"allocatedStorage":20,"dbInstanceClass":"db.t4g.micro","dbInstanceIdentifier":"rdb-uid-000002-f07945","dbName":"app","engine":"postgres","engineVersion":"17","masterUserPassword":{"key":"password","name":"cloud-first-master"},"masterUsername":"app"}
        shop/payments-db: True ConnectionPublished: published as Secret payments-db
          postgresql://app:m@rdb-uid-000002-f07945-79cf9e17740a.c9akciq32.eu-west-1.rds.amazonaws.com:5432/app
    "#]].assert_eq(&shown(&stage));
}

#[test]
fn fallback_to_the_second_class_once_the_first_has_failed_for_good() {
    let mut stage = Stage::new(&kinds());
    stage.apply(master());
    apply(&mut stage, "fallback.yaml");
    let (key, part) = stage.parts().remove(0);
    let (status, _) = operators().find(&part).and_then(|recorded| recorded.failed()).expect("it can fail");
    stage.says(&key, status);
    stage.harness.advance(60_000);
    stage.play(&operators());
    expect![[r#"
        Cluster {"bootstrap":{"initdb":{"database":"app","owner":"app"}},"imageName":"ghcr.io/cloudnative-pg/postgresql:17","instances":2,"storage":{"size":"20Gi"}}
        shop/payments-db: True ConnectionPublished: published as Secret payments-db
          postgresql://app:Vq1J0uZk@rdb-uid-000002-6cf3c1-1b29c02a5de2-rw.conductor-system.svc:5432/app
    "#]].assert_eq(&shown(&stage));
}
