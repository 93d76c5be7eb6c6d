//! The process dies at every message to the server and at every write to the API of five workflows: a database is
//! made, its login is rotated, its login is revoked, it is reclaimed, it is released and kept. Each once before it is
//! heard and once after it was carried out, enumerated from the trace of an undisturbed run. Afterwards another process
//! brings it to the same end, and the laws hold: one database a claim (I2); nothing is dropped but what was reclaimed,
//! and no neighbour's is touched (I3); what is retained hears no destructive statement (I4); no orphans (I5); the
//! published login works whenever there is one, unless it is the one being revoked, and none does after the end (I7,
//! I8). A crash at a read leaves what the write before it left, and is not tried twice.

use conductor::api::database::ROTATE;
use conductor_databases::trial::{Boundaries, Boundary, Place, Trace, enumerate, until_struck, wait};
use conductor_databases::{Cluster, Login, RealServer, Said, Tap};
use conductor_live::Controller;
use conductor_live::fault::{Call, Wire};
use conductor_sql_plan::names::Names;
use conductor_sql_plan::sql::Dialect;
use kube::ResourceExt;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Workflow {
    Provision,
    Rotate,
    Revoke,
    Reclaim,
    Keep,
}

const ALL: [Workflow; 5] =
    [Workflow::Provision, Workflow::Rotate, Workflow::Revoke, Workflow::Reclaim, Workflow::Keep];

static COUNT: AtomicUsize = AtomicUsize::new(0);

#[tokio::test(flavor = "multi_thread")]
async fn every_statement_and_every_write_may_be_the_last_postgresql() {
    every_boundary(Dialect::Postgresql).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_statement_and_every_write_may_be_the_last_mariadb() {
    every_boundary(Dialect::Mariadb).await;
}

async fn every_boundary(dialect: Dialect) {
    let server = RealServer::start_with(dialect, 400, &[]).await;
    let cluster = Cluster::enter().await;
    let neighbour = neighbour(&server).await;
    let boundaries = Boundaries { is_counted: is_of_workflow, is_called: is_write };
    let (cluster, server) = (&cluster, &server);
    enumerate(&format!("{dialect:?}"), &ALL, boundaries, |workflow, boundary| {
        trial(cluster, server, workflow, boundary)
    })
    .await;
    no_orphans(cluster, server).await;
    assert_eq!(neighbour.run("SELECT v FROM t").await, Ok(vec!["7".to_owned()]), "I3: another claim's");
}

/// A foreign database and user, under names as ours, without our mark.
async fn neighbour(server: &RealServer) -> Login {
    let admin = Login::admin(&server.access());
    let name = Names::new("another owner", None).owner.to_string();
    let make = match server.plan.dialect {
        Dialect::Postgresql => {
            admin.run(&format!("CREATE DATABASE \"n{name}\"")).await.expect("a database");
            format!("CREATE ROLE \"n{name}_a\" LOGIN")
        }
        Dialect::Mariadb | Dialect::Mysql => {
            format!("CREATE DATABASE `n{name}`; CREATE USER 'n{name}_a'@'%'")
        }
    };
    admin.run(&make).await.expect("a user");
    let theirs = admin.at(&format!("n{name}"));
    theirs.run("CREATE TABLE t (v INT); INSERT INTO t VALUES (7)").await.expect("a table");
    theirs
}

/// Health checks come at their own time and change nothing.
fn is_of_workflow(said: &Said) -> bool {
    let aside = [
        "SELECT pg_catalog.current_setting",
        "SELECT VERSION",
        "SELECT system_identifier",
        "SELECT table_name FROM information_schema.tables",
        "SELECT mark FROM `conductor`",
        "INSERT IGNORE INTO `conductor`",
        "SHOW GRANTS",
        "SELECT (SELECT CAST(COUNT",
        "SELECT 1",
        "SET SESSION",
    ];
    let text = &said.text;
    !aside.iter().any(|prefix| text.starts_with(prefix)) && !text.contains("IF NOT EXISTS `conductor`")
}

fn is_write(call: &Call) -> bool {
    let ours = ["logicaldatabases", "secrets", "relationaldatabaseclaims"];
    !call.what.starts_with("GET") && ours.iter().any(|plural| call.what.contains(plural))
}

/// The claim's published login, once the claim says that it is ready.
async fn login(place: &Place, dialect: Dialect) -> Option<Login> {
    let claim = place.claims().get_opt("app").await.ok()??;
    let conditions = claim.data["status"]["conditions"].as_array()?.clone();
    let is_ready = conditions.iter().any(|c| c["type"] == "Ready" && c["status"] == "True");
    if is_ready { place.published(dialect, "app").await } else { None }
}

async fn trial(
    cluster: &Cluster,
    server: &RealServer,
    workflow: Workflow,
    boundary: Boundary,
) -> Result<Trace, String> {
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let place = Place::new(cluster, format!("trial-{count}"));
    let dialect = server.plan.dialect;
    let mut tap = Tap::open(dialect, server.plan.port).await;
    let wire = Wire::default();
    let policy = if workflow == Workflow::Keep { "Retain" } else { "Delete" };
    let rules = json!({"reclaimPolicy": policy, "quarantineMinutes": 0});
    place.set_up(cluster, server, tap.port, rules).await;
    let controller = Controller::start(wire.client(&place.api, place.scope()), place.options());
    let id = begin(&place, dialect, workflow).await?;
    let names = Names::new(&id, None);
    let before = place.published(dialect, "app").await;

    boundary.arm(&tap, &wire);
    pull(&place, &id, workflow).await?;
    let end = finished(&place, dialect, &id, workflow, before.as_ref());
    let trace = until_struck(&mut tap, &wire, end).await?;
    // The process is dead, and everything that it held with it.
    controller.kill().await;
    wire.cut();
    tap.repair();
    let published = place.published(dialect, "app").await;
    let is_being_revoked = workflow == Workflow::Revoke && published == before;
    if let (Workflow::Rotate | Workflow::Revoke, Some(login), false) = (workflow, published, is_being_revoked)
    {
        login.run("SELECT 1").await.map_err(|why| format!("I8: the published login does not work: {why}"))?;
    }
    let second = Wire::default();
    let controller = Controller::start(second.client(&place.api, place.scope()), place.options());
    finished(&place, dialect, &id, workflow, before.as_ref()).await?;
    ends(workflow, &tap, before.as_ref()).await?;
    laws(&place, server, &names, workflow).await?;
    controller.kill().await;
    second.cut();
    if workflow != Workflow::Reclaim {
        // What is left is cleared away, so that orphans can be distinguished from leftovers.
        clear(&place, server, &names).await;
    }
    Ok(trace)
}

/// Everything before the workflow, undisturbed. Gives the claim's UID where there is one.
async fn begin(place: &Place, dialect: Dialect, workflow: Workflow) -> Result<String, String> {
    let resources = place.of("storage.conductor.io", "RelationalDatabase", &place.system);
    wait("the server is offered", async || {
        let found = resources.get_opt("main").await.ok()??;
        (found.data["status"]["phase"] == "Available").then_some(())
    })
    .await?;
    if workflow == Workflow::Provision {
        return Ok(String::new());
    }
    let id = make_claim(place).await?;
    wait("the claim is ready", async || login(place, dialect).await).await?;
    wait("the record is ready", async || {
        let record = place.records().get_opt(&format!("db-{id}")).await.ok()??;
        (record.data["status"]["phase"] == "Ready").then_some(())
    })
    .await?;
    Ok(id)
}

async fn make_claim(place: &Place) -> Result<String, String> {
    let claim: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "storage.conductor.io/v1alpha1", "kind": "RelationalDatabaseClaim",
        "metadata": {"name": "app", "namespace": place.namespace}, "spec": {"selector": {}},
    }))
    .map_err(|error| error.to_string())?;
    let made = place.claims().create(&Default::default(), &claim).await.map_err(|error| error.to_string())?;
    Ok(made.uid().unwrap_or_default())
}

/// The value of the annotation that requests a rotation.
fn request(workflow: Workflow) -> &'static str {
    if workflow == Workflow::Revoke { "hard-1" } else { "1" }
}

/// What begins the workflow.
async fn pull(place: &Place, id: &str, workflow: Workflow) -> Result<(), String> {
    let said = |error: kube::Error| error.to_string();
    match workflow {
        Workflow::Provision => make_claim(place).await.map(drop),
        Workflow::Rotate | Workflow::Revoke => {
            let note = Patch::Merge(json!({"metadata": {"annotations": {ROTATE: request(workflow)}}}));
            let name = format!("db-{id}");
            place.records().patch(&name, &PatchParams::default(), &note).await.map(drop).map_err(said)
        }
        Workflow::Reclaim | Workflow::Keep => {
            place.claims().delete("app", &DeleteParams::default()).await.map(drop).map_err(said)
        }
    }
}

/// Waits for the end that an undisturbed run has.
async fn finished(
    place: &Place,
    dialect: Dialect,
    id: &str,
    workflow: Workflow,
    before: Option<&Login>,
) -> Result<(), String> {
    wait(&format!("the end of {workflow:?}"), async || match workflow {
        Workflow::Provision => {
            let login = login(place, dialect).await?;
            let claim = place.claims().get_opt("app").await.ok()??;
            let name = format!("db-{}", claim.uid()?);
            let record = place.records().get_opt(&name).await.ok()??;
            let is_reported = record.data["status"]["phase"] == "Ready";
            (is_reported && login.run("SELECT 1").await.is_ok()).then_some(())
        }
        Workflow::Rotate | Workflow::Revoke => {
            let record = place.records().get_opt(&format!("db-{id}")).await.ok()??;
            let login = place.published(dialect, "app").await?;
            let is_done =
                record.data["status"]["rotationDone"] == request(workflow) && Some(&login) != before;
            is_done.then_some(())
        }
        Workflow::Reclaim => {
            let is_gone = place.claims().get_opt("app").await.ok()?.is_none()
                && place.records().get_opt(&format!("db-{id}")).await.ok()?.is_none();
            is_gone.then_some(())
        }
        Workflow::Keep => {
            let is_gone = place.claims().get_opt("app").await.ok()?.is_none();
            let record = place.records().get_opt(&format!("db-{id}")).await.ok()??;
            (is_gone && record.data["status"]["phase"] == "Retained").then_some(())
        }
    })
    .await
}

/// What must hold at the end.
async fn laws(place: &Place, server: &RealServer, names: &Names, workflow: Workflow) -> Result<(), String> {
    let dialect = server.plan.dialect;
    let names = match workflow {
        Workflow::Provision => {
            let claim = place.claims().get("app").await.map_err(|error| error.to_string())?;
            Names::new(&claim.uid().unwrap_or_default(), None)
        }
        Workflow::Rotate | Workflow::Revoke | Workflow::Reclaim | Workflow::Keep => names.clone(),
    };
    let found = there(server, names.owner.as_str()).await;
    let (d, a, b) = ("D".to_owned(), "D_a".to_owned(), "D_b".to_owned());
    let expected: Vec<String> = match (workflow, dialect) {
        (Workflow::Reclaim, _) => Vec::new(),
        (_, Dialect::Postgresql) => vec![d.clone(), d, a, b],
        (_, Dialect::Mariadb | Dialect::Mysql) => vec![d, a, b],
    };
    if found != expected {
        return Err(format!("I2, I5: the server has {found:?}, not {expected:?}"));
    }
    if matches!(workflow, Workflow::Reclaim | Workflow::Keep) {
        return Ok(());
    }
    let login = place.published(dialect, "app").await.ok_or("I7: nothing is published")?;
    login.run("CREATE TABLE law (v INT); DROP TABLE law").await.map_err(|why| format!("I7: {why}"))?;
    Ok(())
}

/// What ends with a workflow, and what must not: over both lives, for the tap has heard both.
async fn ends(workflow: Workflow, tap: &Tap, before: Option<&Login>) -> Result<(), String> {
    // A grant under that name ends nothing.
    let plain = |said: &&Said| said.text.replace("DELETE HISTORY", "");
    let destructive =
        |said: &&Said| ["DROP ", "DELETE ", "TRUNCATE "].iter().any(|verb| plain(said).contains(verb));
    let said = tap.said();
    let heard = said.iter().find(destructive);
    match (workflow, heard) {
        (Workflow::Provision | Workflow::Rotate | Workflow::Revoke | Workflow::Keep, Some(said)) => {
            return Err(format!("I3, I4: {workflow:?} heard {}", said.text));
        }
        (Workflow::Reclaim, _) | (_, None) => {}
    }
    match (workflow, before) {
        (Workflow::Revoke | Workflow::Reclaim | Workflow::Keep, Some(login))
            if login.run("SELECT 1").await.is_ok() =>
        {
            Err(format!("I7: after {workflow:?} the login from before still works"))
        }
        _ => Ok(()),
    }
}

/// What a server has under the names of one database.
async fn there(server: &RealServer, stem: &str) -> Vec<String> {
    let text = match server.plan.dialect {
        Dialect::Postgresql => format!(
            "SELECT datname FROM pg_database WHERE datname LIKE '{stem}%' \
             UNION ALL SELECT rolname FROM pg_roles WHERE rolname LIKE '{stem}%' ORDER BY 1"
        ),
        Dialect::Mariadb | Dialect::Mysql => format!(
            "SELECT CAST(schema_name AS CHAR) AS n FROM information_schema.schemata WHERE schema_name LIKE '{stem}%' \
             UNION ALL SELECT CAST(user AS CHAR) FROM mysql.user WHERE user LIKE '{stem}%' ORDER BY 1"
        ),
    };
    let found = Login::admin(&server.access()).run(&text).await.unwrap_or_else(|why| vec![why]);
    found.into_iter().map(|name| name.replace(stem, "D")).collect()
}

/// Removes what a trial made, by hand.
async fn clear(place: &Place, server: &RealServer, names: &Names) {
    let admin = Login::admin(&server.access());
    for record in place.records().list(&Default::default()).await.into_iter().flatten() {
        let bare = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        let _ = place.records().patch(&record.name_any(), &PatchParams::default(), &bare).await;
        let _ = place.records().delete(&record.name_any(), &DeleteParams::default()).await;
        let id = record.data.pointer("/spec/id").and_then(Value::as_str).unwrap_or_default().to_owned();
        drop_all(&admin, &Names::new(&id, None)).await;
    }
    drop_all(&admin, names).await;
}

async fn drop_all(admin: &Login, names: &Names) {
    let stem = names.owner.as_str();
    let statements = match admin.dialect {
        Dialect::Postgresql => vec![
            format!("DROP DATABASE IF EXISTS \"{stem}\" WITH (FORCE)"),
            format!("DROP ROLE IF EXISTS \"{stem}_a\", \"{stem}_b\", \"{stem}\""),
        ],
        Dialect::Mariadb | Dialect::Mysql => vec![
            format!("DROP DATABASE IF EXISTS `{stem}`"),
            format!("DROP USER IF EXISTS '{stem}_a'@'%', '{stem}_b'@'%'"),
            format!("DELETE FROM conductor.marks WHERE name LIKE '{stem}%'"),
        ],
    };
    for statement in statements {
        let _ = admin.run(&statement).await;
    }
}

/// I5: whatever is left on the server has an owner.
async fn no_orphans(cluster: &Cluster, server: &RealServer) {
    let gvk = GroupVersionKind::gvk("database.conductor.io", "v1alpha1", "LogicalDatabase");
    let resource = ApiResource::from_gvk_with_plural(&gvk, "logicaldatabases");
    let all: Api<DynamicObject> = Api::all_with(cluster.client.clone(), &resource);
    let records = all.list(&Default::default()).await.expect("the API lists");
    let known: BTreeSet<String> = records
        .iter()
        .filter_map(|record| record.data.pointer("/spec/id")?.as_str())
        .map(|id| Names::new(id, None).owner.to_string())
        .collect();
    let text = match server.plan.dialect {
        Dialect::Postgresql => {
            "SELECT datname FROM pg_database WHERE datname LIKE 'c\\_%' \
             UNION SELECT rolname FROM pg_roles WHERE rolname LIKE 'c\\_%'"
        }
        Dialect::Mariadb | Dialect::Mysql => {
            "SELECT CAST(schema_name AS CHAR) FROM information_schema.schemata WHERE schema_name LIKE 'c\\_%' \
             UNION SELECT CAST(user AS CHAR) FROM mysql.user WHERE user LIKE 'c\\_%'"
        }
    };
    let found = Login::admin(&server.access()).run(text).await.expect("the administrator queries");
    let orphans: Vec<&String> =
        found.iter().filter(|name| !known.iter().any(|stem| name.starts_with(stem.as_str()))).collect();
    assert!(orphans.is_empty(), "I5: {orphans:?}");
}
