//! The plan of every statement on a populated shard: an index everywhere, and no sort of a whole list.

use std::sync::Arc;

use kinfolk_conformance::block_on;
use kinfolk_core::{IdKind, SystemClock};
use kinfolk_fleet::Query;

use crate::deployments::{Projecting, Stores, servers};

/// Rows of one user with long lists, of many users with short ones, and a log.
const POPULATE: &str = "
    INSERT INTO following
        SELECT 0, 1, n % 2000, n, 1000000 + n, n FROM generate_series(1, 60000) AS n;
    INSERT INTO following
        SELECT 0, 1, 5000, n, 1000000 + n, n FROM generate_series(1, 10000) AS n;
    INSERT INTO followers
        SELECT 0, 1, n % 2000, n, 1000000 + n, 0, n FROM generate_series(1, 60000) AS n;
    INSERT INTO followers
        SELECT 0, 1, 5000, n, 1000000 + n, 0, n FROM generate_series(1, 40000) AS n;
    INSERT INTO users SELECT 0, 1, n, 30, n FROM generate_series(0, 5000) AS n;
    INSERT INTO follower_counts SELECT 0, 1, n, 0, 30 FROM generate_series(0, 5000) AS n;
    INSERT INTO log SELECT 0, n, '00000000-0000-0000-0000-000000000000', n, 1, '\\x00' FROM generate_series(1, 50000) AS n;
    ANALYZE;";

/// Statements that sort: what they sort is a batch of their own parameters, or the few rows that are left of a walk.
const MAY_SORT: &[Query] = &[Query::Apply, Query::FriendsOfFewFollowees];

/// Statements that read a list by time. Any other that did would walk a list to find an edge.
const MAY_READ_BY_TIME: &[Query] = &[
    Query::FollowingPage,
    Query::FollowersPage,
    Query::FriendsOfFewFollowers,
    Query::FriendsOfFewFollowees,
    Query::RecentFollowees,
];

#[test]
fn every_statement_reads_by_key() {
    let Some(servers) = servers() else { return };
    let stores = Stores::new(servers, 4, Projecting::Never);
    let store = stores.make(IdKind::Integer, Arc::new(SystemClock));
    stores.with_databases(IdKind::Integer, |databases| databases.execute(1, POPULATE));
    let mut wrong = Vec::new();
    for &query in Query::ALL {
        let plan = block_on(store.explain(query)).unwrap();
        println!("{query:?}\n{plan}\n");
        let sorts = plan.contains("Sort") && !MAY_SORT.contains(&query);
        let walks = plan.contains("by_time") && !MAY_READ_BY_TIME.contains(&query);
        if walks
            || plan.contains("Seq Scan")
            || plan.contains("Bitmap")
            || plan.contains("Hash Join")
            || sorts
        {
            wrong.push(query);
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}
