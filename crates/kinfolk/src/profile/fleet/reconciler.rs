//! The statistics of the reconciler.

use kinfolk_fleet::ReconcileState;
use kinfolk_server::{Stat, counter, gauge};

/// What the reconciler of this process has done so far.
pub(super) fn reconciler_stats(state: &ReconcileState) -> Vec<Stat> {
    let ReconcileState { rows, ranges_differed, differences, repaired, waiting, pass_age } = *state;
    vec![
        counter(
            "kinfolk_fleet_reconcile_rows_total",
            "Rows that the reconciler of this process has compared.",
            rows as f64,
        ),
        counter(
            "kinfolk_fleet_reconcile_ranges_differed_total",
            "Ranges whose rows were read because their checksums differed; changes on their way are among the reasons.",
            ranges_differed as f64,
        ),
        counter(
            "kinfolk_fleet_reconcile_differences_total",
            "Rows and counts that were found not to be as the truth has them.",
            differences as f64,
        ),
        counter("kinfolk_fleet_reconcile_repairs_total", "Differences that were repaired.", repaired as f64),
        gauge(
            "kinfolk_fleet_reconcile_waiting",
            "Differences that were found and wait for their second look.",
            waiting as f64,
        ),
        gauge(
            "kinfolk_fleet_reconcile_pass_age_seconds",
            "Seconds since every shard was compared, or since this process has begun to.",
            pass_age.as_secs_f64(),
        ),
    ]
}
