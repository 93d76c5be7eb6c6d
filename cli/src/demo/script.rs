//! The chapters of the demo, and the result that each must have.

use super::Unexpected;
use super::stage::Stage;
use super::working;
use crate::fields::condition;
use crate::table;
use crate::up::resource_of;
use anyhow::{Context, Result};
use conductor::api::reasons::BOUND;
use conductor::api::reasons::bound::{NO_MATCH, QUOTA_EXCEEDED};
use conductor::model::{Kind, TypeId};
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};

/// The manifests of the first proposal, unchanged.
const SEED: [(&str, &str); 3] = [
    (
        "relational-database-class.yaml",
        include_str!("../../../tests/fixtures/seed-004/relational-database-class.yaml"),
    ),
    ("relational-database.yaml", include_str!("../../../tests/fixtures/seed-004/relational-database.yaml")),
    (
        "relational-database-claim.yaml",
        include_str!("../../../tests/fixtures/seed-004/relational-database-claim.yaml"),
    ),
];
const ADMINISTRATOR: &str = include_str!("../../../examples/demo/administrator.yaml");
const TEAMS: &str = include_str!("../../../examples/demo/teams.yaml");
const ONE_TOO_MANY: &str = include_str!("../../../examples/demo/one-too-many.yaml");

pub(super) const GROUP: &str = "/apis/storage.conductor.io/v1alpha1/namespaces";

/// The result of every claim once all have settled: an existing database, a class, or a reason to wait.
const EXPECTED: [(&str, &str, Expected); 8] = [
    ("blog", "comments", Expected::BoundTo("shared-mysql")),
    ("blog", "search", Expected::ProvisionedFrom("postgres-small")),
    ("reports", "archive", Expected::BoundTo("warehouse-14")),
    ("reports", "warehouse", Expected::Waits(NO_MATCH)),
    ("shop", "orders", Expected::BoundTo("orders-primary")),
    ("shop", "sessions", Expected::BoundTo("shared-mysql")),
    ("shop", "tests", Expected::Waits(QUOTA_EXCEEDED)),
    ("wordpress", "wordpress-db", Expected::BoundTo("database-445")),
];

#[derive(Clone, Copy, Debug)]
enum Expected {
    BoundTo(&'static str),
    ProvisionedFrom(&'static str),
    Waits(&'static str),
}

/// Runs every chapter.
///
/// # Errors
/// The first unexpected result.
pub async fn run(stage: &Stage) -> Result<()> {
    seed(stage).await?;
    teams(stage).await?;
    outcome(stage).await?;
    nearest_fix(stage).await?;
    retain(stage).await?;
    delete(stage).await?;
    let works = if working::run(stage).await? { ", one used" } else { "" };
    stage.view.progress("")?;
    stage
        .view
        .chapter(&format!("As expected: eight claims decided, one fixed, one retained, one deleted{works}."))
}

async fn seed(stage: &Stage) -> Result<()> {
    stage.view.chapter("1. The first proposal, unchanged: a class, a database, a claim")?;
    for (file, text) in SEED {
        stage.apply(file, text).await?;
    }
    settled(stage, &EXPECTED[7..]).await?;
    let path = format!("{GROUP}/conductor-system/relationaldatabases/database-445");
    let is_bound = async || Ok(stage.get(&path).await?["status"]["phase"] == "Bound");
    stage.until("database-445 is Bound", is_bound).await
}

async fn teams(stage: &Stage) -> Result<()> {
    stage.view.chapter("2. An administrator offers databases and classes; three teams claim")?;
    stage.apply("administrator.yaml", ADMINISTRATOR).await?;
    stage.apply("teams.yaml", TEAMS).await?;
    settled(stage, &EXPECTED[..6]).await?;
    stage.apply("one-too-many.yaml", ONE_TOO_MANY).await?;
    settled(stage, &EXPECTED).await
}

async fn outcome(stage: &Stage) -> Result<()> {
    stage.view.progress("")?;
    stage.view.chapter("3. What every claim got, and why")?;
    let claims = list(stage, "relationaldatabaseclaims").await?;
    let resources = list(stage, "relationaldatabases").await?;
    let rows = claims.iter().map(|claim| row(claim, &resources)).collect();
    let mut printed = Vec::new();
    table::listed(&mut printed, &["CLAIM", "PHASE", "RESOURCE", "MESSAGE"], rows)?;
    String::from_utf8_lossy(&printed)
        .lines()
        .try_for_each(|line| stage.view.line(format!("  {line}").trim_end()))?;
    let secret = stage.get("/api/v1/namespaces/shop/secrets/orders-connection").await?;
    let keys: Vec<&String> = secret["data"].as_object().into_iter().flat_map(|data| data.keys()).collect();
    expect(keys.iter().any(|key| *key == "password"), "the Secret of shop/orders has a password")?;
    let keys = keys.iter().map(|key| key.as_str()).collect::<Vec<_>>().join(", ");
    stage
        .view
        .line(&format!("\n  shop/orders reads its connection from the Secret orders-connection: {keys}"))
}

async fn nearest_fix(stage: &Stage) -> Result<()> {
    stage.view.chapter("4. Why does reports/warehouse wait, and what would help?")?;
    stage.show(&["explain", "claim", "reports/warehouse"])?;
    let explained = stage.output_of(&["explain", "claim", "reports/warehouse", "-o", "json"])?;
    let explained: Value = serde_json::from_str(&explained).context("the explanation is not JSON")?;
    let nearest = &explained["claims"][0]["nearest"][0];
    expect(nearest["binds"] == "columns-16", "the nearest change would bind columns-16")?;
    stage.view.line("\n  That change, as the team would make it:")?;
    let fix = json!({"spec": {"version": ">= 16"}});
    stage.view.line(&format!("  $ kubectl -n reports patch rdbc warehouse --type=merge -p '{fix}'"))?;
    let api = claims(stage, "reports")?;
    api.patch("warehouse", &PatchParams::default(), &Patch::Merge(&fix)).await?;
    settled(stage, &[("reports", "warehouse", Expected::BoundTo("columns-16"))]).await
}

async fn retain(stage: &Stage) -> Result<()> {
    stage
        .view
        .chapter("5. A team deletes a claim: its database is retained, and its quota serves the next")?;
    stage.view.line("  $ kubectl -n shop delete rdbc orders")?;
    claims(stage, "shop")?.delete("orders", &DeleteParams::default()).await?;
    let path = format!("{GROUP}/conductor-system/relationaldatabases/orders-primary");
    let is_released = async || Ok(stage.get(&path).await?["status"]["phase"] == "Released");
    stage.until("orders-primary is Released", is_released).await?;
    settled(stage, &[("shop", "tests", Expected::BoundTo("shared-mysql"))]).await
}

async fn delete(stage: &Stage) -> Result<()> {
    stage.view.chapter("6. A team deletes a claim: the database provisioned for it is deleted")?;
    let claim = stage.get(&format!("{GROUP}/blog/relationaldatabaseclaims/search")).await?;
    let resource = claim["status"]["resourceRef"]["name"].as_str().unwrap_or_default().to_owned();
    let clusters = "/apis/postgresql.cnpg.io/v1/namespaces/conductor-system/clusters";
    let count = async || {
        Ok::<usize, anyhow::Error>(stage.get(clusters).await?["items"].as_array().map_or(0, Vec::len))
    };
    expect(count().await? == 1, "one Cluster exists for blog/search")?;
    stage.view.line("  $ kubectl -n blog delete rdbc search")?;
    claims(stage, "blog")?.delete("search", &DeleteParams::default()).await?;
    let path = format!("{GROUP}/conductor-system/relationaldatabases/{resource}");
    stage
        .until("the database of blog/search is deleted", async || Ok(stage.get(&path).await?.is_null()))
        .await?;
    expect(count().await? == 0, "its Cluster is deleted too")
}

/// Waits until every claim has its expected result.
async fn settled(stage: &Stage, expected: &[(&str, &str, Expected)]) -> Result<()> {
    let what: Vec<String> =
        expected.iter().map(|(namespace, name, how)| format!("{namespace}/{name} {how:?}")).collect();
    let all = async || {
        let mut done = 0;
        for (namespace, name, how) in expected {
            let claim = stage.get(&format!("{GROUP}/{namespace}/relationaldatabaseclaims/{name}")).await?;
            done += usize::from(is_as_expected(stage, &claim, *how).await?);
        }
        stage.view.progress(&format!("  {done} of {} claims have settled", expected.len()))?;
        Ok(done == expected.len())
    };
    stage.until(&what.join(", "), all).await
}

async fn is_as_expected(stage: &Stage, claim: &Value, how: Expected) -> Result<bool> {
    let phase = &claim["status"]["phase"];
    let resource = claim["status"]["resourceRef"]["name"].as_str().unwrap_or_default();
    Ok(match how {
        Expected::BoundTo(name) => phase == "Bound" && resource == name,
        Expected::Waits(reason) => {
            phase == "Pending" && condition(claim, BOUND).is_some_and(|bound| bound["reason"] == reason)
        }
        Expected::ProvisionedFrom(class) => {
            let path = format!("{GROUP}/conductor-system/relationaldatabases/{resource}");
            phase == "Bound" && stage.get(&path).await?["spec"]["class"] == class
        }
    })
}

/// A claim's row: its phase, its resource, and why.
fn row(claim: &Value, resources: &[Value]) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let name = format!("{}/{}", text(&claim["metadata"]["namespace"]), text(&claim["metadata"]["name"]));
    let bound = &claim["status"]["resourceRef"]["name"];
    let resource =
        resources.iter().find(|resource| resource["metadata"]["name"] == *bound && !bound.is_null());
    let why = match resource {
        Some(resource) => describe(resource),
        None => condition(claim, BOUND).map_or("-".to_owned(), |bound| {
            format!("{}: {}", text(&bound["reason"]), text(&bound["message"]))
        }),
    };
    vec![name, text(&claim["status"]["phase"]), short(&text(bound)), why]
}

/// Shortens a generated name, which contains a UID.
fn short(name: &str) -> String {
    if name.len() > 24 {
        format!("{}...", name.chars().take(12).collect::<String>())
    } else {
        name.to_owned()
    }
}

/// Describes a resource as far as it matters to a claim.
fn describe(resource: &Value) -> String {
    let spec = &resource["spec"];
    let version = spec["version"].as_str().map_or_else(|| spec["version"].to_string(), str::to_owned);
    let mut text = format!("{} {version}", spec["engine"].as_str().unwrap_or_default());
    let holders = spec["claimRefs"].as_array().map_or(0, Vec::len);
    if let Some(most) = spec["sharing"]["maxClaims"].as_u64() {
        text.push_str(&format!(", shared by {holders} of at most {most}"));
    }
    if !spec["inputs"].is_null() {
        text.push_str(&format!(", provisioned from class {}", spec["class"].as_str().unwrap_or_default()));
    }
    text
}

async fn list(stage: &Stage, plural: &str) -> Result<Vec<Value>> {
    let listed = stage.get(&format!("/apis/storage.conductor.io/v1alpha1/{plural}")).await?;
    Ok(listed["items"].as_array().cloned().unwrap_or_default())
}

pub(super) fn claims(stage: &Stage, namespace: &str) -> Result<Api<DynamicObject>> {
    let resource =
        resource_of(Kind::Claim(TypeId::RELATIONAL_DATABASE)).context("no definition of claims")?;
    Ok(Api::namespaced_with(stage.client.clone(), namespace, &resource))
}

pub(super) fn expect(is_so: bool, what: &str) -> Result<()> {
    if is_so { Ok(()) } else { Err(Unexpected(what.to_owned()).into()) }
}
