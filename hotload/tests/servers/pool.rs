//! Pools of deadpool-postgres through changes of their login.

use crate::house::{House, WITHIN, published, until_generation};
use hotload::Mode;
use hotload::deadpool::{Connection, Pool, pool};
use tokio::time::timeout;

async fn who(client: &Connection) -> String {
    client.query_one("SELECT session_user::text", &[]).await.expect("it answers").get(0)
}

async fn take(pool: &Pool) -> deadpool::managed::Object<hotload::deadpool::Manager> {
    timeout(WITHIN, pool.get()).await.expect("in time").expect("a connection")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_goes_on_through_a_graceful_change_and_the_next_is_the_new_logins() {
    let mut house = House::build().await;
    let mut source = house.follow().open().await.unwrap();
    let pool = pool(&source, 2);
    let (mut busy, idle) = (take(&pool).await, take(&pool).await);
    drop(idle);
    let transaction = busy.transaction().await.unwrap();
    transaction.batch_execute("CREATE TABLE notes (text text)").await.unwrap();
    house.rotate().await;
    until_generation(&mut source, 2).await;
    // The idle one is closed by itself; the one in use is not touched, and the pool is no larger for it.
    house.until_sessions("app_a", 1).await;
    let new = take(&pool).await;
    assert_eq!((who(&new).await.as_str(), new.generation(), pool.status().size), ("app_b", 2, 2));
    transaction.batch_execute("INSERT INTO notes VALUES ('still here')").await.unwrap();
    transaction.commit().await.unwrap();
    assert_eq!((who(&busy).await.as_str(), pool.manager().older()), ("app_a", 1));
    drop(busy);
    house.until_sessions("app_a", 0).await;
    assert_eq!(pool.manager().older(), 0);
    let rows = new.query("SELECT text FROM notes", &[]).await.unwrap();
    assert_eq!(rows.len(), 1, "what the login before wrote is there, and readable for the next");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forced_change_ends_what_is_in_use_at_once() {
    let mut house = House::build().await;
    let mut source = house.follow().mode(Mode::Forced).open().await.unwrap();
    let pool = pool(&source, 3);
    let (sleeping, open) = (take(&pool).await, take(&pool).await);
    open.batch_execute("BEGIN").await.unwrap();
    // An hour: only the change ends it.
    let asleep = tokio::spawn(async move { sleeping.batch_execute("SELECT pg_sleep(3600)").await });
    house.until_sessions("app_a", 2).await;
    house.rotate().await;
    until_generation(&mut source, 2).await;
    let ended = timeout(WITHIN, asleep).await.expect("the query ends").unwrap();
    ended.expect_err("it was ended");
    house.until_sessions("app_a", 0).await;
    open.batch_execute("COMMIT").await.expect_err("its connection is closed");
    drop(open);
    assert_eq!(who(&*take(&pool).await).await, "app_b");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_of_before_can_be_ended_later() {
    let mut house = House::build().await;
    let mut source = house.follow().open().await.unwrap();
    let pool = pool(&source, 2);
    let busy = take(&pool).await;
    busy.batch_execute("BEGIN").await.unwrap();
    house.rotate().await;
    until_generation(&mut source, 2).await;
    busy.batch_execute("SELECT 1").await.expect("graceful leaves it alone");
    let new = take(&pool).await;
    source.end_older();
    house.until_sessions("app_a", 0).await;
    busy.batch_execute("SELECT 1").await.expect_err("it was ended");
    new.batch_execute("SELECT 1").await.expect("the new login's is not touched");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_login_that_does_not_work_is_never_adopted() {
    let mut house = House::build().await;
    let mut source = house.follow().open().await.unwrap();
    let pool = pool(&source, 2);
    let port = house.server.port;
    let unused = conductor_controlplane::free_port().expect("a port is free");
    for (wrong, why) in [
        (
            published("postgresql", port, "app_b", "wrong"),
            "password authentication failed for user \"app_b\"",
        ),
        (
            published("postgresql", port, "unknown", "wrong"),
            "password authentication failed for user \"unknown\"",
        ),
        (published("postgresql", unused, "app_b", "wrong"), "Connection refused"),
        (published("mariadb", port, "app_b", "wrong"), "restart the application"),
    ] {
        house.mount.publish(&wrong);
        let outcome = timeout(WITHIN, async {
            while !source.trouble().is_some_and(|trouble| trouble.contains(why)) {
                source.changed().await;
            }
        });
        outcome.await.unwrap_or_else(|_| panic!("{why}: {:?}", source.trouble()));
        assert_eq!((source.generation(), who(&*take(&pool).await).await.as_str()), (1, "app_a"));
    }
    house.rotate().await;
    until_generation(&mut source, 2).await;
    assert_eq!((who(&*take(&pool).await).await.as_str(), source.trouble()), ("app_b", None));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_goes_away_and_returns_is_used_again() {
    let mut house = House::build().await;
    let mut source = house.follow().open().await.unwrap();
    let pool = pool(&source, 2);
    drop(take(&pool).await);
    house.server.stop();
    timeout(WITHIN, pool.get()).await.expect("in time").expect_err("no server responds");
    // A login that comes while the server is away is tried until it is back.
    let (port, password) = (house.server.port, "s3cret-while-away");
    house.mount.publish(&published("postgresql", port, "app_b", password));
    while source.trouble().is_none() {
        timeout(WITHIN, source.changed()).await.expect("the trouble is published");
    }
    house.server.restart();
    house.admin = crate::house::admin(&house.server).await;
    assert_eq!(who(&*take(&pool).await).await, "app_a");
    house.admin.batch_execute(&format!("ALTER ROLE app_b PASSWORD '{password}'")).await.unwrap();
    until_generation(&mut source, 2).await;
    assert_eq!(who(&*take(&pool).await).await, "app_b");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_are_cached_per_connection_as_in_any_pool() {
    let mut house = House::build().await;
    let mut source = house.follow().open().await.unwrap();
    let pool = pool(&source, 1);
    for generation in 1..=3 {
        until_generation(&mut source, generation).await;
        for _ in 0..3 {
            let client = take(&pool).await;
            let statement = client.prepare_cached("SELECT 1 + $1::int").await.unwrap();
            let sum: i32 = client.query_one(&statement, &[&1]).await.unwrap().get(0);
            assert_eq!((sum, client.statement_cache.size(), client.generation()), (2, 1, generation));
        }
        house.rotate().await;
    }
}
