//! Extra logins on a claim's database, on real servers and a real API server, for every engine: what they may and may
//! not do, also with what comes later; and that another namespace gets one by the owner's grant and no longer than that.

use conductor_databases::{Cluster, Login, RealServer, SYSTEM, engines};
use conductor_live::until;
use conductor_sql::command;
use conductor_sql_plan::sql::Dialect;
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

/// Waits until a login does not work any more, and gives what the server says.
async fn refused(login: &Login) -> String {
    until("the login is refused", async || login.run("SELECT 1").await.err()).await
}

/// Makes a role on `shop/orders`; gives its UID.
async fn role(cluster: &Cluster, namespace: &str, name: &str, access: &str) -> String {
    cluster.turn.namespace(namespace).await;
    let made = cluster
        .turn
        .put(json!({
            "apiVersion": "database.conductor.io/v1alpha1", "kind": "DatabaseRole",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"claimRef": {"namespace": "shop", "name": "orders"}, "access": access},
        }))
        .await;
    made.uid().expect("it has a UID")
}

async fn grant(cluster: &Cluster, access: &str) {
    cluster
        .turn
        .put(json!({
            "apiVersion": "database.conductor.io/v1alpha1", "kind": "DatabaseGrant",
            "metadata": {"name": "analytics", "namespace": "shop"},
            "spec": {"from": [{"namespace": "analytics"}], "claims": ["orders"], "access": access},
        }))
        .await;
}

/// The `Ready` condition of a role.
async fn readiness(cluster: &Cluster, namespace: &str, name: &str) -> Value {
    let role = cluster.api_in("DatabaseRole", namespace).get_opt(name).await.expect("the API answers");
    role.map(|role| role.data["status"]["conditions"][0].clone()).unwrap_or_default()
}

/// Waits until a role stands like this, and gives the message.
async fn stands(cluster: &Cluster, (namespace, name): (&str, &str), status: &str, reason: &str) -> String {
    until(&format!("role {name} is {status} {reason}"), async || {
        let ready = readiness(cluster, namespace, name).await;
        let is_so = ready["status"] == status && ready["reason"] == reason;
        is_so.then(|| ready["message"].as_str().unwrap_or_default().to_owned())
    })
    .await
}

/// Waits until a role is ready, and gives its login.
async fn login(cluster: &Cluster, dialect: Dialect, namespace: &str, name: &str) -> Login {
    stands(cluster, (namespace, name), "True", "Ready").await;
    until(&format!("the login of role {name} is published"), async || {
        cluster.published(namespace, name).await.map(|keys| Login::new(dialect, keys))
    })
    .await
}

/// Has the login of role `analytics/reports` changed as `conductor rotate role` does, and gives the new one.
async fn rotate(cluster: &Cluster, dialect: Dialect, is_hard: bool) -> Login {
    let role = ("analytics", "reports");
    let note = command::rotate_role(&cluster.client, SYSTEM, role, is_hard).await.expect("it has a login");
    assert_eq!((note.kind.as_str(), note.waits_for), ("DatabaseRole", None));
    let roles = cluster.api_in("DatabaseRole", role.0);
    until("the change is done", async || {
        let role = roles.get_opt(role.1).await.ok()??;
        (role.data["status"]["rotationDone"] == note.value).then_some(())
    })
    .await;
    login(cluster, dialect, role.0, role.1).await
}

/// Users of roles that the server has, and marks of them.
async fn left(server: &RealServer) -> Vec<String> {
    let text = match server.plan.dialect {
        Dialect::Postgresql => "SELECT rolname FROM pg_roles WHERE rolname LIKE 'r\\_%'",
        Dialect::Mariadb | Dialect::Mysql => {
            "SELECT CAST(user AS CHAR) FROM mysql.user WHERE user LIKE 'r\\_%' \
             UNION ALL SELECT name FROM conductor.marks WHERE name LIKE 'r\\_%'"
        }
    };
    Login::admin(&server.access()).run(text).await.expect("the administrator queries")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_reads_what_comes_later_too_and_writes_nothing_and_a_writer_writes_rows() {
    for dialect in engines() {
        let server = RealServer::start(dialect).await;
        let cluster = Cluster::enter().await;
        cluster.register("main", &server, json!({"reclaimPolicy": "Delete", "quarantineMinutes": 0})).await;
        let controller = cluster.controller();
        cluster.claim("shop", "orders", "main", json!({})).await;
        let owner = cluster.login(dialect, "shop", "orders").await;
        owner.run("CREATE TABLE earlier (v INT); INSERT INTO earlier VALUES (1)").await.expect("it owns it");
        role(&cluster, "shop", "reader", "ReadOnly").await;
        role(&cluster, "shop", "writer", "ReadWrite").await;
        let reader = login(&cluster, dialect, "shop", "reader").await;
        let writer = login(&cluster, dialect, "shop", "writer").await;
        owner.run("CREATE TABLE later (v INT); INSERT INTO later VALUES (2)").await.expect("it owns it");
        if dialect == Dialect::Postgresql {
            owner.run("CREATE SCHEMA audit; CREATE TABLE audit.t (v SERIAL, w INT)").await.expect("it may");
            reader.run("SELECT v FROM audit.t").await.expect("later schemas are read too");
            writer.run("INSERT INTO audit.t (w) VALUES (1)").await.expect("sequences go on");
            assert!(
                reader.run("SELECT nextval('audit.t_v_seq')").await.is_err(),
                "a reader moves a sequence"
            );
        }
        for (table, row) in [("earlier", "1"), ("later", "2")] {
            let found = reader.run(&format!("SELECT v FROM {table}")).await;
            assert_eq!(found, Ok(vec![row.to_owned()]), "{dialect:?}");
            for statement in [
                format!("INSERT INTO {table} VALUES (3)"),
                format!("UPDATE {table} SET v = 3"),
                format!("DELETE FROM {table}"),
                format!("DROP TABLE {table}"),
            ] {
                assert!(reader.run(&statement).await.is_err(), "{dialect:?}: a reader may {statement}");
            }
            writer
                .run(&format!("INSERT INTO {table} VALUES (3); UPDATE {table} SET v = 4 WHERE v = 3; DELETE FROM {table} WHERE v = 4"))
                .await
                .expect("a writer writes");
            assert!(writer.run(&format!("DROP TABLE {table}")).await.is_err(), "tables are the owner's");
        }
        assert!(reader.run("CREATE TABLE mine (v INT)").await.is_err(), "a reader makes a table");
        assert!(writer.run("CREATE TABLE mine (v INT)").await.is_err(), "a writer makes a table");
        for key in ["host", "port", "username", "password", "database", "uri", "type", "provider"] {
            assert!(!reader.get(key).is_empty(), "{key} is missing");
        }
        // Less is more: a writer becomes a reader, and keeps its login.
        let less = Patch::Merge(json!({"spec": {"access": "ReadOnly"}}));
        let roles = cluster.api_in("DatabaseRole", "shop");
        roles.patch("writer", &PatchParams::default(), &less).await.expect("it exists");
        until("the writer writes no more", async || writer.run("INSERT INTO later VALUES (5)").await.err())
            .await;
        writer.run("SELECT v FROM later").await.expect("it reads with the same login");
        // One goes with its object, the other with the claim.
        roles.delete("writer", &DeleteParams::default()).await.expect("it exists");
        refused(&writer).await;
        until("the role is gone", async || roles.get_opt("writer").await.ok()?.is_none().then_some(())).await;
        reader.run("SELECT 1").await.expect("the other goes on");
        cluster.release("shop", "orders").await;
        refused(&reader).await;
        stands(&cluster, ("shop", "reader"), "False", "ClaimNotFound").await;
        until("its Secret is gone", async || {
            cluster.published("shop", "reader").await.is_none().then_some(())
        })
        .await;
        until("no user is left", async || left(&server).await.is_empty().then_some(())).await;
        controller.stop().await.expect("it stops on request");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_namespace_gets_a_login_by_the_owners_grant_and_no_longer_than_that() {
    for dialect in engines() {
        let server = RealServer::start(dialect).await;
        let cluster = Cluster::enter().await;
        cluster.register("main", &server, json!({})).await;
        let controller = cluster.controller();
        role(&cluster, "analytics", "reports", "ReadWrite").await;
        let message = stands(&cluster, ("analytics", "reports"), "False", "NotGranted").await;
        assert!(message.contains("make a DatabaseGrant in shop"), "{message}");
        for (role, why) in
            [("reports", "has no login to rotate: no grant"), ("absent", "there is no DatabaseRole")]
        {
            let refused = command::rotate_role(&cluster.client, SYSTEM, ("analytics", role), true).await;
            let refused = refused.expect_err("there is no login").to_string();
            assert!(refused.contains(why), "{refused}");
        }
        cluster.turn.namespace("shop").await;
        grant(&cluster, "ReadOnly").await;
        cluster.claim("shop", "orders", "main", json!({})).await;
        let owner = cluster.login(dialect, "shop", "orders").await;
        // Granted, and less than requested.
        let message = stands(&cluster, ("analytics", "reports"), "False", "NotGranted").await;
        assert!(message.contains("access: ReadWrite"), "{message}");
        assert_eq!(cluster.published("analytics", "reports").await, None);
        grant(&cluster, "ReadWrite").await;
        let granted = login(&cluster, dialect, "analytics", "reports").await;
        owner.run("CREATE TABLE t (v INT)").await.expect("it owns it");
        granted.run("INSERT INTO t VALUES (1)").await.expect("it is granted");
        // Its login changes as every other does: first so that the one before stays, then so that nothing does.
        let softly = rotate(&cluster, dialect, false).await;
        assert_ne!(softly.get("username"), granted.get("username"));
        softly.run("SELECT v FROM t").await.expect("the new one works");
        granted.run("SELECT v FROM t").await.expect("who has not heard yet still gets in");
        let changed = rotate(&cluster, dialect, true).await;
        assert_eq!(changed.get("username"), granted.get("username"));
        changed.run("SELECT v FROM t").await.expect("the new one works");
        granted.run("SELECT 1").await.expect_err("its password is another");
        refused(&softly).await;
        // Withdrawn: the login ends, the Secret and the users go, and the role says why.
        let grants = cluster.api_in("DatabaseGrant", "shop");
        grants.delete("analytics", &DeleteParams::default()).await.expect("it exists");
        refused(&changed).await;
        stands(&cluster, ("analytics", "reports"), "False", "NotGranted").await;
        until("its Secret is gone", async || {
            cluster.published("analytics", "reports").await.is_none().then_some(())
        })
        .await;
        until("no user is left", async || left(&server).await.is_empty().then_some(())).await;
        owner.run("SELECT v FROM t").await.expect("the owner goes on");
        // And given again.
        grant(&cluster, "ReadWrite").await;
        let again = login(&cluster, dialect, "analytics", "reports").await;
        again.run("SELECT v FROM t").await.expect("it works again");
        controller.stop().await.expect("it stops on request");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_conductors_is_never_touched_for_a_role() {
    for dialect in engines() {
        let server = RealServer::start(dialect).await;
        let cluster = Cluster::enter().await;
        cluster.register("main", &server, json!({})).await;
        let controller = cluster.controller();
        cluster.claim("shop", "orders", "main", json!({})).await;
        cluster.login(dialect, "shop", "orders").await;
        // A foreign Secret where the connection would go.
        cluster
            .turn
            .put(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mine", "namespace": "shop"},
                "stringData": {"password": "keep me"}}))
            .await;
        role(&cluster, "shop", "mine", "ReadOnly").await;
        let message = stands(&cluster, ("shop", "mine"), "False", "Invalid").await;
        assert!(message.contains("Secret mine exists and does not belong to Conductor"), "{message}");
        let roles = cluster.api_in("DatabaseRole", "shop");
        roles.delete("mine", &DeleteParams::default()).await.expect("it exists");
        until("the role is gone", async || roles.get_opt("mine").await.ok()?.is_none().then_some(())).await;
        let kept = cluster.published("shop", "mine").await.expect("it is still there");
        assert_eq!(kept["password"], "keep me");
        controller.stop().await.expect("it stops on request");
        // A foreign user with the very name of the role's: created while no controller runs.
        let uid = role(&cluster, "shop", "reader", "ReadOnly").await;
        let names = conductor_sql_plan::names::Names::new("any", None);
        let access = conductor::api::database::role::RoleAccess::ReadOnly;
        let desired = conductor_sql_plan::role::DesiredRole::new(&uid, access, names, dialect, 0);
        let user = desired.user(conductor_sql_plan::names::User::A).to_string();
        let admin = Login::admin(&server.access());
        let theirs = match dialect {
            Dialect::Postgresql => format!("CREATE ROLE {user} LOGIN PASSWORD 'theirs'"),
            Dialect::Mariadb | Dialect::Mysql => format!("CREATE USER {user}@'%' IDENTIFIED BY 'theirs'"),
        };
        admin.run(&theirs).await.expect("the administrator makes it");
        let controller = cluster.controller();
        let message = stands(&cluster, ("shop", "reader"), "False", "ServerRefuses").await;
        assert!(message.contains(&user) && message.contains("does not carry Conductor's mark"), "{message}");
        roles.delete("reader", &DeleteParams::default()).await.expect("it exists");
        until("the role is gone", async || roles.get_opt("reader").await.ok()?.is_none().then_some(())).await;
        let still = match dialect {
            Dialect::Postgresql => {
                format!("SELECT rolname FROM pg_roles WHERE rolname = '{user}' AND rolcanlogin")
            }
            Dialect::Mariadb | Dialect::Mysql => {
                format!("SELECT CAST(user AS CHAR) FROM mysql.user WHERE user = '{user}'")
            }
        };
        assert_eq!(admin.run(&still).await, Ok(vec![user]));
        controller.stop().await.expect("it stops on request");
    }
}
