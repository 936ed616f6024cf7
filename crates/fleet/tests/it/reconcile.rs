//! The reconciler: each sort of difference is found while others write, and repaired after its delay and not before; what is only
//! on its way is no difference.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kinfolk_conformance::{SimulatedClock, edge};
use kinfolk_core::bulk::ImportOptions;
use kinfolk_core::graph::EdgeAction;
use kinfolk_core::{EdgeKind, Id, IdKind, Timestamp};
use kinfolk_fleet::{Fleet, ReconcileState, Reconciler, Reconciling};

use crate::deployments::{Databases, Projecting, Stores, servers};
use crate::projection::write;
use crate::verify::{in_both, populated, verify, wait_until_projected};

const IDS: IdKind = IdKind::Integer;
const DELAY: Duration = Duration::from_secs(1);
const NEVER: Duration = Duration::from_secs(3_600);
const PATIENCE: Duration = Duration::from_secs(120);

/// As fast as it can.
fn reconciling(delay: Duration) -> Reconciling {
    Reconciling { rows_per_second: 1_000_000, delay }
}

fn state(store: &Fleet) -> ReconcileState {
    store.reconcile_state().unwrap()
}

/// Looks at what a reconciler has done until it is enough.
fn until(store: &Fleet, what: &str, is_enough: impl Fn(&ReconcileState) -> bool) -> ReconcileState {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let state = state(store);
        if is_enough(&state) {
            return state;
        }
        assert!(Instant::now() < deadline, "{what}: {state:?}");
        std::thread::yield_now();
    }
}

/// Waits until everything was compared some more times.
fn some_passes(store: &Fleet) {
    let rows_of_a_pass = 4 * verify(store, false).edges.max(100);
    let before = state(store).rows;
    until(store, "passes", |state| state.rows >= before + 3 * rows_of_a_pass);
}

/// What each sort of damage is. The number of a user is in the upper bits of its id; nobody writes edges of users below 40
/// meanwhile.
const DAMAGE: [&str; 9] = [
    "UPDATE users SET following = following + 3 WHERE id >> 40 < 40 AND (id >> 40) % 7 = 1",
    "DELETE FROM users WHERE id >> 40 < 40 AND (id >> 40) % 7 = 2",
    "UPDATE follower_counts SET count = count - 1 WHERE followee >> 40 < 40 AND (followee >> 40) % 7 = 3",
    "DELETE FROM followers WHERE follower >> 40 < 40 AND (follower >> 40) % 7 = 4",
    "UPDATE followers SET since = since + 9 WHERE follower >> 40 < 40 AND (follower >> 40) % 7 = 5",
    "UPDATE followers SET sequence = sequence - 1 WHERE follower >> 40 < 40 AND (follower >> 40) % 7 = 6",
    "UPDATE followers SET since = since + 1, sequence = sequence + 1
     WHERE follower >> 40 < 40 AND (follower >> 40) % 7 = 0",
    "INSERT INTO followers SELECT shard, kind, followee, follower + 500, since, source, sequence
     FROM followers WHERE follower >> 40 < 40 AND (follower >> 40) % 7 = 6",
    "DELETE FROM followers WHERE followee >> 40 = 21",
];

/// Ends others when it is dropped, also by a test that fails.
struct EndOnDrop<'a>(&'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Follows and unfollows among users from 100 on, until it is to end.
fn keep_writing(store: &Fleet, ends: &AtomicBool) {
    let mut round = 0_u64;
    while !ends.load(Ordering::Relaxed) {
        let action = if (round / 40).is_multiple_of(2) { EdgeAction::Follow } else { EdgeAction::Unfollow };
        write(store, action, 100 + round % 40, 100 + (round + 1 + round / 80 % 7) % 40);
        round += 1;
    }
}

#[test]
fn each_sort_of_difference_is_repaired_after_its_delay_under_load() {
    let Some(servers) = servers() else { return };
    let stores = Stores::new(servers, 4, Projecting::Late(11));
    let store = populated(&stores);
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| keep_writing(&store, &ends));
        let _end = EndOnDrop(&ends);
        let reconciler = Reconciler::start(&store, reconciling(DELAY));
        some_passes(&store);
        assert_eq!(state(&store).differences, 0, "changes on their way are not differences");
        drop(reconciler);
        for damage in DAMAGE {
            repaired_in_time(&stores, &store, damage);
        }
    });
    wait_until_projected(&store);
    assert_eq!(verify(&store, false).difference_count, 0);
}

/// Plants damage, and sees it found exactly and repaired.
fn repaired_in_time(stores: &Stores, store: &Fleet, damage: &str) {
    stores.with_databases(IDS, |databases| in_both(databases, damage));
    let planted = verify(store, false).difference_count;
    assert!(planted > 0, "{damage}");
    let begun = Instant::now();
    let _reconciler = Reconciler::start(store, reconciling(DELAY));
    let before = state(store);
    until(store, damage, |state| state.repaired > before.repaired);
    assert!(begun.elapsed() >= DELAY, "{damage}: repaired too early");
    let after =
        until(store, damage, |state| state.repaired >= before.repaired + planted && state.waiting == 0);
    let found = (after.differences - before.differences, after.repaired - before.repaired);
    assert_eq!(found, (planted, planted), "{damage}");
    assert_eq!(verify(store, false).difference_count, 0, "{damage}");
}

/// Recorded counts of users that have no rows, which no walk over rows comes to.
#[test]
fn counts_without_rows_are_repaired() {
    let Some(servers) = servers() else { return };
    let stores = Stores::new(servers, 4, Projecting::AtOnce);
    let store = populated(&stores);
    let of_own_shard = |table: &str, columns: &str| -> String {
        let users = (1_000..1_020).map(|number| {
            let shard = store.shard_of(Id::Integer(number)).0;
            format!("({shard}::smallint, {number}::bigint)")
        });
        let users: Vec<String> = users.collect();
        format!(
            "INSERT INTO {table} SELECT asked.shard, 1, asked.id, {columns}
             FROM (VALUES {}) AS asked (shard, id) JOIN shards ON shards.shard = asked.shard",
            users.join(", ")
        )
    };
    for damage in [of_own_shard("users", "4, 0"), of_own_shard("follower_counts", "0, 4")] {
        repaired_in_time(&stores, &store, &damage);
    }
    assert_eq!(state(&store).repaired, 40);
}

#[test]
fn nothing_is_repaired_before_the_delay() {
    let Some(servers) = servers() else { return };
    let stores = Stores::new(servers, 4, Projecting::AtOnce);
    let store = populated(&stores);
    stores
        .with_databases(IDS, |databases| in_both(databases, "DELETE FROM followers WHERE follower % 7 = 4"));
    let planted = verify(&store, false).difference_count;
    let _reconciler = Reconciler::start(&store, reconciling(NEVER));
    until(&store, "differences", |state| state.differences == planted);
    some_passes(&store);
    let found = state(&store);
    assert_eq!(
        (found.differences, found.repaired, found.waiting),
        (planted, 0, planted),
        "each is found once"
    );
    assert_eq!(verify(&store, false).difference_count, planted);
}

#[test]
fn a_pace_of_0_does_nothing() {
    let Some(servers) = servers() else { return };
    let stores = Stores::new(servers, 4, Projecting::AtOnce);
    let store = populated(&stores);
    let _reconciler = Reconciler::start(&store, Reconciling { rows_per_second: 0, delay: DELAY });
    assert_eq!(store.reconcile_state(), None);
}

/// More followers than one page, or any number of pages that somebody might have read at most.
#[test]
fn a_long_list_of_followers_has_no_false_alarm() {
    const FOLLOWERS: u64 = 12_000;
    let Some(servers) = servers() else { return };
    let stores = Stores::new(servers, 4, Projecting::AtOnce);
    let store = Arc::new(stores.make(IDS, Arc::new(SimulatedClock::default())));
    let options = ImportOptions {
        kind: EdgeKind::Follow,
        following_limit: None,
        fingerprint: "followers".into(),
        sort_memory: 0,
    };
    let mut import = store.import(&options).unwrap();
    for number in 1..=FOLLOWERS {
        import.push(edge(IDS, number, 0), Some(Timestamp::from_millis(number))).unwrap();
    }
    import.finish(&|_| {}).unwrap();
    let count = "SELECT count(*) FROM followers";
    let rows = |database| stores.with_databases(IDS, |databases| databases.number(database, count));
    let deadline = Instant::now() + PATIENCE;
    while rows(1) + rows(2) < FOLLOWERS as i64 {
        assert!(Instant::now() < deadline, "the follower side");
    }
    let reconciler = Reconciler::start(&store, reconciling(DELAY));
    let sound = until(&store, "passes", |state| state.rows >= 5 * FOLLOWERS);
    drop(reconciler);
    assert_eq!((sound.differences, sound.ranges_differed), (0, 0), "{sound:?}");
    repaired_in_time(&stores, &store, "DELETE FROM followers WHERE follower >> 40 = 11999");
    assert_eq!(state(&store).repaired, 2, "the row and the count");
}

#[test]
fn two_reconcilers_share_the_shards_and_repair_each_difference_once() {
    let Some(servers) = servers() else { return };
    let stores = Stores::new(servers, 8, Projecting::AtOnce);
    let store = populated(&stores);
    let other = stores.open_beside(5);
    let both = [&*store, &other];
    let damage = "DELETE FROM followers WHERE follower % 7 = 4;
                  UPDATE users SET following = following + 3 WHERE id % 7 = 1";
    stores.with_databases(IDS, |databases| in_both(databases, damage));
    let planted = verify(&store, false).difference_count;
    let _reconcilers = both.map(|store| Reconciler::start(store, reconciling(DELAY)));
    for store in both {
        until(store, "its share", |state| state.rows > 0);
    }
    let repaired = || both.map(|store| state(store).repaired).iter().sum::<u64>();
    until(&store, "repairs by both", |_| repaired() >= planted);
    for store in both {
        until(store, "nothing is left", |state| state.waiting == 0);
    }
    assert_eq!(repaired(), planted);
    assert_eq!(verify(&store, false).difference_count, 0);
}

fn set_away(databases: &Databases, is_away: bool) {
    let name = databases.name(2);
    databases.beside(2, &format!("ALTER DATABASE {name} ALLOW_CONNECTIONS {}", !is_away));
    if is_away {
        databases.disconnect(2, &[name]);
    }
}

/// What does not need a host that is away is compared and repaired. The rest is, once it is back.
#[test]
fn a_host_that_is_away_does_not_stop_the_others() {
    let Some(servers) = servers() else { return };
    let stores = Stores::new(servers, 4, Projecting::AtOnce);
    let store = populated(&stores);
    let damage = "UPDATE users SET following = following + 3 WHERE id % 7 = 1;
                  DELETE FROM followers WHERE follower % 7 = 4";
    stores.with_databases(IDS, |databases| in_both(databases, damage));
    let planted = verify(&store, false).difference_count;
    let wrong_counts = "SELECT count(*) FROM users WHERE following <> 5";
    let is_wrong =
        |database| stores.with_databases(IDS, |databases| databases.number(database, wrong_counts));
    stores.with_databases(IDS, |databases| set_away(databases, true));
    let _reconciler = Reconciler::start(&store, reconciling(DELAY));
    until(&store, "counts of the host that is there", |_| is_wrong(1) == 0);
    let without = state(&store);
    assert!(without.repaired < planted && without.pass_age >= DELAY, "{without:?}");
    stores.with_databases(IDS, |databases| set_away(databases, false));
    until(&store, "all repairs", |state| state.repaired == planted && state.waiting == 0);
    until(&store, "a full pass", |state| state.pass_age < DELAY);
    assert_eq!(verify(&store, false).difference_count, 0);
}

/// Shards whose term is another one have been moved, as far as this process can know: nothing is written there.
#[test]
fn a_shard_that_is_not_there_is_not_repaired() {
    let Some(servers) = servers() else { return };
    let stores = Stores::new(servers, 4, Projecting::AtOnce);
    let store = populated(&stores);
    let on_first = |sql: &str| stores.with_databases(IDS, |databases| databases.execute(1, sql));
    let wrong_on = |database| {
        let count = "SELECT count(*) FROM users WHERE following <> 5";
        stores.with_databases(IDS, |databases| databases.number(database, count))
    };
    stores.with_databases(IDS, |databases| in_both(databases, "UPDATE users SET following = following + 3"));
    let planted = wrong_on(1);
    on_first("UPDATE shards SET term = term + 1");
    let _reconciler = Reconciler::start(&store, reconciling(DELAY));
    until(&store, "the shards that are there", |_| wrong_on(2) == 0);
    assert_eq!(wrong_on(1), planted);
    let refused = store.verify(true, &|_| {}).unwrap_err().to_string();
    assert!(refused.contains("the shard"), "{refused}");
    assert_eq!(wrong_on(1), planted);
    on_first("UPDATE shards SET term = term - 1");
    until(&store, "the shards that are back", |_| wrong_on(1) == 0);
    until(&store, "nothing is left", |state| state.waiting == 0);
    assert_eq!(verify(&store, false).difference_count, 0);
}
