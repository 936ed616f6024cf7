//! The mistakes of a sharded, lagging store, each with what must notice it.

/// What must catch a fault besides a case of the suite.
const GRAPH_HISTORIES: &str = "graph_histories";
const GRAPH_RESTORES: &str = "graph_restores";
const GRAPH_TRIMS: &str = "graph_trims";
const OWN_CHECKS: &str = "own_checks";

/// One mistake of a sharded, lagging store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LagFault {
    /// A projection leaves an event out and moves its mark past it.
    EventLost,
    /// An event that comes again is counted again.
    CountedTwice,
    /// A set is stored in the cache although changes have passed it since it was read.
    CacheFillsStale,
    /// The filter answers for changes whose keys it lacks.
    FilterAheadOfMark,
    /// A client's newest token replaces its others, instead of being joined with them.
    TokenReplaced,
    /// An owner of a projection that was stopped applies its batch after its successor has gone on.
    ZombieApplies,
    /// A projection applies what it receives and leaves out what is missing before it.
    GapJumped,
    /// A late owner writes its older mark, and changes are applied again from there; readers know the higher mark.
    MarkGoesBack,
    /// A reader takes the marks of one host for those of another, which has not got so far.
    HostAhead,
    /// Messages from before a restore are applied after it.
    OldEpochApplied,
    /// A reader goes on asking the host that a shard has moved away from, and is answered.
    OldShardMap,
    /// A check waits until the follower side shows what the follower itself has just done.
    CheckWaitsForProjection,
    /// A reader of the log that does not name a shard starts at 0 there, which was trimmed.
    StartsAtZero,
    /// A reader that names a position before what was trimmed goes on after the gap.
    ExpiryIgnored,
}

impl LagFault {
    /// Every fault, with the tests that must catch it, each alone: names of cases, or of a run of histories.
    pub const CAUGHT_BY: &'static [(Self, &'static [&'static str])] = &[
        (Self::EventLost, &["long_lists_are_whole", GRAPH_HISTORIES]),
        (Self::CountedTwice, &["counts_equal_the_lists", GRAPH_HISTORIES]),
        (Self::CacheFillsStale, &["checks_between_writes_leave_nothing_behind", GRAPH_HISTORIES]),
        (Self::FilterAheadOfMark, &["a_reached_position_is_visible", GRAPH_HISTORIES]),
        (Self::TokenReplaced, &["tokens_of_several_followers_are_joined", GRAPH_HISTORIES]),
        (Self::ZombieApplies, &["edges_that_come_and_go_leave_nothing_behind", GRAPH_HISTORIES]),
        (Self::GapJumped, &["long_lists_are_whole", GRAPH_HISTORIES]),
        (Self::MarkGoesBack, &["edges_that_come_and_go_leave_nothing_behind", GRAPH_HISTORIES]),
        (Self::HostAhead, &["a_reached_position_is_visible", GRAPH_HISTORIES]),
        (Self::OldEpochApplied, &[GRAPH_RESTORES]),
        (Self::OldShardMap, &["edges_that_come_and_go_leave_nothing_behind", GRAPH_HISTORIES]),
        (Self::CheckWaitsForProjection, &[OWN_CHECKS]),
        (Self::StartsAtZero, &[GRAPH_TRIMS]),
        (Self::ExpiryIgnored, &[GRAPH_TRIMS]),
    ];
}
