//! Connections that are lost around a commit: what was acknowledged is there, and nothing happens twice.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kinfolk_conformance::{SEED, SimulatedClock, block_on, concurrent_histories, graph_histories, user};
use kinfolk_core::graph::{EdgeAction, EdgeStore, FollowerCommand, WriteRequest};
use kinfolk_core::{EdgeKind, Error, Frontier, IdKind};
use kinfolk_fleet::{Settings, Timeouts};

use crate::deployments::{Projecting, Stores, servers};
use crate::proxy::{Cuts, Proxy};

/// Proxies in front of the servers of hosts, but not of the catalog.
pub struct Proxies {
    /// Of so many commits one is cut; none of 0.
    every: Arc<AtomicU64>,
    proxies: Mutex<HashMap<SocketAddr, Proxy>>,
}

impl Default for Proxies {
    fn default() -> Self {
        Self::cutting(4)
    }
}

impl Proxies {
    /// Of every so many commits one is cut.
    pub fn cutting(every: u64) -> Self {
        Self { every: Arc::new(AtomicU64::new(every)), proxies: Mutex::default() }
    }

    /// From now on one of so many commits is cut; none of 0.
    pub fn cut_every(&self, every: u64) {
        self.every.store(every, Ordering::SeqCst);
    }

    pub fn before_hosts(&self, settings: Settings) -> Settings {
        self.before(settings, &["a", "b"])
    }

    /// Only some hosts are behind a proxy.
    pub fn before(&self, mut settings: Settings, hosts: &[&str]) -> Settings {
        for (_, url) in settings.hosts.iter_mut().filter(|(name, _)| hosts.contains(&name.as_str())) {
            let addresses = url.split(['@', '/']).nth(3).unwrap().to_owned();
            let mut proxies = self.proxies.lock().unwrap();
            let before = addresses.split(',').map(|address| {
                let server = address.parse().unwrap();
                let proxy =
                    proxies.entry(server).or_insert_with(|| Proxy::start(server, Arc::clone(&self.every)));
                proxy.address.to_string()
            });
            *url = url.replace(&addresses, &before.collect::<Vec<_>>().join(","));
        }
        settings
    }

    /// While they are frozen, no reply passes.
    pub fn freeze(&self, is_frozen: bool) {
        for proxy in self.proxies.lock().unwrap().values() {
            proxy.frozen.send_replace(is_frozen);
        }
    }

    pub fn count(&self, which: impl Fn(&Cuts) -> &AtomicU64) -> u64 {
        self.proxies.lock().unwrap().values().map(|proxy| which(&proxy.cuts).load(Ordering::SeqCst)).sum()
    }
}

#[test]
fn lost_commits_are_settled() {
    let Some(servers) = servers() else { return };
    let proxies = Arc::new(Proxies::default());
    let before_hosts = Arc::clone(&proxies);
    let stores = Stores::new(servers, 4, Projecting::AtOnce)
        .with_settings(move |settings| before_hosts.before_hosts(settings));
    let make = |ids, clock| stores.make(ids, clock);
    concurrent_histories(&make, 10, SEED);
    graph_histories(&make, None, 5, SEED);
    let (before, after) = (proxies.count(|cuts| &cuts.before), proxies.count(|cuts| &cuts.after));
    println!("{} commits, cut {before} before and {after} after", proxies.count(|cuts| &cuts.commits));
    assert!(before > 20 && after > 20, "{before} and {after}");
}

/// A host that is silent makes reads and writes fail in time, and serves them again as soon as it answers.
#[test]
fn a_silent_host_is_not_waited_for() {
    let Some(servers) = servers() else { return };
    let proxies = Arc::new(Proxies::default());
    let before_hosts = Arc::clone(&proxies);
    let stores = Stores::new(servers, 1, Projecting::Never).with_settings(move |settings| {
        let short = Duration::from_millis(200);
        let timeouts = Timeouts {
            connect: short,
            lock: short,
            statement: short,
            write: short,
            settle: short,
            ..settings.timeouts
        };
        Settings { timeouts, ..before_hosts.before_hosts(settings) }
    });
    let store = stores.make(IdKind::Integer, Arc::new(SimulatedClock::default()));
    let of = [user(IdKind::Integer, 0)];
    let counts = || block_on(store.counts(EdgeKind::Follow, &of, Frontier::EMPTY));
    counts().expect("it answers");
    proxies.freeze(true);
    assert!(matches!(counts(), Err(Error::Unavailable { .. })));
    let commands = vec![FollowerCommand { action: EdgeAction::Follow, followee: user(IdKind::Integer, 1) }];
    let request = WriteRequest {
        kind: EdgeKind::Follow,
        follower: of[0],
        commands: commands.into(),
        following_limit: 9,
    };
    assert!(matches!(block_on(store.write_one(request)), Err(Error::Unavailable { .. })));
    proxies.freeze(false);
    assert!((0..20).any(|_| counts().is_ok()), "it answers again");
}
