//! No password gets out: not by events at any level, of ours or of a driver; not by what prints; not by errors. A
//! program of its own, for it alone writes down what every thread says.

#[path = "../servers/house.rs"]
#[allow(dead_code, reason = "the other tests use the rest of it")]
mod house;
#[path = "../servers/mount.rs"]
#[allow(dead_code, reason = "the other tests use the rest of it")]
mod mount;
#[path = "../servers/server.rs"]
#[allow(dead_code, reason = "the other tests use the rest of it")]
mod server;

use crate::house::{House, published, until_generation};
use hotload::{Mode, Source};
use sqlx::postgres::PgPoolOptions;
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tracing_subscriber::fmt::MakeWriter;

#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Paper {
    type Writer = Paper;

    fn make_writer(&'a self) -> Paper {
        self.clone()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_password_is_printed() {
    let paper = Paper::default();
    let subscriber =
        tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(paper.clone()).finish();
    tracing::subscriber::set_global_default(subscriber).expect("there is no other subscriber");
    let mut house = House::build().await;
    let mut printed = String::new();
    let mut source = house.follow().mode(Mode::Forced).open().await.unwrap();
    let deadpool = hotload::deadpool::pool(&source, 2);
    let sqlx = hotload::sqlx::postgres(&source, PgPoolOptions::new().max_connections(2)).unwrap();
    for turn in 2..5 {
        let client = deadpool.get().await.unwrap();
        sqlx::query("SELECT 1").execute(&sqlx).await.unwrap();
        printed +=
            &format!("{client:?} {client:#?} {deadpool:#?} {sqlx:#?} {source:#?} {:#?}", house.follow());
        printed += &format!("{:?} {} {:?}", source.login(), source.login(), source.login().password());
        drop(client);
        house.rotate().await;
        until_generation(&mut source, turn).await;
    }
    let port = house.server.port;
    house.mount.publish(&published("postgresql", port, "app_a", "s3cret-that-is-wrong"));
    while source.trouble().is_none() {
        tokio::time::timeout(house::WITHIN, source.changed()).await.expect("the trouble is published");
    }
    printed += &format!("{:?}", source.trouble());
    for text in
        ["postgres://a:s3cret@h1,h2/d", "host=h password='s3cret", "s3cret", "mysql://a:s3cret@127.0.0.1:1/d"]
    {
        house.mount.publish(&[("dsn".to_owned(), text.to_owned())].into());
        let settings = Source::at(house.mount.folder()).dsn("dsn").patience(Duration::from_millis(300));
        let error = settings.open().await.unwrap_err();
        printed += &format!("{error} {error:?} {error:#?}");
    }
    sqlx.close().await;
    let written = String::from_utf8_lossy(&paper.0.lock().unwrap()).into_owned();
    assert!(written.contains("adopted a login") && written.contains("cannot adopt the new login"));
    println!("{} lines of events, {} lines printed", written.lines().count(), printed.lines().count());
    for text in [&printed, &written] {
        let found = text.lines().find(|line| line.contains("s3cret"));
        assert_eq!(found, None);
    }
}
