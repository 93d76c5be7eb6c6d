//! DatabaseClaims on a real API server with real servers: a configuration becomes servers, a DatabaseClaim
//! becomes a claim on the one that its label leads to, and the connection string in its Secret logs in.

use conductor::api::database::ADMIN_HOSTS;
use conductor::api::database::front::{FRONT_GROUP, FRONT_VERSION};
use conductor_controller::Options;
use conductor_databases::{Cluster, Login, RealServer, SYSTEM, cluster::options};
use conductor_live::{Controller, until};
use conductor_sql_plan::sql::Dialect;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

fn database_claims(cluster: &Cluster, namespace: &str) -> Api<DynamicObject> {
    let gvk = GroupVersionKind::gvk(FRONT_GROUP, FRONT_VERSION, "DatabaseClaim");
    Api::namespaced_with(cluster.client.clone(), namespace, &ApiResource::from_gvk(&gvk))
}

async fn put(cluster: &Cluster, namespace: &str, name: &str, spec: Value) {
    cluster.turn.namespace(namespace).await;
    let claim = json!({"apiVersion": "persistance.atlas.infoblox.com/v1", "kind": "DatabaseClaim",
        "metadata": {"name": name, "namespace": namespace}, "spec": spec});
    let patch = Patch::Apply(claim);
    let parameters = PatchParams::apply("test").force();
    database_claims(cluster, namespace).patch(name, &parameters, &patch).await.expect("the API takes it");
}

async fn status(cluster: &Cluster, namespace: &str, name: &str) -> Value {
    let front = database_claims(cluster, namespace).get_opt(name).await.expect("the API answers");
    front.map(|front| front.data["status"].clone()).unwrap_or_default()
}

/// Waits until a DatabaseClaim is served, and gives its status.
async fn served(cluster: &Cluster, namespace: &str, name: &str) -> Value {
    until(&format!("DatabaseClaim {name} is served"), async || {
        let status = status(cluster, namespace, name).await;
        // The time of the login is written after the login itself.
        let message = status["connectionInfo"].is_array() && status["connectionInfoUpdatedAt"].is_string();
        (status["error"] == "" && message).then_some(status)
    })
    .await
}

/// Waits until it says what is wrong.
async fn message(cluster: &Cluster, name: &str, what: &str) -> String {
    until(&format!("DatabaseClaim {name} says {what}"), async || {
        let error = status(cluster, "app", name).await["error"].as_str().unwrap_or_default().to_owned();
        error.contains(what).then_some(error)
    })
    .await
}

/// A login from `name=value` pairs, as drivers read them.
fn from_dsn(text: &str) -> Login {
    let pairs = text.split(' ').filter_map(|pair| pair.split_once('='));
    let keys = pairs.map(|(name, value)| {
        let key = match name {
            "user" => "username",
            "dbname" => "database",
            other => other,
        };
        (key.to_owned(), value.to_owned())
    });
    Login::new(Dialect::Postgresql, keys.collect())
}

fn scratch(name: &str, text: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("conductor-front-{}-{name}", std::process::id()));
    std::fs::write(&path, text).expect("a file can be written");
    path
}

fn example() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/database-claim.yaml");
    std::fs::read_to_string(path).expect("the example is there")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_ends_in_a_connection_string_that_logs_in_and_goes_with_its_claim() {
    let (athena, hostapp) =
        (RealServer::start(Dialect::Postgresql).await, RealServer::start(Dialect::Postgresql).await);
    let cluster = Cluster::enter().await;
    let admin = hostapp.access();
    // The example as it stands, with hosts, ports and passwords that lead to the servers of this test.
    let text = example()
        .replace(
            "host: athena.example.com\n      port: 5432",
            &format!("host: 127.0.0.1\n      port: {}", athena.plan.port),
        )
        .replace(
            "host=hostapp.example.com\n      port=5432",
            &format!("host=127.0.0.1\n      port={}", hostapp.plan.port),
        )
        .replace("athena.example.com:5432", &format!("127.0.0.1:{}", athena.plan.port))
        .replace("hostapp.example.com:5432", &format!("127.0.0.1:{}", hostapp.plan.port))
        .replace("sslMode: require", "sslMode: disable")
        .replace("root", &admin.username);
    let passwords = [athena.access().password, admin.password.clone()];
    let text = passwords.iter().fold(text, |text, password| text.replacen("change-me", password.expose(), 1));
    let manifest = scratch("example.yaml", &text);
    let config = Some("configmap/db-controller-config".to_owned());
    let controller =
        Controller::start(cluster.turn.controller_client(), Options { database_config: config, ..options() });
    cluster.turn.kubectl(&["apply", "-f", manifest.to_str().expect("a plain path")]);
    let status = served(&cluster, "default", "hostapp").await;
    assert_eq!(status["matchedLabel"], "athena.hostapp", "the longest label wins");
    let info = &status["connectionInfo"][0];
    assert_eq!(info["databaseName"], "hosts");
    assert_eq!(info["port"], hostapp.plan.port.to_string());
    assert!(info["username"].as_str().is_some_and(|user| user.starts_with("hostapp_")), "{info}");
    for time in ["dbCreatedAt", "connectionInfoUpdatedAt"] {
        assert!(status[time].as_str().is_some_and(|time| time.starts_with("20")), "{time}: {status}");
    }
    let secret = cluster.published("default", "hostapp-database").await.expect("the Secret is there");
    let login = from_dsn(&secret["dsn.txt"]);
    login.run("CREATE TABLE t (v INT); INSERT INTO t VALUES (7)").await.expect("the DSN logs in");
    for (key, of_login) in [
        ("username", "username"),
        ("password", "password"),
        ("host", "host"),
        ("port", "port"),
        ("databaseName", "database"),
    ] {
        assert_eq!(secret[key], login.get(of_login), "{key}");
    }
    assert!(!secret["userUpdatedAt"].is_empty() && secret["uri_dsn.txt"].starts_with("postgresql://"));
    assert!(!status.to_string().contains(&secret["password"]), "a password stands in the status");
    // A leak: the Secret of the front has the new login before the old one ends.
    let claim = cluster.turn.claim("default", "hostapp").await.expect("it became a claim");
    let id = claim.metadata.uid.clone().expect("it has a UID");
    cluster.rotate(&id, "hard-1").await;
    let changed = until("another login is published", async || {
        let secret = cluster.published("default", "hostapp-database").await?;
        let now = from_dsn(&secret["dsn.txt"]);
        (now != login).then_some(now)
    })
    .await;
    assert_eq!(changed.run("SELECT v FROM t").await, Ok(vec!["7".to_owned()]));
    login.run("SELECT 1").await.expect_err("the old login ends");
    // It goes, and everything with it.
    database_claims(&cluster, "default")
        .delete("hostapp", &DeleteParams::default())
        .await
        .expect("it exists");
    until("it is gone", async || {
        database_claims(&cluster, "default").get_opt("hostapp").await.ok()?.is_none().then_some(())
    })
    .await;
    assert!(cluster.turn.claim("default", "hostapp").await.is_none(), "its claim is gone before it");
    assert_eq!(cluster.published("default", "hostapp-database").await, None);
    until("the login is refused", async || changed.run("SELECT 1").await.err()).await;
    controller.stop().await.expect("it stops on request");
    let _ = std::fs::remove_file(manifest);
}

/// An unregistered server that notices connections.
struct Listener(std::net::TcpListener);

impl Listener {
    fn start() -> Listener {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
        listener.set_nonblocking(true).expect("it can be requested");
        Listener(listener)
    }

    fn port(&self) -> u16 {
        self.0.local_addr().expect("it has an address").port()
    }

    fn was_called(&self) -> bool {
        self.0.accept().is_ok()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_on_demand_is_created_shared_and_deleted_with_its_last_claim() {
    on_demand(Dialect::Postgresql, "postgresql", "Postgres").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_label_without_a_host_on_mariadb() {
    on_demand(Dialect::Mariadb, "mariadb", "MySQL").await;
}

async fn on_demand(dialect: Dialect, engine: &str, type_: &str) {
    let cluster = Cluster::enter().await;
    let folder = std::env::temp_dir().join(format!("conductor-demand-{}-{engine}", std::process::id()));
    let text = format!("defaultShape: small\ndemand:\n  type: {type_}\n  reclaimPolicy: delete\n");
    let path = scratch("demand.yaml", &text);
    let controller = Controller::start(
        cluster.turn.controller_client(),
        Options {
            database_config: Some(path.to_str().expect("a plain path").to_owned()),
            local_servers: Some(folder.clone()),
            ..options()
        },
    );
    let claim = |app: &str, more: Value| {
        let mut spec = json!({"AppID": app, "Type": type_, "InstanceLabel": "demand.eu", "Username": app});
        spec.as_object_mut().expect("a map").extend(more.as_object().cloned().unwrap_or_default());
        spec
    };
    // Two that wait for the same label: they are served together, and by one server.
    put(&cluster, "app", "one", claim("one", json!({}))).await;
    put(&cluster, "app", "two", claim("two", json!({"Shape": "small"}))).await;
    message(&cluster, "one", "a class with it that creates one on demand").await;
    // An administrator says how a small one is made; the label gets a class of its own.
    let databases = json!({"quarantineMinutes": 0});
    cluster
        .turn
        .put(json!({
            "apiVersion": "storage.conductor.io/v1alpha1", "kind": "RelationalDatabaseClass",
            "metadata": {"name": "small", "namespace": SYSTEM}, "engine": engine, "labels": {"shape": "small"},
            "template": {"apiVersion": "database.conductor.io/v1alpha1", "kind": "LocalServer",
                "spec": {"engine": engine, "databases": databases}},
        }))
        .await;
    let first = served(&cluster, "app", "one").await;
    assert_eq!(first["matchedLabel"], "demand");
    let second = served(&cluster, "app", "two").await;
    let port = |status: &Value| status["connectionInfo"][0]["port"].clone();
    assert_eq!(port(&first), port(&second), "a label is one server");
    assert_eq!(count(&folder), 1);
    for (name, spec, what) in [
        ("shape", claim("x", json!({"Shape": "huge"})), "spec.Shape"),
        ("host", claim("y", json!({"Host": "127.0.0.1"})), "is created on demand and has no address yet"),
    ] {
        put(&cluster, "app", name, spec).await;
        message(&cluster, name, what).await;
    }
    let login = async |name: &str| {
        let keys = cluster.published("app", name).await.expect("it is published");
        let keys = keys.into_iter().map(|(key, value)| match key.as_str() {
            "databaseName" => ("database".to_owned(), value),
            _ => (key, value),
        });
        Login::new(dialect, keys.collect())
    };
    let (one, two) = (login("one").await, login("two").await);
    one.run("CREATE TABLE t (v INT)").await.expect("the login works");
    two.run("CREATE TABLE t (v INT)").await.expect("so does the other");
    assert!(two.at(one.get("database")).run("SELECT v FROM t").await.is_err(), "{dialect:?}");
    // The last one takes the server along; the one before does not.
    for (name, left) in [("one", 1), ("two", 0)] {
        database_claims(&cluster, "app").delete(name, &DeleteParams::default()).await.expect("it exists");
        until("its claim is gone", async || cluster.turn.claim("app", name).await.is_none().then_some(()))
            .await;
        until(&format!("{left} servers are left"), async || (count(&folder) == left).then_some(())).await;
        if left == 1 {
            two.run("SELECT v FROM t").await.expect("the other goes on");
        }
    }
    until("the resource is gone", async || {
        let api = cluster.api("LocalServer");
        api.list(&ListParams::default()).await.ok()?.items.is_empty().then_some(())
    })
    .await;
    controller.stop().await.expect("it stops on request");
    let _ = std::fs::remove_dir_all(&folder);
    let _ = std::fs::remove_file(path);
}

/// How many servers have data in a folder.
fn count(folder: &Path) -> usize {
    std::fs::read_dir(folder).map(Iterator::count).unwrap_or(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_followed_as_it_changes_and_bad_claims_say_what_is_wrong_with_them() {
    let server = RealServer::start(Dialect::Postgresql).await;
    let cluster = Cluster::enter().await;
    let access = server.access();
    cluster
        .turn
        .put(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "root", "namespace": SYSTEM,
                "annotations": {ADMIN_HOSTS: format!("127.0.0.1:{}", server.plan.port)}},
            "stringData": {"root-password": access.password.expose()}}))
        .await;
    let instance = |label: &str, more: &str| {
        format!(
            "{label}:\n  username: {}\n  host: 127.0.0.1\n  port: {}\n  passwordSecretRef: root\n  passwordSecretKey: root-password\n{more}",
            access.username, server.plan.port
        )
    };
    let listener = Listener::start();
    let path = scratch("config.yaml", &instance("atlas", "  shape: small\n  minStorageGB: 20\n"));
    let config = Some(path.to_str().expect("a plain path").to_owned());
    let controller =
        Controller::start(cluster.turn.controller_client(), Options { database_config: config, ..options() });
    put(&cluster, "app", "unknown", json!({"AppID": "a", "InstanceLabel": "athena"})).await;
    message(&cluster, "unknown", "there are atlas; register a DatabaseServer").await;
    for (name, spec, what) in [
        ("field", json!({"InstanceLabel": "atlas", "Colour": "red"}), "`Colour` is not known"),
        (
            "name",
            json!({"InstanceLabel": "atlas", "DatabaseName": "x\"; DROP DATABASE y"}),
            "spec.DatabaseName",
        ),
        ("port", json!({"InstanceLabel": "atlas", "Port": 1}), "spec.Port: instance atlas (atlas) has"),
        // The administrator's password is never sent to an unregistered host.
        (
            "host",
            json!({"InstanceLabel": "atlas", "Host": "127.0.0.1", "Port": listener.port()}),
            "only registered servers can be named, because the administrator's password is sent there: leave it out, \
             or have an administrator register a DatabaseServer with it",
        ),
        ("type", json!({"InstanceLabel": "atlas", "Type": "MySQL"}), "spec.Type"),
        ("shape", json!({"InstanceLabel": "atlas", "Shape": "large"}), "spec.Shape"),
        ("storage", json!({"InstanceLabel": "atlas", "MinStorageGB": 21}), "spec.MinStorageGB"),
    ] {
        put(&cluster, "app", name, spec).await;
        message(&cluster, name, what).await;
        assert!(cluster.turn.claim("app", name).await.is_none(), "{name} became a claim");
    }
    assert!(!listener.was_called(), "a host that only a claim names was connected to");
    // The problem is fixed, by its owner or by the administrator.
    put(
        &cluster,
        "app",
        "port",
        json!({"AppID": "ports", "InstanceLabel": "atlas.recyclebin", "Port": server.plan.port,
        "Host": "127.0.0.1", "Shape": "small", "MinStorageGB": 20, "DSNName": "dsn"}),
    )
    .await;
    assert_eq!(served(&cluster, "app", "port").await["matchedLabel"], "atlas");
    let text = std::fs::read_to_string(&path).expect("it exists");
    std::fs::write(&path, format!("{text}{}", instance("athena", ""))).expect("it can be written");
    assert_eq!(served(&cluster, "app", "unknown").await["matchedLabel"], "athena");
    let secret = cluster.published("app", "unknown").await.expect("the Secret has the claim's name");
    from_dsn(&secret["dsn"]).run("SELECT 1").await.expect("the DSN logs in");
    // Two applications do not get one database: its name is taken.
    put(&cluster, "other", "port", json!({"AppID": "ports", "InstanceLabel": "atlas"})).await;
    until("the second says that the name is taken", async || {
        let error = status(&cluster, "other", "port").await["error"].to_string();
        error.contains("belongs to another claim: choose another spec.DatabaseName").then_some(())
    })
    .await;
    // What its message advises helps.
    let chosen = json!({"AppID": "ports", "InstanceLabel": "atlas", "DatabaseName": "ports_of_other"});
    put(&cluster, "other", "port", chosen).await;
    let status = served(&cluster, "other", "port").await;
    assert_eq!(status["connectionInfo"][0]["databaseName"], "ports_of_other");
    controller.stop().await.expect("it stops on request");
    let _ = std::fs::remove_file(path);
}
