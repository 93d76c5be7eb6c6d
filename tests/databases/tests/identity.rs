//! A registered server that points at another one for a moment, by mistake or by accident of the network: nothing is
//! written there, nothing is forgotten, and an administrator can accept a server that takes the place of the old one.

use conductor_databases::{Cluster, Login, RealServer, SYSTEM};
use conductor_live::until;
use conductor_sql_plan::sql::Dialect;
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::json;

/// Lets the DatabaseServer `main` lead to a server, with its administrator's password.
async fn point(cluster: &Cluster, server: &RealServer) {
    let access = server.access();
    cluster.administrator("main", server.plan.port, (&access.username, access.password.expose())).await;
    let port = Patch::Merge(json!({"spec": {"port": server.plan.port}}));
    cluster.api("DatabaseServer").patch("main", &PatchParams::default(), &port).await.expect("it exists");
}

/// How much of Conductor's is on a server: roles, or users and schemas.
async fn traces(server: &RealServer) -> String {
    let request = match server.plan.dialect {
        Dialect::Postgresql => "SELECT count(*)::text FROM pg_roles WHERE rolname ~ '^(c_|hosts)'",
        Dialect::Mariadb | Dialect::Mysql => {
            "SELECT CAST((SELECT COUNT(*) FROM mysql.user WHERE user LIKE 'c\\_%' OR user LIKE 'hosts%') + (SELECT COUNT(*) \
             FROM information_schema.schemata WHERE schema_name = 'conductor' OR schema_name LIKE 'c\\_%') AS CHAR)"
        }
    };
    Login::admin(&server.access()).run(request).await.expect("the administrator may look").join(",")
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_created_on_another_server_than_the_recorded_one() {
    for dialect in [Dialect::Postgresql, Dialect::Mariadb] {
        let (server, other) = (RealServer::start(dialect).await, RealServer::start(dialect).await);
        let cluster = Cluster::enter().await;
        cluster.register("main", &server, json!({"reclaimPolicy": "Delete", "quarantineMinutes": 0})).await;
        let controller = cluster.controller();
        let kept = cluster.claim("app", "kept", "main", json!({})).await;
        let gone = cluster.claim("app", "gone", "main", json!({})).await;
        let login = cluster.login(dialect, "app", "kept").await;
        login.run("CREATE TABLE t (v INT); INSERT INTO t VALUES (7)").await.expect("it may make tables");
        cluster.login(dialect, "app", "gone").await;
        cluster.record_in(&kept, "Ready").await;
        cluster.record_in(&gone, "Ready").await;
        let before = traces(&server).await;

        point(&cluster, &other).await;
        let message = cluster.server_reports("main", "another server answers").await;
        assert!(message.contains("nothing is changed there"), "{message}");
        let events: Api<Event> = Api::namespaced(cluster.client.clone(), SYSTEM);
        until("an Event says so", async || {
            let all = events.list(&ListParams::default()).await.ok()?;
            all.items.iter().any(|event| event.reason.as_deref() == Some("WrongServer")).then_some(())
        })
        .await;
        // Whatever is wished for meanwhile waits: a new claim, the end of one, a change of a login.
        cluster.claim("app", "fresh", "main", json!({})).await;
        cluster.claim_reports("fresh", "another server answers").await;
        cluster.release("app", "gone").await;
        cluster.record_reports(&gone, "another server answers").await;
        assert_eq!(traces(&other).await, "0", "{dialect:?}: something was made on the other server");

        point(&cluster, &server).await;
        cluster.server_reports("main", "databases can be created on it").await;
        cluster.login(dialect, "app", "fresh").await;
        until("what was to be dropped is", async || cluster.record(&gone).await.is_none().then_some(()))
            .await;
        assert_eq!(login.run("SELECT v FROM t").await, Ok(vec!["7".to_owned()]));
        assert_eq!(traces(&server).await, before, "one came, one went");

        // The server is replaced on purpose. What was made is not made again there, and new claims are served.
        point(&cluster, &other).await;
        let message = cluster.server_reports("main", "accept it").await;
        let accept = message.rsplit('=').next().expect("the value").to_owned();
        let note = json!({"metadata": {"annotations": {"database.conductor.io/accept-server": accept}}});
        let servers = cluster.api("DatabaseServer");
        servers.patch("main", &PatchParams::default(), &Patch::Merge(note)).await.expect("it exists");
        cluster.server_reports("main", "databases can be created on it").await;
        cluster.record_reports(&kept, "is not replaced by an empty one").await;
        assert_eq!(
            traces(&other).await,
            if dialect == Dialect::Postgresql { "0" } else { "1" },
            "{dialect:?}"
        );
        cluster.claim("app", "later", "main", json!({})).await;
        cluster.login(dialect, "app", "later").await.run("SELECT 1").await.expect("the login works");
        let accepted = servers.get("main").await.expect("it exists");
        assert!(
            accepted
                .metadata
                .annotations
                .is_none_or(|all| !all.contains_key("database.conductor.io/accept-server"))
        );
        controller.stop().await.expect("it stops on request");
    }
}
