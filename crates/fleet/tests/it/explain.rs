//! The plan of every statement on a populated shard: an index everywhere, and no sort of a whole list.

use std::sync::Arc;

use kinfolk_conformance::block_on;
use kinfolk_core::{IdKind, SystemClock};
use kinfolk_fleet::{Fleet, Query};

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
const MAY_READ_BY_TIME: &[Query] =
    &[Query::FollowingPage, Query::FollowersPage, Query::FriendsOfFewFollowers, Query::RecentFollowees];

/// Statements whose plans read a table otherwise than by key.
fn wrong_plans(store: &Fleet) -> Vec<Query> {
    let is_wrong = |query: &Query| {
        let plan = block_on(store.explain(*query)).unwrap();
        println!("{query:?}\n{plan}\n");
        let sorts = plan.contains("Sort") && !MAY_SORT.contains(query);
        let walks = plan.contains("by_time") && !MAY_READ_BY_TIME.contains(query);
        sorts
            || walks
            || ["Seq Scan", "Bitmap", "Hash Join", "Merge Join", "Materialize"]
                .iter()
                .any(|node| plan.contains(node))
    };
    Query::ALL.iter().copied().filter(is_wrong).collect()
}

/// On a populated shard, and before there are statistics: plans must not depend on them.
#[test]
fn every_statement_reads_by_key() {
    let Some(servers) = servers() else { return };
    let stores = Stores::new(servers, 4, Projecting::Never);
    let store = stores.make(IdKind::Integer, Arc::new(SystemClock));
    assert_eq!(wrong_plans(&store), [], "without statistics");
    stores.with_databases(IdKind::Integer, |databases| databases.execute(1, POPULATE));
    assert_eq!(wrong_plans(&store), [], "on a populated shard");
}
