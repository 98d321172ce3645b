//! Questions of operators and machines: health, readiness, figures, the description of the interface.

use std::sync::{Arc, OnceLock};

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use muse_master_client::api::ErrorBody;
use utoipa::OpenApi;

use super::Description;
use super::failure::Failure;
use crate::shared::Shared;

/// The process lives.
#[utoipa::path(get, path = "/health", responses((status = 204), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn health() -> StatusCode {
    StatusCode::NO_CONTENT
}

/// The store answers and players may come.
#[utoipa::path(get, path = "/ready", responses(
    (status = 204), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn ready(State(shared): State<Arc<Shared>>) -> Result<StatusCode, Failure> {
    if *shared.draining.borrow() {
        return Err(Failure::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "draining",
            "this master is closing",
        ));
    }
    shared.store.ready().await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Figures for Prometheus.
#[utoipa::path(get, path = "/metrics", responses((status = 200, body = String, content_type = "text/plain"), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn metrics(State(shared): State<Arc<Shared>>) -> String {
    let counts = shared.fleet.counts();
    let gauge = |name: &'static str, value: usize| metrics::gauge!(name).set(value as f64);
    gauge("muse_sessions", shared.hub.players());
    gauge("muse_server_links", shared.hub.servers());
    gauge("muse_queued", shared.status.queued());
    gauge("muse_matches", shared.status.matches());
    gauge("muse_leading", usize::from(shared.status.is_leading()));
    gauge("muse_servers_starting", counts.starting);
    gauge("muse_servers_ready", counts.ready);
    gauge("muse_servers_busy", counts.busy);
    recorder().map_or_else(String::new, PrometheusHandle::render)
}

/// The description of the interface.
pub(crate) async fn openapi() -> Json<utoipa::openapi::OpenApi> {
    Json(Description::openapi())
}

/// The process's recorder, installed with the first master; none if the program has installed another.
pub(crate) fn recorder() -> Option<&'static PrometheusHandle> {
    static RECORDER: OnceLock<Option<PrometheusHandle>> = OnceLock::new();
    let install = || PrometheusBuilder::new().install_recorder().ok();
    RECORDER.get_or_init(install).as_ref()
}
