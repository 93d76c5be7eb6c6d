//! What the figures count, on a controller that runs: a first login is no rotation, and a DatabaseClaim that is refused is
//! counted once. Changes that are held up are counted in `deadline`.

use conductor::api::database::front::{FRONT_GROUP, FRONT_VERSION};
use conductor_databases::{Figures, House, RealServer};
use conductor_live::{Controller, until};
use conductor_sql_plan::sql::Dialect;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use serde_json::json;

const ROTATIONS: &str = "conductor_database_rotations_total";
const FAILED: &str = "conductor_database_rotations_failed_total";
const REFUSED: &str = "conductor_database_claims_refused_total";

/// Waits until a figure is as expected. One that was never counted is not shown.
async fn count(figures: Figures, name: &str, expected: f64) {
    until(&format!("{name} is {expected}"), async || {
        // The page is there: what is not on it is zero.
        let is_shown = figures.text().await.contains("conductor_databases");
        (is_shown && figures.sum(name).await.unwrap_or(0.0) == expected).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_login_is_no_rotation() {
    let server = RealServer::start(Dialect::Postgresql).await;
    let house = House::enter().await;
    house.register("main", &server, json!({})).await;
    let figures = Figures::choose();
    let controller = Controller::start(house.turn.controller_client(), figures.options());
    let id = house.claim("app", "orders", "main", json!({})).await;
    house.login(Dialect::Postgresql, "app", "orders").await;
    house.record_in(&id, "Ready").await;
    count(figures, "conductor_database_users_created_total", 2.0).await;
    count(figures, ROTATIONS, 0.0).await;
    house.rotate(&id, "soft-1").await;
    count(figures, ROTATIONS, 1.0).await;
    house.rotate(&id, "hard-1").await;
    count(figures, ROTATIONS, 2.0).await;
    count(figures, FAILED, 0.0).await;
    controller.stop().await.expect("it stops when asked to");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_database_claim_is_counted() {
    let house = House::enter().await;
    let figures = Figures::choose();
    let controller = Controller::start(house.turn.controller_client(), figures.options());
    count(figures, REFUSED, 0.0).await;
    house.turn.namespace("app").await;
    let gvk = GroupVersionKind::gvk(FRONT_GROUP, FRONT_VERSION, "DatabaseClaim");
    let fronts: Api<DynamicObject> =
        Api::namespaced_with(house.client.clone(), "app", &ApiResource::from_gvk(&gvk));
    let claim = json!({"apiVersion": format!("{FRONT_GROUP}/{FRONT_VERSION}"), "kind": "DatabaseClaim",
        "metadata": {"name": "orders", "namespace": "app"},
        "spec": {"appId": "x", "databaseName": "orders", "instanceLabel": "nowhere", "secretName": "not a name!",
            "username": "orders"}});
    let parameters = PatchParams::apply("test").force();
    fronts.patch("orders", &parameters, &Patch::Apply(claim)).await.expect("the API takes it");
    let told = until("it says what is wrong", async || {
        let front = fronts.get_opt("orders").await.ok()??;
        front.data["status"]["error"].as_str().filter(|error| !error.is_empty()).map(str::to_owned)
    })
    .await;
    println!("told: {told}");
    count(figures, REFUSED, 1.0).await;
    controller.stop().await.expect("it stops when asked to");
}
