//! The faults of edges and their log, each with the tests that must catch it. The files beside it plant them.

/// Hands the faults of edges and their log on to the next macro, after those that were handed to it.
macro_rules! graph_faults {
    ($next:ident $($others:ident)*; $($faults:tt)*) => { $next! { $($others)*; $($faults)*
        /// A repeated follow appends a second row: the lists show it twice and the counts say 2.
        RepeatAppendsRow: "a_repeated_follow_changes_nothing";
        /// A repeated follow adds 1 to the counts blindly.
        RepeatAddsToCounts: "counts_equal_the_lists";
        /// An unfollow of nothing takes 1 off the counts blindly, clamped at 0, which hides it at first.
        CountsClampHidesDrift: "a_repeated_unfollow_changes_nothing";
        /// Every third event is delivered to the counts twice, and they add 1 each time.
        RedeliveryCountsTwice: "an_unfollow_removes_it";
        /// A repeated follow or unfollow writes an event.
        RepeatEmitsEvent: "the_log_has_no_other_events";
        /// A repeated follow or unfollow says that it changed something.
        RepeatSaysChanged: "one_pair_from_several_threads";
        /// A write that changed nothing returns the start of the log, not the current position.
        RepeatReturnsStart: "a_write_that_changes_nothing_returns_the_current_position";
        /// A receipt's position is the one before its change, so that a read at it need not see the change.
        ReceiptOfStateBefore: "a_follow_makes_one_edge";
        /// A request that is refused in the middle leaves its first commands applied.
        RequestAppliedInPart: "a_refused_request_changes_nothing";
        /// A refused request takes a position, which leaves a gap in the log.
        RefusalTakesPosition: "the_log_has_no_other_events";
        /// The commands of a request are applied from the last to the first.
        CommandsOutOfOrder: "a_later_command_sees_an_earlier_one";
        /// An update of A then B and one of B then A lock in opposite orders, and the database kills one.
        OppositeLocks: "opposite_edges_at_once";
        /// The order of two writes of one pair is decided by the wall clock: the "older" one is dropped.
        VersionFromClock: "the_clock_does_not_decide_who_was_last";

        /// The limit is checked before the write, not with it.
        LimitCheckedBefore: "threads_cannot_exceed_the_limit";
        /// The limit does not count what the same request adds.
        LimitIgnoresOwnRequest: "the_limit_counts_what_the_request_adds";
        /// The limit does not count what the same request has removed.
        LimitForgetsFreedPlace: "an_unfollow_in_the_request_frees_a_place";
        /// The limit lets one too many through.
        LimitOffByOne: "the_limit_is_exact";
        /// At the limit, a repeated follow is refused.
        LimitRefusesRepeat: "a_repeated_follow_at_the_limit_succeeds";
        /// The limit counts the edges of all kinds together.
        LimitSharedByKinds: "the_limit_is_per_follower_and_kind";

        /// `since` is what the clock shows, even if it was turned back.
        SinceGoesBackWithClock: "since_never_goes_back";
        /// A re-follow within one millisecond has the `since` of the follow before.
        RefollowInSameMillisecond: "a_refollow_is_later_even_if_the_clock_stands";
        /// A re-follow by upsert keeps the first `since`.
        RefollowKeepsSince: "a_refollow_has_a_new_since";
        /// `since` is kept in seconds.
        SinceInSeconds: "since_is_the_time_of_the_clock";
        /// A user's follows are one row with one time, so that each has the `since` of the newest.
        SinceOfWholeRow: "lists_run_from_new_to_old";
        /// The follower side takes its own look at the clock.
        FollowerSideOwnTime: "both_sides_have_the_same_since";

        /// An unfollow does not reach the follower side.
        FollowerSideForgetsUnfollow: "an_unfollow_removes_it";
        /// The follower side keeps the newer of two events by the wall clock.
        FollowerSideByClock: "the_clock_does_not_decide_who_was_last";
        /// The follower side applies events in the order in which they happen to arrive.
        FollowerSideOutOfOrder: "a_follow_and_an_unfollow_at_once";

        /// A check fills its cache with what it read before an unfollow, after it.
        CheckFillsStale: "reads_meanwhile_leave_nothing_behind";
        /// A check has not heard of the newest change, whatever position was waited for.
        CheckLagsBehind: CONCURRENT_HISTORIES;
        /// A check trusts a filter that unfollows never leave.
        CheckKeepsRemoved: "every_thread_sees_its_own_writes";
        /// A check takes a filter's "maybe" for "yes".
        CheckTakesMaybeForYes: "many_edges_are_answered_in_the_order_asked";
        /// A check compares the low 32 bits of ids.
        CheckTruncatesIds: "ids_that_differ_in_one_bit_are_different";
        /// A check says no for every user that is not among the first 16 that it cached.
        CheckMissesUncachedUsers: "many_followers_are_all_known";
        /// Answers to many questions come sorted by edge or id, not in the order asked.
        AnswersInOtherOrder: "many_users_are_counted_in_the_order_asked";
        /// A user that was never seen is an error.
        UnknownUserFails: "unknown_users_have_nothing";
        /// A user that was never seen is left out of the answer.
        UnknownUserLeftOut: "relationships_tell_all_four_states";
        /// All kinds share one set of edges on reading.
        KindsShareEdges: "kinds_do_not_see_each_other";

        /// Lists run from the oldest to the newest.
        ListAscending: "lists_run_from_new_to_old";
        /// Lists are ordered by time, and within a millisecond from low ids to high.
        ListOrderedByTimeOnly: "one_millisecond_runs_from_high_ids_to_low";
        /// A cursor of time alone goes on with the next older millisecond.
        CursorByTimeSkips: "a_page_may_end_inside_one_millisecond";
        /// A cursor of time alone goes on with the same millisecond.
        CursorByTimeRepeats: "a_walk_with_changes_at_the_same_time";
        /// A page begins with the entry that the page before ended with.
        CursorInclusive: "a_walk_with_changes_between_pages";
        /// A page after an edge that is gone meanwhile is empty.
        CursorNeedsItsEdge: "a_removed_edge_is_still_a_place";
        /// Only the newest 1,000 entries of a list are read.
        ListStopsAtThousand: "long_lists_are_whole";
        /// Friends come by when the user followed them, not by when they followed the user.
        FriendsByOwnFollow: "friends_come_by_when_they_followed";
        /// Friends come by id, as an intersection of sets gives them.
        FriendsById: "friends_of_one_who_follows_many";
        /// A page of friends is a page of followers with the others left out, so it is short before the end.
        FriendsFilteredAfterPaging: "pages_end_without_a_next";
        /// Friends are looked for among the newest 100 followers only.
        FriendsScanIsBounded: "friends_of_one_who_is_followed_by_many";
        /// Friends are looked for among the 2,000 newest followers only.
        FriendsWalkGivesUp: "friends_at_the_old_end_of_many_followers";

        /// A user without edges is left out of an overlap, as if everyone were in its set.
        OverlapUnknownIsEveryone: "an_overlap_with_nobody_is_empty";
        /// An overlap looks at the first two sets only.
        OverlapOfFirstTwo: "an_overlap_of_many_sets";
        /// An overlap takes every set for a set of followees.
        OverlapIgnoresSide: "common_and_known_followers_name_their_sets";
        /// An overlap looks at the newest 1,000 members of each set, as a cache keeps them.
        OverlapScanIsBounded: "a_small_set_and_a_large_one";
        /// A set that is named twice has nothing in common with itself.
        OverlapOfRepeatedSetIsEmpty: "a_set_named_twice_counts_once";
        /// An overlap of no sets is an error.
        OverlapOfNothingFails: "an_overlap_with_nobody_is_empty";
        /// The members of an overlap come by time.
        OverlapByTime: "an_overlap_is_whom_all_follow";
        /// The members of an overlap come in the order in which the store first heard of them.
        OverlapInOrderOfArrival: "a_set_alone_is_itself";
        /// The count of an overlap is that of the page.
        OverlapCountsPage: "overlaps_are_paged_by_id";
        /// The count of an overlap is that of what is left after the cursor.
        OverlapCountsRest: "pages_of_an_overlap_end_without_a_next";
        /// A page of an overlap begins with the member that the page before ended with.
        OverlapCursorInclusive: "an_overlap_of_extreme_ids";
        /// A page of an overlap goes on at the place of a member, and is empty if that is none any more.
        OverlapCursorNeedsMember: "any_id_is_a_place_in_an_overlap";

        /// Every fifth event is lost between the commit and the log.
        LogLosesEvent: "changes_go_on_from_a_token";
        /// Every fifth event is in the log twice.
        LogRepeatsEvent: "the_log_tells_every_change_once_and_in_order";
        /// The events of one request are logged in reverse.
        LogReordersRequest: "requests_of_several_commands_stay_whole";
        /// Changes after a position begin with that position.
        LogInclusive: "the_log_is_read_in_pages";
        /// The log gives one change more than asked for.
        LogIgnoresLimit: "the_log_is_read_in_pages";
        /// An event of an unfollow says that the edge had existed since the unfollow.
        LogForgetsRemovedSince: HISTORIES;
        /// An event's `at` is what the clock shows, even if it was turned back.
        LogTimeGoesBackWithClock: "time_in_the_log_never_goes_back";
        /// The log contains follows only, no other kinds.
        LogForgetsOtherKinds: "the_log_holds_all_kinds";
        /// Every write begins a new epoch, which makes all tokens before it worthless.
        EpochChangesWithWrites: "a_new_store_is_empty";
        /// Any position is said to be visible at once.
        VisibleAlways:
            "a_position_of_the_future_is_not_visible", "on shards: a_token_of_the_future_waits_for_posts",
            "on shards: a_token_of_the_future_waits_for_comments";

        /// After a restart `since` may go back.
        RestartForgetsFloor: HISTORIES;
        /// The newest write does not survive a restart.
        RestartLosesNewest: HISTORIES;
        /// The follower side is rebuilt from a snapshot that lacks the newest change.
        RestartRebuildMissesTail: HISTORIES;
        /// After a restart a follow makes a set of one, which then denies what the user had followed before.
        RestartTrustsPartialSet: HISTORIES;
    } };
}
pub(in crate::faults) use graph_faults;
