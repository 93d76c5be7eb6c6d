//! The process dies at every message to the server and at every write to the API while a login for another application
//! is given, rotated, revoked, and taken away; enumerated from the trace of an undisturbed run. Afterwards another process
//! brings it to the same end: two users and no more, a published login that works, and nothing left of one that ended.

use conductor::api::database::ROTATE;
use conductor_databases::trial::{Boundaries, Boundary, Place, Trace, enumerate, until_struck, wait};
use conductor_databases::{Cluster, Login, RealServer, Said, Tap};
use conductor_live::Controller;
use conductor_live::fault::{Call, Wire};
use conductor_sql_plan::sql::Dialect;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams};
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};

static COUNT: AtomicUsize = AtomicUsize::new(0);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Workflow {
    Give,
    Rotate,
    Revoke,
    TakeAway,
}

#[tokio::test(flavor = "multi_thread")]
async fn every_statement_and_every_write_of_a_role_may_be_the_last_postgresql() {
    every_boundary(Dialect::Postgresql).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_statement_and_every_write_of_a_role_may_be_the_last_mariadb() {
    every_boundary(Dialect::Mariadb).await;
}

async fn every_boundary(dialect: Dialect) {
    let server = RealServer::start_with(dialect, 400, &[]).await;
    let cluster = Cluster::enter().await;
    let workflows = [Workflow::Give, Workflow::Rotate, Workflow::Revoke, Workflow::TakeAway];
    let boundaries = Boundaries { is_counted: is_of_workflow, is_called: is_write };
    let (cluster, server) = (&cluster, &server);
    enumerate(&format!("{dialect:?}"), &workflows, boundaries, |workflow, boundary| {
        trial(cluster, server, workflow, boundary)
    })
    .await;
}

/// Health checks come at their own time, and a crash at a read leaves what the write before it left. What is reported
/// more often than there are users is repeated until sessions have ended, as often as that takes.
fn is_of_workflow(said: &Said) -> bool {
    let aside = [
        "SELECT pg_catalog.current_setting",
        "SELECT VERSION",
        "SELECT system_identifier",
        "SELECT table_name FROM information_schema.tables",
        "SELECT mark FROM `conductor`",
        "INSERT IGNORE INTO `conductor`",
        "SHOW GRANTS",
        "SELECT 1",
        "SET SESSION",
        "SELECT 'role'",
    ];
    let text = &said.text;
    let is_write = !aside.iter().any(|prefix| text.starts_with(prefix));
    is_write && !text.contains("IF NOT EXISTS `conductor`") && said.time <= 2
}

fn is_write(call: &Call) -> bool {
    !call.what.starts_with("GET") && ["databaseroles", "secrets"].iter().any(|of| call.what.contains(of))
}

fn roles(place: &Place) -> Api<DynamicObject> {
    place.of("database.conductor.io", "DatabaseRole", &place.namespace)
}

async fn trial(
    cluster: &Cluster,
    server: &RealServer,
    workflow: Workflow,
    boundary: Boundary,
) -> Result<Trace, String> {
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let namespace = format!("role-trial-{}-{count}", dialect_word(server));
    let place = Place::new(cluster, namespace);
    let dialect = server.plan.dialect;
    let mut tap = Tap::open(dialect, server.plan.port).await;
    let wire = Wire::default();
    place.set_up(cluster, server, tap.port, json!({})).await;
    let controller = Controller::start(wire.client(&place.api, place.scope()), place.options());
    let uid = begin(&place, dialect, workflow).await?;
    let before = place.published(dialect, "reader").await;
    boundary.arm(&tap, &wire);
    let uid = pull(&place, workflow).await?.unwrap_or(uid);
    let end = finished(&place, dialect, workflow, before.as_ref());
    let trace = until_struck(&mut tap, &wire, end).await?;
    // The process is dead, and everything that it held with it.
    controller.kill().await;
    wire.cut();
    tap.repair();
    let published = place.published(dialect, "reader").await;
    let is_being_revoked = workflow == Workflow::Revoke && published == before;
    if let (Workflow::Rotate | Workflow::Revoke, Some(login), false) = (workflow, published, is_being_revoked)
    {
        login.run("SELECT 1").await.map_err(|why| format!("the published login does not work: {why}"))?;
    }
    let second = Wire::default();
    let controller = Controller::start(second.client(&place.api, place.scope()), place.options());
    finished(&place, dialect, workflow, before.as_ref()).await?;
    laws(&place, server, &uid, workflow).await?;
    if let (Workflow::Revoke, Some(login)) = (workflow, &before)
        && login.run("SELECT 1").await.is_ok()
    {
        return Err("the revoked login still works".to_owned());
    }
    controller.kill().await;
    second.cut();
    Ok(trace)
}

fn dialect_word(server: &RealServer) -> &'static str {
    match server.plan.dialect {
        Dialect::Postgresql => "p",
        Dialect::Mariadb | Dialect::Mysql => "m",
    }
}

/// Everything before the workflow, undisturbed: the claim, and the role where it is there already. Gives its UID.
async fn begin(place: &Place, dialect: Dialect, workflow: Workflow) -> Result<String, String> {
    let claim = json!({
        "apiVersion": "storage.conductor.io/v1alpha1", "kind": "RelationalDatabaseClaim",
        "metadata": {"name": "app", "namespace": place.namespace}, "spec": {"selector": {}},
    });
    let claim = serde_json::from_value(claim).map_err(|error| error.to_string())?;
    place.claims().create(&Default::default(), &claim).await.map_err(|error| error.to_string())?;
    let owner = wait("the claim is ready", async || {
        let records = place.records().list(&Default::default()).await.ok()?;
        let is_ready = records.iter().any(|record| record.data["status"]["phase"] == "Ready");
        if is_ready { place.published(dialect, "app").await } else { None }
    })
    .await?;
    owner.run("CREATE TABLE t (v INT); INSERT INTO t VALUES (7)").await?;
    if workflow == Workflow::Give {
        return Ok(String::new());
    }
    let uid = make_role(place).await?;
    finished(place, dialect, Workflow::Give, None).await?;
    Ok(uid)
}

async fn make_role(place: &Place) -> Result<String, String> {
    let role = json!({
        "apiVersion": "database.conductor.io/v1alpha1", "kind": "DatabaseRole",
        "metadata": {"name": "reader", "namespace": place.namespace}, "spec": {"claimRef": {"name": "app"}},
    });
    let role = serde_json::from_value(role).map_err(|error| error.to_string())?;
    let made = roles(place).create(&Default::default(), &role).await.map_err(|error| error.to_string())?;
    Ok(made.uid().unwrap_or_default())
}

/// The value of the annotation that requests a rotation.
fn request(workflow: Workflow) -> &'static str {
    if workflow == Workflow::Revoke { "hard-1" } else { "1" }
}

/// What begins the workflow. Gives the UID of a role that it makes.
async fn pull(place: &Place, workflow: Workflow) -> Result<Option<String>, String> {
    let said = |error: kube::Error| error.to_string();
    match workflow {
        Workflow::Give => return make_role(place).await.map(Some),
        Workflow::Rotate | Workflow::Revoke => {
            let note = Patch::Merge(json!({"metadata": {"annotations": {ROTATE: request(workflow)}}}));
            roles(place).patch("reader", &PatchParams::default(), &note).await.map_err(said)?;
        }
        Workflow::TakeAway => {
            roles(place).delete("reader", &DeleteParams::default()).await.map_err(said)?;
        }
    }
    Ok(None)
}

/// Waits for the end that an undisturbed run has.
async fn finished(
    place: &Place,
    dialect: Dialect,
    workflow: Workflow,
    before: Option<&Login>,
) -> Result<(), String> {
    wait(&format!("the end of {workflow:?}"), async || {
        let role = roles(place).get_opt("reader").await.ok()?;
        let status = role.as_ref().map(|role| role.data["status"].clone()).unwrap_or_default();
        let is_ready = status["conditions"][0]["status"] == "True";
        match workflow {
            Workflow::Give => {
                let login = place.published(dialect, "reader").await?;
                (is_ready && login.run("SELECT 1").await.is_ok()).then_some(())
            }
            Workflow::Rotate | Workflow::Revoke => {
                let login = place.published(dialect, "reader").await?;
                (status["rotationDone"] == request(workflow) && Some(&login) != before).then_some(())
            }
            Workflow::TakeAway => role.is_none().then_some(()),
        }
    })
    .await
}

/// What must hold at the end.
async fn laws(place: &Place, server: &RealServer, uid: &str, workflow: Workflow) -> Result<(), String> {
    let dialect = server.plan.dialect;
    let admin = Login::admin(&server.access());
    let marked = match dialect {
        Dialect::Postgresql => format!(
            "SELECT rolname FROM pg_roles WHERE shobj_description(oid, 'pg_authid') LIKE 'conductor:{uid} %'"
        ),
        Dialect::Mariadb | Dialect::Mysql => {
            format!("SELECT name FROM conductor.marks WHERE mark LIKE 'conductor:{uid} %'")
        }
    };
    let found = admin.run(&marked).await?;
    let expected = if workflow == Workflow::TakeAway { 0 } else { 2 };
    if found.len() != expected {
        return Err(format!("the server has {found:?}, not {expected} users"));
    }
    let published = place.published(dialect, "reader").await;
    let states: Api<Secret> = Api::namespaced(place.api.clone(), &place.system);
    let state = states.get_opt(&format!("ledger-{uid}")).await.map_err(|error| error.to_string())?;
    match (workflow, published) {
        (Workflow::TakeAway, None) if state.is_none() => Ok(()),
        (Workflow::TakeAway, _) => Err("a Secret is left".to_owned()),
        (_, None) => Err("nothing is published".to_owned()),
        (_, Some(login)) => {
            let rows = login.run("SELECT v FROM t").await?;
            match rows == ["7"] && login.run("INSERT INTO t VALUES (8)").await.is_err() {
                true => Ok(()),
                false => Err(format!("the login reads {rows:?} or writes")),
            }
        }
    }
}
