//! What the metrics count, on a controller that runs: a first login is no rotation, and a DatabaseClaim that is refused is
//! counted once. Changes that are held up are counted in `deadline`.

use conductor::api::database::front::{FRONT_GROUP, FRONT_VERSION};
use conductor_databases::{Cluster, Metrics, RealServer};
use conductor_live::{Controller, until};
use conductor_sql_plan::sql::Dialect;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use serde_json::json;

const ROTATIONS: &str = "conductor_database_rotations_total";
const FAILED: &str = "conductor_database_rotations_failed_total";
const REFUSED: &str = "conductor_database_claims_refused_total";

/// Waits until a figure is as expected. One that was never counted is not shown.
async fn count(metrics: Metrics, name: &str, expected: f64) {
    until(&format!("{name} is {expected}"), async || {
        // The page is there: what is not on it is zero.
        let is_shown = metrics.text().await.contains("conductor_databases");
        (is_shown && metrics.sum(name).await.unwrap_or(0.0) == expected).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_login_is_no_rotation() {
    let server = RealServer::start(Dialect::Postgresql).await;
    let cluster = Cluster::enter().await;
    cluster.register("main", &server, json!({})).await;
    let metrics = Metrics::choose();
    let controller = Controller::start(cluster.turn.controller_client(), metrics.options());
    let id = cluster.claim("app", "orders", "main", json!({})).await;
    cluster.login(Dialect::Postgresql, "app", "orders").await;
    cluster.record_in(&id, "Ready").await;
    count(metrics, "conductor_database_users_created_total", 2.0).await;
    count(metrics, ROTATIONS, 0.0).await;
    cluster.rotate(&id, "soft-1").await;
    count(metrics, ROTATIONS, 1.0).await;
    cluster.rotate(&id, "hard-1").await;
    count(metrics, ROTATIONS, 2.0).await;
    count(metrics, FAILED, 0.0).await;
    controller.stop().await.expect("it stops on request");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_database_claim_is_counted() {
    let cluster = Cluster::enter().await;
    let metrics = Metrics::choose();
    let controller = Controller::start(cluster.turn.controller_client(), metrics.options());
    count(metrics, REFUSED, 0.0).await;
    cluster.turn.namespace("app").await;
    let gvk = GroupVersionKind::gvk(FRONT_GROUP, FRONT_VERSION, "DatabaseClaim");
    let database_claims: Api<DynamicObject> =
        Api::namespaced_with(cluster.client.clone(), "app", &ApiResource::from_gvk(&gvk));
    let claim = json!({"apiVersion": format!("{FRONT_GROUP}/{FRONT_VERSION}"), "kind": "DatabaseClaim",
        "metadata": {"name": "orders", "namespace": "app"},
        "spec": {"appId": "x", "databaseName": "orders", "instanceLabel": "nowhere", "secretName": "not a name!",
            "username": "orders"}});
    let parameters = PatchParams::apply("test").force();
    database_claims.patch("orders", &parameters, &Patch::Apply(claim)).await.expect("the API takes it");
    let message = until("it says what is wrong", async || {
        let front = database_claims.get_opt("orders").await.ok()??;
        front.data["status"]["error"].as_str().filter(|error| !error.is_empty()).map(str::to_owned)
    })
    .await;
    println!("reported: {message}");
    count(metrics, REFUSED, 1.0).await;
    controller.stop().await.expect("it stops on request");
}
