//! What the overview shows of this moment, as JSON: the charts of the last ten minutes, the figures, the warnings.

use axum::Json;
use serde::Serialize;

use super::figures::{Figure, figures};
use super::history::{INTERVAL, Series};
use super::prelude::*;
use super::warnings::{Warning, warnings};

pub(super) fn routes<S: Store>(routes: Routes<S>) -> Routes<S> {
    let endpoint = Endpoint::services(Operation::Console).in_console();
    routes.add_page(endpoint, "/console/live.json", get(live::<S>))
}

#[derive(Serialize)]
struct Live {
    at_ms: u64,
    interval_s: u64,
    times_ms: Vec<u64>,
    totals: Series,
    operations: Vec<OperationSeries>,
    figures: std::collections::BTreeMap<&'static str, String>,
    warnings: Vec<Warning>,
}

#[derive(Serialize)]
struct OperationSeries {
    name: &'static str,
    protocols: String,
    #[serde(flatten)]
    series: Series,
}

/// What is known of the state of the server.
pub(super) struct State {
    pub(super) figures: Vec<Figure>,
    pub(super) warnings: Vec<Warning>,
}

impl State {
    pub(super) fn of<S: Store>(visit: &Visit<S>) -> Self {
        let stats = visit.administration().stats();
        let mut all = warnings(&stats);
        if let Some(reason) = visit.service.not_ready() {
            let advice = "Load balancers send no requests here until this is over.";
            all.insert(0, Warning { title: format!("This process is not ready: {reason}"), advice });
        }
        let differences = visit.service.metrics.differences_left();
        if differences > 0 {
            let title = format!(
                "The last verification by this process left {} differences",
                markup::number(differences)
            );
            let advice = "Verify again with repair, and report it: derived data should never differ.";
            all.insert(0, Warning { title, advice });
        }
        Self { figures: figures(&visit.shared, &visit.service, &stats), warnings: all }
    }
}

async fn live<S: Store>(visit: Visit<S>) -> Response {
    let State { figures, warnings, .. } = State::of(&visit);
    let history = visit.shared.console.history.lock();
    let operations = history.operations().into_iter().map(|(operation, protocols)| OperationSeries {
        name: operation.name(),
        protocols: protocols.iter().map(|protocol| protocol.name()).collect::<Vec<_>>().join(", "),
        series: history.series(Some(operation)),
    });
    let live = Live {
        at_ms: kinfolk_core::Clock::now(&kinfolk_core::SystemClock).millis(),
        interval_s: INTERVAL.as_secs(),
        times_ms: history.times().map(kinfolk_core::Timestamp::millis).collect(),
        totals: history.series(None),
        operations: operations.collect(),
        figures: figures.into_iter().map(|figure| (figure.name, figure.text)).collect(),
        warnings,
    };
    drop(history);
    ([(axum::http::header::CACHE_CONTROL, "no-store")], Json(live)).into_response()
}
