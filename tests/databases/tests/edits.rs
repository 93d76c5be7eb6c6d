//! What people edit on claims that have their database: what can be had is, what cannot is told, and nothing that is
//! written stops the changes of a login.

use conductor::api::database::front::{FRONT_GROUP, FRONT_VERSION};
use conductor_databases::{House, Login, RealServer, SYSTEM};
use conductor_live::until;
use conductor_sql::command;
use conductor_sql_plan::sql::Dialect;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};

fn fronts(house: &House) -> Api<DynamicObject> {
    let gvk = GroupVersionKind::gvk(FRONT_GROUP, FRONT_VERSION, "DatabaseClaim");
    Api::namespaced_with(house.client.clone(), "app", &ApiResource::from_gvk(&gvk))
}

/// Writes the DatabaseClaim `app/hosts`, with these fields beside its label.
async fn write(house: &House, fields: Value) {
    house.turn.namespace("app").await;
    let mut spec = json!({"AppID": "hosts", "InstanceLabel": "athena"});
    for (key, value) in fields.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    let claim = json!({"apiVersion": format!("{FRONT_GROUP}/{FRONT_VERSION}"), "kind": "DatabaseClaim",
        "metadata": {"name": "hosts", "namespace": "app"}, "spec": spec});
    let parameters = PatchParams::apply("test").force();
    fronts(house).patch("hosts", &parameters, &Patch::Apply(claim)).await.expect("the API takes it");
}

/// Waits until it says this, or nothing where that is empty, and is served.
async fn says(house: &House, part: &str) {
    until(&format!("the DatabaseClaim says {part:?}"), async || {
        let front = fronts(house).get("hosts").await.ok()?;
        let error = front.data.pointer("/status/error").and_then(Value::as_str)?;
        let is_served = front.data["status"]["connectionInfo"].is_array();
        (is_served && error.contains(part) && error.is_empty() == part.is_empty()).then_some(())
    })
    .await;
}

/// Waits until an Event in the namespace of the claims says this.
async fn warned(house: &House, reason: &str, part: &str) {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("events.k8s.io", "v1", "Event"));
    let api: Api<DynamicObject> = Api::namespaced_with(house.client.clone(), "app", &kind);
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
async fn login(house: &House, secret: &str) -> Login {
    until(&format!("the login in {secret} works"), async || {
        let mut keys = house.published("app", secret).await?;
        let database = keys.get("databaseName").cloned()?;
        keys.insert("database".to_owned(), database);
        let login = Login::new(Dialect::Postgresql, keys);
        login.run("SELECT 1").await.is_ok().then_some(login)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_claim_is_followed_when_it_is_edited_and_told_what_is_too_late() {
    let server = RealServer::start(Dialect::Postgresql).await;
    let house = House::enter().await;
    house.register("main", &server, json!({"reclaimPolicy": "Delete", "quarantineMinutes": 0})).await;
    let label = Patch::Merge(json!({"spec": {"offer": {"labels": {"instance": "athena"}}}}));
    house.api("DatabaseServer").patch("main", &PatchParams::default(), &label).await.expect("it is there");
    let controller = house.controller();
    write(&house, json!({"SecretName": "first"})).await;
    says(&house, "").await;
    let before = login(&house, "first").await;
    before.run("CREATE TABLE t (v INT); INSERT INTO t VALUES (7)").await.expect("it may make tables");
    let claim = house.turn.claim("app", "hosts").await.expect("it has a claim");
    let id = claim.metadata.uid.clone().expect("a UID");
    // Another Secret: the old one goes, and logins change as before.
    write(&house, json!({"SecretName": "second"})).await;
    login(&house, "second").await;
    until("the Secret of the name before is gone", async || {
        house.published("app", "first").await.is_none().then_some(())
    })
    .await;
    house.rotate(&id, "soft-1").await;
    assert_ne!(login(&house, "second").await.get("username"), before.get("username"));
    // A name that is somebody's: told, and the one before goes on.
    house
        .turn
        .put(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mine", "namespace": "app"},
            "stringData": {"password": "keep me"}}))
        .await;
    write(&house, json!({"SecretName": "mine"})).await;
    says(&house, "Secret mine exists and is not this claim's").await;
    house.rotate(&id, "soft-2").await;
    login(&house, "second").await;
    // What is too late is told, with the database that there is.
    write(&house, json!({"SecretName": "second", "DBNameOverride": "others", "Username": "somebody"})).await;
    says(&house, "spec.DatabaseName cannot be changed any more, it is hosts").await;
    house.rotate(&id, "hard-1").await;
    // So is what says where it should be: it is somewhere.
    write(&house, json!({"SecretName": "second", "Host": "elsewhere"})).await;
    says(&house, "spec.Host has no effect any more, its claim is bound: it was absent").await;
    write(&house, json!({"SecretName": "Not_A_Name"})).await;
    until("a name that no Secret can have is reported", async || {
        let front = fronts(&house).get("hosts").await.ok()?;
        let error = front.data.pointer("/status/error").and_then(Value::as_str)?;
        error.contains("spec.SecretName: `Not_A_Name` cannot be the name of a Secret").then_some(())
    })
    .await;
    warned(&house, "InvalidSpec", "spec.SecretName: `Not_A_Name` cannot be the name of a Secret").await;
    warned(&house, "NotAsAsked", "spec.Host has no effect any more").await;
    // What becomes of it counts until its end.
    write(&house, json!({"SecretName": "second", "DeletePolicy": "recycle"})).await;
    says(&house, "").await;
    until("its record is kept", async || {
        (house.record(&id).await?.data["spec"]["reclaimPolicy"] == "Retain").then_some(())
    })
    .await;
    fronts(&house).delete("hosts", &DeleteParams::default()).await.expect("it is there");
    house.record_in(&id, "Retained").await;
    let admin = Login::admin(&server.access()).at("hosts");
    assert_eq!(admin.run("SELECT v FROM t").await, Ok(vec!["7".to_owned()]), "the data is there");
    controller.stop().await.expect("it stops when asked to");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_honoured_of_an_edit_is_told_and_logins_change_all_the_same() {
    let server = RealServer::start(Dialect::Postgresql).await;
    let house = House::enter().await;
    house.register("main", &server, json!({})).await;
    let controller = house.controller();
    let id = house.claim("app", "orders", "main", json!({"parameters": {"schemas": ["audit"]}})).await;
    let before = house.login(Dialect::Postgresql, "app", "orders").await;
    house.record_in(&id, "Ready").await;
    house.claim("app", "orders", "main", json!({"parameters": {"extensions": ["dblink"]}})).await;
    house.record_tells(&id, "is not allowed on this server").await;
    warned(&house, "NotAsAsked", "is not allowed on this server").await;
    let note = command::rotate(&house.client, SYSTEM, ("app", "orders"), true).await.expect("it is in use");
    assert!(note.told.is_some_and(|told| told.contains("spec.parameters.extensions")), "it is told");
    until("the change is done", async || {
        (house.record(&id).await?.data["status"]["rotationDone"] == note.value).then_some(())
    })
    .await;
    before.run("SELECT 1").await.expect_err("the login before is over");
    house.login(Dialect::Postgresql, "app", "orders").await.run("SELECT 1").await.expect("the new one works");
    house.claim("app", "orders", "main", json!({"parameters": {"schemas": ["audit"]}})).await;
    house.record_tells(&id, "its claim can use it").await;
    let note = command::rotate(&house.client, SYSTEM, ("app", "orders"), false).await.expect("it is in use");
    assert_eq!(note.told, None);
    controller.stop().await.expect("it stops when asked to");
}
