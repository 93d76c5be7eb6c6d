//! The second front on a real API server with real servers: a fleet's configuration becomes servers, a DatabaseClaim
//! becomes a claim on the one that its label leads to, and the connection string in its Secret logs in.

use conductor::api::database::ADMIN_HOSTS;
use conductor::api::database::front::{FRONT_GROUP, FRONT_VERSION};
use conductor_controller::Options;
use conductor_databases::{House, Login, RealServer, SYSTEM, house::options};
use conductor_live::{Controller, until};
use conductor_sql_plan::sql::Dialect;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

fn fronts(house: &House, namespace: &str) -> Api<DynamicObject> {
    let gvk = GroupVersionKind::gvk(FRONT_GROUP, FRONT_VERSION, "DatabaseClaim");
    Api::namespaced_with(house.client.clone(), namespace, &ApiResource::from_gvk(&gvk))
}

async fn put(house: &House, namespace: &str, name: &str, spec: Value) {
    house.turn.namespace(namespace).await;
    let claim = json!({"apiVersion": "persistance.atlas.infoblox.com/v1", "kind": "DatabaseClaim",
        "metadata": {"name": name, "namespace": namespace}, "spec": spec});
    let patch = Patch::Apply(claim);
    let parameters = PatchParams::apply("test").force();
    fronts(house, namespace).patch(name, &parameters, &patch).await.expect("the API takes it");
}

async fn status(house: &House, namespace: &str, name: &str) -> Value {
    let front = fronts(house, namespace).get_opt(name).await.expect("the API answers");
    front.map(|front| front.data["status"].clone()).unwrap_or_default()
}

/// Waits until a DatabaseClaim is served, and gives its status.
async fn served(house: &House, namespace: &str, name: &str) -> Value {
    until(&format!("DatabaseClaim {name} is served"), async || {
        let status = status(house, namespace, name).await;
        // The time of the login is written after the login itself.
        let told = status["connectionInfo"].is_array() && status["connectionInfoUpdatedAt"].is_string();
        (status["error"] == "" && told).then_some(status)
    })
    .await
}

/// Waits until it says what is wrong.
async fn told(house: &House, name: &str, what: &str) -> String {
    until(&format!("DatabaseClaim {name} says {what}"), async || {
        let error = status(house, "app", name).await["error"].as_str().unwrap_or_default().to_owned();
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
    let house = House::enter().await;
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
        Controller::start(house.turn.controller_client(), Options { database_config: config, ..options() });
    house.turn.kubectl(&["apply", "-f", manifest.to_str().expect("a plain path")]);
    let status = served(&house, "default", "hostapp").await;
    assert_eq!(status["matchedLabel"], "athena.hostapp", "the longest label wins");
    let info = &status["connectionInfo"][0];
    assert_eq!(info["databaseName"], "hosts");
    assert_eq!(info["port"], hostapp.plan.port.to_string());
    assert!(info["username"].as_str().is_some_and(|user| user.starts_with("hostapp_")), "{info}");
    for time in ["dbCreatedAt", "connectionInfoUpdatedAt"] {
        assert!(status[time].as_str().is_some_and(|time| time.starts_with("20")), "{time}: {status}");
    }
    let secret = house.published("default", "hostapp-database").await.expect("the Secret is there");
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
    let claim = house.turn.claim("default", "hostapp").await.expect("it became a claim");
    let id = claim.metadata.uid.clone().expect("it has a UID");
    house.rotate(&id, "hard-1").await;
    let changed = until("another login is published", async || {
        let secret = house.published("default", "hostapp-database").await?;
        let now = from_dsn(&secret["dsn.txt"]);
        (now != login).then_some(now)
    })
    .await;
    assert_eq!(changed.run("SELECT v FROM t").await, Ok(vec!["7".to_owned()]));
    login.run("SELECT 1").await.expect_err("the old login ends");
    // It goes, and everything with it.
    fronts(&house, "default").delete("hostapp", &DeleteParams::default()).await.expect("it is there");
    until("it is gone", async || {
        fronts(&house, "default").get_opt("hostapp").await.ok()?.is_none().then_some(())
    })
    .await;
    assert!(house.turn.claim("default", "hostapp").await.is_none(), "its claim is gone before it");
    assert_eq!(house.published("default", "hostapp-database").await, None);
    until("the login is refused", async || changed.run("SELECT 1").await.err()).await;
    controller.stop().await.expect("it stops when asked to");
    let _ = std::fs::remove_file(manifest);
}

/// A place that nobody registered, and that notices who comes.
struct Listener(std::net::TcpListener);

impl Listener {
    fn start() -> Listener {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
        listener.set_nonblocking(true).expect("it can be asked");
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
async fn a_label_without_a_host_has_its_server_made_on_demand_shared_and_gone_with_the_last_claim() {
    on_demand(Dialect::Postgresql, "postgresql", "Postgres").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_label_without_a_host_on_mariadb() {
    on_demand(Dialect::Mariadb, "mariadb", "MySQL").await;
}

async fn on_demand(dialect: Dialect, engine: &str, word: &str) {
    let house = House::enter().await;
    let folder = std::env::temp_dir().join(format!("conductor-demand-{}-{engine}", std::process::id()));
    let text = format!("defaultShape: small\ndemand:\n  type: {word}\n  reclaimPolicy: delete\n");
    let path = scratch("demand.yaml", &text);
    let controller = Controller::start(
        house.turn.controller_client(),
        Options {
            database_config: Some(path.to_str().expect("a plain path").to_owned()),
            local_servers: Some(folder.clone()),
            ..options()
        },
    );
    let claim = |app: &str, more: Value| {
        let mut spec = json!({"AppID": app, "Type": word, "InstanceLabel": "demand.eu", "Username": app});
        spec.as_object_mut().expect("a map").extend(more.as_object().cloned().unwrap_or_default());
        spec
    };
    // Two that wait for the same label: they are served together, and by one server.
    put(&house, "app", "one", claim("one", json!({}))).await;
    put(&house, "app", "two", claim("two", json!({"Shape": "small"}))).await;
    told(&house, "one", "a class with it that makes one on demand").await;
    // An administrator says how a small one is made; the label gets a class of its own.
    let databases = json!({"quarantineMinutes": 0});
    house
        .turn
        .put(json!({
            "apiVersion": "storage.conductor.io/v1alpha1", "kind": "RelationalDatabaseClass",
            "metadata": {"name": "small", "namespace": SYSTEM}, "engine": engine, "labels": {"shape": "small"},
            "template": {"apiVersion": "database.conductor.io/v1alpha1", "kind": "LocalServer",
                "spec": {"engine": engine, "databases": databases}},
        }))
        .await;
    let first = served(&house, "app", "one").await;
    assert_eq!(first["matchedLabel"], "demand");
    let second = served(&house, "app", "two").await;
    let port = |status: &Value| status["connectionInfo"][0]["port"].clone();
    assert_eq!(port(&first), port(&second), "a label is one server");
    assert_eq!(count(&folder), 1);
    for (name, spec, what) in [
        ("shape", claim("x", json!({"Shape": "huge"})), "spec.Shape"),
        ("host", claim("y", json!({"Host": "127.0.0.1"})), "is made on demand and has no address yet"),
    ] {
        put(&house, "app", name, spec).await;
        told(&house, name, what).await;
    }
    let login = async |name: &str| {
        let keys = house.published("app", name).await.expect("it is published");
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
        fronts(&house, "app").delete(name, &DeleteParams::default()).await.expect("it is there");
        until("its claim is gone", async || house.turn.claim("app", name).await.is_none().then_some(()))
            .await;
        until(&format!("{left} servers are left"), async || (count(&folder) == left).then_some(())).await;
        if left == 1 {
            two.run("SELECT v FROM t").await.expect("the other goes on");
        }
    }
    until("the resource is gone", async || {
        let api = house.api("LocalServer");
        api.list(&ListParams::default()).await.ok()?.items.is_empty().then_some(())
    })
    .await;
    controller.stop().await.expect("it stops when asked to");
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
    let house = House::enter().await;
    let access = server.access();
    house
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
        Controller::start(house.turn.controller_client(), Options { database_config: config, ..options() });
    put(&house, "app", "unknown", json!({"AppID": "a", "InstanceLabel": "athena"})).await;
    told(&house, "unknown", "there are atlas; register a DatabaseServer").await;
    for (name, spec, what) in [
        ("field", json!({"InstanceLabel": "atlas", "Colour": "red"}), "`Colour` is not known"),
        (
            "name",
            json!({"InstanceLabel": "atlas", "DatabaseName": "x\"; DROP DATABASE y"}),
            "spec.DatabaseName",
        ),
        ("port", json!({"InstanceLabel": "atlas", "Port": 1}), "spec.Port: instance atlas (atlas) has"),
        // Nobody sends an administrator's password to a host that nobody registered.
        (
            "host",
            json!({"InstanceLabel": "atlas", "Host": "127.0.0.1", "Port": listener.port()}),
            "only registered servers can be named, because the administrator's password is sent there: leave it out, \
             or ask for a DatabaseServer with it",
        ),
        ("type", json!({"InstanceLabel": "atlas", "Type": "MySQL"}), "spec.Type"),
        ("shape", json!({"InstanceLabel": "atlas", "Shape": "large"}), "spec.Shape"),
        ("storage", json!({"InstanceLabel": "atlas", "MinStorageGB": 21}), "spec.MinStorageGB"),
    ] {
        put(&house, "app", name, spec).await;
        told(&house, name, what).await;
        assert!(house.turn.claim("app", name).await.is_none(), "{name} became a claim");
    }
    assert!(!listener.was_called(), "somebody was connected to that only a claim names");
    // What was wrong is mended, by its owner or by the administrator.
    put(
        &house,
        "app",
        "port",
        json!({"AppID": "ports", "InstanceLabel": "atlas.recyclebin", "Port": server.plan.port,
        "Host": "127.0.0.1", "Shape": "small", "MinStorageGB": 20, "DSNName": "dsn"}),
    )
    .await;
    assert_eq!(served(&house, "app", "port").await["matchedLabel"], "atlas");
    let text = std::fs::read_to_string(&path).expect("it is there");
    std::fs::write(&path, format!("{text}{}", instance("athena", ""))).expect("it can be written");
    assert_eq!(served(&house, "app", "unknown").await["matchedLabel"], "athena");
    let secret = house.published("app", "unknown").await.expect("the Secret has the claim's name");
    from_dsn(&secret["dsn"]).run("SELECT 1").await.expect("the DSN logs in");
    // Two applications do not get one database: its name is taken.
    put(&house, "other", "port", json!({"AppID": "ports", "InstanceLabel": "atlas"})).await;
    until("the second says that the name is taken", async || {
        let error = status(&house, "other", "port").await["error"].to_string();
        error.contains("is another claim's: choose another spec.DatabaseName").then_some(())
    })
    .await;
    // What its message advises helps.
    let chosen = json!({"AppID": "ports", "InstanceLabel": "atlas", "DatabaseName": "ports_of_other"});
    put(&house, "other", "port", chosen).await;
    let status = served(&house, "other", "port").await;
    assert_eq!(status["connectionInfo"][0]["databaseName"], "ports_of_other");
    controller.stop().await.expect("it stops when asked to");
    let _ = std::fs::remove_file(path);
}
