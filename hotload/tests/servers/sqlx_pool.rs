//! Pools of sqlx on PostgreSQL through changes of their login.

use crate::house::{House, WITHIN, until_generation};
use hotload::Mode;
use hotload::sqlx::postgres;
use sqlx::postgres::PgPoolOptions;
use sqlx::{Connection, PgConnection, PgPool};
use std::time::Duration;
use tokio::time::timeout;

async fn who(connection: &mut PgConnection) -> String {
    sqlx::query_scalar("SELECT session_user::text").fetch_one(connection).await.expect("it answers")
}

/// The pool hears of a login a moment after the source.
async fn until_user(pool: &PgPool, user: &str) {
    let waited = timeout(WITHIN, async {
        while who(&mut pool.acquire().await.expect("a connection")).await != user {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    waited.await.unwrap_or_else(|_| panic!("never {user}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_goes_on_through_a_graceful_change_and_the_next_is_the_new_logins() {
    let mut house = House::build().await;
    let mut source = house.follow().open().await.unwrap();
    let pool = postgres(&source, PgPoolOptions::new().max_connections(2)).unwrap();
    let (mut busy, idle) = (pool.begin().await.unwrap(), pool.acquire().await.unwrap());
    drop(idle);
    sqlx::query("CREATE TABLE notes (text text)").execute(&mut *busy).await.unwrap();
    house.rotate().await;
    until_generation(&mut source, 2).await;
    house.until_sessions("app_a", 1).await;
    until_user(&pool, "app_b").await;
    assert!(pool.size() <= 2);
    sqlx::query("INSERT INTO notes VALUES ('still here')").execute(&mut *busy).await.unwrap();
    busy.commit().await.unwrap();
    house.until_sessions("app_a", 0).await;
    let notes: Vec<String> = sqlx::query_scalar("SELECT text FROM notes").fetch_all(&pool).await.unwrap();
    assert_eq!(notes, ["still here"]);
    pool.close().await;
    house.until_sessions("app_b", 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forced_change_ends_what_is_in_use_at_once() {
    let mut house = House::build().await;
    let source = house.follow().mode(Mode::Forced).open().await.unwrap();
    let pool = postgres(&source, PgPoolOptions::new().max_connections(3)).unwrap();
    let mut sleeping = pool.acquire().await.unwrap();
    let asleep =
        tokio::spawn(
            async move { sqlx::query("SELECT pg_sleep(3600)").execute(&mut *sleeping).await.map(drop) },
        );
    let mut open = pool.begin().await.unwrap();
    house.until_sessions("app_a", 2).await;
    house.rotate().await;
    let ended = timeout(WITHIN, asleep).await.expect("the query ends").unwrap();
    ended.expect_err("it was ended");
    house.until_sessions("app_a", 0).await;
    open.ping().await.expect_err("its session is over");
    drop(open);
    until_user(&pool, "app_b").await;
    pool.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_password_that_is_changed_under_one_user_is_followed_too() {
    let mut house = House::build().await;
    let mut source = house.follow().mode(Mode::Forced).open().await.unwrap();
    let pool = postgres(&source, PgPoolOptions::new().max_connections(2)).unwrap();
    let mut open = pool.acquire().await.unwrap();
    house.admin.batch_execute("ALTER ROLE app_a PASSWORD 'another'").await.unwrap();
    let changed = crate::house::published("postgresql", house.server.port, "app_a", "another");
    house.mount.publish(&changed);
    until_generation(&mut source, 2).await;
    // The login before is refused by now: the new one ends its sessions.
    house.until_sessions("app_a", 0).await;
    open.ping().await.expect_err("its session is over");
    drop(open);
    until_user(&pool, "app_a").await;
    pool.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_opened_around_a_change_is_replaced_once_more() {
    let mut house = House::build().await;
    let mut source = house.follow().open().await.unwrap();
    // A window of six seconds, and one connection, so that a second session is a replacement.
    let options = PgPoolOptions::new().max_connections(1).acquire_timeout(Duration::from_secs(5));
    let pool = postgres(&source, options).unwrap();
    house.rotate().await;
    until_generation(&mut source, 2).await;
    until_user(&pool, "app_b").await;
    let session = "SELECT pg_backend_pid()";
    let first: i32 = sqlx::query_scalar(session).fetch_one(&pool).await.unwrap();
    let replaced = timeout(WITHIN, async {
        while sqlx::query_scalar::<_, i32>(session).fetch_one(&pool).await.unwrap() == first {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    replaced.await.expect("it is replaced");
    let second: i32 = sqlx::query_scalar(session).fetch_one(&pool).await.unwrap();
    for _ in 0..20 {
        let now: i32 = sqlx::query_scalar(session).fetch_one(&pool).await.unwrap();
        assert_eq!(now, second, "once, and not again");
    }
    pool.close().await;
}
