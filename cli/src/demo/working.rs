//! The chapter in which a claim ends in a database that works: a server is started, an application logs in with what is
//! in its Secret, its login is changed under it, and ends with the claim. Where PostgreSQL is not installed the chapter
//! says so and is left out.

use super::script::{GROUP, claims, expect};
use super::stage::Stage;
use anyhow::{Context, Result};
use conductor::api::database::server::SslMode;
use conductor_sql::local::find_missing;
use conductor_sql::{Access, Password, run_as};
use conductor_sql_plan::sql::Dialect;
use k8s_openapi::api::core::v1::Secret;
use kube::api::DeleteParams;
use serde_json::Value;

const CLAIM: &str = include_str!("../../../examples/demo/working-database.yaml");

/// Plays the chapter; says whether it could.
pub async fn play(stage: &Stage) -> Result<bool> {
    stage.view.chapter("7. A claim ends in a database that works, and its login is changed under it")?;
    if let Some(missing) = find_missing(Dialect::Postgresql) {
        stage.view.line(&format!("  left out: {missing}"))?;
        return Ok(false);
    }
    stage.apply("working-database.yaml", CLAIM).await?;
    let first = login(stage, "").await?;
    let written = "CREATE TABLE post (title text); INSERT INTO post VALUES ('hello')";
    run_as(&first, written).await.context("the application writes")?;
    let user = short(&first.username);
    stage.view.line(&format!("  {user} logged in with what is in Secret blog/posts, and wrote a row"))?;
    stage.show(&["rotate", "blog/posts"])?;
    let second = login(stage, &first.username).await?;
    let read = run_as(&second, "SELECT title, current_setting('server_version') FROM post").await?;
    let text = |at: usize| read.first().and_then(|row| row[at].clone()).unwrap_or_default();
    expect(text(0) == "hello", "the row is there for the new login")?;
    run_as(&first, "SELECT 1").await.context("the login before still works")?;
    let user = short(&second.username);
    stage
        .view
        .line(&format!("  {user} read the row on PostgreSQL {}; the login before works on", text(1)))?;
    stage.view.line("  $ kubectl -n blog delete rdbc posts")?;
    claims(stage, "blog").delete("posts", &DeleteParams::default()).await?;
    let is_over = async || Ok(run_as(&second, "SELECT 1").await.is_err());
    stage.until("the login of blog/posts ends with its claim", is_over).await?;
    Ok(true)
}

/// What is published, once it is ready and another than that of `before`.
async fn login(stage: &Stage, before: &str) -> Result<Access> {
    let mut found = None;
    let is_there = async || {
        let claim = stage.get(&format!("{GROUP}/blog/relationaldatabaseclaims/posts")).await?;
        let conditions = claim["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let is_ready = conditions.iter().any(|c| c["type"] == "Ready" && c["status"] == "True");
        let secret = stage.get("/api/v1/namespaces/blog/secrets/posts").await?;
        found = read(secret).filter(|access| is_ready && access.username != before);
        Ok(found.is_some())
    };
    stage.until("blog/posts has a login", is_there).await?;
    found.context("the login of blog/posts")
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

/// A user's name has a digest in it; its beginning and its letter will do here.
fn short(user: &str) -> String {
    let (stem, letter) = user.rsplit_once('_').unwrap_or((user, ""));
    format!("{}..._{letter}", stem.chars().take(10).collect::<String>())
}
