//! What an application can do inside its own database, where it may do everything, and to the roles that others have on
//! the same server: none of it is run with our rights, none of it keeps a login alive or a database from its end.

use conductor_databases::{Cluster, Login, Pooler, RealServer, SYSTEM};
use conductor_live::until;
use conductor_sql::command::{rotate_role, undelete};
use conductor_sql_plan::names::Names;
use conductor_sql_plan::sql::Dialect;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use tokio_postgres::NoTls;

const ENGINE: Dialect = Dialect::Postgresql;

/// Makes an extra login on claim `app/name` and waits until it is ready.
async fn role(cluster: &Cluster, name: &str, claim: &str, access: &str) -> Login {
    cluster
        .turn
        .put(json!({
            "apiVersion": "database.conductor.io/v1alpha1", "kind": "DatabaseRole",
            "metadata": {"name": name, "namespace": "app"},
            "spec": {"claimRef": {"name": claim}, "access": access},
        }))
        .await;
    let mut message = Value::Null;
    until(&format!("role {name} is ready"), async || {
        let role = cluster.api_in("DatabaseRole", "app").get(name).await.ok()?;
        let condition = role.data["status"]["conditions"][0].clone();
        if condition != message {
            println!("role {name}: {}", condition["message"]);
            message = condition;
        }
        let keys = cluster.published("app", name).await?;
        (message["status"] == "True").then(|| Login::new(ENGINE, keys))
    })
    .await
}

/// An administrator with what the page says that it needs, and no more.
async fn make_clerk(cluster: &Cluster, admin: &Login, (server, port): (&str, u16)) {
    admin.run("CREATE ROLE clerk LOGIN CREATEROLE CREATEDB PASSWORD 'weak-but-mine'").await.expect("a role");
    cluster.administrator(server, port, ("clerk", "weak-but-mine")).await;
}

/// Functions, an operator and a type in the way of the server's, each of which makes its owner a member of the victim and
/// a superuser as far as its caller may; and settings that put them, and the owner, first.
fn plant(own: &str, victim: &str) -> String {
    let seize = format!(
        "BEGIN EXECUTE 'SET ROLE NONE'; \
         BEGIN EXECUTE 'GRANT \"{victim}\" TO \"{own}\"'; EXCEPTION WHEN OTHERS THEN NULL; END; \
         BEGIN EXECUTE 'ALTER ROLE \"{own}\" SUPERUSER'; EXCEPTION WHEN OTHERS THEN NULL; END; "
    );
    let function = |head: &str, result: &str| {
        format!("CREATE FUNCTION evil.{head} LANGUAGE plpgsql AS $f$ {seize} RETURN {result}; END $f$")
    };
    [
        "CREATE SCHEMA evil".to_owned(),
        function("format(text, text) RETURNS text", "pg_catalog.format($1, $2)"),
        function("same(oid, regrole) RETURNS boolean", "$1 OPERATOR(pg_catalog.=) $2::pg_catalog.oid"),
        "CREATE OPERATOR evil.= (LEFTARG = oid, RIGHTARG = regrole, FUNCTION = evil.same)".to_owned(),
        "CREATE DOMAIN evil.text AS pg_catalog.text".to_owned(),
        "GRANT USAGE ON SCHEMA evil TO PUBLIC".to_owned(),
        "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA evil TO PUBLIC".to_owned(),
        format!("ALTER DATABASE \"{own}\" SET search_path = evil, pg_catalog, public"),
        format!("ALTER DATABASE \"{own}\" SET role = '{own}'"),
        format!("ALTER DATABASE \"{own}\" SET standard_conforming_strings = off"),
    ]
    .join("; ")
}

async fn nothing_is_seized(admin: &Login, own: &str, victim: &str) {
    let member = format!("SELECT pg_has_role('{own}', '{victim}', 'MEMBER')");
    assert_eq!(admin.run(&member).await, Ok(vec!["f".to_owned()]), "the tenant is a member of the victim");
    let powers = "SELECT rolname FROM pg_roles WHERE rolname LIKE 'c\\_%' AND rolsuper";
    assert_eq!(admin.run(powers).await, Ok(Vec::new()), "a tenant is a superuser");
}

async fn try_to_seize(is_superuser: bool, is_pooled: bool) {
    let server = RealServer::start(ENGINE).await;
    let pooler = Pooler::open(server.plan.port).await;
    let cluster = Cluster::enter().await;
    let port = if is_pooled { pooler.port } else { server.plan.port };
    let admin = Login::admin(&server.access());
    cluster.register_at("main", &server, port, json!({"allowedExtensions": ["hstore"]})).await;
    if !is_superuser {
        make_clerk(&cluster, &admin, ("main", port)).await;
    }
    let controller = cluster.controller();
    let mut owners = Vec::new();
    for name in ["victim", "tenant"] {
        owners.push(Names::new(&cluster.claim("app", name, "main", json!({})).await, None).owner.to_string());
    }
    let (victim, own) = (&owners[0], &owners[1]);
    cluster.login(ENGINE, "app", "victim").await;
    let tenant = cluster.login(ENGINE, "app", "tenant").await;
    tenant.run("CREATE TABLE public.t (v INT)").await.expect("it is its own");
    tenant.run(&plant(own, victim)).await.expect("all of this an owner may do");
    // Everything that we ever do inside: groups set up, users dropped, the inside set up anew.
    for access in ["ReadOnly", "ReadWrite"] {
        let name = access.to_lowercase();
        let login = role(&cluster, &name, "tenant", access).await;
        login.run("SELECT v FROM public.t").await.expect("its rights are there");
        cluster
            .api_in("DatabaseRole", "app")
            .delete(&name, &DeleteParams::default())
            .await
            .expect("it exists");
    }
    until("the roles are gone", async || {
        admin
            .run("SELECT rolname FROM pg_roles WHERE rolname LIKE 'r\\_%'")
            .await
            .ok()?
            .is_empty()
            .then_some(())
    })
    .await;
    cluster.claim("app", "tenant", "main", json!({"parameters": {"extensions": ["hstore"]}})).await;
    let inside = admin.at(own);
    until("the extension is where it belongs", async || {
        let request = "SELECT extnamespace::regnamespace FROM pg_extension WHERE extname = 'hstore'";
        (inside.run(request).await == Ok(vec!["public".to_owned()])).then_some(())
    })
    .await;
    nothing_is_seized(&admin, own, victim).await;
    controller.stop().await.expect("it stops on request");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_tenant_plants_in_its_database_is_never_run_with_our_rights() {
    for (is_superuser, is_pooled) in [(true, false), (false, false), (true, true), (false, true)] {
        println!("superuser: {is_superuser}, behind a pooler: {is_pooled}");
        try_to_seize(is_superuser, is_pooled).await;
    }
}

/// Connections that are held until they are dropped.
async fn hold_all(login: &Login) -> Vec<tokio_postgres::Client> {
    let mut held = Vec::new();
    let mut config = tokio_postgres::Config::new();
    config.host(login.get("host")).port(login.get("port").parse().unwrap_or(0));
    config.user(login.get("username")).password(login.get("password")).dbname(login.get("database"));
    while let Ok((client, connection)) = config.connect(NoTls).await {
        tokio::spawn(connection);
        held.push(client);
    }
    held
}

#[tokio::test(flavor = "multi_thread")]
async fn holding_every_connection_keeps_no_leaked_login_alive() {
    let server = RealServer::start(ENGINE).await;
    let cluster = Cluster::enter().await;
    cluster.register("main", &server, json!({"connectionLimit": 4})).await;
    let controller = cluster.controller();
    let id = cluster.claim("app", "orders", "main", json!({})).await;
    let leaked = cluster.login(ENGINE, "app", "orders").await;
    let reader = role(&cluster, "reader", "orders", "ReadOnly").await;
    let held = hold_all(&leaked).await;
    assert!(held.len() > 1, "{} connections were to be had", held.len());
    let message = leaked.run("SELECT 1").await.expect_err("every connection is taken");
    assert!(message.contains("too many connections for database"), "{message}");
    // The other login on it first: its own rotation ends no other user's sessions.
    let role = ("app", "reader");
    let note = rotate_role(&cluster.client, SYSTEM, role, true).await;
    let note = note.expect("it has a login");
    until("the reader's login is another", async || {
        let found = cluster.api_in("DatabaseRole", "app").get("reader").await.ok()?;
        (found.data["status"]["rotationDone"] == note.value).then_some(())
    })
    .await;
    cluster.rotate(&id, "hard-1").await;
    let message = leaked.run("SELECT 1").await.expect_err("it is over");
    assert!(
        message.contains("not permitted to log in") || message.contains("authentication failed"),
        "{message}"
    );
    let now = Login::new(ENGINE, cluster.published("app", "orders").await.expect("it is published"));
    now.run("SELECT 1").await.expect("the sessions of the one before are over");
    reader.run("SELECT 1").await.expect_err("it is over too");
    // A password that is wrong is not taken for one that finds no room.
    let mut wrong = now.clone();
    wrong.keys.insert("password".to_owned(), "wrong".to_owned());
    let held = hold_all(&now).await;
    let message = wrong.run("SELECT 1").await.expect_err("it is wrong");
    assert!(message.contains("authentication failed"), "{message}");
    drop(held);
    controller.stop().await.expect("it stops on request");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_comment_on_its_database_changes_nothing_for_its_application() {
    let server = RealServer::start(ENGINE).await;
    let cluster = Cluster::enter().await;
    cluster.register("main", &server, json!({"reclaimPolicy": "Delete", "quarantineMinutes": 0})).await;
    let controller = cluster.controller();
    let id = cluster.claim("app", "orders", "main", json!({})).await;
    let names = Names::new(&id, None);
    let login = cluster.login(ENGINE, "app", "orders").await;
    let admin = Login::admin(&server.access());
    // The new set-up does not require a schema that no longer exists.
    login.run("DROP SCHEMA public").await.expect("it is its own");
    for (count, comment) in ["our main database", "conductor:another 1", ""].iter().enumerate() {
        let comment = format!("COMMENT ON DATABASE \"{}\" IS '{comment}'", names.database);
        let now = Login::new(ENGINE, cluster.published("app", "orders").await.expect("it is published"));
        now.run(&comment).await.expect("it may");
        cluster.rotate(&id, &format!("soft-{count}")).await;
        let mark = "SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = ";
        let mark = format!("{mark}'{}'", names.database);
        until("the mark is there again", async || {
            admin.run(&mark).await.ok()?.first()?.starts_with(&format!("conductor:{id} ")).then_some(())
        })
        .await;
    }
    let now = Login::new(ENGINE, cluster.published("app", "orders").await.expect("it is published"));
    now.run(&format!("COMMENT ON DATABASE \"{}\" IS 'mine'", names.database)).await.expect("it may");
    // A template cannot be dropped.
    let template = format!("ALTER DATABASE \"{}\" WITH IS_TEMPLATE true", names.database);
    now.run(&template).await.expect("it may make it a template");
    cluster.release("app", "orders").await;
    until("its record is gone", async || cluster.record(&id).await.is_none().then_some(())).await;
    let left = format!("SELECT datname FROM pg_database WHERE datname LIKE '{}%'", names.owner);
    assert_eq!(admin.run(&left).await, Ok(Vec::new()), "it is dropped like any other");
    // A foreign database does not become ours by its comment.
    let id = cluster.claim("app", "next", "main", json!({"parameters": {"databaseName": "theirs"}})).await;
    cluster.login(ENGINE, "app", "next").await;
    admin.run("ALTER DATABASE theirs OWNER TO CURRENT_USER").await.expect("the administrator may");
    let look = Patch::Merge(json!({"metadata": {"annotations": {"look": "again"}}}));
    let api = cluster.api("LogicalDatabase");
    api.patch(&format!("db-{id}"), &PatchParams::default(), &look).await.expect("it exists");
    cluster
        .record_reports(&id, "database theirs exists on the server and does not carry Conductor's mark")
        .await;
    controller.stop().await.expect("it stops on request");
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_grants_keep_no_role_alive_or_are_reported() {
    let server = RealServer::start(ENGINE).await;
    let cluster = Cluster::enter().await;
    let admin = Login::admin(&server.access());
    cluster.register("main", &server, json!({"reclaimPolicy": "Delete", "quarantineMinutes": 0})).await;
    make_clerk(&cluster, &admin, ("main", server.plan.port)).await;
    let controller = cluster.controller();
    let id = cluster.claim("app", "orders", "main", json!({})).await;
    let names = Names::new(&id, None);
    let login = cluster.login(ENGINE, "app", "orders").await;
    let reader = role(&cluster, "reader", "orders", "ReadOnly").await;
    cluster.claim("app", "neighbour", "main", json!({})).await;
    let neighbour = cluster.login(ENGINE, "app", "neighbour").await;
    let database = neighbour.get("database");
    neighbour.run("CREATE TABLE t (v INT); INSERT INTO t VALUES (7)").await.expect("it is its own");
    // To every user whose name it knows: no login is needed.
    for role in [names.owner.as_str(), login.get("username"), reader.get("username")] {
        let gifts = format!(
            "GRANT SELECT ON t TO \"{role}\"; GRANT CONNECT ON DATABASE \"{database}\" TO \"{role}\"; \
             ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO \"{role}\"; \
             CREATE POLICY \"p_{role}\" ON t TO \"{role}\""
        );
        neighbour.run(&gifts).await.expect("it may give what is its own");
    }
    // And a foreign database: it is not entered, and named.
    admin.run("CREATE DATABASE elsewhere").await.expect("the administrator may");
    let theirs = admin.at("elsewhere");
    let gift = format!("CREATE TABLE t (v INT); GRANT SELECT ON t TO \"{}\"", names.owner);
    theirs.run(&gift).await.expect("the administrator may");
    cluster.release("app", "orders").await;
    let message = cluster.record_reports(&id, "in database elsewhere").await;
    assert!(!message.contains("undelete") && !message.contains("server is reachable"), "{message}");
    let record = cluster.record(&id).await.expect("it exists");
    assert_eq!(record.data["status"]["phase"], "Dropping");
    let refused = undelete(&cluster.client, SYSTEM, ("app", "orders")).await.expect_err("it is dropped");
    assert!(refused.to_string().contains("is being dropped: it cannot be restored"), "{refused}");
    theirs.run(&format!("REVOKE ALL ON t FROM \"{}\"", names.owner)).await.expect("the administrator may");
    until("its record is gone", async || cluster.record(&id).await.is_none().then_some(())).await;
    let left =
        format!("SELECT rolname FROM pg_roles WHERE rolname LIKE '{}%' OR rolname LIKE 'r\\_%'", names.owner);
    until("no role is left", async || admin.run(&left).await.ok()?.is_empty().then_some(())).await;
    assert_eq!(neighbour.run("SELECT v FROM t").await, Ok(vec!["7".to_owned()]), "its data is its own");
    controller.stop().await.expect("it stops on request");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_retained_database_is_reported_as_lost() {
    let server = RealServer::start(ENGINE).await;
    let cluster = Cluster::enter().await;
    let admin = Login::admin(&server.access());
    cluster.register("kept", &server, json!({"reclaimPolicy": "Retain"})).await;
    cluster.register("left", &server, json!({"reclaimPolicy": "Delete", "quarantineMinutes": 60})).await;
    let controller = cluster.controller();
    for (name, phase, suffix) in [("kept", "Retained", ""), ("left", "Quarantined", "_q")] {
        let id = cluster.claim("app", name, name, json!({})).await;
        let login = cluster.login(ENGINE, "app", name).await;
        cluster.release("app", name).await;
        cluster.record_in(&id, phase).await;
        let drop = format!("DROP DATABASE \"{}{suffix}\"", login.get("database"));
        admin.run(&drop).await.expect("another client drops it");
        let look = Patch::Merge(json!({"metadata": {"annotations": {"look": "again"}}}));
        let records = cluster.api("LogicalDatabase");
        records.patch(&format!("db-{id}"), &PatchParams::default(), &look).await.expect("it exists");
        cluster.record_reports(&id, "the database no longer exists on the server").await;
        let refused = undelete(&cluster.client, SYSTEM, ("app", name)).await.expect_err("it is gone");
        assert!(refused.to_string().contains("no longer exists on the server"), "{refused}");
    }
    controller.stop().await.expect("it stops on request");
}
