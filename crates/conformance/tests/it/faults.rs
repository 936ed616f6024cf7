//! Every planted fault must be caught, and by the case that is meant for it. This is how we know that the suite
//! can fail.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Arc;

use kinfolk_conformance::suite::{self, CaseScope};
use kinfolk_conformance::{
    Fault, ModelStore, SEED, comment_histories, comment_restarts, concurrent_comments, concurrent_feeds,
    concurrent_histories, feed_histories, feed_restarts, histories,
};
use kinfolk_core::{Clock, EdgeKind, IdKind};

use crate::comment_faults::{COMMENT_HISTORIES, COMMENT_RESTARTS, COMMENTS_CAUGHT_BY, CONCURRENT_COMMENTS};
use crate::one_at_a_time;

/// What catches a fault besides a case.
const HISTORIES: &str = "histories";
const CONCURRENT_HISTORIES: &str = "concurrent_histories";
const FEED_HISTORIES: &str = "feed_histories";
const FEED_RESTARTS: &str = "feed_restarts";
const CONCURRENT_FEEDS: &str = "concurrent_feeds";

/// Which test must catch which fault. Most are caught by others too. Those of comments are in `comment_faults.rs`.
const CAUGHT_BY: &[(Fault, &str)] = &[
    (Fault::RepeatAppendsRow, "a_repeated_follow_changes_nothing"),
    (Fault::RepeatAddsToCounts, "counts_equal_the_lists"),
    (Fault::CountsClampHidesDrift, "a_repeated_unfollow_changes_nothing"),
    (Fault::RedeliveryCountsTwice, "an_unfollow_removes_it"),
    (Fault::RepeatEmitsEvent, "the_log_has_no_other_events"),
    (Fault::RepeatSaysChanged, "one_pair_from_several_threads"),
    (Fault::RepeatReturnsStart, "a_write_that_changes_nothing_returns_the_current_position"),
    (Fault::ReceiptOfStateBefore, "a_follow_makes_one_edge"),
    (Fault::RequestAppliedInPart, "a_refused_request_changes_nothing"),
    (Fault::RefusalTakesPosition, "the_log_has_no_other_events"),
    (Fault::CommandsOutOfOrder, "a_later_command_sees_an_earlier_one"),
    (Fault::OppositeLocks, "opposite_edges_at_once"),
    (Fault::VersionFromClock, "the_clock_does_not_decide_who_was_last"),
    (Fault::LimitCheckedBefore, "threads_cannot_exceed_the_limit"),
    (Fault::LimitIgnoresOwnRequest, "the_limit_counts_what_the_request_adds"),
    (Fault::LimitForgetsFreedPlace, "an_unfollow_in_the_request_frees_a_place"),
    (Fault::LimitOffByOne, "the_limit_is_exact"),
    (Fault::LimitRefusesRepeat, "a_repeated_follow_at_the_limit_succeeds"),
    (Fault::LimitSharedByKinds, "the_limit_is_per_follower_and_kind"),
    (Fault::SinceGoesBackWithClock, "since_never_goes_back"),
    (Fault::RefollowInSameMillisecond, "a_refollow_is_later_even_if_the_clock_stands"),
    (Fault::RefollowKeepsSince, "a_refollow_has_a_new_since"),
    (Fault::SinceInSeconds, "since_is_the_time_of_the_clock"),
    (Fault::SinceOfWholeRow, "lists_run_from_new_to_old"),
    (Fault::FollowerSideOwnTime, "both_sides_have_the_same_since"),
    (Fault::FollowerSideForgetsUnfollow, "an_unfollow_removes_it"),
    (Fault::FollowerSideByClock, "the_clock_does_not_decide_who_was_last"),
    (Fault::FollowerSideOutOfOrder, "a_follow_and_an_unfollow_at_once"),
    (Fault::CheckFillsStale, "reads_meanwhile_leave_nothing_behind"),
    (Fault::CheckLagsBehind, CONCURRENT_HISTORIES),
    (Fault::CheckKeepsRemoved, "every_thread_sees_its_own_writes"),
    (Fault::CheckTakesMaybeForYes, "many_edges_are_answered_in_the_order_asked"),
    (Fault::CheckTruncatesIds, "ids_that_differ_in_one_bit_are_different"),
    (Fault::CheckMissesUncachedUsers, "many_followers_are_all_known"),
    (Fault::AnswersInOtherOrder, "many_users_are_counted_in_the_order_asked"),
    (Fault::UnknownUserFails, "unknown_users_have_nothing"),
    (Fault::UnknownUserLeftOut, "relationships_tell_all_four_states"),
    (Fault::KindsShareEdges, "kinds_do_not_see_each_other"),
    (Fault::ListAscending, "lists_run_from_new_to_old"),
    (Fault::ListOrderedByTimeOnly, "one_millisecond_runs_from_high_ids_to_low"),
    (Fault::CursorByTimeSkips, "a_page_may_end_inside_one_millisecond"),
    (Fault::CursorByTimeRepeats, "a_walk_with_changes_at_the_same_time"),
    (Fault::CursorInclusive, "a_walk_with_changes_between_pages"),
    (Fault::CursorNeedsItsEdge, "a_removed_edge_is_still_a_place"),
    (Fault::ListStopsAtThousand, "long_lists_are_whole"),
    (Fault::FriendsByOwnFollow, "friends_come_by_when_they_followed"),
    (Fault::FriendsById, "friends_of_one_who_follows_many"),
    (Fault::FriendsFilteredAfterPaging, "pages_end_without_a_next"),
    (Fault::FriendsScanIsBounded, "friends_of_one_who_is_followed_by_many"),
    (Fault::FriendsWalkGivesUp, "friends_at_the_old_end_of_many_followers"),
    (Fault::OverlapUnknownIsEveryone, "an_overlap_with_nobody_is_empty"),
    (Fault::OverlapOfFirstTwo, "an_overlap_of_many_sets"),
    (Fault::OverlapIgnoresSide, "common_and_known_followers_name_their_sets"),
    (Fault::OverlapScanIsBounded, "a_small_set_and_a_large_one"),
    (Fault::OverlapOfRepeatedSetIsEmpty, "a_set_named_twice_counts_once"),
    (Fault::OverlapOfNothingFails, "an_overlap_with_nobody_is_empty"),
    (Fault::OverlapByTime, "an_overlap_is_whom_all_follow"),
    (Fault::OverlapInOrderOfArrival, "a_set_alone_is_itself"),
    (Fault::OverlapCountsPage, "overlaps_are_paged_by_id"),
    (Fault::OverlapCountsRest, "pages_of_an_overlap_end_without_a_next"),
    (Fault::OverlapCursorInclusive, "an_overlap_of_extreme_ids"),
    (Fault::OverlapCursorNeedsMember, "any_id_is_a_place_in_an_overlap"),
    (Fault::SuggestsOneself, "nobody_is_suggested_to_themselves_or_again"),
    (Fault::SuggestsFollowedLongAgo, "whom_a_user_followed_long_ago_is_not_suggested"),
    (Fault::SuggestsDismissed, "the_dismissed_are_not_suggested"),
    (Fault::SuggestFiltersTheBest, "the_best_are_kept"),
    (Fault::SuggestIgnoresRecency, "only_the_most_recent_followees_count"),
    (Fault::SuggestForgetsRefollow, "only_the_most_recent_of_each_followee_count"),
    (Fault::SuggestBoundsFirstStepOnly, "within_one_millisecond_high_ids_are_most_recent"),
    (Fault::SuggestWeighsFollowersOnly, "candidates_are_whom_followees_follow"),
    (Fault::SuggestWeighsWithinBounds, "scores_do_not_depend_on_bounds"),
    (Fault::SuggestShareOfFollowees, "rankings_differ"),
    (Fault::SuggestTiesById, "ties_are_broken_by_score_then_id"),
    (Fault::SuggestTiesFromHighIds, "ties_are_broken_by_score_then_id"),
    (Fault::SuggestIgnoresRanking, "rankings_differ"),
    (Fault::SuggestViaStrangers, "via_names_those_who_say_most"),
    (Fault::SuggestViaById, "candidates_of_a_random_graph"),
    (Fault::SuggestViaAll, "candidates_of_one_who_follows_many"),
    (Fault::SuggestCountsByLowBits, "candidates_of_extreme_ids"),
    (Fault::SuggestMixesKinds, "other_kinds_suggest_nobody"),
    (Fault::SuggestLagsBehind, "every_change_counts_in_the_next_walk"),
    (Fault::CheckForgetsDismissals, "stored_suggestions_leave_out_who_is_known_since"),
    (Fault::StoredServedWhenStale, "stored_suggestions_are_served_while_fresh"),
    (Fault::StoredOfFutureIsStale, "stored_suggestions_outlive_a_clock_that_is_turned_back"),
    (Fault::StoredForNobody, "nothing_is_stored_for_whom_there_is_nothing"),
    (Fault::StoredOutlivesItsReason, "a_run_replaces_what_was_stored"),
    (Fault::EveryoneMissesTheUnfollowed, "everyone_gets_what_a_walk_finds"),
    (Fault::EveryoneIsBounded, "a_run_has_no_bound_unless_it_is_set"),
    (Fault::EveryoneCannotBeStopped, "a_stopped_run_goes_on"),
    (Fault::EveryoneForgetsStopped, "a_stopped_run_goes_on"),
    (Fault::EveryoneNeverAfresh, "a_run_may_start_afresh"),
    (Fault::EveryoneMixesBounds, "a_run_with_other_bounds_starts_over"),
    (Fault::EveryoneGoesOnForever, "a_run_that_was_stopped_long_ago_starts_over"),
    (Fault::ComputedReplacesAll, "what_was_computed_elsewhere_is_stored"),
    (Fault::ComputedIsAdded, "what_was_computed_elsewhere_is_stored"),
    (Fault::ComputedIsNow, "what_was_computed_elsewhere_is_stored"),
    (Fault::ComputedEmptyIsSkipped, "what_was_computed_elsewhere_is_stored"),
    (Fault::PostRepeatEmitsEvent, "the_same_id_again_changes_nothing"),
    (Fault::PostRepeatSaysNew, "the_same_wish_from_several_threads"),
    (Fault::PostIdIgnoresContent, "the_same_id_with_another_content_conflicts"),
    (Fault::PostKeyIgnoresContent, "the_same_key_with_another_content_conflicts"),
    (Fault::PostRepeatComparesNow, "the_same_id_again_changes_nothing"),
    (Fault::PostRepeatOfFutureRefused, "the_same_id_again_changes_nothing"),
    (Fault::PostKeysShared, "a_key_belongs_to_its_author"),
    (Fault::PostForgetsKeyBesideId, "the_same_key_with_another_content_conflicts"),
    (Fault::PostDeletedIdIsFree, "a_deleted_post_is_gone_for_good"),
    (Fault::PostDeletedKeyIsFree, "the_key_of_a_deleted_post_is_not_used_again"),
    (Fault::PostDecidedBefore, "different_wishes_for_one_id_at_once"),
    (Fault::PostFutureAccepted, "a_post_of_the_future_is_refused"),
    (Fault::PostPastRefused, "the_time_of_a_post_is_not_that_of_its_event"),
    (Fault::PostMovesTime, "the_time_of_a_post_is_not_that_of_its_event"),
    (Fault::PostEventAtItsTime, "a_post_is_kept_as_it_was_given"),
    (Fault::PostTimeGoesBackWithClock, "a_post_without_a_time_is_made_at_its_event"),
    (Fault::PostTrimsPayload, "a_payload_is_kept_byte_for_byte"),
    (Fault::GeneratedIdsFromClock, "ids_that_are_made_rise"),
    (Fault::GeneratedIdsCollide, "ids_that_are_made_pass_those_that_were_given"),
    (Fault::DeliveryOffByOne, "delivery_is_decided_by_the_followers_then"),
    (Fault::DeliveryCountsAllKinds, "delivery_is_decided_by_the_followers_then"),
    (Fault::DeliveryNotRecorded, "an_author_may_cross_the_threshold"),
    (Fault::DeletionOfNothingSucceeds, "what_was_never_posted_cannot_be_deleted"),
    (Fault::DeletionRepeatEmitsEvent, "deletions_from_several_threads"),
    (Fault::DeletionForgetsTime, "a_deleted_post_is_gone_for_good"),
    (Fault::DeletionLeavesNoMark, "many_posts_are_answered_in_the_order_asked"),
    (Fault::PostLogTellsDeleted, "the_log_has_no_payload_of_a_deleted_post"),
    (Fault::PostsShowDeleted, "any_key_is_a_place_among_posts"),
    (Fault::PostsFilteredAfterPaging, "any_key_is_a_place_among_posts"),
    (Fault::PostsOldestFirst, "posts_run_from_new_to_old"),
    (Fault::PostsOrderedByTimeOnly, "pages_of_posts_may_end_inside_one_millisecond"),
    (Fault::PostCursorByTimeSkips, "a_feed_of_one_millisecond"),
    (Fault::PostCursorByTimeRepeats, "a_walk_of_posts_with_changes_between_pages"),
    (Fault::PostCursorInclusive, "any_key_is_a_place_in_a_feed"),
    (Fault::PostCursorNeedsPost, "any_key_is_a_place_among_posts"),
    (Fault::FeedShowsOwn, "a_feed_of_nobody_is_empty"),
    (Fault::FeedMixesKinds, "a_feed_knows_only_follows"),
    (Fault::FeedInOrderOfArrival, "a_feed_of_posts_from_the_past"),
    (Fault::FeedEndsWithInbox, "a_feed_goes_on_where_an_inbox_ends"),
    (Fault::FeedShortInboxIsWhole, "deletions_do_not_end_a_feed"),
    (Fault::FeedMergesWithoutTime, "pushed_and_pulled_posts_are_merged"),
    (Fault::FeedPullsRecentOnly, "pushed_and_pulled_posts_are_merged"),
    (Fault::FeedCrossingLoses, "an_author_may_cross_the_threshold"),
    (Fault::FeedCrossingDoubles, "an_author_may_cross_the_threshold_among_others"),
    (Fault::FeedPushesPulled, "a_walk_while_authors_cross_the_threshold"),
    (Fault::FeedRedeliveryDoubles, "a_feed_merges_many_authors"),
    (Fault::FeedLagsBehind, "every_author_sees_its_own_posts_and_deletions"),
    (Fault::FeedFollowBringsNothing, "a_follow_brings_older_posts_in"),
    (Fault::FeedBackfillLeavesHole, "a_follow_brings_more_in_than_an_inbox_holds"),
    (Fault::FeedRefollowLeavesHole, "a_follow_again_brings_posts_back"),
    (Fault::FeedIgnoresPast, "a_post_from_the_past_finds_its_place"),
    (Fault::FeedDropsPast, "a_feed_of_posts_from_the_past"),
    (Fault::FeedTrimsByArrival, "a_feed_of_posts_from_the_past"),
    (Fault::FeedShowsDeleted, "a_deleted_post_leaves_every_feed"),
    (Fault::FeedShowsUnfollowed, "an_unfollow_takes_posts_out"),
    (Fault::FeedFilteredAfterPaging, "an_unfollow_takes_posts_out"),
    (Fault::FeedSkipsWhereInboxEnds, FEED_HISTORIES),
    (Fault::InboxGrows, "an_inbox_is_trimmed_from_the_old_end"),
    (Fault::InboxHasPulled, "an_inbox_has_nothing_that_is_pulled"),
    (Fault::InboxHasTwice, "an_inbox_is_trimmed_from_the_old_end"),
    (Fault::InboxOfEverybody, "an_inbox_has_what_is_pushed"),
    (Fault::InboxFromOldToNew, "an_inbox_is_made_of_the_newest"),
    (Fault::InboxSaysItIsWhole, "an_inbox_is_made_of_the_newest"),
    (Fault::InboxClaimsUndelivered, "an_inbox_keeps_its_promises_meanwhile"),
    (Fault::InboxWithoutReading, "who_has_not_read_has_no_inbox"),
    (Fault::InboxTakesPageAlong, "an_inbox_can_be_forgotten_at_any_time"),
    (Fault::TrimmedInboxIsEmpty, "an_inbox_is_trimmed_from_the_old_end"),
    (Fault::ForgottenInboxStays, "an_inbox_can_be_forgotten_at_any_time"),
    (Fault::ForgottenInboxIsNotMade, "what_is_gone_is_gone_from_an_inbox_that_is_made_again"),
    // These besides, to show that an inbox is looked at after a follow, in the past, at the threshold and after a restart.
    (Fault::FeedFollowBringsNothing, "a_follow_brings_posts_into_an_inbox"),
    (Fault::FeedBackfillLeavesHole, "a_follow_brings_posts_into_an_inbox"),
    (Fault::FeedRefollowLeavesHole, "a_follow_again_makes_no_hole_in_an_inbox"),
    (Fault::FeedIgnoresPast, "an_inbox_of_posts_from_the_past"),
    (Fault::FeedDropsPast, "an_inbox_of_posts_from_the_past"),
    (Fault::FeedTrimsByArrival, "an_inbox_of_posts_from_the_past"),
    (Fault::FeedPushesPulled, "an_inbox_has_nothing_that_is_pulled"),
    (Fault::FeedMixesKinds, "an_inbox_knows_only_follows"),
    (Fault::InboxClaimsUndelivered, CONCURRENT_FEEDS),
    // These besides, to show that feeds of several threads can fail too.
    (Fault::FeedEndsWithInbox, CONCURRENT_FEEDS),
    (Fault::FeedCrossingLoses, CONCURRENT_FEEDS),
    (Fault::FeedCrossingDoubles, CONCURRENT_FEEDS),
    (Fault::FeedLagsBehind, CONCURRENT_FEEDS),
    (Fault::FeedShowsDeleted, CONCURRENT_FEEDS),
    (Fault::FeedShowsUnfollowed, CONCURRENT_FEEDS),
    (Fault::LogLosesEvent, "changes_go_on_from_a_token"),
    (Fault::LogRepeatsEvent, "the_log_tells_every_change_once_and_in_order"),
    (Fault::LogReordersRequest, "requests_of_several_commands_stay_whole"),
    (Fault::LogInclusive, "the_log_is_read_in_pages"),
    (Fault::LogIgnoresLimit, "the_log_is_read_in_pages"),
    (Fault::LogForgetsRemovedSince, HISTORIES),
    (Fault::LogTimeGoesBackWithClock, "time_in_the_log_never_goes_back"),
    (Fault::LogForgetsOtherKinds, "the_log_holds_all_kinds"),
    (Fault::EpochChangesWithWrites, "a_new_store_is_empty"),
    (Fault::VisibleAlways, "a_position_of_the_future_is_not_visible"),
    (Fault::FreshnessIgnoredByInbox, "an_inbox_waits_for_a_position"),
    (Fault::FreshnessIgnoredByCandidates, "candidates_wait_for_a_position"),
    (Fault::FreshnessIgnoredByStored, "stored_suggestions_wait_for_a_position"),
    (Fault::RestartForgetsFloor, HISTORIES),
    (Fault::RestartLosesNewest, HISTORIES),
    (Fault::RestartRebuildMissesTail, HISTORIES),
    (Fault::RestartTrustsPartialSet, HISTORIES),
    (Fault::RestartForgetsDismissals, HISTORIES),
    (Fault::RestartForgetsStored, HISTORIES),
    (Fault::RestartForgetsKeys, FEED_RESTARTS),
    (Fault::RestartRepeatsGeneratedIds, FEED_RESTARTS),
    (Fault::RestartForgetsDeletions, FEED_HISTORIES),
    (Fault::RestartForgetsUndelivered, FEED_HISTORIES),
    (Fault::RestartDeliversAgain, FEED_HISTORIES),
    (Fault::RestartForgetsWatermark, FEED_RESTARTS),
];

/// The number of shards that content is spread over.
pub(crate) const SHARDS: u16 = 4;

/// Events that a case must notice on a shard that it does not know beforehand, and reads that must wait for such a shard.
const ON_SHARDS: &[(Fault, &str)] = &[
    (Fault::PostRepeatEmitsEvent, "the_same_id_again_changes_nothing"),
    (Fault::DeletionRepeatEmitsEvent, "a_deleted_post_is_gone_for_good"),
    (Fault::CommentRetryEmitsEvent, "the_same_comment_again_changes_nothing"),
    (Fault::CommentDeletionRepeatEmitsEvent, "a_status_only_gets_worse"),
    (Fault::ThreadLockRepeatEmitsEvent, "locking_changes_one_thread_once"),
    (Fault::VisibleAlways, "a_token_of_the_future_waits_for_posts"),
    (Fault::VisibleAlways, "a_token_of_the_future_waits_for_comments"),
    (Fault::FreshnessIgnoredByInbox, "an_inbox_waits_for_a_position"),
    (Fault::FreshnessIgnoredByCandidates, "candidates_wait_for_a_position"),
    (Fault::FreshnessIgnoredByStored, "stored_suggestions_wait_for_a_position"),
];

/// A race may go well by luck, but not so often.
const ATTEMPTS: usize = 20;

/// Runs a test that may panic, and says how it ended. Its panic is expected, so it prints nothing.
pub(crate) fn quietly(test: impl FnOnce()) -> Result<(), String> {
    let hook = take_hook();
    set_hook(Box::new(|_| {}));
    let outcome = catch_unwind(AssertUnwindSafe(test));
    set_hook(hook);
    outcome.map_err(|panic| panic.downcast_ref::<String>().cloned().unwrap_or_default())
}

pub(crate) fn run(test: &str, fault: Fault) {
    let make = |id_kind, clock: Arc<dyn Clock>| ModelStore::with_fault(id_kind, clock, fault);
    let scope = CaseScope { id_kind: IdKind::Integer, edge_kind: EdgeKind::Follow };
    match test {
        HISTORIES => histories(&make, Some(&ModelStore::reopen), 30, SEED),
        CONCURRENT_HISTORIES => concurrent_histories(&make, 3, SEED),
        FEED_HISTORIES => feed_histories(&make, Some(&ModelStore::reopen), 2000, SEED),
        FEED_RESTARTS => feed_restarts(&make, &ModelStore::reopen),
        CONCURRENT_FEEDS => concurrent_feeds(&make, 6, SEED),
        COMMENT_HISTORIES => comment_histories(&make, Some(&ModelStore::reopen), 200, SEED),
        COMMENT_RESTARTS => comment_restarts(&make, &ModelStore::reopen),
        CONCURRENT_COMMENTS => concurrent_comments(&make, 3, SEED),
        case => suite::run_case_in(case, scope, &make),
    }
}

/// The cases of content and suggestions find a fault wherever its events are.
#[test]
fn faults_are_caught_on_any_shard() {
    let _turn = one_at_a_time();
    let missed: Vec<_> = ON_SHARDS
        .iter()
        .filter(|(fault, case)| {
            let make = |id_kind, clock: Arc<dyn Clock>| {
                ModelStore::with_fault(id_kind, clock, *fault).on_shards(SHARDS)
            };
            let scope = CaseScope { id_kind: IdKind::Integer, edge_kind: EdgeKind::Follow };
            quietly(|| suite::run_case_in(case, scope, &make)).is_ok()
        })
        .collect();
    assert!(missed.is_empty(), "not caught: {missed:?}");
}

#[test]
fn every_fault_is_caught() {
    let _turn = one_at_a_time();
    let rows = || CAUGHT_BY.iter().chain(COMMENTS_CAUGHT_BY);
    let listed: BTreeSet<Fault> = rows().map(|(fault, _)| *fault).collect();
    assert_eq!(listed, Fault::ALL.iter().copied().collect(), "every fault has a row");
    let caught = |&(fault, test): &(Fault, &str)| {
        let caught = (0..ATTEMPTS).any(|_| quietly(|| run(test, fault)).is_err());
        println!("{:<28} -> {}", format!("{fault:?}"), if caught { test } else { "NOT CAUGHT" });
        caught
    };
    let missed: Vec<_> = rows().filter(|row| !caught(row)).collect();
    assert!(missed.is_empty(), "not caught: {missed:?}");
}

/// Otherwise a fault could be caught by something that it was not planted for.
#[test]
fn a_fault_is_one_mistake() {
    let _turn = one_at_a_time();
    for (fault, meant) in [
        (Fault::EveryoneNeverAfresh, "a_run_may_start_afresh"),
        (Fault::OverlapOfNothingFails, "an_overlap_with_nobody_is_empty"),
        (Fault::FreshnessIgnoredByInbox, "an_inbox_waits_for_a_position"),
        (Fault::FreshnessIgnoredByCandidates, "candidates_wait_for_a_position"),
        (Fault::FreshnessIgnoredByStored, "stored_suggestions_wait_for_a_position"),
    ] {
        let failed: Vec<&str> =
            suite::case_names().filter(|case| quietly(|| run(case, fault)).is_err()).collect();
        assert_eq!(failed, [meant], "{fault:?}");
    }
}

/// What is planted in posts and feeds, random histories find without a case that was written for it.
#[test]
fn random_histories_find_the_faults_of_feeds() {
    let _turn = one_at_a_time();
    let is_of_feeds = |fault: &&Fault| {
        let name = format!("{fault:?}");
        ["Post", "Made", "Delivery", "Deletion", "Feed", "Inbox"]
            .iter()
            .any(|family| name.starts_with(family))
    };
    let found = |fault: Fault| quietly(|| run(FEED_HISTORIES, fault)).is_err();
    let missed: Vec<_> = Fault::ALL.iter().filter(is_of_feeds).filter(|&&fault| !found(fault)).collect();
    assert!(missed.is_empty(), "not found: {missed:?}");
}

/// Feeds of a store with a fault are made of inboxes: they are right as long as the fault has nothing to do with them.
#[test]
fn inboxes_of_the_model_are_right() {
    let _turn = one_at_a_time();
    let unrelated = Fault::EpochChangesWithWrites;
    for test in [FEED_HISTORIES, FEED_RESTARTS, CONCURRENT_FEEDS] {
        run(test, unrelated);
    }
}

#[test]
fn a_failure_names_its_case_and_setting() {
    let _turn = one_at_a_time();
    let make = |id_kind, clock: Arc<dyn Clock>| ModelStore::with_fault(id_kind, clock, Fault::LimitOffByOne);
    let message = quietly(|| suite::run(&make)).expect_err("the suite fails");
    for part in
        ["case the_limit_is_exact", "with uuid ids and block edges", "with integer ids and follow edges"]
    {
        assert!(message.contains(part), "{part:?} is not in {message}");
    }
    let message = quietly(|| histories(&make, None, 50, SEED)).expect_err("the histories fail");
    for part in ["seed", "Write { kind: Follow"] {
        assert!(message.contains(part), "{part:?} is not in {message}");
    }
}
