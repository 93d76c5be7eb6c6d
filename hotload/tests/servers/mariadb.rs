//! Pools of sqlx on MariaDB through changes of their login.

use crate::house::{WITHIN, published, until_generation};
use crate::mount::Mount;
use crate::server::{ADMIN, Server, Speaks};
use hotload::sqlx::mysql;
use hotload::{Mode, Source};
use sqlx::mysql::{MySqlConnectOptions, MySqlPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, MySqlConnection, MySqlPool};
use std::time::Duration;
use tokio::time::timeout;

struct House {
    server: Server,
    mount: Mount,
    admin: MySqlConnection,
    turns: u32,
}

impl House {
    async fn build() -> House {
        let server = Server::start(Speaks::Mariadb);
        let options =
            MySqlConnectOptions::new().host("127.0.0.1").port(server.port).username("root").password(ADMIN);
        let admin = timeout(WITHIN, async {
            loop {
                match options.connect().await {
                    Ok(admin) => return admin,
                    Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                }
            }
        });
        let admin = admin.await.expect("the server answers");
        let mut house = House { server, mount: Mount::new(), admin, turns: 0 };
        house.run("CREATE DATABASE orders").await;
        house.run("CREATE TABLE orders.notes (text varchar(99)) ENGINE=InnoDB").await;
        for user in ["app_a", "app_b"] {
            house.run(&format!("CREATE USER '{user}'@'%'")).await;
            house.run(&format!("GRANT ALL ON orders.* TO '{user}'@'%'")).await;
        }
        house.rotate().await;
        house
    }

    async fn run(&mut self, statement: &str) {
        let statement = AssertSqlSafe(statement.to_owned());
        sqlx::raw_sql(statement).execute(&mut self.admin).await.expect("the administrator may");
    }

    async fn rotate(&mut self) {
        self.turns += 1;
        let user = if self.turns % 2 == 1 { "app_a" } else { "app_b" };
        let password = format!("s3cret-of-turn-{}", self.turns);
        self.run(&format!("ALTER USER '{user}'@'%' IDENTIFIED BY '{password}'")).await;
        self.mount.publish(&published("mariadb", self.server.port, user, &password));
    }

    async fn until_sessions(&mut self, user: &str, wanted: i64) {
        let waited = timeout(WITHIN, async {
            loop {
                let count =
                    sqlx::query_scalar("SELECT count(*) FROM information_schema.PROCESSLIST WHERE USER = ?");
                let count: i64 =
                    count.bind(user).fetch_one(&mut self.admin).await.expect("the administrator may");
                if count == wanted {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        waited.await.unwrap_or_else(|_| panic!("{user} never had {wanted} sessions"));
    }
}

async fn until_user(pool: &MySqlPool, user: &str) {
    let waited = timeout(WITHIN, async {
        loop {
            let who: String = sqlx::query_scalar("SELECT USER()").fetch_one(pool).await.expect("it answers");
            if who.starts_with(&format!("{user}@")) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    waited.await.unwrap_or_else(|_| panic!("never {user}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_goes_on_through_a_graceful_change_and_the_next_is_the_new_logins() {
    let mut house = House::build().await;
    let mut source = Source::at(house.mount.folder()).patience(WITHIN).open().await.unwrap();
    let pool = mysql(&source, MySqlPoolOptions::new().max_connections(2)).unwrap();
    let mut busy = pool.begin().await.unwrap();
    sqlx::query("INSERT INTO notes VALUES ('first')").execute(&mut *busy).await.unwrap();
    house.rotate().await;
    until_generation(&mut source, 2).await;
    until_user(&pool, "app_b").await;
    sqlx::query("INSERT INTO notes VALUES ('second')").execute(&mut *busy).await.unwrap();
    busy.commit().await.unwrap();
    house.until_sessions("app_a", 0).await;
    let notes: i64 = sqlx::query_scalar("SELECT count(*) FROM notes").fetch_one(&pool).await.unwrap();
    assert_eq!(notes, 2);
    pool.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forced_change_ends_what_is_in_use_at_once() {
    let mut house = House::build().await;
    let source = Source::at(house.mount.folder()).patience(WITHIN).mode(Mode::Forced).open().await.unwrap();
    let pool = mysql(&source, MySqlPoolOptions::new().max_connections(3)).unwrap();
    let mut sleeping = pool.acquire().await.unwrap();
    let asleep =
        tokio::spawn(
            async move { sqlx::query("SELECT SLEEP(3600)").execute(&mut *sleeping).await.map(drop) },
        );
    house.until_sessions("app_a", 1).await;
    house.rotate().await;
    timeout(WITHIN, asleep).await.expect("the query ends").unwrap().expect_err("it was ended");
    house.until_sessions("app_a", 0).await;
    until_user(&pool, "app_b").await;
    pool.close().await;
}
