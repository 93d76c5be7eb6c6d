//! Logins change under load. Graceful: not one transaction fails, and every login with the mounted files succeeds, twenty
//! times a second. Hard: open transactions end, and the application continues by itself.

use crate::house::{House, until_generation};
use crate::load::{Application, Load, books, make_tables};
use crate::probe::Probe;
use deadpool_postgres::tokio_postgres::{Client, NoTls, connect};
use hotload::Source;

const SCALE: u64 = 2;
const CLIENTS: u64 = 6;
/// Fewer than clients: connections are lent all the time.
const CONNECTIONS: usize = 4;
const GRACEFUL: u64 = 12;
/// Transactions between two changes.
const BETWEEN: u64 = 600;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_deadpool_under_load_follows_every_change() {
    let house = House::build().await;
    let source = house.follow().open().await.unwrap();
    let pool = hotload::deadpool::pool(&source, CONNECTIONS);
    changes_under_load("deadpool-postgres", house, source, pool).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_sqlx_pool_under_load_follows_every_change() {
    let house = House::build().await;
    let source = house.follow().open().await.unwrap();
    let options = sqlx::postgres::PgPoolOptions::new().max_connections(CONNECTIONS as u32);
    let pool = hotload::sqlx::postgres(&source, options).unwrap();
    changes_under_load("sqlx", house, source, pool.clone()).await;
    pool.close().await;
}

async fn changes_under_load(name: &str, mut house: House, mut source: Source, application: impl Application) {
    make_tables(SCALE, house.server.port, &house.user(), &house.password(), "orders");
    let probe = Probe::start(house.mount.folder());
    let orders = house.orders().await;

    let load = Load::start(&application, CLIENTS, SCALE);
    for turn in 0..GRACEFUL {
        load.run_on(BETWEEN).await;
        let before = house.user();
        house.rotate().await;
        until_generation(&mut source, turn + 2).await;
        // Used connections return to the pool, and the earlier user is free for the next rotation.
        house.until_sessions(&before, 0).await;
    }
    load.run_on(BETWEEN).await;
    let count = load.stop().await;
    let (rows, sums) = books(&orders).await;
    println!(
        "{name}: {GRACEFUL} graceful changes, {} transactions, {} failed",
        count.committed(),
        count.failed()
    );
    assert_eq!(count.failed(), 0, "{}", count.last_failure.lock().unwrap());
    assert_eq!(rows, count.committed());
    assert!(sums.iter().all(|sum| *sum == sums[0]), "{sums:?}");

    let load = Load::start(&application, CLIENTS, SCALE);
    load.run_on(BETWEEN).await;
    let before = house.user();
    house.rotate_hard().await;
    until_generation(&mut source, GRACEFUL + 2).await;
    house.until_sessions(&before, 0).await;
    load.run_on(BETWEEN).await;
    // Everything of before is over; from here on nothing fails.
    let failed = load.count().failed();
    load.run_on(BETWEEN).await;
    let hard = load.stop().await;
    let (all, sums) = books(&orders).await;
    println!("{name}: 1 hard change, {} transactions, {} failed", hard.committed(), hard.failed());
    assert_eq!(hard.failed(), failed, "{}", hard.last_failure.lock().unwrap());
    // A commit whose answer was lost may have happened.
    let range = rows + hard.committed()..=rows + hard.committed() + hard.failed();
    assert!(
        range.contains(&all) && sums.iter().all(|sum| *sum == sums[0]),
        "{all} rows, {range:?}, {sums:?}"
    );

    let (logins, refused) = probe.stop().await;
    println!("{name}: {logins} logins with what was mounted, {} refused", refused.len());
    assert!(logins > 0 && refused.is_empty(), "{refused:?}");
}

impl House {
    /// The administrator in the application's database.
    async fn orders(&self) -> Client {
        let password = crate::server::ADMIN;
        let address = format!(
            "host=127.0.0.1 port={} user=postgres password={password} dbname=orders",
            self.server.port
        );
        let (client, connection) = connect(&address, NoTls).await.expect("the server answers");
        tokio::spawn(connection);
        client
    }
}
