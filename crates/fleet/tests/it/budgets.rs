//! The budgets of all processes together: what the script in Redis makes of reports, and what is left when nobody answers.

use std::time::{Duration, Instant};

use kinfolk_conformance::block_on;
use kinfolk_core::IdKind;
use kinfolk_fleet::{BudgetReport, Fleet, NewDeployment, Redis, Settings};

use crate::deployments::{Databases, redis, servers};
use crate::nodes::{ask, keys, nodes};

const HOUR_MICROS: i64 = 3_600_000_000;

/// Far longer than anything takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is allowed to pass between two exchanges that should give the same.
const MOMENT: Duration = Duration::from_secs(30);

fn open(databases: &Databases, redis: Redis) -> Fleet {
    Fleet::open(Settings { redis: Some(redis), ..databases.settings() }).unwrap()
}

fn report(name: &str, spent_micros: i64) -> BudgetReport {
    let name = name.to_owned();
    BudgetReport { name, spent_micros, at_least_micros: spent_micros, missing_micros: spent_micros }
}

/// What is missing after an exchange, once somebody answers.
fn exchange(store: &Fleet, report: &BudgetReport) -> Duration {
    let began = Instant::now();
    loop {
        let missing = block_on(store.exchange_budgets(vec![report.clone()])).unwrap();
        if let [Some(missing)] = missing[..] {
            return missing;
        }
        assert!(began.elapsed() < PATIENCE, "nobody answers");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether so much is missing, but for the time that has passed.
fn is_about(missing: Duration, micros: i64) -> bool {
    let expected = Duration::from_micros(micros.unsigned_abs());
    missing <= expected && expected - missing < MOMENT
}

fn deployment() -> Option<(Databases, String)> {
    let (servers, nodes) = servers().zip(nodes())?;
    let databases = Databases::create(&servers);
    let shards = std::num::NonZeroU16::new(1).unwrap();
    Fleet::init(&databases.settings(), NewDeployment { id_kind: IdKind::Integer, shards }).unwrap();
    Some((databases, nodes))
}

#[test]
fn spending_of_all_processes_adds_up() {
    let Some((databases, nodes)) = deployment() else { return };
    let [one, other] = [(); 2].map(|()| open(&databases, redis(&nodes)));
    // The first exchange may be tried until Redis was found: nothing is spent by it.
    exchange(&one, &report("user.0", 0));
    exchange(&other, &report("user.0", 0));
    assert!(is_about(exchange(&one, &report("user.1", HOUR_MICROS)), HOUR_MICROS));
    assert!(is_about(exchange(&other, &report("user.1", 2 * HOUR_MICROS)), 3 * HOUR_MICROS));
    assert!(is_about(exchange(&one, &report("user.1", 0)), 3 * HOUR_MICROS));
    assert!(is_about(exchange(&one, &report("user.1", -HOUR_MICROS)), 2 * HOUR_MICROS));
    // At least as much is missing as a process knows.
    let behind = BudgetReport { at_least_micros: 5 * HOUR_MICROS, ..report("user.1", 0) };
    assert!(is_about(exchange(&other, &behind), 5 * HOUR_MICROS));
    let full = BudgetReport { at_least_micros: -HOUR_MICROS, ..report("user.1", -9 * HOUR_MICROS) };
    assert_eq!(exchange(&other, &full), Duration::ZERO);
    assert!(is_about(exchange(&one, &report("key.1", HOUR_MICROS)), HOUR_MICROS), "names are apart");

    let identity = databases.number(0, "SELECT identity FROM deployment");
    let found = keys(&nodes, &format!("{{{identity:x}.budget.*"));
    let key = format!("{{{identity:x}.budget.key.1}}");
    assert!(found.contains(&key), "{found:?}");
    let kept: i64 = ask(nodes.split(',').next().unwrap(), &["PTTL", &key]).parse().unwrap();
    assert!((1..=HOUR_MICROS / 1_000 + 1_001).contains(&kept), "{kept} ms");
    // A key that was lost is restored from what a process knows.
    ask(nodes.split(',').next().unwrap(), &["DEL", &key]);
    let known = BudgetReport { missing_micros: HOUR_MICROS, ..report("key.1", 0) };
    assert!(is_about(exchange(&other, &known), HOUR_MICROS));
}

#[test]
fn many_budgets_are_exchanged_at_once() {
    let Some((databases, nodes)) = deployment() else { return };
    let store = open(&databases, redis(&nodes));
    exchange(&store, &report("user.0", 0));
    let reports: Vec<_> =
        (1..=1_200).map(|user| report(&format!("user.{user}"), user * 10_000_000)).collect();
    let missing = block_on(store.exchange_budgets(reports)).unwrap();
    for (user, missing) in (1..=1_200).zip(missing) {
        assert!(is_about(missing.unwrap(), user * 10_000_000), "{user}: {missing:?}");
    }
}

#[test]
fn nothing_is_said_of_budgets_when_nobody_answers() {
    let Some((databases, _)) = deployment() else { return };
    let store = open(&databases, redis("127.0.0.1:1"));
    let reports: Vec<_> = (0..600).map(|user| report(&format!("user.{user}"), 1)).collect();
    assert_eq!(block_on(store.exchange_budgets(reports)).unwrap(), vec![None; 600]);
    let store = Fleet::open(databases.settings()).unwrap();
    assert_eq!(block_on(store.exchange_budgets(vec![report("user.1", 1)])).unwrap(), [None]);
}
