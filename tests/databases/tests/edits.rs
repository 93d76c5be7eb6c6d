//! Edits of claims that have their database: a possible one takes effect, an impossible one is reported, and nothing that is
//! written stops the changes of a login.

use conductor::api::database::front::{FRONT_GROUP, FRONT_VERSION};
use conductor_databases::{Cluster, Login, RealServer, SYSTEM};
use conductor_live::until;
use conductor_sql::command;
use conductor_sql_plan::sql::Dialect;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};

fn database_claims(cluster: &Cluster) -> Api<DynamicObject> {
    let gvk = GroupVersionKind::gvk(FRONT_GROUP, FRONT_VERSION, "DatabaseClaim");
    Api::namespaced_with(cluster.client.clone(), "app", &ApiResource::from_gvk(&gvk))
}

/// Writes the DatabaseClaim `app/hosts`, with these fields beside its label.
async fn write(cluster: &Cluster, fields: Value) {
    cluster.turn.namespace("app").await;
    let mut spec = json!({"AppID": "hosts", "InstanceLabel": "athena"});
    for (key, value) in fields.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    let claim = json!({"apiVersion": format!("{FRONT_GROUP}/{FRONT_VERSION}"), "kind": "DatabaseClaim",
        "metadata": {"name": "hosts", "namespace": "app"}, "spec": spec});
    let parameters = PatchParams::apply("test").force();
    database_claims(cluster)
        .patch("hosts", &parameters, &Patch::Apply(claim))
        .await
        .expect("the API takes it");
}

/// Waits until it says this, or nothing where that is empty, and is served.
async fn says(cluster: &Cluster, part: &str) {
    until(&format!("the DatabaseClaim says {part:?}"), async || {
        let front = database_claims(cluster).get("hosts").await.ok()?;
        let error = front.data.pointer("/status/error").and_then(Value::as_str)?;
        let is_served = front.data["status"]["connectionInfo"].is_array();
        (is_served && error.contains(part) && error.is_empty() == part.is_empty()).then_some(())
    })
    .await;
}

/// Waits until an Event in the namespace of the claims says this.
async fn warned(cluster: &Cluster, reason: &str, part: &str) {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("events.k8s.io", "v1", "Event"));
    let api: Api<DynamicObject> = Api::namespaced_with(cluster.client.clone(), "app", &kind);
    until(&format!("an Event {reason} says {part:?}"), async || {
        let events = api.list(&ListParams::default()).await.ok()?;
        let says = |event: &DynamicObject| {
            event.data["reason"] == reason
                && event.data["note"].as_str().is_some_and(|note| note.contains(part))
        };
        events.items.iter().any(says).then_some(())
    })
    .await;
}

/// Waits until a Secret of the front holds a login that works.
async fn login(cluster: &Cluster, secret: &str) -> Login {
    until(&format!("the login in {secret} works"), async || {
        let mut keys = cluster.published("app", secret).await?;
        let database = keys.get("databaseName").cloned()?;
        keys.insert("database".to_owned(), database);
        let login = Login::new(Dialect::Postgresql, keys);
        login.run("SELECT 1").await.is_ok().then_some(login)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_of_a_database_claim_take_effect_or_are_reported() {
    let server = RealServer::start(Dialect::Postgresql).await;
    let cluster = Cluster::enter().await;
    cluster.register("main", &server, json!({"reclaimPolicy": "Delete", "quarantineMinutes": 0})).await;
    let label = Patch::Merge(json!({"spec": {"offer": {"labels": {"instance": "athena"}}}}));
    cluster.api("DatabaseServer").patch("main", &PatchParams::default(), &label).await.expect("it exists");
    let controller = cluster.controller();
    write(&cluster, json!({"SecretName": "first"})).await;
    says(&cluster, "").await;
    let before = login(&cluster, "first").await;
    before.run("CREATE TABLE t (v INT); INSERT INTO t VALUES (7)").await.expect("it may make tables");
    let claim = cluster.turn.claim("app", "hosts").await.expect("it has a claim");
    let id = claim.metadata.uid.clone().expect("a UID");
    // Another Secret: the old one goes, and logins change as before.
    write(&cluster, json!({"SecretName": "second"})).await;
    login(&cluster, "second").await;
    until("the Secret of the name before is gone", async || {
        cluster.published("app", "first").await.is_none().then_some(())
    })
    .await;
    cluster.rotate(&id, "soft-1").await;
    assert_ne!(login(&cluster, "second").await.get("username"), before.get("username"));
    // A foreign Secret's name: reported, and the earlier one stays.
    cluster
        .turn
        .put(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mine", "namespace": "app"},
            "stringData": {"password": "keep me"}}))
        .await;
    write(&cluster, json!({"SecretName": "mine"})).await;
    says(&cluster, "Secret mine exists and belongs to another owner").await;
    cluster.rotate(&id, "soft-2").await;
    login(&cluster, "second").await;
    // A late edit is reported, with the existing database.
    write(&cluster, json!({"SecretName": "second", "DBNameOverride": "others", "Username": "another"})).await;
    says(&cluster, "spec.DatabaseName can no longer be changed, it is hosts").await;
    cluster.rotate(&id, "hard-1").await;
    // So is what says where it should be: it is somewhere.
    write(&cluster, json!({"SecretName": "second", "Host": "elsewhere"})).await;
    says(&cluster, "spec.Host no longer has an effect, its claim is bound: it was absent").await;
    write(&cluster, json!({"SecretName": "Not_A_Name"})).await;
    until("a name that no Secret can have is reported", async || {
        let front = database_claims(&cluster).get("hosts").await.ok()?;
        let error = front.data.pointer("/status/error").and_then(Value::as_str)?;
        error.contains("spec.SecretName: `Not_A_Name` cannot be the name of a Secret").then_some(())
    })
    .await;
    warned(&cluster, "InvalidSpec", "spec.SecretName: `Not_A_Name` cannot be the name of a Secret").await;
    warned(&cluster, "NotAsAsked", "spec.Host no longer has an effect").await;
    // What becomes of it counts until its end.
    write(&cluster, json!({"SecretName": "second", "DeletePolicy": "recycle"})).await;
    says(&cluster, "").await;
    until("its record is kept", async || {
        (cluster.record(&id).await?.data["spec"]["reclaimPolicy"] == "Retain").then_some(())
    })
    .await;
    database_claims(&cluster).delete("hosts", &DeleteParams::default()).await.expect("it exists");
    cluster.record_in(&id, "Retained").await;
    let admin = Login::admin(&server.access()).at("hosts");
    assert_eq!(admin.run("SELECT v FROM t").await, Ok(vec!["7".to_owned()]), "the data is there");
    controller.stop().await.expect("it stops on request");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_edit_is_reported_and_logins_rotate_all_the_same() {
    let server = RealServer::start(Dialect::Postgresql).await;
    let cluster = Cluster::enter().await;
    cluster.register("main", &server, json!({})).await;
    let controller = cluster.controller();
    let id = cluster.claim("app", "orders", "main", json!({"parameters": {"schemas": ["audit"]}})).await;
    let before = cluster.login(Dialect::Postgresql, "app", "orders").await;
    cluster.record_in(&id, "Ready").await;
    cluster.claim("app", "orders", "main", json!({"parameters": {"extensions": ["dblink"]}})).await;
    cluster.record_reports(&id, "is not allowed on this server").await;
    warned(&cluster, "NotAsAsked", "is not allowed on this server").await;
    let note = command::rotate(&cluster.client, SYSTEM, ("app", "orders"), true).await.expect("it is in use");
    assert!(
        note.problem.is_some_and(|message| message.contains("spec.parameters.extensions")),
        "it is reported"
    );
    until("the change is done", async || {
        (cluster.record(&id).await?.data["status"]["rotationDone"] == note.value).then_some(())
    })
    .await;
    before.run("SELECT 1").await.expect_err("the login before is over");
    cluster
        .login(Dialect::Postgresql, "app", "orders")
        .await
        .run("SELECT 1")
        .await
        .expect("the new one works");
    cluster.claim("app", "orders", "main", json!({"parameters": {"schemas": ["audit"]}})).await;
    cluster.record_reports(&id, "its claim can use it").await;
    let note =
        command::rotate(&cluster.client, SYSTEM, ("app", "orders"), false).await.expect("it is in use");
    assert_eq!(note.problem, None);
    controller.stop().await.expect("it stops on request");
}
