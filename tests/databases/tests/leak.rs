//! A login leaked, and its holder does what a tenant can to keep it: annotations, Secrets, parameters, SQL. After a hard
//! change the old login is dead all the same, and so is every right that its holder granted to another login.

use conductor::database::sql::Dialect;
use conductor::provider::command;
use conductor_databases::{House, Login, RealServer, SYSTEM};
use conductor_live::until;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use std::time::Duration;

/// Long enough for a busy machine; a change that is carried out takes a second.
const WITHIN: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn a_leaked_login_is_dead_whatever_its_holder_did() {
    let server = RealServer::start(Dialect::Postgresql).await;
    let house = House::enter().await;
    house.register("main", &server, json!({})).await;
    let controller = house.controller();
    house.claim("thief", "own", "main", json!({})).await;
    let thief = house.login(Dialect::Postgresql, "thief", "own").await;
    for case in ["annotated", "secret", "read-only", "schemas", "granted"] {
        let id = house.claim("app", case, "main", json!({})).await;
        let leaked = house.login(Dialect::Postgresql, "app", case).await;
        let database = leaked.get("database").to_owned();
        house.record_in(&id, "Ready").await;
        match case {
            "annotated" => {
                let note = json!({"annotations": {"database.conductor.io/delivered-in": "no/such/secret"}});
                edit(&house, case, json!({"metadata": note})).await;
            }
            "secret" => {
                // The claim's connection goes elsewhere, to a Secret that is not Conductor's.
                let foreign = json!({"apiVersion": "v1", "kind": "Secret",
                    "metadata": {"name": "foreign", "namespace": "app"}, "stringData": {"password": "x"}});
                house.turn.put(foreign).await;
                edit(&house, case, json!({"spec": {"connection": {"secretName": "foreign"}}})).await;
            }
            "read-only" => {
                let comment = format!("COMMENT ON DATABASE {database} IS 'mine'");
                leaked.run(&comment).await.expect("its owner writes comments");
                let set = format!("ALTER DATABASE {database} SET default_transaction_read_only = on");
                leaked.run(&set).await.expect("its owner sets it");
            }
            "schemas" => edit(&house, case, json!({"spec": {"parameters": {"schemas": ["pg_x"]}}})).await,
            _ => {
                let (holder, other) = (leaked.get("username"), thief.get("username"));
                let grant = format!(
                    "GRANT CONNECT ON DATABASE {database} TO PUBLIC; CREATE TABLE public.t (x int); \
                     GRANT ALL ON SCHEMA public TO PUBLIC; GRANT ALL ON public.t TO PUBLIC"
                );
                leaked.run(&grant).await.expect("its owner grants");
                // Older servers let a login grant itself; here the administrator stands in for it.
                let member = format!("GRANT {holder} TO {other}");
                Login::admin(&server.access()).run(&member).await.expect("it may");
                thief
                    .at(&database)
                    .run("INSERT INTO public.t VALUES (1)")
                    .await
                    .expect("so the other gets in");
            }
        }
        let asked =
            command::rotate(&house.client, SYSTEM, ("app", case), true).await.expect("it can be asked");
        command::wait_until_rotated(&house.client, &asked, WITHIN).await.expect(case);
        leaked.run("SELECT 1").await.expect_err(case);
        thief.at(&database).run("SELECT 1").await.expect_err("what the holder granted is over");
        let role = format!("SET ROLE {}", leaked.get("username"));
        thief.run(&role).await.expect_err("nor can another login become the old one");
        if !matches!(case, "annotated" | "secret") {
            let next = next(&house, case, &leaked).await;
            next.run("SELECT 1").await.expect("the new login works");
        }
    }
    let said = thief.run("SELECT 1").await;
    assert_eq!(said.as_deref(), Ok(["1".to_owned()].as_slice()), "another tenant keeps its own login");
    controller.stop().await.expect("it stops when asked to");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hard_change_that_no_controller_carries_out_fails() {
    let server = RealServer::start(Dialect::Mariadb).await;
    let house = House::enter().await;
    house.register("main", &server, json!({})).await;
    let controller = house.controller();
    let id = house.claim("app", "orders", "main", json!({})).await;
    let leaked = house.login(Dialect::Mariadb, "app", "orders").await;
    house.record_in(&id, "Ready").await;
    controller.stop().await.expect("it stops when asked to");
    let asked =
        command::rotate(&house.client, SYSTEM, ("app", "orders"), true).await.expect("it can be asked");
    let within = Duration::from_millis(300);
    let told = command::wait_until_rotated(&house.client, &asked, within).await.expect_err("nothing happens");
    assert!(told.to_string().starts_with("the old login may still work"), "{told}");
    let controller = house.controller();
    command::wait_until_rotated(&house.client, &asked, WITHIN).await.expect("the request stayed");
    leaked.run("SELECT 1").await.expect_err("now it is dead");
    controller.stop().await.expect("it stops when asked to");
}

async fn edit(house: &House, name: &str, patch: Value) {
    let claims = conductor::model::Kind::Claim(conductor::model::TypeId::RELATIONAL_DATABASE);
    let api = house.turn.objects(claims, "app");
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.expect("its tenant edits it");
}

async fn next(house: &House, name: &str, before: &Login) -> Login {
    until("another login is published", async || {
        let now = Login::new(before.dialect, house.published("app", name).await?);
        (now != *before).then_some(now)
    })
    .await
}
