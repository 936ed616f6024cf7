//! Which test must catch which fault of comments.

use kinfolk_conformance::Fault;

use crate::faults::{quietly, run};
use crate::one_at_a_time;

/// What catches a fault of comments besides a case.
pub(crate) const COMMENT_HISTORIES: &str = "comment_histories";
pub(crate) const COMMENT_RESTARTS: &str = "comment_restarts";
pub(crate) const CONCURRENT_COMMENTS: &str = "concurrent_comments";

pub(crate) const COMMENTS_CAUGHT_BY: &[(Fault, &str)] = &[
    (Fault::CommentRetryRefused, "the_same_comment_again_changes_nothing"),
    (Fault::CommentRetryWritesAgain, "the_same_comment_again_changes_nothing"),
    (Fault::CommentRetryShowsCurrent, "a_retry_gets_the_first_result_whatever_happened"),
    (Fault::CommentRetrySaysNew, "the_same_comment_from_several_threads"),
    (Fault::CommentRetryEmitsEvent, "the_same_comment_again_changes_nothing"),
    (Fault::CommentRetryChecksPlace, "a_retry_gets_the_first_result_whatever_happened"),
    (Fault::CommentRetryOfWithdrawnRefused, "a_retry_gets_the_first_result_whatever_happened"),
    (Fault::CommentRetryAfterPurgeTellsText, "a_purge_takes_every_text_out_of_every_read"),
    (Fault::CommentRetryAfterPurgeConflicts, "a_retry_after_a_purge_gets_the_tombstone"),
    (Fault::CommentKeysShared, "a_key_of_comments_belongs_to_its_author"),
    (Fault::CommentKeyIgnoresText, "the_same_key_for_another_comment_conflicts"),
    (Fault::CommentKeyIgnoresParent, "the_same_key_for_another_comment_conflicts"),
    (Fault::CommentKeyIgnoresReply, "the_same_key_for_another_comment_conflicts"),
    (Fault::CommentKeyComparesCurrentText, "a_key_conflicts_with_the_text_of_an_edit"),
    (Fault::CommentRefusalTakesKey, "a_refused_comment_leaves_its_key_free"),
    (Fault::CommentDecidedBefore, "the_same_comment_from_several_threads"),
    (Fault::CommentIdsFromClock, "ids_of_comments_are_of_version_7_and_rise"),
    (Fault::CommentIdsOfVersion4, "ids_of_comments_are_of_version_7_and_rise"),
    (Fault::CommentTimeGoesBackWithClock, "a_comment_is_made_at_its_event"),
    (Fault::CommentTrimsBody, "a_comment_is_kept_as_it_was_given"),
    (Fault::CommentToUnknownPost, "a_post_must_be_there_for_a_comment"),
    (Fault::CommentToDeletedPost, "a_post_must_be_there_for_a_comment"),
    (Fault::CommentLooksForEveryParent, "a_post_must_be_there_for_a_comment"),
    (Fault::CommentReplyAcrossThreads, "a_reply_answers_an_active_comment_of_its_thread"),
    (Fault::CommentReplyToWithdrawn, "a_reply_answers_an_active_comment_of_its_thread"),
    (Fault::CommentDepthUnlimited, "replies_have_a_greatest_depth"),
    (Fault::CommentDepthOffByOne, "the_graph_sets_how_deep_replies_go"),
    (Fault::ThreadLockIgnored, "moderators_remove_and_purge"),
    (Fault::ThreadLockIgnoresReplies, "a_locked_thread_takes_no_comments"),
    (Fault::ThreadLockRefusesEdits, "a_locked_thread_takes_no_comments"),
    (Fault::ThreadLockSharedByKinds, "a_locked_thread_takes_no_comments"),
    (Fault::ThreadLockRepeatEmitsEvent, "locking_changes_one_thread_once"),
    (Fault::ThreadLockOfUnknownPost, "locking_changes_one_thread_once"),
    (Fault::CommentEditHides, "an_edit_makes_a_new_version_in_the_same_place"),
    (Fault::CommentEditOnce, "edits_can_follow_each_other"),
    (Fault::CommentEditIgnoresVersion, "an_edit_of_another_version_conflicts"),
    (Fault::CommentEditComparedBefore, "edits_of_one_version_at_once"),
    (Fault::CommentEditOfWithdrawn, "an_edit_of_what_was_withdrawn_is_refused"),
    (Fault::CommentEditOfSameTextIgnored, "edits_can_follow_each_other"),
    (Fault::CommentEditForgetsHistory, "edits_can_follow_each_other"),
    (Fault::CommentEditMovesTime, "a_comment_is_made_at_its_event"),
    (Fault::CommentEditForgetsTime, "an_edit_makes_a_new_version_in_the_same_place"),
    (Fault::CommentEditLosesReplies, "an_edit_makes_a_new_version_in_the_same_place"),
    (Fault::CommentEditedCannotBeWithdrawn, "an_edited_comment_can_be_withdrawn"),
    (Fault::CommentDeletionRepeatEmitsEvent, "a_status_only_gets_worse"),
    (Fault::CommentDeletionRepeatSaysChanged, "only_its_author_edits_and_deletes_a_comment"),
    (Fault::CommentWithdrawalDecidedBefore, "withdrawals_at_once"),
    (Fault::CommentStatusGetsBetter, "a_status_only_gets_worse"),
    (Fault::CommentDeletedCannotBeRemoved, "a_status_only_gets_worse"),
    (Fault::CommentRemovalTakesLastReason, "a_status_only_gets_worse"),
    (Fault::CommentModeratorForgotten, "who_removed_or_purged_a_comment_is_recorded"),
    (Fault::CommentLogForgetsModerator, "who_removed_or_purged_a_comment_is_recorded"),
    (Fault::CommentPurgeForgetsModerator, "who_removed_or_purged_a_comment_is_recorded"),
    (Fault::CommentDeletionErasesText, "a_tombstone_keeps_its_place_replies_and_texts"),
    (Fault::CommentWithdrawalOfNothingSucceeds, "what_was_never_written_cannot_be_changed"),
    (Fault::TombstonesVanish, "a_tombstone_keeps_its_place_replies_and_texts"),
    (Fault::TombstonesLoseReplies, "a_tree_keeps_tombstones_and_their_replies"),
    (Fault::TombstonesFilteredAfterPaging, "a_walk_of_a_thread_with_changes_between_pages"),
    (Fault::CommentPurgeLeavesText, "a_purge_takes_every_text_out_of_every_read"),
    (Fault::CommentPurgeLeavesHistory, "a_purge_takes_every_text_out_of_every_read"),
    (Fault::CommentPurgeLeavesLog, "every_change_of_a_thread_is_one_event"),
    (Fault::CommentLogTellsOldTexts, "the_log_tells_only_current_texts"),
    (Fault::CommentLogTellsWithdrawn, "the_log_tells_only_current_texts"),
    (Fault::CommentCountHasTombstones, "counts_of_comments_are_exact"),
    (Fault::CommentCountOfTopOnly, "counts_of_comments_are_exact"),
    (Fault::CommentCountSharedByKinds, "many_threads_are_counted_in_the_order_asked"),
    (Fault::CommentCountDoubledByRetry, "the_same_comment_again_changes_nothing"),
    (Fault::CommentCountedDownAgain, "counts_of_comments_are_exact"),
    (Fault::ReplyCountSkipsTombstones, "counts_of_comments_are_exact"),
    (Fault::ReplyCountOfAllBelow, "a_branch_goes_on_after_any_reply"),
    (Fault::CommentsInOtherOrder, "many_comments_are_answered_in_the_order_asked"),
    (Fault::ThreadReadTorn, "a_walk_while_others_write"),
    (Fault::ThreadNewestIgnored, "a_thread_is_read_in_both_orders"),
    (Fault::ThreadsMixKinds, "threads_do_not_see_each_other"),
    (Fault::ThreadCursorInclusive, "any_id_is_a_place_in_a_thread"),
    (Fault::ThreadCursorNeedsComment, "a_walk_of_a_thread_with_changes_between_pages"),
    (Fault::ThreadNewestCursorSkips, "pages_of_comments_end_without_a_next"),
    (Fault::ThreadSecondPageFromStart, "a_thread_is_read_in_both_orders"),
    (Fault::BranchLastForgotten, "a_tree_has_the_first_replies_of_each"),
    (Fault::BranchesInOtherOrder, "branches_are_answered_in_the_order_asked"),
    (Fault::BranchIgnoresAfter, "a_tree_of_one_comment_with_many_replies"),
    (Fault::BranchHasAllBelow, "a_tree_of_one_long_branch"),
    (Fault::BranchWithoutTombstones, "a_tree_keeps_tombstones_and_their_replies"),
    (Fault::AuthorsListShowsWithdrawn, "an_author_reads_active_comments_newest_first"),
    (Fault::AuthorsListFilteredAfterPaging, "an_authors_list_is_paged_without_gaps"),
    (Fault::AuthorsListOldestFirst, "an_author_reads_active_comments_newest_first"),
    (Fault::AuthorsListOfPostsOnly, "an_author_reads_active_comments_newest_first"),
    (Fault::HistoryCursorInclusive, "pages_of_comments_end_without_a_next"),
    (Fault::HistoryNewestFirst, "an_edit_makes_a_new_version_in_the_same_place"),
    (Fault::RestartForgetsLocks, COMMENT_RESTARTS),
    (Fault::RestartForgetsPurges, COMMENT_RESTARTS),
    (Fault::RestartForgetsCommentKeys, COMMENT_RESTARTS),
    (Fault::RestartForgetsReasons, COMMENT_RESTARTS),
    (Fault::RestartForgetsModerators, COMMENT_RESTARTS),
    (Fault::RestartRepeatsCommentIds, COMMENT_RESTARTS),
    (Fault::RestartDoublesCommentCounts, COMMENT_RESTARTS),
    // These besides, to show that comments of several threads can fail too.
    (Fault::CommentRetryWritesAgain, CONCURRENT_COMMENTS),
    (Fault::CommentDecidedBefore, CONCURRENT_COMMENTS),
    (Fault::CommentEditComparedBefore, CONCURRENT_COMMENTS),
    (Fault::CommentEditOfWithdrawn, CONCURRENT_COMMENTS),
    (Fault::CommentReplyToWithdrawn, CONCURRENT_COMMENTS),
    (Fault::CommentCountDoubledByRetry, CONCURRENT_COMMENTS),
    (Fault::CommentPurgeLeavesText, CONCURRENT_COMMENTS),
    (Fault::CommentStatusGetsBetter, CONCURRENT_COMMENTS),
    (Fault::ThreadReadTorn, CONCURRENT_COMMENTS),
    (Fault::ThreadNewestCursorSkips, CONCURRENT_COMMENTS),
    (Fault::ThreadLockIgnored, CONCURRENT_COMMENTS),
    (Fault::TombstonesVanish, CONCURRENT_COMMENTS),
];

/// Only several threads can make these.
const RACES: [Fault; 4] = [
    Fault::CommentDecidedBefore,
    Fault::CommentEditComparedBefore,
    Fault::CommentWithdrawalDecidedBefore,
    Fault::ThreadReadTorn,
];

/// What is planted in comments, random histories find without a case that was written for it.
#[test]
fn random_histories_find_the_faults_of_comments() {
    let _turn = one_at_a_time();
    let found = |fault: Fault| quietly(|| run(COMMENT_HISTORIES, fault)).is_err();
    let missed: Vec<_> = COMMENTS_CAUGHT_BY
        .iter()
        .filter(|(fault, test)| *test != CONCURRENT_COMMENTS && !RACES.contains(fault) && !found(*fault))
        .collect();
    assert!(missed.is_empty(), "not found: {missed:?}");
}

/// A store with a fault reads comments in other ways than the model: they are right as long as the fault has nothing to do
/// with them.
#[test]
fn comments_with_an_unrelated_fault_are_right() {
    let _turn = one_at_a_time();
    for test in [COMMENT_HISTORIES, COMMENT_RESTARTS, CONCURRENT_COMMENTS] {
        run(test, Fault::EpochChangesWithWrites);
    }
}
