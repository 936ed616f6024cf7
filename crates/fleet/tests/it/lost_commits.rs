//! Connections that are lost around a commit: what was acknowledged is there, and nothing happens twice.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use kinfolk_conformance::{SEED, concurrent_histories, graph_histories};
use kinfolk_fleet::Settings;

use crate::deployments::{Projecting, Stores, servers};
use crate::proxy::{Cuts, Proxy};

/// Proxies in front of the servers of hosts, but not of the catalog.
#[derive(Default)]
struct Proxies(Mutex<HashMap<SocketAddr, Proxy>>);

impl Proxies {
    fn before_hosts(&self, mut settings: Settings) -> Settings {
        for url in settings.hosts.values_mut() {
            let address = url.split(['@', '/']).nth(3).unwrap().to_owned();
            let server = address.parse().unwrap();
            let mut proxies = self.0.lock().unwrap();
            let proxy = proxies.entry(server).or_insert_with(|| Proxy::start(server, 4));
            *url = url.replace(&address, &proxy.address.to_string());
        }
        settings
    }

    fn count(&self, which: impl Fn(&Cuts) -> &AtomicU64) -> u64 {
        self.0.lock().unwrap().values().map(|proxy| which(&proxy.cuts).load(Ordering::SeqCst)).sum()
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
