//! What an application can do inside its own database, where it may do everything, and to the roles that others have on
//! the same server: none of it is run with our rights, none of it keeps a login alive or a database from its end.

use conductor_databases::{House, Login, Pooler, RealServer, SYSTEM};
use conductor_live::until;
use conductor_sql::command::{rotate_role, undelete};
use conductor_sql_plan::names::Names;
use conductor_sql_plan::sql::Dialect;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use tokio_postgres::NoTls;

const ENGINE: Dialect = Dialect::Postgresql;

/// Makes an extra login on claim `app/name` and waits until it is ready.
async fn role(house: &House, name: &str, claim: &str, access: &str) -> Login {
    house
        .turn
        .put(json!({
            "apiVersion": "database.conductor.io/v1alpha1", "kind": "DatabaseRole",
            "metadata": {"name": name, "namespace": "app"},
            "spec": {"claimRef": {"name": claim}, "access": access},
        }))
        .await;
    let mut told = Value::Null;
    until(&format!("role {name} is ready"), async || {
        let role = house.api_in("DatabaseRole", "app").get(name).await.ok()?;
        let condition = role.data["status"]["conditions"][0].clone();
        if condition != told {
            println!("role {name}: {}", condition["message"]);
            told = condition;
        }
        let keys = house.published("app", name).await?;
        (told["status"] == "True").then(|| Login::new(ENGINE, keys))
    })
    .await
}

/// An administrator with what the page says that it needs, and no more.
async fn make_clerk(house: &House, admin: &Login, (server, port): (&str, u16)) {
    admin.run("CREATE ROLE clerk LOGIN CREATEROLE CREATEDB PASSWORD 'weak-but-mine'").await.expect("a role");
    house.administrator(server, port, ("clerk", "weak-but-mine")).await;
}

/// Functions, an operator and a type in the way of the server's, each of which makes its owner a member of the victim and
/// a superuser as far as whoever runs it may; and settings that put them, and the owner, first.
fn plant(own: &str, victim: &str) -> String {
    let seize = format!(
        "BEGIN EXECUTE 'SET ROLE NONE'; \
         BEGIN EXECUTE 'GRANT \"{victim}\" TO \"{own}\"'; EXCEPTION WHEN OTHERS THEN NULL; END; \
         BEGIN EXECUTE 'ALTER ROLE \"{own}\" SUPERUSER'; EXCEPTION WHEN OTHERS THEN NULL; END; "
    );
    let function = |head: &str, back: &str| {
        format!("CREATE FUNCTION evil.{head} LANGUAGE plpgsql AS $f$ {seize} RETURN {back}; END $f$")
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
    let house = House::enter().await;
    let port = if is_pooled { pooler.port } else { server.plan.port };
    let admin = Login::admin(&server.access());
    house.register_at("main", &server, port, json!({"allowedExtensions": ["hstore"]})).await;
    if !is_superuser {
        make_clerk(&house, &admin, ("main", port)).await;
    }
    let controller = house.controller();
    let mut owners = Vec::new();
    for name in ["victim", "tenant"] {
        owners.push(Names::new(&house.claim("app", name, "main", json!({})).await, None).owner.to_string());
    }
    let (victim, own) = (&owners[0], &owners[1]);
    house.login(ENGINE, "app", "victim").await;
    let tenant = house.login(ENGINE, "app", "tenant").await;
    tenant.run("CREATE TABLE public.t (v INT)").await.expect("it is its own");
    tenant.run(&plant(own, victim)).await.expect("all of this an owner may do");
    // Everything that we ever do inside: groups set up, users dropped, the inside set up anew.
    for access in ["ReadOnly", "ReadWrite"] {
        let name = access.to_lowercase();
        let login = role(&house, &name, "tenant", access).await;
        login.run("SELECT v FROM public.t").await.expect("its rights are there");
        house
            .api_in("DatabaseRole", "app")
            .delete(&name, &DeleteParams::default())
            .await
            .expect("it is there");
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
    house.claim("app", "tenant", "main", json!({"parameters": {"extensions": ["hstore"]}})).await;
    let inside = admin.at(own);
    until("the extension is where it belongs", async || {
        let asked = "SELECT extnamespace::regnamespace FROM pg_extension WHERE extname = 'hstore'";
        (inside.run(asked).await == Ok(vec!["public".to_owned()])).then_some(())
    })
    .await;
    nothing_is_seized(&admin, own, victim).await;
    controller.stop().await.expect("it stops when asked to");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_tenant_plants_in_its_database_is_never_run_with_our_rights() {
    for (is_superuser, is_pooled) in [(true, false), (false, false), (true, true), (false, true)] {
        println!("superuser: {is_superuser}, behind a pooler: {is_pooled}");
        try_to_seize(is_superuser, is_pooled).await;
    }
}

/// Connections that somebody holds, until they are dropped.
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
async fn whoever_holds_every_connection_keeps_no_leaked_login_alive() {
    let server = RealServer::start(ENGINE).await;
    let house = House::enter().await;
    house.register("main", &server, json!({"connectionLimit": 4})).await;
    let controller = house.controller();
    let id = house.claim("app", "orders", "main", json!({})).await;
    let leaked = house.login(ENGINE, "app", "orders").await;
    let reader = role(&house, "reader", "orders", "ReadOnly").await;
    let held = hold_all(&leaked).await;
    assert!(held.len() > 1, "{} connections were to be had", held.len());
    let told = leaked.run("SELECT 1").await.expect_err("every connection is taken");
    assert!(told.contains("too many connections for database"), "{told}");
    // The other login on it first: its own change ends nobody else's sessions.
    let role = ("app", "reader");
    let note = rotate_role(&house.client, SYSTEM, role, true).await;
    let note = note.expect("it has a login");
    until("the reader's login is another", async || {
        let found = house.api_in("DatabaseRole", "app").get("reader").await.ok()?;
        (found.data["status"]["rotationDone"] == note.value).then_some(())
    })
    .await;
    house.rotate(&id, "hard-1").await;
    let told = leaked.run("SELECT 1").await.expect_err("it is over");
    assert!(told.contains("not permitted to log in") || told.contains("authentication failed"), "{told}");
    let now = Login::new(ENGINE, house.published("app", "orders").await.expect("it is published"));
    now.run("SELECT 1").await.expect("the sessions of the one before are over");
    reader.run("SELECT 1").await.expect_err("it is over too");
    // A password that is wrong is not taken for one that finds no room.
    let mut wrong = now.clone();
    wrong.keys.insert("password".to_owned(), "wrong".to_owned());
    let held = hold_all(&now).await;
    let told = wrong.run("SELECT 1").await.expect_err("it is wrong");
    assert!(told.contains("authentication failed"), "{told}");
    drop(held);
    controller.stop().await.expect("it stops when asked to");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_comment_on_its_database_changes_nothing_for_its_application() {
    let server = RealServer::start(ENGINE).await;
    let house = House::enter().await;
    house.register("main", &server, json!({"reclaimPolicy": "Delete", "quarantineMinutes": 0})).await;
    let controller = house.controller();
    let id = house.claim("app", "orders", "main", json!({})).await;
    let names = Names::new(&id, None);
    let login = house.login(ENGINE, "app", "orders").await;
    let admin = Login::admin(&server.access());
    // A schema that is not there any more is not asked for by what is set up again.
    login.run("DROP SCHEMA public").await.expect("it is its own");
    for (count, comment) in ["our main database", "conductor:somebody-else 1", ""].iter().enumerate() {
        let comment = format!("COMMENT ON DATABASE \"{}\" IS '{comment}'", names.database);
        let now = Login::new(ENGINE, house.published("app", "orders").await.expect("it is published"));
        now.run(&comment).await.expect("it may");
        house.rotate(&id, &format!("soft-{count}")).await;
        let mark = "SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = ";
        let mark = format!("{mark}'{}'", names.database);
        until("the mark is there again", async || {
            admin.run(&mark).await.ok()?.first()?.starts_with(&format!("conductor:{id} ")).then_some(())
        })
        .await;
    }
    let now = Login::new(ENGINE, house.published("app", "orders").await.expect("it is published"));
    now.run(&format!("COMMENT ON DATABASE \"{}\" IS 'mine'", names.database)).await.expect("it may");
    // A template cannot be dropped.
    let template = format!("ALTER DATABASE \"{}\" WITH IS_TEMPLATE true", names.database);
    now.run(&template).await.expect("it may make it a template");
    house.release("app", "orders").await;
    until("its record is gone", async || house.record(&id).await.is_none().then_some(())).await;
    let left = format!("SELECT datname FROM pg_database WHERE datname LIKE '{}%'", names.owner);
    assert_eq!(admin.run(&left).await, Ok(Vec::new()), "it is dropped like any other");
    // What somebody else owns is not ours by the comment that they write.
    let id = house.claim("app", "next", "main", json!({"parameters": {"databaseName": "theirs"}})).await;
    house.login(ENGINE, "app", "next").await;
    admin.run("ALTER DATABASE theirs OWNER TO CURRENT_USER").await.expect("the administrator may");
    let look = Patch::Merge(json!({"metadata": {"annotations": {"look": "again"}}}));
    let api = house.api("LogicalDatabase");
    api.patch(&format!("db-{id}"), &PatchParams::default(), &look).await.expect("it is there");
    house.record_tells(&id, "database theirs exists on the server and does not carry Conductor's mark").await;
    controller.stop().await.expect("it stops when asked to");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_neighbours_give_a_role_does_not_keep_it_for_ever_and_what_does_is_told() {
    let server = RealServer::start(ENGINE).await;
    let house = House::enter().await;
    let admin = Login::admin(&server.access());
    house.register("main", &server, json!({"reclaimPolicy": "Delete", "quarantineMinutes": 0})).await;
    make_clerk(&house, &admin, ("main", server.plan.port)).await;
    let controller = house.controller();
    let id = house.claim("app", "orders", "main", json!({})).await;
    let names = Names::new(&id, None);
    let login = house.login(ENGINE, "app", "orders").await;
    let reader = role(&house, "reader", "orders", "ReadOnly").await;
    house.claim("app", "neighbour", "main", json!({})).await;
    let neighbour = house.login(ENGINE, "app", "neighbour").await;
    let database = neighbour.get("database");
    neighbour.run("CREATE TABLE t (v INT); INSERT INTO t VALUES (7)").await.expect("it is its own");
    // To anybody whose name it knows: no login is asked.
    for role in [names.owner.as_str(), login.get("username"), reader.get("username")] {
        let gifts = format!(
            "GRANT SELECT ON t TO \"{role}\"; GRANT CONNECT ON DATABASE \"{database}\" TO \"{role}\"; \
             ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO \"{role}\"; \
             CREATE POLICY \"p_{role}\" ON t TO \"{role}\""
        );
        neighbour.run(&gifts).await.expect("it may give what is its own");
    }
    // And a database that is nobody's that we know: it is not entered, and named.
    admin.run("CREATE DATABASE elsewhere").await.expect("the administrator may");
    let theirs = admin.at("elsewhere");
    let gift = format!("CREATE TABLE t (v INT); GRANT SELECT ON t TO \"{}\"", names.owner);
    theirs.run(&gift).await.expect("the administrator may");
    house.release("app", "orders").await;
    let told = house.record_tells(&id, "in database elsewhere").await;
    assert!(!told.contains("undelete") && !told.contains("server is back"), "{told}");
    let record = house.record(&id).await.expect("it is there");
    assert_eq!(record.data["status"]["phase"], "Dropping");
    let refused = undelete(&house.client, SYSTEM, ("app", "orders")).await.expect_err("it is dropped");
    assert!(refused.to_string().contains("is being dropped: it cannot be had back"), "{refused}");
    theirs.run(&format!("REVOKE ALL ON t FROM \"{}\"", names.owner)).await.expect("the administrator may");
    until("its record is gone", async || house.record(&id).await.is_none().then_some(())).await;
    let left =
        format!("SELECT rolname FROM pg_roles WHERE rolname LIKE '{}%' OR rolname LIKE 'r\\_%'", names.owner);
    until("no role is left", async || admin.run(&left).await.ok()?.is_empty().then_some(())).await;
    assert_eq!(neighbour.run("SELECT v FROM t").await, Ok(vec!["7".to_owned()]), "its data is its own");
    controller.stop().await.expect("it stops when asked to");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_database_that_is_gone_is_told_of_and_not_promised_back() {
    let server = RealServer::start(ENGINE).await;
    let house = House::enter().await;
    let admin = Login::admin(&server.access());
    house.register("kept", &server, json!({"reclaimPolicy": "Retain"})).await;
    house.register("left", &server, json!({"reclaimPolicy": "Delete", "quarantineMinutes": 60})).await;
    let controller = house.controller();
    for (name, phase, suffix) in [("kept", "Retained", ""), ("left", "Quarantined", "_q")] {
        let id = house.claim("app", name, name, json!({})).await;
        let login = house.login(ENGINE, "app", name).await;
        house.release("app", name).await;
        house.record_in(&id, phase).await;
        let drop = format!("DROP DATABASE \"{}{suffix}\"", login.get("database"));
        admin.run(&drop).await.expect("somebody drops it");
        let look = Patch::Merge(json!({"metadata": {"annotations": {"look": "again"}}}));
        let records = house.api("LogicalDatabase");
        records.patch(&format!("db-{id}"), &PatchParams::default(), &look).await.expect("it is there");
        house.record_tells(&id, "the database is gone from the server").await;
        let refused = undelete(&house.client, SYSTEM, ("app", name)).await.expect_err("it is gone");
        assert!(refused.to_string().contains("is gone from the server"), "{refused}");
    }
    controller.stop().await.expect("it stops when asked to");
}
