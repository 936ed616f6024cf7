//! The faults of comment threads, each with the tests that must catch it. The files beside it plant them.

/// Hands the faults of comment threads on to the next macro, after those that were handed to it.
macro_rules! comment_faults {
    ($next:ident $($others:ident)*; $($faults:tt)*) => { $next! { $($others)*; $($faults)*
        /// The same comment again under its key is refused.
        CommentRetryRefused: "the_same_comment_again_changes_nothing", COMMENT_HISTORIES;
        /// The same comment again under its key is written again.
        CommentRetryWritesAgain: "the_same_comment_again_changes_nothing", CONCURRENT_COMMENTS, COMMENT_HISTORIES;
        /// The same comment again gets the comment as it is by then.
        CommentRetryShowsCurrent: "a_retry_gets_the_first_result_whatever_happened", COMMENT_HISTORIES;
        /// The same comment again says that it is new.
        CommentRetrySaysNew: "the_same_comment_from_several_threads", COMMENT_HISTORIES;
        /// The same comment again writes an event.
        CommentRetryEmitsEvent:
            "the_same_comment_again_changes_nothing", COMMENT_HISTORIES,
            "on shards: the_same_comment_again_changes_nothing";
        /// The same comment again is refused if its thread is locked by then, or its post deleted.
        CommentRetryChecksPlace: "a_retry_gets_the_first_result_whatever_happened", COMMENT_HISTORIES;
        /// The same comment again is refused if it was withdrawn since.
        CommentRetryOfWithdrawnRefused: "a_retry_gets_the_first_result_whatever_happened", COMMENT_HISTORIES;
        /// The same comment again after a purge gets the text that was purged.
        CommentRetryAfterPurgeTellsText: "a_purge_takes_every_text_out_of_every_read", COMMENT_HISTORIES;
        /// The same comment again after a purge conflicts, as there is no text to compare.
        CommentRetryAfterPurgeConflicts: "a_retry_after_a_purge_gets_the_tombstone", COMMENT_HISTORIES;
        /// The key of a purged comment gets its tombstone, whatever the text.
        CommentRetryAfterPurgeIgnoresText: "a_retry_after_a_purge_gets_the_tombstone", COMMENT_HISTORIES;
        /// A key belongs to nobody: authors get each other's comments.
        CommentKeysShared: "a_key_of_comments_belongs_to_its_author", COMMENT_HISTORIES;
        /// A known key gets its comment, whatever the text.
        CommentKeyIgnoresText: "the_same_key_for_another_comment_conflicts", COMMENT_HISTORIES;
        /// A known key gets its comment, whatever it is written to.
        CommentKeyIgnoresParent: "the_same_key_for_another_comment_conflicts", COMMENT_HISTORIES;
        /// A known key gets its comment, whatever it answers.
        CommentKeyIgnoresReply: "the_same_key_for_another_comment_conflicts", COMMENT_HISTORIES;
        /// The text of a retry is compared with what the comment says by then.
        CommentKeyComparesCurrentText: "a_key_conflicts_with_the_text_of_an_edit", COMMENT_HISTORIES;
        /// A request that was refused has used its key.
        CommentRefusalTakesKey: "a_refused_comment_leaves_its_key_free", COMMENT_HISTORIES;
        /// Whether a key is known is decided before the comment is written: two at once both write.
        CommentDecidedBefore: "the_same_comment_from_several_threads", CONCURRENT_COMMENTS;
        /// Ids follow the clock, also back.
        CommentIdsFromClock: "ids_of_comments_are_of_version_7_and_rise", COMMENT_HISTORIES;
        /// Ids are of another version.
        CommentIdsOfVersion4: "ids_of_comments_are_of_version_7_and_rise", COMMENT_HISTORIES;
        /// Comments are made when the clock says, also earlier than those before.
        CommentTimeGoesBackWithClock: "a_comment_is_made_at_its_event", COMMENT_HISTORIES;
        /// A text loses the spaces around it.
        CommentTrimsBody: "a_comment_is_kept_as_it_was_given", COMMENT_HISTORIES;
        /// Comments can be written to posts that nobody made.
        CommentToUnknownPost: "a_post_must_be_there_for_a_comment", COMMENT_HISTORIES;
        /// Comments can be written to deleted posts.
        CommentToDeletedPost: "a_post_must_be_there_for_a_comment", COMMENT_HISTORIES;
        /// What is no post must be one too.
        CommentLooksForEveryParent: "a_post_must_be_there_for_a_comment", COMMENT_HISTORIES;
        /// A reply may answer a comment of another thread.
        CommentReplyAcrossThreads: "a_reply_answers_an_active_comment_of_its_thread", COMMENT_HISTORIES;
        /// A reply may answer a comment that was withdrawn.
        CommentReplyToWithdrawn:
            "a_reply_answers_an_active_comment_of_its_thread", CONCURRENT_COMMENTS, COMMENT_HISTORIES;
        /// Replies have no greatest depth.
        CommentDepthUnlimited: "replies_have_a_greatest_depth", COMMENT_HISTORIES;
        /// Replies go one deeper than allowed.
        CommentDepthOffByOne: "the_graph_sets_how_deep_replies_go", COMMENT_HISTORIES;

        /// A locked thread takes comments.
        ThreadLockIgnored: "moderators_remove_and_purge", CONCURRENT_COMMENTS, COMMENT_HISTORIES;
        /// A locked thread takes replies.
        ThreadLockIgnoresReplies: "a_locked_thread_takes_no_comments", COMMENT_HISTORIES;
        /// A locked thread refuses edits.
        ThreadLockRefusesEdits: "a_locked_thread_takes_no_comments", COMMENT_HISTORIES;
        /// A lock holds for threads of all kinds with one id.
        ThreadLockSharedByKinds: "a_locked_thread_takes_no_comments", COMMENT_HISTORIES;
        /// A repeated lock writes an event.
        ThreadLockRepeatEmitsEvent:
            "locking_changes_one_thread_once", COMMENT_HISTORIES, "on shards: locking_changes_one_thread_once";
        /// The thread of a post that is not there can be locked.
        ThreadLockOfUnknownPost: "locking_changes_one_thread_once", COMMENT_HISTORIES;

        /// An edit sets a status that hides the comment.
        CommentEditHides: "an_edit_makes_a_new_version_in_the_same_place", COMMENT_HISTORIES;
        /// A comment can be edited once.
        CommentEditOnce: "edits_can_follow_each_other", COMMENT_HISTORIES;
        /// An edit wins whatever version it has seen.
        CommentEditIgnoresVersion: "an_edit_of_another_version_conflicts", COMMENT_HISTORIES;
        /// Versions are compared before the edit is made: two at once both win.
        CommentEditComparedBefore: "edits_of_one_version_at_once", CONCURRENT_COMMENTS;
        /// A withdrawn comment can be edited.
        CommentEditOfWithdrawn: "an_edit_of_what_was_withdrawn_is_refused", CONCURRENT_COMMENTS, COMMENT_HISTORIES;
        /// An edit that changes no letter makes no version.
        CommentEditOfSameTextIgnored: "edits_can_follow_each_other", COMMENT_HISTORIES;
        /// Texts are overwritten.
        CommentEditForgetsHistory: "edits_can_follow_each_other", COMMENT_HISTORIES;
        /// An edit moves the time of the comment.
        CommentEditMovesTime: "a_comment_is_made_at_its_event", COMMENT_HISTORIES;
        /// An edit leaves no time.
        CommentEditForgetsTime: "an_edit_makes_a_new_version_in_the_same_place", COMMENT_HISTORIES;
        /// An edit sets the number of replies to nothing.
        CommentEditLosesReplies: "an_edit_makes_a_new_version_in_the_same_place", COMMENT_HISTORIES;
        /// A comment that was edited cannot be withdrawn.
        CommentEditedCannotBeWithdrawn: "an_edited_comment_can_be_withdrawn", COMMENT_HISTORIES;

        /// A repeated withdrawal writes an event.
        CommentDeletionRepeatEmitsEvent:
            "a_status_only_gets_worse", COMMENT_HISTORIES, "on shards: a_status_only_gets_worse";
        /// A repeated withdrawal says that it changed something.
        CommentDeletionRepeatSaysChanged: "only_its_author_edits_and_deletes_a_comment", COMMENT_HISTORIES;
        /// Whether a withdrawal makes it worse is decided before: two at once both do.
        CommentWithdrawalDecidedBefore: "withdrawals_at_once";
        /// The deletion of a removed comment makes it a deleted one.
        CommentStatusGetsBetter: "a_status_only_gets_worse", CONCURRENT_COMMENTS, COMMENT_HISTORIES;
        /// A moderator cannot remove or purge what its author deleted.
        CommentDeletedCannotBeRemoved: "a_status_only_gets_worse", COMMENT_HISTORIES;
        /// A second removal replaces the reason.
        CommentRemovalTakesLastReason: "a_status_only_gets_worse", COMMENT_HISTORIES;
        /// Nobody knows who removed or purged a comment.
        CommentModeratorForgotten: "who_removed_or_purged_a_comment_is_recorded", COMMENT_HISTORIES;
        /// The log does not tell who removed or purged a comment.
        CommentLogForgetsModerator: "who_removed_or_purged_a_comment_is_recorded", COMMENT_HISTORIES;
        /// A purge makes unknown who removed or purged the comment.
        CommentPurgeForgetsModerator: "who_removed_or_purged_a_comment_is_recorded", COMMENT_HISTORIES;
        /// A deletion erases the text at once.
        CommentDeletionErasesText: "a_tombstone_keeps_its_place_replies_and_texts", COMMENT_HISTORIES;
        /// The withdrawal of an unknown comment is a success.
        CommentWithdrawalOfNothingSucceeds: "what_was_never_written_cannot_be_changed", COMMENT_HISTORIES;
        /// A withdrawn comment leaves no tombstone.
        TombstonesVanish: "a_tombstone_keeps_its_place_replies_and_texts", CONCURRENT_COMMENTS, COMMENT_HISTORIES;
        /// Replies to a withdrawn comment are gone with it.
        TombstonesLoseReplies: "a_tree_keeps_tombstones_and_their_replies", COMMENT_HISTORIES;
        /// Tombstones are left out after the page was made, so it is short before the end.
        TombstonesFilteredAfterPaging: "a_walk_of_a_thread_with_changes_between_pages", COMMENT_HISTORIES;
        /// A purged comment keeps what it said last.
        CommentPurgeLeavesText: "a_purge_takes_every_text_out_of_every_read", CONCURRENT_COMMENTS, COMMENT_HISTORIES;
        /// A purged comment keeps its history.
        CommentPurgeLeavesHistory: "a_purge_takes_every_text_out_of_every_read", COMMENT_HISTORIES;
        /// The log shows the bodies of purged comments.
        CommentPurgeLeavesLog: "every_change_of_a_thread_is_one_event", COMMENT_HISTORIES;
        /// The log shows the bodies of comments before they were edited.
        CommentLogTellsOldTexts: "the_log_tells_only_current_texts", COMMENT_HISTORIES;
        /// The log shows the bodies of deleted and removed comments.
        CommentLogTellsWithdrawn: "the_log_tells_only_current_texts", COMMENT_HISTORIES;

        /// The count of a thread has its tombstones.
        CommentCountHasTombstones: "counts_of_comments_are_exact", COMMENT_HISTORIES;
        /// The count of a thread has no replies.
        CommentCountOfTopOnly: "counts_of_comments_are_exact", COMMENT_HISTORIES;
        /// A count is one for threads of all kinds with one id.
        CommentCountSharedByKinds: "many_threads_are_counted_in_the_order_asked", COMMENT_HISTORIES;
        /// A retry counts as one more.
        CommentCountDoubledByRetry: "the_same_comment_again_changes_nothing", CONCURRENT_COMMENTS, COMMENT_HISTORIES;
        /// A comment that is withdrawn again, or worse, is counted down again.
        CommentCountedDownAgain: "counts_of_comments_are_exact", COMMENT_HISTORIES;
        /// The number of replies leaves tombstones out.
        ReplyCountSkipsTombstones: "counts_of_comments_are_exact", COMMENT_HISTORIES;
        /// The number of replies has those to replies.
        ReplyCountOfAllBelow: "a_branch_goes_on_after_any_reply", COMMENT_HISTORIES;

        /// Comments are answered by id, not in the order asked.
        CommentsInOtherOrder: "many_comments_are_answered_in_the_order_asked", COMMENT_HISTORIES;
        /// A page may have the text of one version and the number of another.
        ThreadReadTorn: "a_walk_while_others_write", CONCURRENT_COMMENTS;
        /// A thread is always read from its beginning.
        ThreadNewestIgnored: "a_thread_is_read_in_both_orders", COMMENT_HISTORIES;
        /// Threads of all kinds with one id are one.
        ThreadsMixKinds: "threads_do_not_see_each_other", COMMENT_HISTORIES;
        /// A page of a thread begins with the comment that the page before ended with.
        ThreadCursorInclusive: "any_id_is_a_place_in_a_thread", COMMENT_HISTORIES;
        /// A page after a comment that is gone meanwhile, or of another thread, is empty.
        ThreadCursorNeedsComment: "a_walk_of_a_thread_with_changes_between_pages", COMMENT_HISTORIES;
        /// A page of a thread, newest first, leaves one out.
        ThreadNewestCursorSkips: "pages_of_comments_end_without_a_next", CONCURRENT_COMMENTS, COMMENT_HISTORIES;
        /// A page of a thread, newest first, begins with the newest again.
        ThreadSecondPageFromStart: "a_thread_is_read_in_both_orders", COMMENT_HISTORIES;
        /// Of several branches the last is forgotten.
        BranchLastForgotten: "a_tree_has_the_first_replies_of_each", COMMENT_HISTORIES;
        /// Branches are answered by id, not in the order asked.
        BranchesInOtherOrder: "branches_are_answered_in_the_order_asked", COMMENT_HISTORIES;
        /// A branch always begins with its first reply.
        BranchIgnoresAfter: "a_tree_of_one_comment_with_many_replies", COMMENT_HISTORIES;
        /// A branch has the replies to its replies.
        BranchHasAllBelow: "a_tree_of_one_long_branch", COMMENT_HISTORIES;
        /// A branch leaves tombstones out, and all below them.
        BranchWithoutTombstones: "a_tree_keeps_tombstones_and_their_replies", COMMENT_HISTORIES;
        /// An author's list has withdrawn comments.
        AuthorsListShowsWithdrawn: "an_author_reads_active_comments_newest_first", COMMENT_HISTORIES;
        /// Withdrawn comments are left out after the page was made, so it is short before the end.
        AuthorsListFilteredAfterPaging: "an_authors_list_is_paged_without_gaps", COMMENT_HISTORIES;
        /// An author's list runs from old to new.
        AuthorsListOldestFirst: "an_author_reads_active_comments_newest_first", COMMENT_HISTORIES;
        /// An author's list has comments to posts only.
        AuthorsListOfPostsOnly: "an_author_reads_active_comments_newest_first", COMMENT_HISTORIES;
        /// A page of texts begins with the one that the page before ended with.
        HistoryCursorInclusive: "pages_of_comments_end_without_a_next", COMMENT_HISTORIES;
        /// A page of texts runs from new to old.
        HistoryNewestFirst: "an_edit_makes_a_new_version_in_the_same_place", COMMENT_HISTORIES;
        /// Locks do not survive a restart.
        RestartForgetsLocks: COMMENT_RESTARTS, COMMENT_HISTORIES;
        /// After a restart the texts of purged comments are back.
        RestartForgetsPurges: COMMENT_RESTARTS, COMMENT_HISTORIES;
        /// Idempotency keys of comments do not survive a restart.
        RestartForgetsCommentKeys: COMMENT_RESTARTS, COMMENT_HISTORIES;
        /// The reasons of moderators do not survive a restart.
        RestartForgetsReasons: COMMENT_RESTARTS, COMMENT_HISTORIES;
        /// Who removed comments does not survive a restart.
        RestartForgetsModerators: COMMENT_RESTARTS, COMMENT_HISTORIES;
        /// After a restart ids of comments are made from the clock again.
        RestartRepeatsCommentIds: COMMENT_RESTARTS, COMMENT_HISTORIES;
        /// A restart adds all comments to the counts once more.
        RestartDoublesCommentCounts: COMMENT_RESTARTS, COMMENT_HISTORIES;
    } };
}
pub(in crate::faults) use comment_faults;
