//! TLS to a server with an untrusted certificate: `require` accepts it, `verify-full` does not.

use crate::house::{House, published};
use crate::server::{Server, Speaks};
use hotload::Source;
use sqlx::postgres::PgPoolOptions;
use std::fs;
use std::time::Duration;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_login_says_how_its_connections_are_protected() {
    let server = Server::start_with(Speaks::Postgresql, |folder| {
        let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        let (certificate, key) = (folder.join("server.crt"), folder.join("server.key"));
        fs::write(&certificate, own.cert.pem()).expect("it can be written");
        fs::write(&key, own.signing_key.serialize_pem()).expect("it can be written");
        vec![
            "ssl=on".to_owned(),
            format!("ssl_cert_file={}", certificate.display()),
            format!("ssl_key_file={}", key.display()),
        ]
    });
    let mut house = House::build_on(server).await;
    let (port, user, password) = (house.server.port, house.user(), house.password());
    let secret = |mode: &str| {
        let mut files = published("postgresql", port, &user, &password);
        files.insert("sslMode".to_owned(), mode.to_owned());
        files
    };
    // Statistics show a user's own session, not those of the role that it acts as.
    let is_protected = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    for (mode, expected) in [("disable", false), ("prefer", true), ("require", true)] {
        house.mount.publish(&secret(mode));
        let source = house.follow().open().await.unwrap();
        let deadpool = hotload::deadpool::pool(&source, 1);
        let client = deadpool.get().await.unwrap();
        client.batch_execute("SET ROLE NONE").await.unwrap();
        let row = client.query_one(is_protected, &[]).await.unwrap();
        assert_eq!(row.get::<_, bool>(0), expected, "deadpool, {mode}");
        let sqlx = hotload::sqlx::postgres(&source, PgPoolOptions::new().max_connections(1)).unwrap();
        let mut connection = sqlx.acquire().await.unwrap();
        sqlx::query("SET ROLE NONE").execute(&mut *connection).await.unwrap();
        let row: bool = sqlx::query_scalar(is_protected).fetch_one(&mut *connection).await.unwrap();
        assert_eq!(row, expected, "sqlx, {mode}");
        drop(connection);
        sqlx.close().await;
    }
    house.mount.publish(&secret("verify-full"));
    let settings = Source::at(house.mount.folder()).patience(Duration::from_secs(2));
    let error = settings.open().await.expect_err("it is untrusted").to_string();
    assert!(error.contains("TLS handshake"), "{error}");
}
