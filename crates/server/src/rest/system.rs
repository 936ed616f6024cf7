//! The server itself: health, readiness, metrics and the OpenAPI document.

use axum::http::header::CONTENT_TYPE;
use kinfolk_api::Status;

use super::entity_tag::{IF_NONE_MATCH_DESCRIPTION, NOT_MODIFIED};
use super::prelude::*;
use super::routes::Uncompressed;

const HEALTH: &str = "/healthz";
const READINESS: &str = "/readyz";

/// Whether a path is served before the store is loaded.
pub(crate) fn is_about_health(path: &str) -> bool {
    path == HEALTH || path == READINESS
}

pub(crate) fn routes<S: Store>(routes: Routes<S>) -> Routes<S> {
    routes
        .add(Endpoint::open(), routes!(health))
        .add(Endpoint::open(), routes!(readiness))
        .add(Endpoint::open(), routes!(openapi))
        .add(Endpoint::services(Operation::Other), routes!(metrics))
}

/// The process is alive.
#[utoipa::path(get, path = HEALTH, tag = "system",
    responses((status = 200, description = "The process is alive", body = Status)))]
async fn health(_: NoQuery) -> Response {
    Json(Status { status: "alive".into() }).into_response()
}

/// The server is ready: everything is loaded, the store works, and it is not about to end.
#[utoipa::path(get, path = READINESS, tag = "system",
    responses((status = 200, description = "The server is ready", body = Status)))]
async fn readiness<S: Store>(State(shared): State<Shared<S>>, _: NoQuery) -> RestResult {
    if !shared.door.is_ready() {
        let reason = || "this process is stopping: send requests to another one".to_owned();
        let is_loaded = shared.door.service().is_some();
        return Err(Failure(if is_loaded { Error::NotReady { reason: reason() } } else { Error::Loading }));
    }
    if let Some(reason) = shared.door.service().and_then(|service| service.failure()) {
        return Err(Failure(Error::ReadOnly { reason }));
    }
    if let Some(reason) = shared.door.service().and_then(|service| service.not_ready()) {
        return Err(Failure(Error::NotReady { reason }));
    }
    Ok(Json(Status { status: "ready".into() }).into_response())
}

/// Metrics for Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "system",
    responses((status = 200, description = "The metrics, in the text format of Prometheus",
        content_type = "text/plain", body = inline(String))))]
async fn metrics<S: Store>(call: Call<S>, _: NoQuery) -> Response {
    let administration = call.administration();
    let text = call.service.metrics.render(&administration.stats(), &administration.layers());
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}

/// This document.
#[utoipa::path(get, path = "/openapi.json", tag = "system",
    params(("If-None-Match" = inline(Option<String>), Header, description = IF_NONE_MATCH_DESCRIPTION)),
    responses(
        (status = 200, description = "OpenAPI 3.1", content_type = "application/json", body = inline(serde_json::Value), headers(
            ("ETag" = String, description = "Names this representation"))),
        (status = 304, description = NOT_MODIFIED)))]
async fn openapi<S: Store>(State(shared): State<Shared<S>>, cached: Cached, _: NoQuery) -> RestResult {
    let service = shared.door.service().ok_or(Error::Loading)?;
    let (text, tag) = shared.document.text(service);
    let mut response = cached.respond(tag, text.clone());
    response.extensions_mut().insert(Uncompressed);
    Ok(response)
}
