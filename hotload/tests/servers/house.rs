//! A database with two alternating users, as Conductor creates it, and the Secret of the current one. The test rotates.

use crate::mount::Mount;
use crate::server::{ADMIN, Server, Speaks};
use deadpool_postgres::tokio_postgres::{Client, NoTls, connect};
use hotload::{Settings, Source};
use std::collections::BTreeMap;
use std::time::Duration;

/// Long enough for any machine; nothing waits for it to pass.
pub const WITHIN: Duration = Duration::from_secs(120);

/// A PostgreSQL server with the database `orders`, owned by the role `app`.
pub struct House {
    pub server: Server,
    pub mount: Mount,
    pub admin: Client,
    turns: u32,
}

impl House {
    pub async fn build() -> House {
        House::build_on(Server::start(Speaks::Postgresql)).await
    }

    /// With two users, the first of which is published.
    pub async fn build_on(server: Server) -> House {
        let admin = admin(&server).await;
        for statement in [
            "CREATE ROLE app NOLOGIN",
            "CREATE ROLE app_a LOGIN IN ROLE app",
            "CREATE ROLE app_b LOGIN IN ROLE app",
            "ALTER ROLE app_a SET ROLE app",
            "ALTER ROLE app_b SET ROLE app",
            "CREATE DATABASE orders OWNER app",
        ] {
            admin.batch_execute(statement).await.expect("the administrator may");
        }
        let mut house = House { server, mount: Mount::new(), admin, turns: 0 };
        house.rotate().await;
        house
    }

    /// Settings that fail a test late rather than early.
    pub fn follow(&self) -> Settings {
        Source::at(self.mount.folder()).patience(WITHIN)
    }

    /// Who is current.
    pub fn user(&self) -> String {
        let letter = if self.turns % 2 == 1 { 'a' } else { 'b' };
        format!("app_{letter}")
    }

    /// The password of now; every turn has its own.
    pub fn password(&self) -> String {
        format!("s3cret-of-turn-{}", self.turns)
    }

    /// Gives the other user a new password and publishes it.
    pub async fn rotate(&mut self) -> String {
        self.turns += 1;
        let (user, password) = (self.user(), self.password());
        let statement = format!("ALTER ROLE {user} LOGIN PASSWORD '{password}'");
        self.admin.batch_execute(&statement).await.expect("the administrator may");
        self.mount.publish(&published("postgresql", self.server.port, &user, &password));
        user
    }

    /// As for a leak: the user of before may not log in any more, and its sessions end.
    pub async fn rotate_hard(&mut self) -> String {
        let before = self.user();
        let user = self.rotate().await;
        self.admin
            .batch_execute(&format!("ALTER ROLE {before} NOLOGIN"))
            .await
            .expect("the administrator may");
        let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1";
        self.admin.query(end, &[&before]).await.expect("the administrator may");
        user
    }

    /// How many sessions a user has.
    pub async fn sessions(&self, user: &str) -> i64 {
        let count =
            "SELECT count(*) FROM pg_stat_activity WHERE usename = $1 AND backend_type = 'client backend'";
        self.admin.query_one(count, &[&user]).await.expect("the administrator may").get(0)
    }

    /// Waits until a user has so many sessions.
    pub async fn until_sessions(&self, user: &str, wanted: i64) {
        let waited = tokio::time::timeout(WITHIN, async {
            while self.sessions(user).await != wanted {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        waited.await.unwrap_or_else(|_| panic!("{user} never had {wanted} sessions"));
    }
}

/// The administrator's own connection.
pub async fn admin(server: &Server) -> Client {
    let address =
        format!("host=127.0.0.1 port={} user=postgres password={ADMIN} dbname=postgres", server.port);
    let opened = tokio::time::timeout(WITHIN, async {
        loop {
            match connect(&address, NoTls).await {
                Ok(opened) => return opened,
                // It listens before it answers.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    });
    let (client, connection) = opened.await.expect("the server answers");
    tokio::spawn(connection);
    client
}

/// What Conductor publishes.
pub fn published(engine: &str, port: u16, user: &str, password: &str) -> BTreeMap<String, String> {
    let scheme = if engine == "mariadb" { "mysql" } else { engine };
    let (port, uri) = (port.to_string(), format!("{scheme}://{user}:{password}@127.0.0.1:{port}/orders"));
    let pairs = [
        ("type", engine),
        ("provider", "conductor"),
        ("host", "127.0.0.1"),
        ("port", &port),
        ("username", user),
        ("password", password),
        ("database", "orders"),
        ("uri", &uri),
    ];
    pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
}

/// Waits until a source has adopted so many logins.
pub async fn until_generation(source: &mut Source, wanted: u64) {
    let waited = tokio::time::timeout(WITHIN, async {
        while source.generation() < wanted {
            source.changed().await;
        }
    });
    waited.await.unwrap_or_else(|_| panic!("not adopted: {source:?}, trouble {:?}", source.trouble()));
}
