//! Databases that outlast their claims on servers that were made on demand: the server stays with them, the claim that
//! comes back finds them, and the server goes when nothing is left on it.

use conductor::api::database::front::{FRONT_GROUP, FRONT_VERSION};
use conductor_controller::Options;
use conductor_databases::cluster::options;
use conductor_databases::server::new_folder;
use conductor_databases::{Cluster, Login, SYSTEM};
use conductor_live::{Controller, until};
use conductor_sql::command::undelete;
use conductor_sql_plan::sql::Dialect;
use kube::ResourceExt;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use std::path::PathBuf;

/// A controller with one label that is made on demand, and the folder of its servers.
struct Demand {
    cluster: Cluster,
    controller: Controller,
    files: [PathBuf; 2],
}

impl Demand {
    /// `policy` is the label's; the class of its shape drops databases at once.
    async fn start(policy: &str) -> Demand {
        let cluster = Cluster::enter().await;
        let (folder, config) = (new_folder(), new_folder());
        std::fs::write(&config, format!("demand:\n  reclaimPolicy: {policy}\n"))
            .expect("a file can be written");
        let template = json!({"apiVersion": "database.conductor.io/v1alpha1", "kind": "LocalServer",
            "spec": {"engine": "postgresql", "databases": {"reclaimPolicy": "Delete", "quarantineMinutes": 0}}});
        cluster
            .turn
            .put(json!({"apiVersion": "storage.conductor.io/v1alpha1", "kind": "RelationalDatabaseClass",
                "metadata": {"name": "plain", "namespace": SYSTEM}, "engine": "postgresql", "template": template}))
            .await;
        let database_config = Some(config.display().to_string());
        let options = Options { database_config, local_servers: Some(folder.clone()), ..options() };
        let controller = Controller::start(cluster.turn.controller_client(), options);
        Demand { cluster, controller, files: [folder, config] }
    }

    fn database_claims(&self) -> Api<DynamicObject> {
        let gvk = GroupVersionKind::gvk(FRONT_GROUP, FRONT_VERSION, "DatabaseClaim");
        Api::namespaced_with(self.cluster.client.clone(), "app", &ApiResource::from_gvk(&gvk))
    }

    /// Writes the DatabaseClaim `app/hosts` and gives its login.
    async fn claim(&self, more: Value) -> Login {
        self.cluster.turn.namespace("app").await;
        let mut spec = json!({"AppID": "hosts", "InstanceLabel": "demand"});
        spec.as_object_mut().expect("a map").extend(more.as_object().cloned().unwrap_or_default());
        let claim = json!({"apiVersion": format!("{FRONT_GROUP}/{FRONT_VERSION}"), "kind": "DatabaseClaim",
            "metadata": {"name": "hosts", "namespace": "app"}, "spec": spec});
        let parameters = PatchParams::apply("test").force();
        self.database_claims()
            .patch("hosts", &parameters, &Patch::Apply(claim))
            .await
            .expect("the API takes it");
        until("the DatabaseClaim has a login that works", async || {
            let mut keys = self.cluster.published("app", "hosts").await?;
            let database = keys.get("databaseName").cloned()?;
            keys.insert("database".to_owned(), database);
            let login = Login::new(Dialect::Postgresql, keys);
            login.run("SELECT 1").await.is_ok().then_some(login)
        })
        .await
    }

    /// Deletes the DatabaseClaim, and waits until it and its claim are gone. Gives the id of its database.
    async fn delete(&self) -> String {
        let claim = self.cluster.turn.claim("app", "hosts").await.expect("it has a claim");
        self.database_claims().delete("hosts", &DeleteParams::default()).await.expect("it exists");
        until("it is gone", async || {
            self.database_claims().get_opt("hosts").await.ok()?.is_none().then_some(())
        })
        .await;
        claim.uid().expect("a UID")
    }

    async fn servers(&self) -> Vec<DynamicObject> {
        self.cluster.api("LocalServer").list(&ListParams::default()).await.expect("the API lists").items
    }

    /// Waits until the only server is offered again.
    async fn takes_claims_again(&self) {
        until("its server takes claims again", async || {
            let servers = self.servers().await;
            let [server] = &servers[..] else { panic!("one server, and no other") };
            assert!(
                server.metadata.deletion_timestamp.is_none(),
                "the server of a kept database is being deleted"
            );
            let kind = conductor::model::Kind::Resource(conductor::model::TypeId::RELATIONAL_DATABASE);
            let all = self.cluster.turn.objects(kind, SYSTEM).list(&ListParams::default()).await.ok()?;
            all.items.iter().any(|found| found.data["status"]["phase"] == "Available").then_some(())
        })
        .await;
    }

    async fn stop(self) {
        self.controller.stop().await.expect("it stops on request");
        let _ = std::fs::remove_dir_all(&self.files[0]);
        let _ = std::fs::remove_file(&self.files[1]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recycled_database_keeps_its_server_and_comes_back() {
    let demand = Demand::start("delete").await;
    let login = demand.claim(json!({"DeletePolicy": "recycle"})).await;
    login.run("CREATE TABLE t (v INT); INSERT INTO t VALUES (7)").await.expect("it may make tables");
    let id = demand.delete().await;
    demand.cluster.record_in(&id, "Retained").await;
    demand.takes_claims_again().await;
    undelete(&demand.cluster.client, SYSTEM, ("app", "hosts")).await.expect("it is kept");
    let again = demand.claim(json!({})).await;
    assert_eq!(again.run("SELECT v FROM t").await, Ok(vec!["7".to_owned()]), "with its data");
    assert_eq!(demand.servers().await.len(), 1, "on the server that it was on");
    // Without the wish to keep it, the server goes with its last claim as its label says.
    until("its record is to be dropped", async || {
        let all = demand.cluster.api("LogicalDatabase").list(&ListParams::default()).await.ok()?;
        (all.items.first()?.data["spec"]["reclaimPolicy"] == "Delete").then_some(())
    })
    .await;
    demand.delete().await;
    until("the server is gone", async || demand.servers().await.is_empty().then_some(())).await;
    demand.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_label_that_retains_keeps_databases_too() {
    let demand = Demand::start("retain").await;
    let login = demand.claim(json!({})).await;
    login.run("CREATE TABLE t (v INT); INSERT INTO t VALUES (7)").await.expect("it may make tables");
    let id = demand.delete().await;
    demand.cluster.record_in(&id, "Retained").await;
    demand.takes_claims_again().await;
    undelete(&demand.cluster.client, SYSTEM, ("app", "hosts")).await.expect("it is kept");
    let again = demand.claim(json!({})).await;
    assert_eq!(again.run("SELECT v FROM t").await, Ok(vec!["7".to_owned()]), "with its data");
    assert_eq!(demand.servers().await.len(), 1, "on the server that it was on");
    demand.stop().await;
}
