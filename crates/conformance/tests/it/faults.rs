//! Every planted fault must be caught, and by the case that is meant for it. This is how we know that the suite
//! can fail.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Arc;

use kinfolk_conformance::suite::{self, Setting};
use kinfolk_conformance::{Fault, ModelStore, SEED, concurrent_histories, histories};
use kinfolk_core::{Clock, EdgeKind, IdKind};

use crate::one_at_a_time;

/// What catches a fault besides a case.
const HISTORIES: &str = "histories";
const CONCURRENT_HISTORIES: &str = "concurrent_histories";

/// Which test must catch which fault. Most are caught by others too.
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
    (Fault::RestartForgetsFloor, HISTORIES),
    (Fault::RestartLosesNewest, HISTORIES),
    (Fault::RestartRebuildMissesTail, HISTORIES),
    (Fault::RestartTrustsPartialSet, HISTORIES),
    (Fault::RestartForgetsDismissals, HISTORIES),
    (Fault::RestartForgetsStored, HISTORIES),
];

/// A race may go well by luck, but not so often.
const ATTEMPTS: usize = 20;

/// Runs a test that may panic, and says how it ended. Its panic is expected, so it prints nothing.
fn quietly(test: impl FnOnce()) -> Result<(), String> {
    let hook = take_hook();
    set_hook(Box::new(|_| {}));
    let outcome = catch_unwind(AssertUnwindSafe(test));
    set_hook(hook);
    outcome.map_err(|panic| panic.downcast_ref::<String>().cloned().unwrap_or_default())
}

fn run(test: &str, fault: Fault) {
    let make = |id_kind, clock: Arc<dyn Clock>| ModelStore::with_fault(id_kind, clock, fault);
    let setting = Setting { id_kind: IdKind::Integer, edge_kind: EdgeKind::Follow };
    match test {
        HISTORIES => histories(&make, Some(&ModelStore::reopen), 30, SEED),
        CONCURRENT_HISTORIES => concurrent_histories(&make, 3, SEED),
        case => suite::run_case_in(case, setting, &make),
    }
}

#[test]
fn every_fault_is_caught() {
    let _turn = one_at_a_time();
    let listed: BTreeSet<Fault> = CAUGHT_BY.iter().map(|(fault, _)| *fault).collect();
    assert_eq!(listed, Fault::ALL.iter().copied().collect(), "every fault has a row");
    let caught = |&(fault, test): &(Fault, &str)| {
        let caught = (0..ATTEMPTS).any(|_| quietly(|| run(test, fault)).is_err());
        println!("{:<28} -> {}", format!("{fault:?}"), if caught { test } else { "NOT CAUGHT" });
        caught
    };
    let missed: Vec<_> = CAUGHT_BY.iter().filter(|row| !caught(row)).collect();
    assert!(missed.is_empty(), "not caught: {missed:?}");
}

/// Otherwise a fault could be caught by something that it was not planted for.
#[test]
fn a_fault_is_one_mistake() {
    let _turn = one_at_a_time();
    for (fault, meant) in [
        (Fault::EveryoneNeverAfresh, "a_run_may_start_afresh"),
        (Fault::OverlapOfNothingFails, "an_overlap_with_nobody_is_empty"),
    ] {
        let failed: Vec<&str> =
            suite::case_names().filter(|case| quietly(|| run(case, fault)).is_err()).collect();
        assert_eq!(failed, [meant], "{fault:?}");
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
