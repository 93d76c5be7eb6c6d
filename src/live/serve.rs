//! `/healthz`, `/readyz` and `/metrics`, for whoever watches over the process. Nothing can be changed here.

use super::metrics::Metrics;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::get;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;

/// The owner of the engine shows itself at least this often while it lives, or it is stuck.
const SILENCE_MAX: Duration = Duration::from_secs(120);

/// How the controller is.
#[derive(Debug)]
pub(super) struct Health(Mutex<Vitals>);

#[derive(Debug)]
struct Vitals {
    unlisted: Vec<&'static str>,
    /// When the owner began what it is doing, or ended what it did.
    beat: Instant,
}

impl Health {
    pub fn new(unlisted: Vec<&'static str>) -> Health {
        Health(Mutex::new(Vitals { unlisted, beat: Instant::now() }))
    }

    fn vitals(&self) -> MutexGuard<'_, Vitals> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn beat(&self) {
        self.vitals().beat = Instant::now();
    }

    pub fn set_unlisted(&self, unlisted: Vec<&'static str>) {
        self.vitals().unlisted = unlisted;
    }
}

/// Serves until it is dropped.
pub(super) async fn serve(
    listener: TcpListener,
    health: Arc<Health>,
    metrics: Arc<Metrics>,
) -> std::io::Result<()> {
    let routes = Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .with_state(health)
        .route("/metrics", get(metrics_page).with_state(metrics));
    axum::serve(listener, routes).await
}

async fn healthz(State(health): State<Arc<Health>>) -> impl IntoResponse {
    match health.vitals().beat.elapsed() {
        silent if silent < SILENCE_MAX => (StatusCode::OK, "ok\n".to_owned()),
        silent => {
            let text = format!("the engine has been silent for {} s\n", silent.as_secs());
            (StatusCode::SERVICE_UNAVAILABLE, text)
        }
    }
}

/// Ready is who has seen everything; one that stands by is ready to lead.
async fn readyz(State(health): State<Arc<Health>>) -> impl IntoResponse {
    match &health.vitals().unlisted[..] {
        [] => (StatusCode::OK, "ok\n".to_owned()),
        missing => (StatusCode::SERVICE_UNAVAILABLE, format!("not listed yet: {}\n", missing.join(", "))),
    }
}

async fn metrics_page(State(metrics): State<Arc<Metrics>>) -> impl IntoResponse {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(axum::http::header::CONTENT_TYPE, kind)], metrics.render())
}
