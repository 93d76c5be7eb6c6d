//! An application that writes orders through a pool, for ever, and prints what happens: once a second how many were
//! written and by whom, and every change of the login. Watch it while its Secret is rotated:
//!
//! ```text
//! cargo run --package hotload --example orders -- /etc/connection
//! ```
//!
//! `--forced` ends what is in use when the login changes, `--dsn FILE` reads one file with a connection string.

use anyhow::{Context, Result, bail};
use hotload::deadpool::{Pool, pool};
use hotload::{Mode, Settings, Source};
use std::time::Duration;

#[tokio::main]
async fn main() -> Result<()> {
    let settings = arguments()?;
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();

    // These three lines are all that a rotation requires of an application.
    let source = settings.open().await?;
    let pool = pool(&source, 8);
    let client = pool.get().await?;

    client.batch_execute("CREATE TABLE IF NOT EXISTS orders (placed timestamptz NOT NULL)").await?;
    drop(client);
    println!("login 1: {}", source.login());
    tokio::spawn(print_changes(source));
    loop {
        write_for_a_second(&pool).await;
    }
}

fn arguments() -> Result<Settings> {
    let mut arguments = std::env::args().skip(1);
    let Some(folder) = arguments.next() else { bail!("no folder: orders FOLDER [--forced] [--dsn FILE]") };
    let mut settings = Source::at(folder);
    while let Some(argument) = arguments.next() {
        settings = match argument.as_str() {
            "--forced" => settings.mode(Mode::Forced),
            "--dsn" => settings.dsn(arguments.next().context("--dsn requires the name of a file")?),
            other => bail!("{other}: orders FOLDER [--forced] [--dsn FILE]"),
        };
    }
    Ok(settings)
}

async fn print_changes(mut source: Source) {
    loop {
        source.changed().await;
        match source.trouble() {
            Some(trouble) => println!("login {} stays: {trouble}", source.generation()),
            None => println!("login {}: {}", source.generation(), source.login()),
        }
    }
}

async fn write_for_a_second(pool: &Pool) {
    let (mut written, mut failed, mut last) = (0, 0, String::new());
    let end = tokio::time::Instant::now() + Duration::from_secs(1);
    while tokio::time::Instant::now() < end {
        match write(pool).await {
            Ok(by) => (written, last) = (written + 1, by),
            Err(error) => {
                (failed, last) = (failed + 1, format!("{error:#}"));
                // Do not retry a server that is down a thousand times a second.
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    println!("{written} orders written, {failed} failed; last: {last}");
}

/// One order; says who wrote it.
async fn write(pool: &Pool) -> Result<String> {
    let mut client = pool.get().await?;
    let transaction = client.transaction().await?;
    transaction.execute("INSERT INTO orders VALUES (now())", &[]).await?;
    let by = transaction.query_one("SELECT session_user::text", &[]).await?.get(0);
    transaction.commit().await?;
    Ok(by)
}
