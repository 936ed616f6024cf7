//! Connections to an old primary, and clocks that are ahead.

use std::num::NonZeroU16;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kinfolk_conformance::{SimulatedClock, block_on, edge, user};
use kinfolk_core::changes::ChangeLog;
use kinfolk_core::graph::{CheckStore, EdgeAction, EdgeStore, FollowerCommand, WriteRequest};
use kinfolk_core::{Clock, EdgeKind, Error, Frontier, IdKind, SystemClock, Timestamp};
use kinfolk_fleet::{Fleet, NewDeployment, Settings, Timeouts};

use crate::deployments::{Databases, Projecting, Stores, servers};
use crate::lost_commits::Proxies;
use crate::processes;

const IDS: IdKind = IdKind::Integer;
const KIND: EdgeKind = EdgeKind::Follow;

fn follow(store: &Fleet, to: u64) -> kinfolk_core::Result<()> {
    let commands = vec![FollowerCommand { action: EdgeAction::Follow, followee: user(IDS, to) }];
    let request =
        WriteRequest { kind: KIND, follower: user(IDS, 0), commands: commands.into(), following_limit: 99 };
    block_on(store.write_one(request)).map(drop)
}

/// Puts another database in the place of the first host's, as if its name led to another server.
fn swap(databases: &Databases, away: &str, in_its_place: &str) {
    let name = databases.name(1);
    databases.disconnect(1, &[name, in_its_place]);
    databases.beside(1, &format!("ALTER DATABASE {name} RENAME TO {away}"));
    databases.beside(1, &format!("ALTER DATABASE {in_its_place} RENAME TO {name}"));
}

#[test]
fn a_connection_to_an_old_primary_is_dropped() {
    let Some(servers) = servers() else { return };
    let stores = Stores::new(servers, 1, Projecting::Never).with_settings(|settings| {
        let short = Duration::from_millis(300);
        let timeouts = Timeouts { visible: short, write: short, ..settings.timeouts };
        Settings { timeouts, ..settings }
    });
    let store = stores.make(IDS, Arc::new(SimulatedClock::default()));
    follow(&store, 1).unwrap();
    let (old, new) = stores.with_databases(IDS, |databases| {
        let name = databases.name(1);
        let (old, new) = (format!("{name}_old"), format!("{name}_new"));
        databases.disconnect(1, &[name]);
        databases.beside(1, &format!("CREATE DATABASE {old} TEMPLATE {name}"));
        (old, new)
    });
    follow(&store, 2).unwrap();
    let is_followed = |to| block_on(store.contains(KIND, &[edge(IDS, 0, to)], Frontier::EMPTY));
    assert!(is_followed(2).unwrap()[0]);

    stores.with_databases(IDS, |databases| swap(databases, &new, &old));
    for _ in 0..2 {
        assert!(matches!(is_followed(2), Err(Error::Unavailable { .. })), "{:?}", is_followed(2));
        assert!(matches!(follow(&store, 3), Err(Error::Unavailable { .. })));
        assert!(matches!(block_on(store.span()), Err(Error::Unavailable { .. })));
    }
    stores.with_databases(IDS, |databases| {
        assert_eq!(databases.number(1, "SELECT count(*) FROM log"), 1, "nothing is written to it");
        swap(databases, &old, &new);
    });
    // Connections that were ended by the swap are replaced when they are found to be closed.
    let is_back = (0..20).any(|_| is_followed(2).is_ok_and(|found| found[0]));
    assert!(is_back, "the current primary is found again");
    follow(&store, 3).unwrap();
    assert!(is_followed(3).unwrap()[0]);
    stores.with_databases(IDS, |databases| databases.beside(1, &format!("DROP DATABASE {old}")));
}

/// A host is asked for its newest positions, and before its answer is read, a newer write is acknowledged: it is no old primary.
#[test]
fn a_write_beside_a_sample_does_not_make_an_old_primary() {
    let Some(servers) = servers() else { return };
    let databases = Databases::create(&servers);
    let new = NewDeployment { id_kind: IDS, shards: NonZeroU16::new(4).unwrap() };
    Fleet::init(&databases.settings(), new).unwrap();
    let store = Fleet::open(databases.settings()).unwrap();
    let ends = AtomicBool::new(false);
    let writer = &|from: u64| {
        let actions = [EdgeAction::Follow, EdgeAction::Unfollow];
        for action in actions.into_iter().cycle() {
            if ends.load(Ordering::Relaxed) {
                return;
            }
            processes::write(&store, action, from, 100).unwrap();
        }
    };
    std::thread::scope(|scope| {
        (0..8).for_each(|from| drop(scope.spawn(move || writer(from))));
        let answers = (0..300).flat_map(|_| block_on(store.status()).unwrap().hosts);
        let refused: Vec<String> = answers.filter_map(|host| host.condition.err()).collect();
        ends.store(true, Ordering::Relaxed);
        assert_eq!(refused, Vec::<String>::new());
    });
}

/// Whatever was lost before it: a connection that takes the lock of a shard has committed a write.
#[test]
fn a_new_connection_commits_before_it_is_trusted() {
    let Some(servers) = servers() else { return };
    let proxies = Arc::new(Proxies::default());
    let before_hosts = Arc::clone(&proxies);
    let stores = Stores::new(servers, 4, Projecting::AtOnce)
        .with_settings(move |settings| before_hosts.before_hosts(settings));
    let store = stores.make(IDS, Arc::new(SimulatedClock::default()));
    for number in 1..=60 {
        follow(&store, number).unwrap();
    }
    let cut = proxies.count(|cuts| &cuts.before) + proxies.count(|cuts| &cuts.after);
    assert!(cut >= 10, "{cut} connections were cut");
    assert!(proxies.count(|cuts| &cuts.trusted) > 60);
    assert_eq!(proxies.count(|cuts| &cuts.untrusted), 0);
}

/// A clock that is ahead of the system's.
struct Ahead(Duration);

impl Clock for Ahead {
    fn now(&self) -> Timestamp {
        SystemClock.now().plus_millis(self.0.as_millis() as u64)
    }
}

#[test]
fn a_process_whose_clock_is_ahead_is_not_ready() {
    let Some(servers) = servers() else { return };
    let stores = Stores::new(servers, 2, Projecting::Never);
    let ready = stores.make(IDS, Arc::new(Ahead(Duration::ZERO)));
    assert_eq!(block_on(ready.not_ready()).unwrap(), None);
    let ahead = stores.make(IDS, Arc::new(Ahead(Duration::from_secs(60))));
    // A host that was too busy to answer in time is asked again.
    let reason = (0..100).find_map(|_| {
        let found = block_on(ahead.not_ready()).unwrap();
        if found.is_none() {
            std::thread::sleep(Duration::from_millis(100));
        }
        found
    });
    let reason = reason.expect("a reason");
    assert!(reason.contains("60.0 s ahead of host ") && reason.contains("synchronize"), "{reason}");
}
