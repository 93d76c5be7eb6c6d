//! A login leaked, and its holder does what a tenant can to keep it: annotations, Secrets, parameters, SQL. After a hard
//! change the old login is dead all the same, and so is every right that its holder granted to another login.

use conductor_databases::{Cluster, Login, RealServer, SYSTEM, engines};
use conductor_live::until;
use conductor_sql::command;
use conductor_sql_plan::sql::Dialect;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use std::time::Duration;

/// Long enough for a busy machine; a change that is carried out takes a second.
const WITHIN: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn a_leaked_login_is_dead_whatever_its_holder_did() {
    let server = RealServer::start(Dialect::Postgresql).await;
    let cluster = Cluster::enter().await;
    cluster.register("main", &server, json!({})).await;
    let controller = cluster.controller();
    cluster.claim("thief", "own", "main", json!({})).await;
    let thief = cluster.login(Dialect::Postgresql, "thief", "own").await;
    for case in ["annotated", "secret", "read-only", "schemas", "granted"] {
        let id = cluster.claim("app", case, "main", json!({})).await;
        let leaked = cluster.login(Dialect::Postgresql, "app", case).await;
        let database = leaked.get("database").to_owned();
        cluster.record_in(&id, "Ready").await;
        match case {
            "annotated" => {
                let note = json!({"annotations": {"database.conductor.io/delivered-in": "no/such/secret"}});
                edit(&cluster, case, json!({"metadata": note})).await;
            }
            "secret" => {
                // The claim's connection goes elsewhere, to a Secret that is not Conductor's.
                let foreign = json!({"apiVersion": "v1", "kind": "Secret",
                    "metadata": {"name": "foreign", "namespace": "app"}, "stringData": {"password": "x"}});
                cluster.turn.put(foreign).await;
                edit(&cluster, case, json!({"spec": {"connection": {"secretName": "foreign"}}})).await;
            }
            "read-only" => {
                let comment = format!("COMMENT ON DATABASE {database} IS 'mine'");
                leaked.run(&comment).await.expect("its owner writes comments");
                let set = format!("ALTER DATABASE {database} SET default_transaction_read_only = on");
                leaked.run(&set).await.expect("its owner sets it");
            }
            "schemas" => edit(&cluster, case, json!({"spec": {"parameters": {"schemas": ["pg_x"]}}})).await,
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
        let request =
            command::rotate(&cluster.client, SYSTEM, ("app", case), true).await.expect("it can be requested");
        let changed = command::wait_until_rotated(&cluster.client, &request, WITHIN).await;
        match case {
            "secret" => {
                let message = changed.expect_err("its application does not get the new login").to_string();
                assert!(
                    message
                        .starts_with("the old login is dead, but its application does not get the new one"),
                    "{message}"
                );
                assert!(message.contains("Secret app/foreign"), "{message}");
                cluster.claim_reports(case, "SecretConflict").await;
            }
            _ => changed.expect(case),
        }
        leaked.run("SELECT 1").await.expect_err(case);
        thief.at(&database).run("SELECT 1").await.expect_err("what the holder granted is over");
        let role = format!("SET ROLE {}", leaked.get("username"));
        thief.run(&role).await.expect_err("nor can another login become the old one");
        if case == "secret" {
            // Once its name is free, its application gets the login that waits for it.
            let gone = cluster.secrets("app").delete("foreign", &DeleteParams::default()).await;
            gone.expect("its owner deletes it");
            let next = until("the login is published", async || {
                Some(Login::new(leaked.dialect, cluster.published("app", "foreign").await?))
            });
            next.await.run("SELECT 1").await.expect("the new login works");
            cluster.record_in(&id, "Ready").await;
            command::wait_until_rotated(&cluster.client, &request, WITHIN).await.expect("now it is done");
        } else {
            let next = cluster.next_login("app", case, &leaked).await;
            next.run("SELECT 1").await.expect("the new login works");
        }
    }
    let said = thief.run("SELECT 1").await;
    assert_eq!(said.as_deref(), Ok(["1".to_owned()].as_slice()), "another tenant keeps its own login");
    controller.stop().await.expect("it stops on request");
}

/// As with a claim: the old login of a role dies, and the requesting user sees that no other takes its place.
#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_secret_in_place_of_a_roles_login_is_reported() {
    let server = RealServer::start(Dialect::Postgresql).await;
    let cluster = Cluster::enter().await;
    cluster.register("main", &server, json!({})).await;
    let controller = cluster.controller();
    let id = cluster.claim("app", "orders", "main", json!({})).await;
    cluster.login(Dialect::Postgresql, "app", "orders").await;
    cluster.record_in(&id, "Ready").await;
    let (_, leaked) = cluster.role(Dialect::Postgresql, "app", "reports", "orders").await;
    let secrets = cluster.secrets("app");
    let free = async || drop(secrets.delete("reports", &DeleteParams::default()).await);
    // The controller publishes it again where it is faster.
    until("a foreign Secret has the name", async || {
        free().await;
        let foreign = json!({"metadata": {"name": "reports"}, "stringData": {"password": "x"}});
        let foreign = serde_json::from_value(foreign).expect("a Secret");
        secrets.create(&Default::default(), &foreign).await.ok()
    })
    .await;
    let request = command::rotate_role(&cluster.client, SYSTEM, ("app", "reports"), true).await;
    let message =
        command::wait_until_rotated(&cluster.client, &request.expect("it is requested"), WITHIN).await;
    let message = message.expect_err("no other login is published").to_string();
    assert!(message.starts_with("the old login is dead, and no new login is published yet"), "{message}");
    assert!(message.contains("Secret reports exists and does not belong to Conductor"), "{message}");
    leaked.run("SELECT 1").await.expect_err("the old login is dead");
    free().await;
    cluster.next_login("app", "reports", &leaked).await.run("SELECT 1").await.expect("the new login works");
    controller.stop().await.expect("it stops on request");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hard_change_that_no_controller_carries_out_fails() {
    let server = RealServer::start(Dialect::Mariadb).await;
    let cluster = Cluster::enter().await;
    cluster.register("main", &server, json!({})).await;
    let controller = cluster.controller();
    let id = cluster.claim("app", "orders", "main", json!({})).await;
    let leaked = cluster.login(Dialect::Mariadb, "app", "orders").await;
    cluster.record_in(&id, "Ready").await;
    controller.stop().await.expect("it stops on request");
    let request =
        command::rotate(&cluster.client, SYSTEM, ("app", "orders"), true).await.expect("it can be requested");
    let within = Duration::from_millis(300);
    let message =
        command::wait_until_rotated(&cluster.client, &request, within).await.expect_err("nothing happens");
    assert!(message.to_string().starts_with("the old login may still work"), "{message}");
    let controller = cluster.controller();
    command::wait_until_rotated(&cluster.client, &request, WITHIN).await.expect("the request stayed");
    leaked.run("SELECT 1").await.expect_err("now it is dead");
    controller.stop().await.expect("it stops on request");
}

/// An open transaction that changes the login's own role keeps the server from taking its right to log in.
#[tokio::test(flavor = "multi_thread")]
async fn a_holder_that_locks_its_own_role_is_shut_out() {
    let server = RealServer::start_with(Dialect::Postgresql, 50, &["max_prepared_transactions=5"]).await;
    let cluster = Cluster::enter().await;
    cluster.register("main", &server, json!({})).await;
    let controller = cluster.controller();
    for case in ["open", "prepared", "prepared-settings"] {
        let id = cluster.claim("app", case, "main", json!({})).await;
        let leaked = cluster.login(Dialect::Postgresql, "app", case).await;
        cluster.record_in(&id, "Ready").await;
        let begin = format!("BEGIN; SET ROLE NONE; ALTER ROLE {} PASSWORD 'x'", leaked.get("username"));
        let holder = match case {
            "prepared" => {
                leaked.run(&format!("{begin}; PREPARE TRANSACTION 'kept'")).await.expect("it may");
                None
            }
            "prepared-settings" => {
                // As the owner of the database: what a change after a leak ends, this locks.
                let set = |value: u32| {
                    let database = leaked.get("database");
                    format!("ALTER DATABASE {database} SET statement_timeout = {value}")
                };
                leaked.run(&set(60_000)).await.expect("its owner may");
                let prepare = format!("BEGIN; {}; PREPARE TRANSACTION 'locked'", set(50_000));
                leaked.run(&prepare).await.expect("its owner may");
                None
            }
            _ => {
                let text = format!("{begin}; SELECT pg_sleep(600)");
                let leaked = leaked.clone();
                // It comes again as often as it is thrown out.
                Some(tokio::spawn(async move {
                    loop {
                        let _ = leaked.run(&text).await;
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                }))
            }
        };
        if holder.is_some() {
            let locked = "SELECT pid FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)%' AND pid <> pg_backend_pid()";
            let admin = Login::admin(&server.access());
            until("the lock is held", async || admin.run(locked).await.ok()?.into_iter().next()).await;
        }
        let request =
            command::rotate(&cluster.client, SYSTEM, ("app", case), true).await.expect("it can be requested");
        command::wait_until_rotated(&cluster.client, &request, WITHIN).await.expect(case);
        leaked.run("SELECT 1").await.expect_err(case);
        cluster.next_login("app", case, &leaked).await.run("SELECT 1").await.expect("the new login works");
        if let Some(holder) = holder {
            holder.abort();
        }
    }
    controller.stop().await.expect("it stops on request");
}

/// A login of MySQL's family can grant nothing; an event of its own could give it a known password again.
#[tokio::test(flavor = "multi_thread")]
async fn no_grant_and_no_event_of_the_holder_outlives_a_leak() {
    for dialect in engines().into_iter().filter(|dialect| *dialect != Dialect::Postgresql) {
        let server = RealServer::start_with(dialect, 50, &["--event-scheduler=ON"]).await;
        let cluster = Cluster::enter().await;
        cluster.register("main", &server, json!({})).await;
        let controller = cluster.controller();
        cluster.claim("thief", "own", "main", json!({})).await;
        let thief = cluster.login(dialect, "thief", "own").await;
        let id = cluster.claim("app", "orders", "main", json!({})).await;
        let leaked = cluster.login(dialect, "app", "orders").await;
        cluster.record_in(&id, "Ready").await;
        let (database, other) = (leaked.get("database"), format!("'{}'@'%'", thief.get("username")));
        leaked.run("CREATE TABLE t (x INT); INSERT INTO t VALUES (7)").await.expect("it may");
        leaked.run("CREATE PROCEDURE p() SQL SECURITY DEFINER SELECT x FROM t").await.expect("it may");
        for grant in [
            format!("GRANT SELECT ON `{database}`.* TO {other}"),
            format!("GRANT SELECT ON `{database}`.t TO {other}"),
            format!("GRANT EXECUTE ON PROCEDURE `{database}`.p TO {other}"),
            "CREATE ROLE friends".to_owned(),
        ] {
            leaked.run(&grant).await.expect_err(&grant);
        }
        let known = match dialect {
            Dialect::Mariadb => "SET PASSWORD = PASSWORD('known-to-the-thief')",
            _ => "SET PASSWORD = 'known-to-the-thief'",
        };
        leaked
            .run(&format!("CREATE EVENT again ON SCHEDULE EVERY 1 SECOND STARTS '2037-01-01' DO {known}"))
            .await
            .expect("it may");
        let request = command::rotate(&cluster.client, SYSTEM, ("app", "orders"), true)
            .await
            .expect("it can be requested");
        command::wait_until_rotated(&cluster.client, &request, WITHIN).await.expect("it is carried out");
        leaked.run("SELECT 1").await.expect_err("the old login is dead");
        let enabled = "SELECT event_name FROM information_schema.events WHERE status = 'ENABLED'";
        assert_eq!(Login::admin(&server.access()).run(enabled).await, Ok(Vec::new()), "no event runs on");
        for read in [format!("SELECT x FROM `{database}`.t"), format!("CALL `{database}`.p()")] {
            thief.run(&read).await.expect_err("it was granted nothing");
        }
        cluster
            .next_login("app", "orders", &leaked)
            .await
            .run("SELECT x FROM t")
            .await
            .expect("the new login works");
        controller.stop().await.expect("it stops on request");
    }
}

async fn edit(cluster: &Cluster, name: &str, patch: Value) {
    let claims = conductor::model::Kind::Claim(conductor::model::TypeId::RELATIONAL_DATABASE);
    let api = cluster.turn.objects(claims, "app");
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.expect("its tenant edits it");
}
