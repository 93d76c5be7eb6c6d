//! The administrator's password goes to the hosts that its Secret names, never in clear text, and a Secret of a tenant
//! is never the administrator's. A server of the attacker's listens, and hears no password.

use conductor::api::database::ADMIN_HOSTS;
use conductor_databases::{Cluster, RealServer, SYSTEM};
use conductor_live::until;
use conductor_sql_plan::sql::Dialect;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const PASSWORD: &str = "the-administrators-own";

/// The answer to every client: a PostgreSQL server that requests the password in clear text.
const REQUEST: [u8; 9] = [b'R', 0, 0, 0, 8, 0, 0, 0, 3];

/// A server of an attacker's.
struct Rogue {
    port: u16,
    heard: Arc<Mutex<Vec<u8>>>,
}

impl Rogue {
    async fn start() -> Rogue {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port is free");
        let port = listener.local_addr().expect("it has an address").port();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&heard);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(listen(client, Arc::clone(&all)));
            }
        });
        Rogue { port, heard }
    }

    fn heard(&self) -> String {
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&heard).into_owned()
    }
}

async fn listen(mut client: TcpStream, all: Arc<Mutex<Vec<u8>>>) -> std::io::Result<()> {
    let mut bytes = [0; 4096];
    let mut is_requested = false;
    loop {
        let count = client.read(&mut bytes).await?;
        if count == 0 {
            return Ok(());
        }
        all.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&bytes[..count]);
        if !is_requested {
            client.write_all(&REQUEST).await?;
            is_requested = true;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_host_gets_a_password_that_is_not_bound_to_it() {
    let cluster = Cluster::enter().await;
    let rogue = Rogue::start().await;
    let controller = cluster.controller();
    put_secret(&cluster, json!({})).await;
    put_server(&cluster, &rogue, json!({"secretName": "master"})).await;
    let own = format!("127.0.0.1:{}", rogue.port);
    let message = cluster.server_reports("main", "does not say that it belongs to").await;
    assert!(
        message.contains("Secret master") && message.contains(&format!("{ADMIN_HOSTS}: \"{own}\"")),
        "{message}"
    );
    put_secret(&cluster, json!({ADMIN_HOSTS: "db.example.com"})).await;
    cluster.server_reports("main", "belongs to db.example.com, and its password is not sent to").await;
    assert_eq!(rogue.heard(), "", "not even a connection is made");
    // Bound to it by an administrator's mistake, the password still does not go out in clear text.
    put_secret(&cluster, json!({ADMIN_HOSTS: own})).await;
    let message = cluster.server_reports("main", "requests the password in clear text").await;
    assert!(message.contains("verify-full") && message.contains("scram-sha-256"), "{message}");
    put_server(&cluster, &rogue, json!({"secretName": "master", "passwordKey": "uri"})).await;
    cluster.server_reports("main", "has a key uri whose name is not that of a password").await;
    let heard = rogue.heard();
    assert!(heard.contains("conductor") && !heard.contains(PASSWORD), "it heard a password");
    controller.stop().await.expect("it stops on request");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_of_a_tenant_is_never_an_administrators() {
    let server = RealServer::start(Dialect::Postgresql).await;
    let cluster = Cluster::enter().await;
    cluster.register("main", &server, json!({})).await;
    let controller = cluster.controller();
    let id = cluster.claim("app", "orders", "main", json!({})).await;
    cluster.login(Dialect::Postgresql, "app", "orders").await;
    let rogue = Rogue::start().await;
    let own = format!("127.0.0.1:{}", rogue.port);
    // The login and the rotation state of its database lie in the system namespace; so may a claim that an administrator created.
    cluster.claim(SYSTEM, "internal", "main", json!({})).await;
    cluster.login(Dialect::Postgresql, SYSTEM, "internal").await;
    for name in [format!("login-{id}"), format!("ledger-{id}"), "internal".to_owned()] {
        let note = Patch::Merge(json!({"metadata": {"annotations": {ADMIN_HOSTS: own.as_str()}}}));
        let noted = cluster.secrets(SYSTEM).patch(&name, &PatchParams::default(), &note).await;
        noted.unwrap_or_else(|error| panic!("{name}: {error}"));
        put_server_named(&cluster, "rogue", &rogue, json!({"secretName": name, "username": "x"})).await;
        until(&format!("{name} is refused"), async || {
            let message = cluster.server_reports("rogue", "is the login of an application").await;
            message.contains(&format!("Secret {name} ")).then_some(())
        })
        .await;
    }
    assert_eq!(rogue.heard(), "", "not even a connection is made");
    controller.stop().await.expect("it stops on request");
}

async fn put_secret(cluster: &Cluster, annotations: Value) {
    cluster
        .turn
        .put(json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "master", "namespace": SYSTEM, "annotations": annotations},
            "stringData": {"username": "conductor", "password": PASSWORD, "uri": format!("p://x:{PASSWORD}@h/d")}}))
        .await;
}

async fn put_server(cluster: &Cluster, rogue: &Rogue, admin: Value) {
    put_server_named(cluster, "main", rogue, admin).await;
}

async fn put_server_named(cluster: &Cluster, name: &str, rogue: &Rogue, admin: Value) {
    cluster
        .turn
        .put(json!({"apiVersion": "database.conductor.io/v1alpha1", "kind": "DatabaseServer",
            "metadata": {"name": name, "namespace": SYSTEM},
            "spec": {"engine": "postgresql", "host": "127.0.0.1", "port": rogue.port, "sslMode": "disable",
                "admin": admin}}))
        .await;
}
