//! What the holder of a login, or an administrator by mistake, can do so that the next login cannot be used: settings,
//! limits and rights of the database and of its users. What is ours is restored; a login is tried before it is
//! published, and one that does not work is not published and is reported.

use conductor_databases::{Cluster, Login, RealServer, SYSTEM, engines};
use conductor_live::until;
use conductor_sql::command;
use conductor_sql_plan::sql::Dialect;
use std::time::Duration;

const ENGINE: Dialect = Dialect::Postgresql;
/// Long enough for a busy machine.
const WITHIN: Duration = Duration::from_secs(120);

/// What a holder can run, with its database and its user in place of `DB` and `ME`.
const SABOTAGE: [(&str, &str); 9] = [
    ("database", "ALTER DATABASE DB SET local_preload_libraries = 'nope'"),
    ("role", "SET ROLE NONE; ALTER ROLE ME SET local_preload_libraries = 'nope'"),
    ("role-in-database", "SET ROLE NONE; ALTER ROLE ME IN DATABASE DB SET local_preload_libraries = 'nope'"),
    (
        "read-only",
        "ALTER DATABASE DB SET default_transaction_read_only = on; SET ROLE NONE; \
         ALTER ROLE ME SET default_transaction_read_only = on; \
         ALTER ROLE ME IN DATABASE DB SET default_transaction_read_only = on",
    ),
    (
        "words",
        "ALTER DATABASE DB SET search_path = nowhere; ALTER DATABASE DB SET statement_timeout = 1; \
         ALTER DATABASE DB SET \"TimeZone\" = 'Pacific/Apia'; SET ROLE NONE; ALTER ROLE ME SET search_path = nowhere; \
         ALTER ROLE ME SET statement_timeout = 1; ALTER ROLE ME IN DATABASE DB SET search_path = nowhere",
    ),
    (
        "own-role",
        "SET ROLE NONE; ALTER ROLE ME SET role = 'none'; ALTER ROLE ME IN DATABASE DB SET role = 'none'",
    ),
    ("limit", "ALTER DATABASE DB CONNECTION LIMIT 0"),
    ("closed", "ALTER DATABASE DB ALLOW_CONNECTIONS false"),
    ("connect", "REVOKE ALL ON DATABASE DB FROM CURRENT_USER"),
];

fn spell(text: &str, login: &Login) -> String {
    text.replace("DB", login.get("database")).replace("ME", login.get("username"))
}

/// Whether a login can be used as on the first day.
async fn works(login: &Login, case: &str) {
    let owner = login.get("database");
    let run = "CREATE TABLE IF NOT EXISTS work (v int); INSERT INTO work VALUES (1); SELECT pg_sleep(0.02); \
               SELECT CURRENT_USER || ' ' || current_schema()";
    let found = login.run(run).await;
    assert_eq!(
        found.expect(case).last().map(String::as_str),
        Some(format!("{owner} public").as_str()),
        "{case}"
    );
}

async fn survives_sabotage(is_superuser: bool) {
    let server = RealServer::start(ENGINE).await;
    let cluster = Cluster::enter().await;
    cluster.register("main", &server, serde_json::json!({})).await;
    if !is_superuser {
        let create = "CREATE ROLE clerk LOGIN CREATEROLE CREATEDB PASSWORD 'weak-but-mine'";
        Login::admin(&server.access()).run(create).await.expect("a role");
        cluster.administrator("main", server.plan.port, ("clerk", "weak-but-mine")).await;
    }
    let controller = cluster.controller();
    for (case, sabotage) in SABOTAGE {
        let id = cluster.claim("app", case, "main", serde_json::json!({})).await;
        let mut held = cluster.login(ENGINE, "app", case).await;
        cluster.record_in(&id, "Ready").await;
        // From outside, where a database can be closed too.
        held.at("postgres").run(&spell(sabotage, &held)).await.expect(case);
        // Twice: the second change gives the login to the user whose holder did it.
        for turn in ["first", "second"] {
            let request =
                command::rotate(&cluster.client, SYSTEM, ("app", case), true).await.expect("it is requested");
            command::wait_until_rotated(&cluster.client, &request, WITHIN).await.expect(case);
            held.run("SELECT 1").await.expect_err(case);
            held = cluster.next_login("app", case, &held).await;
            works(&held, &format!("{case}, {turn} change")).await;
        }
        cluster.release("app", case).await;
    }
    controller.stop().await.expect("it stops on request");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_holder_cannot_make_the_next_login_unusable() {
    survives_sabotage(true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nor_where_the_administrator_is_no_superuser() {
    survives_sabotage(false).await;
}

/// A setting of the database that lets no user in would hold up every rotation: it is reset. One that is only unusual is
/// the application's own, and stays.
#[tokio::test(flavor = "multi_thread")]
async fn a_soft_rotation_resets_only_settings_that_let_no_user_in() {
    let server = RealServer::start(ENGINE).await;
    let cluster = Cluster::enter().await;
    cluster.register("main", &server, serde_json::json!({})).await;
    let controller = cluster.controller();
    for (case, setting, shown) in [
        ("kept", "\"TimeZone\" = 'Pacific/Apia'", "Pacific/Apia"),
        ("ended", "local_preload_libraries = 'nope'", ""),
    ] {
        let id = cluster.claim("app", case, "main", serde_json::json!({})).await;
        let held = cluster.login(ENGINE, "app", case).await;
        cluster.record_in(&id, "Ready").await;
        held.run(&spell(&format!("ALTER DATABASE DB SET {setting}"), &held)).await.expect(case);
        cluster.rotate(&id, "soft-1").await;
        let next = cluster.next_login("app", case, &held).await;
        let name = setting.split(' ').next().unwrap_or_default();
        let found = next.run(&format!("SHOW {name}")).await;
        assert_eq!(found, Ok(vec![shown.to_owned()]), "{case}");
    }
    controller.stop().await.expect("it stops on request");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_that_does_not_work_is_not_published() {
    let server = RealServer::start(ENGINE).await;
    let cluster = Cluster::enter().await;
    cluster.register("main", &server, serde_json::json!({})).await;
    let controller = cluster.controller();
    let admin = Login::admin(&server.access());
    let id = cluster.claim("app", "orders", "main", serde_json::json!({})).await;
    let held = cluster.login(ENGINE, "app", "orders").await;
    cluster.record_in(&id, "Ready").await;
    let (_, other) = cluster.role(ENGINE, "app", "reports", "orders").await;
    let set = |setting: &str| spell(&format!("ALTER DATABASE DB {setting}"), &held);
    // A superuser's to set, and to end.
    admin.run(&set("SET session_preload_libraries = 'nope'")).await.expect("a superuser may");
    admin.run(&set("SET log_min_duration_statement = '1h'")).await.expect("a superuser may");
    let request =
        command::rotate(&cluster.client, SYSTEM, ("app", "orders"), true).await.expect("it is requested");
    let of_role = command::rotate_role(&cluster.client, SYSTEM, ("app", "reports"), true)
        .await
        .expect("it is requested");
    for request in [request, of_role] {
        let message = command::wait_until_rotated(&cluster.client, &request, WITHIN)
            .await
            .expect_err("it cannot be published");
        let message = message.to_string();
        assert!(message.starts_with("the old login is dead, and no new login is published yet"), "{message}");
        for part in ["session_preload_libraries", "ALTER DATABASE", "superuser"] {
            assert!(message.contains(part), "{part}: {message}");
        }
    }
    let message = cluster.claim_reports("orders", "session_preload_libraries").await;
    assert!(message.starts_with("False LoginRevoked"), "{message}");
    let name = format!("db-{id}");
    for (kind, of) in [("DatabaseRole", ("app", "reports")), ("LogicalDatabase", (SYSTEM, name.as_str()))] {
        let ready = cluster.condition(kind, of, "Ready").await;
        assert!(ready["status"] == "False" && ready["reason"] == "LoginRefused", "{kind}: {ready}");
    }
    assert_eq!(
        cluster.published("app", "orders").await.as_ref(),
        Some(&held.keys),
        "nothing else is published"
    );
    assert_eq!(
        cluster.published("app", "reports").await.as_ref(),
        Some(&other.keys),
        "nothing else is published"
    );
    admin.run(&set("RESET session_preload_libraries")).await.expect("a superuser may");
    for (name, held) in [("orders", &held), ("reports", &other)] {
        let next = cluster.next_login("app", name, held).await;
        next.run("SELECT 1").await.expect("the new login works");
        let kept = next.run("SHOW log_min_duration_statement").await;
        assert_eq!(kept, Ok(vec!["1h".to_owned()]), "what only a superuser can set stays");
    }
    cluster.claim_reports("orders", "published as Secret").await;
    controller.stop().await.expect("it stops on request");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_holder_cannot_make_a_roles_login_unusable() {
    let server = RealServer::start(ENGINE).await;
    let cluster = Cluster::enter().await;
    cluster.register("main", &server, serde_json::json!({})).await;
    let controller = cluster.controller();
    let id = cluster.claim("app", "orders", "main", serde_json::json!({})).await;
    let owner = cluster.login(ENGINE, "app", "orders").await;
    cluster.record_in(&id, "Ready").await;
    owner.run("CREATE TABLE work (v int)").await.expect("it owns the database");
    let (_, mut held) = cluster.role(ENGINE, "app", "reports", "orders").await;
    let settings = "ALTER ROLE ME SET local_preload_libraries = 'nope'; \
                    ALTER ROLE ME IN DATABASE DB SET default_transaction_read_only = on";
    held.run(&spell(settings, &held)).await.expect("a login may set its own");
    // The owner of the database shuts the other login out.
    let group = format!(
        "SELECT r.rolname FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.roleid \
                         WHERE m.member = '{}'::regrole",
        held.get("username")
    );
    let group = owner.run(&group).await.expect("every user sees groups").remove(0);
    owner
        .run(&spell(&format!("REVOKE CONNECT ON DATABASE DB FROM {group}"), &owner))
        .await
        .expect("its owner may");
    for turn in ["first", "second"] {
        let request = command::rotate_role(&cluster.client, SYSTEM, ("app", "reports"), true)
            .await
            .expect("it is requested");
        command::wait_until_rotated(&cluster.client, &request, WITHIN).await.expect(turn);
        held.run("SELECT 1").await.expect_err("the old login is dead");
        held = cluster.next_login("app", "reports", &held).await;
        held.run("INSERT INTO work VALUES (1)").await.expect(turn);
    }
    controller.stop().await.expect("it stops on request");
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_that_the_holder_set_are_undone_at_the_next_check() {
    let server = RealServer::start(ENGINE).await;
    let cluster = Cluster::enter().await;
    cluster.register("main", &server, serde_json::json!({"connectionLimit": 7})).await;
    let controller = cluster.controller();
    let admin = Login::admin(&server.access());
    let id = cluster.claim("app", "orders", "main", serde_json::json!({})).await;
    let held = cluster.login(ENGINE, "app", "orders").await;
    cluster.record_in(&id, "Ready").await;
    let shown = spell(
        "SELECT concat_ws(' ', datconnlimit, datallowconn, datistemplate, \
         has_database_privilege(datdba, oid, 'CONNECT')) FROM pg_database WHERE datname = 'DB'",
        &held,
    );
    for sabotage in [
        "CONNECTION LIMIT 0",
        "CONNECTION LIMIT -1",
        "IS_TEMPLATE true",
        "ALLOW_CONNECTIONS false",
        "CONNECTION LIMIT 0 IS_TEMPLATE true ALLOW_CONNECTIONS false",
    ] {
        held.at("postgres")
            .run(&spell(&format!("ALTER DATABASE DB WITH {sabotage}"), &held))
            .await
            .expect(sabotage);
        cluster.touch("app", "orders").await;
        until(&format!("{sabotage} is undone"), async || {
            (admin.run(&shown).await.ok()? == ["7 t f t"]).then_some(())
        })
        .await;
        works(&held, sabotage).await;
    }
    held.run(&spell("REVOKE ALL ON DATABASE DB FROM CURRENT_USER", &held)).await.expect("its owner may");
    cluster.touch("app", "orders").await;
    until("the right to connect is restored", async || held.run("SELECT 1").await.ok()).await;
    controller.stop().await.expect("it stops on request");
}

/// No tenant can do this there; an administrator can, by hand or by a policy of the server.
#[tokio::test(flavor = "multi_thread")]
async fn settings_of_accounts_are_undone_or_reported() {
    for dialect in engines().into_iter().filter(|dialect| *dialect != ENGINE) {
        let server = RealServer::start(dialect).await;
        let cluster = Cluster::enter().await;
        cluster.register("main", &server, serde_json::json!({})).await;
        let controller = cluster.controller();
        let admin = Login::admin(&server.access());
        let id = cluster.claim("app", "orders", "main", serde_json::json!({})).await;
        let mut held = cluster.login(dialect, "app", "orders").await;
        cluster.record_in(&id, "Ready").await;
        let stem = held.get("username").trim_end_matches(['a', 'b']).to_owned();
        let alter = |what: &str| {
            let of = |user: &str| format!("ALTER USER '{stem}{user}'@'%' {what}");
            format!("{}; {}", of("a"), of("b"))
        };
        for what in [
            "WITH MAX_QUERIES_PER_HOUR 1 MAX_UPDATES_PER_HOUR 1 MAX_CONNECTIONS_PER_HOUR 1",
            "PASSWORD EXPIRE",
            "ACCOUNT LOCK",
        ] {
            // By both kinds of change.
            for is_hard in [false, true] {
                admin.run(&alter(what)).await.expect(what);
                let request = command::rotate(&cluster.client, SYSTEM, ("app", "orders"), is_hard).await;
                command::wait_until_rotated(&cluster.client, &request.expect("it is requested"), WITHIN)
                    .await
                    .expect(what);
                held = cluster.next_login("app", "orders", &held).await;
                for _ in 0..3 {
                    held.run("CREATE TABLE IF NOT EXISTS t (v INT); INSERT INTO t VALUES (1)")
                        .await
                        .expect(what);
                }
            }
        }
        admin.run(&alter("REQUIRE X509")).await.expect("an administrator may");
        let request =
            command::rotate(&cluster.client, SYSTEM, ("app", "orders"), true).await.expect("it is requested");
        let message = command::wait_until_rotated(&cluster.client, &request, WITHIN)
            .await
            .expect_err("no user can log in");
        let message = message.to_string();
        assert!(message.starts_with("the old login is dead, and no new login is published yet"), "{message}");
        assert!(message.contains("SHOW CREATE USER"), "{message}");
        let message = cluster.claim_reports("orders", "SHOW CREATE USER").await;
        assert!(message.starts_with("False LoginRevoked"), "{message}");
        admin.run(&alter("REQUIRE NONE")).await.expect("an administrator may");
        cluster.next_login("app", "orders", &held).await.run("SELECT 1").await.expect("the new login works");
        controller.stop().await.expect("it stops on request");
    }
}
