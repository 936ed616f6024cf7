//! A process that reconciles: what is wrong on the follower side is found, named in the log, and repaired after 30 seconds.

use std::time::{Duration, Instant};

use super::databases::Databases;
use super::processes::eventually;
use crate::serve::running::Running;

/// The value of a metric.
fn metric(server: &Running, name: &str) -> f64 {
    let metrics = server.get("/metrics").body;
    let value = metrics.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    value.unwrap_or_else(|| panic!("{name}: {metrics}"))
}

#[test]
fn a_process_that_reconciles_repairs_what_has_differed_for_a_while() {
    let Some(databases) = Databases::create() else { return };
    let sandbox = databases.fleet();
    let server = Running::start(&sandbox, "--role all");
    assert!(!server.get("/metrics").body.contains("kinfolk_fleet_reconcile"), "it is switched off");
    for follower in 1..=20 {
        assert!(server.redis(&format!("FOLLOW {follower} 100")).starts_with('$'));
    }
    let count = "SELECT count(*) FROM kinfolk.followers";
    let rows = || databases.numbers::<1>(1, count)[0] + databases.numbers::<1>(2, count)[0];
    eventually("the follower side", || (rows() == 20).then_some(()));

    let reconciler = Running::start(&sandbox, "--role reconcile --fleet-reconcile-rows 100000");
    assert_eq!(["/healthz", "/readyz"].map(|path| reconciler.get(path).status), [200, 200]);
    assert_eq!(reconciler.get("/v1/users/1/counts").status, 404);
    let planted = Instant::now();
    for host in [1, 2] {
        databases.execute(host, "DELETE FROM kinfolk.followers WHERE follower = 7");
    }
    // The row, and the count that now differs from the rows.
    let found = "kinfolk_fleet_reconcile_differences_total";
    eventually("differences", || (metric(&reconciler, found) == 2.0).then_some(()));
    assert_eq!(rows(), 19, "nothing is repaired yet");
    assert_eq!(metric(&reconciler, "kinfolk_fleet_reconcile_waiting"), 2.0);
    let repaired = "kinfolk_fleet_reconcile_repairs_total";
    eventually("repairs", || (metric(&reconciler, repaired) == 2.0).then_some(()));
    assert!(planted.elapsed() >= Duration::from_secs(30), "{:?}", planted.elapsed());
    assert_eq!((rows(), metric(&reconciler, found)), (20, 2.0));
    assert!(metric(&reconciler, "kinfolk_fleet_reconcile_rows_total") >= 40.0);
    let (code, said) = reconciler.end("TERM");
    assert_eq!(code, 0, "{said:?}");
    let warning =
        said.iter().find(|line| line.contains("repaired a difference") && line.contains("7 to 100"));
    assert!(warning.is_some_and(|line| line.contains("WARN")), "{said:?}");
    // It fails if there are differences.
    sandbox.ok(&format!("verify {}", server.url()));
    assert_eq!(server.end("TERM").0, 0);
}
