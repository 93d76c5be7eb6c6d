//! The chapter with a working database: the provider starts a server, an application logs in with its Secret, the login
//! rotates, and the login ends with the claim. Without PostgreSQL the chapter is skipped, and says so.

use super::script::{GROUP, claims, expect};
use super::stage::Stage;
use crate::fields::condition;
use anyhow::{Context, Result};
use conductor::api::database::server::SslMode;
use conductor::api::reasons::READY;
use conductor_sql::local::find_missing;
use conductor_sql::{Access, Password, run_as};
use conductor_sql_plan::sql::Dialect;
use k8s_openapi::api::core::v1::Secret;
use kube::api::DeleteParams;
use serde_json::Value;

const CLAIM: &str = include_str!("../../../examples/demo/working-database.yaml");

/// Runs the chapter; false if it was skipped.
pub async fn run(stage: &Stage) -> Result<bool> {
    stage.view.chapter("7. A claim gets a working database, and its login rotates")?;
    if let Some(missing) = find_missing(Dialect::Postgresql) {
        stage.view.line(&format!("  skipped: {missing}"))?;
        return Ok(false);
    }
    stage.apply("working-database.yaml", CLAIM).await?;
    let first = login(stage, "").await?;
    let written = "CREATE TABLE post (title text); INSERT INTO post VALUES ('hello')";
    run_as(&first, written).await.context("the application cannot write")?;
    let user = short(&first.username);
    stage.view.line(&format!("  {user} logged in with the Secret blog/posts and wrote a row"))?;
    stage.show(&["rotate", "blog/posts"])?;
    let second = login(stage, &first.username).await?;
    let read = run_as(&second, "SELECT title, current_setting('server_version') FROM post").await?;
    let text = |at: usize| read.first().and_then(|row| row[at].clone()).unwrap_or_default();
    expect(text(0) == "hello", "the new login reads the row")?;
    run_as(&first, "SELECT 1").await.context("the login before the rotation no longer works")?;
    let user = short(&second.username);
    stage
        .view
        .line(&format!("  {user} read the row on PostgreSQL {}; the login before still works", text(1)))?;
    stage.view.line("  $ kubectl -n blog delete rdbc posts")?;
    claims(stage, "blog")?.delete("posts", &DeleteParams::default()).await?;
    let is_over = async || Ok(run_as(&second, "SELECT 1").await.is_err());
    stage.until("the login of blog/posts ends with its claim", is_over).await?;
    Ok(true)
}

/// The published login, once the claim is ready and its user is not `before`.
async fn login(stage: &Stage, before: &str) -> Result<Access> {
    let mut found = None;
    let is_published = async || {
        let claim = stage.get(&format!("{GROUP}/blog/relationaldatabaseclaims/posts")).await?;
        let is_ready = condition(&claim, READY).is_some_and(|ready| ready["status"] == "True");
        let secret = stage.get("/api/v1/namespaces/blog/secrets/posts").await?;
        found = read(secret).filter(|access| is_ready && access.username != before);
        Ok(found.is_some())
    };
    stage.until("blog/posts has a login", is_published).await?;
    found.context("no login of blog/posts")
}

fn read(secret: Value) -> Option<Access> {
    let data = serde_json::from_value::<Secret>(secret).ok()?.data?;
    let text = |key: &str| String::from_utf8(data.get(key)?.0.clone()).ok();
    Some(Access {
        dialect: Dialect::Postgresql,
        host: text("host")?,
        port: text("port")?.parse().ok()?,
        ssl_mode: SslMode::Disable,
        username: text("username")?,
        password: Password::new(text("password")?),
        database: text("database")?,
    })
}

/// Shortens a user name, which contains a digest, to its beginning and its letter.
fn short(user: &str) -> String {
    let (stem, letter) = user.rsplit_once('_').unwrap_or((user, ""));
    format!("{}..._{letter}", stem.chars().take(10).collect::<String>())
}
