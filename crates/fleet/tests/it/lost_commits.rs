//! Connections that are lost around a commit: what was acknowledged is there, and nothing happens twice.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use kinfolk_conformance::{SEED, concurrent_histories, graph_histories};
use kinfolk_fleet::Settings;

use crate::deployments::{Projecting, Stores, server};
use crate::proxy::Proxy;

/// Puts a proxy in front of the hosts, but not of the catalog.
fn behind(proxy: &Proxy, server: &str, mut settings: Settings) -> Settings {
    let port = server.rsplit(':').next().unwrap().split('/').next().unwrap();
    for connection in settings.hosts.values_mut() {
        *connection = connection.replace(&format!(":{port}/"), &format!(":{}/", proxy.address.port()));
    }
    settings
}

#[test]
fn lost_commits_are_settled() {
    let Some(server) = server() else { return };
    let address = server.rsplit('@').next().unwrap().split('/').next().unwrap().parse().unwrap();
    let proxy = Arc::new(Proxy::start(address, 4));
    let in_front = Arc::clone(&proxy);
    let of_server = server.clone();
    let stores = Stores::new(server, 4, Projecting::AtOnce)
        .with_settings(move |settings| behind(&in_front, &of_server, settings));
    let make = |ids, clock| stores.make(ids, clock);
    concurrent_histories(&make, 10, SEED);
    graph_histories(&make, None, 5, SEED);
    let cuts = &proxy.cuts;
    let count = |cuts: &std::sync::atomic::AtomicU64| cuts.load(Ordering::SeqCst);
    println!(
        "{} commits, cut {} before and {} after",
        count(&cuts.commits),
        count(&cuts.before),
        count(&cuts.after)
    );
    assert!(count(&cuts.before) > 20 && count(&cuts.after) > 20, "{cuts:?}");
}
