//! The mistakes of a sharded, lagging store, each with the tests that must catch it.

use crate::faults::declare_faults;

const GRAPH_HISTORIES: &str = "graph_histories";
const GRAPH_RESTORES: &str = "graph_restores";
const GRAPH_TRIMS: &str = "graph_trims";
const CONCURRENT_HISTORIES: &str = "concurrent_histories";
const OWN_CHECKS: &str = "own_checks";

declare_faults! {
    LagFault;
    /// A projection leaves an event out and moves its mark past it.
    EventLost: "long_lists_are_whole", GRAPH_HISTORIES;
    /// An event that comes again is counted again.
    CountedTwice: "counts_equal_the_lists", GRAPH_HISTORIES;
    /// A set is stored in the cache although changes have passed it since it was read.
    CacheFillsStale: "checks_between_writes_leave_nothing_behind", GRAPH_HISTORIES;
    /// The filter answers for changes whose keys it lacks.
    FilterAheadOfMark: "a_reached_position_is_visible", GRAPH_HISTORIES;
    /// A client's newest token replaces its others, instead of being joined with them.
    TokenReplaced: "tokens_of_several_followers_are_joined", GRAPH_HISTORIES;
    /// An owner of a projection that was stopped applies its batch after its successor has gone on.
    ZombieApplies: "edges_that_come_and_go_leave_nothing_behind", GRAPH_HISTORIES;
    /// A projection applies what it receives and leaves out what is missing before it.
    GapJumped: "long_lists_are_whole", GRAPH_HISTORIES;
    /// A late owner writes its older mark, and changes are applied again from there; readers know the higher mark.
    MarkGoesBack: "edges_that_come_and_go_leave_nothing_behind", GRAPH_HISTORIES;
    /// A reader takes the marks of one host for those of another, which has not got so far.
    HostAhead: "a_reached_position_is_visible", GRAPH_HISTORIES;
    /// Messages from before a restore are applied after it.
    OldEpochApplied: GRAPH_RESTORES;
    /// A reader goes on asking the host that a shard has moved away from, and is answered.
    OldShardMap: "edges_that_come_and_go_leave_nothing_behind", GRAPH_HISTORIES;
    /// A check waits until the follower side shows what the follower itself has just done.
    CheckWaitsForProjection: OWN_CHECKS;
    /// Projections, filter and cache may be any time behind, as long as nobody asks for more.
    StalenessUnbounded: "a_read_without_a_token_is_two_seconds_old_at_most";
    /// A list shows whatever its projection has got to.
    ListIgnoresFrontier: "edges_that_come_and_go_leave_nothing_behind", CONCURRENT_HISTORIES;
    /// Counts show whatever their projection has got to.
    CountsIgnoreFrontier: CONCURRENT_HISTORIES, GRAPH_HISTORIES;
    /// A reader of the log that does not name a shard starts at 0 there, which was trimmed.
    StartsAtZero: GRAPH_TRIMS;
    /// A reader that names a position before what was trimmed goes on after the gap.
    ExpiryIgnored: GRAPH_TRIMS;
}
