//! Large accounts: counts in many buckets while several processes project, and answers that are kept while an account is read
//! often.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kinfolk_conformance::{SimulatedClock, block_on, user};
use kinfolk_core::changes::ChangeLog;
use kinfolk_core::graph::{
    Counts, EdgeAction, EdgeList, EdgeStore, FollowerCommand, ListEntry, Side, WriteRequest,
};
use kinfolk_core::{EdgeKind, Frontier, Id, IdKind, Result};
use kinfolk_fleet::{ChangeSource, Fleet, HotVerdict, LogSource, Projection, Settings, SourceBatch};

use crate::deployments::{Databases, Projecting, Stores, patient, servers};
use crate::projection::{followers_of_0, write};

const KIND: EdgeKind = EdgeKind::Follow;
const IDS: IdKind = IdKind::Integer;
const NOW: &Frontier = Frontier::EMPTY;

/// The account that everybody follows.
const LARGE: u64 = 0;

/// Users from here on follow it.
const CROWD: u64 = 1_000;

/// Processes that project, each some of the sources.
const PROJECTING: u16 = 3;

/// How long something may take that is only waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// The logs of some sources, as a process has them that was given some partitions of the topic.
struct Part {
    log: LogSource,
    part: u16,
}

impl ChangeSource for Part {
    async fn changes(&self, host: usize, after: &Frontier, limit: usize) -> Result<Vec<SourceBatch>> {
        let own = after.iter().filter(|mark| mark.shard.0 % PROJECTING == self.part).collect();
        self.log.changes(host, &own, limit).await
    }
}

/// A deployment whose sources are projected by several stores.
struct Crowded {
    store: Arc<Fleet>,
    _projecting: Vec<Fleet>,
    stores: Stores,
}

impl Crowded {
    fn new(servers: [String; 3]) -> Self {
        let stores = Stores::new(servers, 12, Projecting::Never).with_settings(patient);
        let store = Arc::new(stores.make(IDS, Arc::new(SimulatedClock::default())));
        let settings = stores.with_databases(IDS, Databases::settings);
        let project = |part| {
            let fleet = Fleet::open(settings.clone()).unwrap();
            let source = Part { log: LogSource::new(&fleet), part };
            Projection::start(&fleet, &Arc::new(source)).detach();
            fleet
        };
        Self { store, _projecting: (0..PROJECTING).map(project).collect(), stores }
    }

    /// The number that a query about follower counts has on both hosts together, where `{large}` is the large account.
    fn number(&self, sql: &str) -> i64 {
        let sql = &of_large(sql);
        self.stores
            .with_databases(IDS, |databases| [1, 2].map(|host| databases.number(host, sql)))
            .iter()
            .sum()
    }

    fn execute(&self, sql: &str) {
        let sql = &of_large(sql);
        self.stores.with_databases(IDS, |databases| [1, 2].map(|host| databases.execute(host, sql)));
    }

    /// Some of the crowd follow or unfollow the large account, and each a small one of its own.
    fn write(&self, action: EdgeAction, crowd: std::ops::Range<u64>) {
        let request = |number: u64| {
            let followees = [LARGE, 1 + number % 300];
            let commands =
                followees.map(|followee| FollowerCommand { action, followee: user(IDS, followee) });
            WriteRequest {
                kind: KIND,
                follower: user(IDS, CROWD + number),
                commands: commands.to_vec().into(),
                following_limit: 1_000,
            }
        };
        let outcomes = block_on(self.store.write(crowd.map(request).collect()));
        assert!(outcomes.iter().all(std::result::Result::is_ok), "{outcomes:?}");
    }

    /// The counts of an account, and its followers, of which there are this many.
    fn assert_followers(&self, account: u64, expected: u64) {
        let newest = block_on(self.store.span()).unwrap().newest;
        assert_eq!(counts(&self.store, account, &newest).followers, expected, "of {account}");
        assert_eq!(first_page(&self.store, account, &newest).len() as u64, expected, "of {account}");
    }

    fn verify(&self, repair: bool) -> u64 {
        let report = self.store.verify(repair, &|_| {}).unwrap();
        println!("{:?}", report.differences);
        report.difference_count
    }
}

fn counts(store: &Fleet, of: u64, seen: &Frontier) -> Counts {
    block_on(store.counts(KIND, &[user(IDS, of)], seen)).unwrap()[0]
}

fn first_page(store: &Fleet, of: u64, seen: &Frontier) -> Vec<ListEntry> {
    let list = EdgeList { kind: KIND, side: Side::Followers, of: user(IDS, of) };
    block_on(store.list(list, None, 100_000, seen)).unwrap()
}

fn of_large(sql: &str) -> String {
    sql.replace("{large}", &user(IDS, LARGE).to_string())
}

const BUCKETS_OF_LARGE: &str = "SELECT count(*) FROM follower_counts WHERE followee = {large} AND bucket > 0";

#[test]
fn counts_are_those_of_the_lists_whoever_projects() {
    let Some(servers) = servers() else { return };
    let crowded = Crowded::new(servers);
    for round in 0..8 {
        let first = round * 300;
        crowded.write(EdgeAction::Follow, first..first + 300);
        crowded.write(EdgeAction::Unfollow, first..first + 100);
        let shown = counts(&crowded.store, LARGE, NOW).followers;
        assert!(shown <= (round + 1) * 300, "{shown}");
    }
    crowded.assert_followers(LARGE, 8 * 200);
    for account in 1..=300 {
        let expected =
            (0..8 * 300).filter(|number| 1 + number % 300 == account && number % 300 >= 100).count();
        crowded.assert_followers(account, expected as u64);
    }
    assert!(crowded.number(BUCKETS_OF_LARGE) > 1, "several connections count it");
    assert_eq!(crowded.number("SELECT count(*) FROM follower_counts WHERE bucket NOT BETWEEN 0 AND 15"), 0);
    assert_eq!(crowded.verify(false), 0);
}

#[test]
fn a_wrong_bucket_is_found_and_repaired() {
    let Some(servers) = servers() else { return };
    let crowded = Crowded::new(servers);
    crowded.write(EdgeAction::Follow, 0..500);
    crowded.assert_followers(LARGE, 500);
    let damages = [
        "UPDATE follower_counts SET count = count + 3 WHERE followee = {large} AND bucket > 0",
        "UPDATE follower_counts SET count = -7 WHERE followee = {large} AND bucket > 0",
        "DELETE FROM follower_counts WHERE followee = {large}",
        "INSERT INTO follower_counts SELECT shard, kind, followee, 15, 9 FROM follower_counts WHERE bucket = 0
         ON CONFLICT (shard, kind, followee, bucket) DO UPDATE SET count = follower_counts.count + 1",
    ];
    for damage in damages {
        crowded.execute(damage);
        assert!(crowded.verify(false) > 0, "{damage}");
        assert!(crowded.verify(true) > 0, "{damage}");
        assert_eq!(crowded.verify(false), 0, "{damage}");
        crowded.assert_followers(LARGE, 500);
    }
}

/// What is only on its way is no difference, and a repair misses nothing that is projected meanwhile.
#[test]
fn a_large_account_is_verified_and_repaired_while_it_changes() {
    let Some(servers) = servers() else { return };
    let crowded = Crowded::new(servers);
    crowded.write(EdgeAction::Follow, 0..300);
    let (ends, writing) = (AtomicBool::new(false), Writing { store: Arc::clone(&crowded.store) });
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| writing.until(&ends));
        for _ in 0..4 {
            assert_eq!(crowded.verify(true), 0);
        }
        for _ in 0..4 {
            crowded.execute("UPDATE follower_counts SET count = count + 11 WHERE followee = {large}");
            assert!(crowded.verify(true) > 0);
        }
        ends.store(true, Ordering::Relaxed);
        let followers = writer.join().unwrap();
        crowded.assert_followers(LARGE, 300 + followers);
    });
    assert_eq!(crowded.verify(true), 0);
}

/// Writes of a thread of its own.
struct Writing {
    store: Arc<Fleet>,
}

impl Writing {
    /// Follows and unfollows until it is told to end; the account does not grow beyond what is verified in no time. Returns how many
    /// are left.
    fn until(&self, ends: &AtomicBool) -> u64 {
        let request = |action, number| WriteRequest {
            kind: KIND,
            follower: user(IDS, 2 * CROWD + number),
            commands: [FollowerCommand { action, followee: user(IDS, LARGE) }].into(),
            following_limit: 1_000,
        };
        let all = |action, count| (0..count).map(|number| request(action, number)).collect::<Vec<_>>();
        loop {
            for requests in [all(EdgeAction::Follow, 100), all(EdgeAction::Unfollow, 60)] {
                block_on(self.store.write(requests)).into_iter().for_each(|outcome| drop(outcome.unwrap()));
            }
            if ends.load(Ordering::Relaxed) {
                return 40;
            }
        }
    }
}

/// Stores where every account is hot from its first read on.
fn hot_stores(servers: [String; 3], projecting: Projecting) -> Stores {
    Stores::new(servers, 4, projecting)
        .with_settings(|settings| Settings { hot_reads: Some(1), ..patient(settings) })
}

fn hot_store(stores: &Stores) -> Fleet {
    stores.make(IDS, Arc::new(SimulatedClock::default()))
}

fn verdicts(store: &Fleet, of: HotVerdict) -> u64 {
    let verdicts = store.hot_state().verdicts;
    verdicts.iter().find(|(verdict, _)| *verdict == of).unwrap().1
}

/// Reads until a kept answer was used.
fn read_until_kept(store: &Fleet) {
    let (before, began) = (verdicts(store, HotVerdict::Kept), Instant::now());
    while verdicts(store, HotVerdict::Kept) == before {
        followers_of_0(store, NOW).unwrap();
        counts(store, LARGE, NOW);
        assert!(began.elapsed() < PATIENCE, "{:?}", store.hot_state());
    }
}

/// A caller with a token sees at once what it covers, and nobody of this process sees less afterwards.
#[test]
fn a_token_shows_its_write_whatever_is_kept() {
    let Some(servers) = servers() else { return };
    for projecting in [Projecting::AtOnce, Projecting::Late(5)] {
        let stores = hot_stores(servers.clone(), projecting);
        let store = hot_store(&stores);
        for round in 0..40 {
            let action = if round % 2 == 0 { EdgeAction::Follow } else { EdgeAction::Unfollow };
            let expected = if round % 2 == 0 { 2 } else { 1 };
            write(&store, EdgeAction::Follow, 1, LARGE);
            read_until_kept(&store);
            let seen = write(&store, action, 2, LARGE).into();
            if round % 4 < 2 {
                assert_eq!(followers_of_0(&store, &seen).unwrap(), expected, "round {round}");
                assert_eq!(followers_of_0(&store, NOW).unwrap(), expected, "round {round}, without a token");
            }
            assert_eq!(counts(&store, LARGE, &seen).followers, expected as u64, "round {round}");
            assert_eq!(
                counts(&store, LARGE, NOW).followers,
                expected as u64,
                "round {round}, without a token"
            );
            assert_eq!(followers_of_0(&store, &seen).unwrap(), expected, "round {round}");
        }
        assert!(store.hot_state().entries >= 2, "{:?}", store.hot_state());
    }
}

/// Readers at the same time share statements, and none of them is shown a follower again that had gone.
#[test]
fn readers_share_statements_and_see_no_unfollow_undone() {
    let Some(servers) = servers() else { return };
    let stores = hot_stores(servers, Projecting::Late(3));
    let store = hot_store(&stores);
    let ends = AtomicBool::new(false);
    // Every follower comes and goes once.
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let (mut seen, mut gone) = (HashSet::new(), HashSet::new());
                while !ends.load(Ordering::Relaxed) {
                    let shown: HashSet<Id> =
                        first_page(&store, LARGE, NOW).into_iter().map(|entry| entry.id).collect();
                    assert!(shown.is_disjoint(&gone), "{shown:?} of {gone:?}");
                    gone.extend(seen.difference(&shown).copied());
                    seen = shown;
                }
            });
        }
        let began = Instant::now();
        for number in 1..=120 {
            write(&store, EdgeAction::Follow, number, LARGE);
            if number > 3 {
                write(&store, EdgeAction::Unfollow, number - 3, LARGE);
            }
        }
        while verdicts(&store, HotVerdict::Shared) == 0 || verdicts(&store, HotVerdict::Kept) == 0 {
            assert!(began.elapsed() < PATIENCE, "{:?}", store.hot_state());
            std::thread::yield_now();
        }
        ends.store(true, Ordering::Relaxed);
    });
    let newest = block_on(store.span()).unwrap().newest;
    assert_eq!(followers_of_0(&store, &newest).unwrap(), 3);
}

/// A restored host has lost an edge: what was kept of the epoch before does not show it.
#[test]
fn a_new_epoch_forgets_what_was_kept() {
    let Some(servers) = servers() else { return };
    let stores = hot_stores(servers, Projecting::AtOnce);
    let store = hot_store(&stores);
    let other =
        Fleet::open(Settings { hot_reads: Some(1), ..stores.with_databases(IDS, Databases::settings) })
            .unwrap();
    write(&store, EdgeAction::Follow, 1, LARGE);
    let seen = write(&store, EdgeAction::Follow, 2, LARGE).into();
    assert_eq!(followers_of_0(&store, &seen).unwrap(), 2);
    assert_eq!(followers_of_0(&other, &seen).unwrap(), 2);
    read_until_kept(&store);
    let lost = user(IDS, 2);
    let lose = format!(
        "DELETE FROM following WHERE follower = {lost}; UPDATE users SET following = 0 WHERE id = {lost}"
    );
    stores.with_databases(IDS, |databases| [1, 2].map(|host| databases.execute(host, &lose)));
    block_on(store.begin_epoch()).unwrap();
    assert_eq!(followers_of_0(&store, NOW).unwrap(), 1);
    assert_eq!(counts(&store, LARGE, NOW).followers, 1);
    // Another process finds out by its next statement.
    let began = Instant::now();
    while followers_of_0(&other, NOW).is_ok_and(|followers| followers == 2) {
        assert!(began.elapsed() < PATIENCE, "{:?}", other.hot_state());
    }
}
