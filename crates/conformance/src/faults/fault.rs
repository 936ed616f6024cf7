//! The mistakes that can be planted. Each says what a store does that makes it; the files beside this one plant them.

faults! {
    /// A repeated follow appends a second row: the lists show it twice and the counts say 2.
    RepeatAppendsRow,
    /// A repeated follow adds 1 to the counts blindly.
    RepeatAddsToCounts,
    /// An unfollow of nothing takes 1 off the counts blindly, clamped at 0, which hides it at first.
    CountsClampHidesDrift,
    /// Every third event is delivered to the counts twice, and they add 1 each time.
    RedeliveryCountsTwice,
    /// A repeated follow or unfollow writes an event.
    RepeatEmitsEvent,
    /// A repeated follow or unfollow says that it changed something.
    RepeatSaysChanged,
    /// A write that changed nothing returns the start of the log, not the current position.
    RepeatReturnsStart,
    /// A receipt's position is the one before its change, so that a read at it need not see the change.
    ReceiptOfStateBefore,
    /// A request that is refused in the middle leaves its first commands applied.
    RequestAppliedInPart,
    /// A refused request takes a position, which leaves a gap in the log.
    RefusalTakesPosition,
    /// The commands of a request are applied from the last to the first.
    CommandsOutOfOrder,
    /// An update of A then B and one of B then A lock in opposite orders, and the database kills one.
    OppositeLocks,
    /// The order of two writes of one pair is decided by the wall clock: the "older" one is dropped.
    VersionFromClock,

    /// The limit is checked before the write, not with it.
    LimitCheckedBefore,
    /// The limit does not count what the same request adds.
    LimitIgnoresOwnRequest,
    /// The limit does not count what the same request has removed.
    LimitForgetsFreedPlace,
    /// The limit lets one too many through.
    LimitOffByOne,
    /// At the limit, a repeated follow is refused.
    LimitRefusesRepeat,
    /// The limit counts the edges of all kinds together.
    LimitSharedByKinds,

    /// `since` is what the clock shows, even if it was turned back.
    SinceGoesBackWithClock,
    /// A re-follow within one millisecond has the `since` of the follow before.
    RefollowInSameMillisecond,
    /// A re-follow by upsert keeps the first `since`.
    RefollowKeepsSince,
    /// `since` is kept in seconds.
    SinceInSeconds,
    /// A user's follows are one row with one time, so that each has the `since` of the newest.
    SinceOfWholeRow,
    /// The follower side takes its own look at the clock.
    FollowerSideOwnTime,

    /// An unfollow does not reach the follower side.
    FollowerSideForgetsUnfollow,
    /// The follower side keeps the newer of two events by the wall clock.
    FollowerSideByClock,
    /// The follower side applies events in the order in which they happen to arrive.
    FollowerSideOutOfOrder,

    /// A check fills its cache with what it read before an unfollow, after it.
    CheckFillsStale,
    /// A check has not heard of the newest change, whatever position was waited for.
    CheckLagsBehind,
    /// A check trusts a filter that unfollows never leave.
    CheckKeepsRemoved,
    /// A check takes a filter's "maybe" for "yes".
    CheckTakesMaybeForYes,
    /// A check compares the low 32 bits of ids.
    CheckTruncatesIds,
    /// A check says no for every user that is not among the first 16 that it cached.
    CheckMissesUncachedUsers,
    /// Answers to many questions come sorted by edge or id, not in the order asked.
    AnswersInOtherOrder,
    /// A user that was never seen is an error.
    UnknownUserFails,
    /// A user that was never seen is left out of the answer.
    UnknownUserLeftOut,
    /// All kinds share one set of edges on reading.
    KindsShareEdges,

    /// Lists run from the oldest to the newest.
    ListAscending,
    /// Lists are ordered by time, and within a millisecond from low ids to high.
    ListOrderedByTimeOnly,
    /// A cursor of time alone goes on with the next older millisecond.
    CursorByTimeSkips,
    /// A cursor of time alone goes on with the same millisecond.
    CursorByTimeRepeats,
    /// A page begins with the entry that the page before ended with.
    CursorInclusive,
    /// A page after an edge that is gone meanwhile is empty.
    CursorNeedsItsEdge,
    /// Only the newest 1,000 entries of a list are read.
    ListStopsAtThousand,
    /// Friends come by when the user followed them, not by when they followed the user.
    FriendsByOwnFollow,
    /// Friends come by id, as an intersection of sets gives them.
    FriendsById,
    /// A page of friends is a page of followers with the others left out, so it is short before the end.
    FriendsFilteredAfterPaging,
    /// Friends are looked for among the newest 100 followers only.
    FriendsScanIsBounded,
    /// Friends are looked for among the 2,000 newest followers only.
    FriendsWalkGivesUp,

    /// A user without edges is left out of an overlap, as if everyone were in its set.
    OverlapUnknownIsEveryone,
    /// An overlap looks at the first two sets only.
    OverlapOfFirstTwo,
    /// An overlap takes every set for a set of followees.
    OverlapIgnoresSide,
    /// An overlap looks at the newest 1,000 members of each set, as a cache keeps them.
    OverlapScanIsBounded,
    /// A set that is named twice has nothing in common with itself.
    OverlapOfRepeatedSetIsEmpty,
    /// An overlap of no sets is an error.
    OverlapOfNothingFails,
    /// The members of an overlap come by time.
    OverlapByTime,
    /// The members of an overlap come in the order in which the store first heard of them.
    OverlapInOrderOfArrival,
    /// The count of an overlap is that of the page.
    OverlapCountsPage,
    /// The count of an overlap is that of what is left after the cursor.
    OverlapCountsRest,
    /// A page of an overlap begins with the member that the page before ended with.
    OverlapCursorInclusive,
    /// A page of an overlap goes on at the place of a member, and is empty if that is none any more.
    OverlapCursorNeedsMember,

    /// A user is suggested to itself.
    SuggestsOneself,
    /// Whom a user followed before those that are looked at is suggested.
    SuggestsFollowedLongAgo,
    /// The dismissed are suggested.
    SuggestsDismissed,
    /// The followed and the dismissed are left out after the best were chosen, so that places stay empty.
    SuggestFiltersTheBest,
    /// The lowest ids are looked at instead of the most recently followed.
    SuggestIgnoresRecency,
    /// A re-followed user keeps the time of the first follow.
    SuggestForgetsRefollow,
    /// The bound applies to the followees, but not to their followees.
    SuggestBoundsFirstStepOnly,
    /// Followees are weighed by how many follow them, not by all their edges.
    SuggestWeighsFollowersOnly,
    /// Followees are weighed by those of their edges that are looked at.
    SuggestWeighsWithinBounds,
    /// The Jaccard similarity uses the candidate's followees.
    SuggestShareOfFollowees,
    /// Candidates with as many in between come by id, whatever their scores.
    SuggestTiesById,
    /// Candidates that are equal come from the highest id to the lowest.
    SuggestTiesFromHighIds,
    /// Every ranking is that by count.
    SuggestIgnoresRanking,
    /// `via` names followers of the candidate that the user does not follow.
    SuggestViaStrangers,
    /// `via` names the lowest ids.
    SuggestViaById,
    /// `via` names all who are in between.
    SuggestViaAll,
    /// Candidates are counted in an array indexed by the low bits of their ids.
    SuggestCountsByLowBits,
    /// Edges of every kind lead on.
    SuggestMixesKinds,
    /// A walk has not heard of the newest change.
    SuggestLagsBehind,
    /// A check of a dismissal says no, so that what was dismissed after a run is served.
    CheckForgetsDismissals,

    /// Stored suggestions are served whatever their age.
    StoredServedWhenStale,
    /// Stored suggestions are not served while the clock shows less than when they were computed.
    StoredOfFutureIsStale,
    /// Empty suggestions are stored for users without candidates.
    StoredForNobody,
    /// What was stored stays when there is nothing to suggest any more.
    StoredOutlivesItsReason,
    /// A run walks only for users with followers.
    EveryoneMissesTheUnfollowed,
    /// A run for everyone has the bound of a request.
    EveryoneIsBounded,
    /// A run does not heed that it is to stop.
    EveryoneCannotBeStopped,
    /// A stopped run is forgotten.
    EveryoneForgetsStopped,
    /// A run goes on with a stopped one even if it is to start afresh.
    EveryoneNeverAfresh,
    /// A run goes on with a stopped one that had other bounds.
    EveryoneMixesBounds,
    /// A run goes on with a stopped one however long ago that began.
    EveryoneGoesOnForever,
    /// What was computed elsewhere for some users replaces what is stored for everyone.
    ComputedReplacesAll,
    /// What was computed elsewhere is added to what was stored.
    ComputedIsAdded,
    /// What was computed elsewhere gets another time.
    ComputedIsNow,
    /// What was stored stays where nothing was computed elsewhere.
    ComputedEmptyIsSkipped,

    /// Every fifth event is lost between the commit and the log.
    LogLosesEvent,
    /// Every fifth event is in the log twice.
    LogRepeatsEvent,
    /// The events of one request are logged in reverse.
    LogReordersRequest,
    /// Changes after a position begin with that position.
    LogInclusive,
    /// The log gives one change more than asked for.
    LogIgnoresLimit,
    /// An event of an unfollow says that the edge had existed since the unfollow.
    LogForgetsRemovedSince,
    /// An event's `at` is what the clock shows, even if it was turned back.
    LogTimeGoesBackWithClock,
    /// The log contains follows only, no other kinds.
    LogForgetsOtherKinds,
    /// Every write begins a new epoch, which makes all tokens before it worthless.
    EpochChangesWithWrites,
    /// Any position is said to be visible at once.
    VisibleAlways,
    /// An inbox is shown however little is visible.
    FreshnessIgnoredByInbox,
    /// Candidates are walked for however little is visible.
    FreshnessIgnoredByCandidates,
    /// Stored suggestions are shown however little is visible.
    FreshnessIgnoredByStored,

    /// A repeated post writes an event.
    PostRepeatEmitsEvent,
    /// A repeated post is said to be new.
    PostRepeatSaysNew,
    /// The same id with another content is taken for a repetition.
    PostIdIgnoresContent,
    /// The same key with another content is taken for a repetition.
    PostKeyIgnoresContent,
    /// A repetition that names no time is made now, and so conflicts with the first.
    PostRepeatComparesNow,
    /// A repetition is refused once the time of its post is ahead of a clock that was turned back.
    PostRepeatOfFutureRefused,
    /// Idempotency keys are shared by all authors.
    PostKeysShared,
    /// The key of a request with both a key and an id is not kept.
    PostForgetsKeyBesideId,
    /// The id of a deleted post can be registered again.
    PostDeletedIdIsFree,
    /// The key of a deleted post can be used again.
    PostDeletedKeyIsFree,
    /// Whether a post is there already is asked before the write, not with it.
    PostDecidedBefore,
    /// A post of the future is accepted.
    PostFutureAccepted,
    /// A post that is over a day old is refused.
    PostPastRefused,
    /// A post that is ahead of the clock moves the time of everything after it.
    PostMovesTime,
    /// The `at` of a post's event is when the post was made.
    PostEventAtItsTime,
    /// A post without a time is made when the clock says, even if that was turned back.
    PostTimeGoesBackWithClock,
    /// A payload is stored without the blanks around it.
    PostTrimsPayload,
    /// Ids are made from the clock alone.
    GeneratedIdsFromClock,
    /// An id is generated that a client has used for a post.
    GeneratedIdsCollide,
    /// A post is pulled from one follower more on.
    DeliveryOffByOne,
    /// Edges of all kinds count as followers.
    DeliveryCountsAllKinds,
    /// The delivery of a post is computed from the author's current followers.
    DeliveryNotRecorded,
    /// Deleting what was never there succeeds.
    DeletionOfNothingSucceeds,
    /// Deleting again writes an event.
    DeletionRepeatEmitsEvent,
    /// The event of a deletion says that the post was made when it was deleted.
    DeletionForgetsTime,
    /// A deleted post is reported as never registered.
    DeletionLeavesNoMark,
    /// The log shows the payloads of deleted posts.
    PostLogTellsDeleted,

    /// An author's posts have the deleted ones among them.
    PostsShowDeleted,
    /// Deleted posts are left out after the page was made, so it is short before the end.
    PostsFilteredAfterPaging,
    /// A page of posts or of a feed has the oldest that are left.
    PostsOldestFirst,
    /// Within a millisecond posts run from low ids to high.
    PostsOrderedByTimeOnly,
    /// A cursor of time alone goes on with the next older millisecond.
    PostCursorByTimeSkips,
    /// A cursor of time alone goes on with the same millisecond.
    PostCursorByTimeRepeats,
    /// A page of posts begins with the one that the page before ended with.
    PostCursorInclusive,
    /// A page after a post that is gone meanwhile is empty.
    PostCursorNeedsPost,

    /// A feed has the posts of its own user.
    FeedShowsOwn,
    /// Edges of every kind make a feed.
    FeedMixesKinds,
    /// A feed runs in the order in which posts were registered.
    FeedInOrderOfArrival,
    /// A feed ends where its inbox ends.
    FeedEndsWithInbox,
    /// An inbox that is not full is taken for the whole feed.
    FeedShortInboxIsWhole,
    /// Pushed posts come before pulled ones, as their times are not kept.
    FeedMergesWithoutTime,
    /// Only the newest three posts of an author are pulled.
    FeedPullsRecentOnly,
    /// The pulled authors are computed from current follower counts: earlier pulled posts are lost.
    FeedCrossingLoses,
    /// All posts of an author above the threshold are pulled, in addition to those that were pushed.
    FeedCrossingDoubles,
    /// Posts that are pulled are pushed as well.
    FeedPushesPulled,
    /// Every third delivery is done twice, and doubles the post.
    FeedRedeliveryDoubles,
    /// The newest event has not been delivered, and nobody asks for it.
    FeedLagsBehind,
    /// A follow brings nothing in.
    FeedFollowBringsNothing,
    /// A follow brings some posts in, and the inbox is said to be complete as far as before.
    FeedBackfillLeavesHole,
    /// The same, but only when one is followed again.
    FeedRefollowLeavesHole,
    /// A post that is older than the newest of an inbox is not put into it.
    FeedIgnoresPast,
    /// A post that has no place in a full inbox is dropped, and the inbox is said to be complete as far as before.
    FeedDropsPast,
    /// An inbox loses what came first, not what is oldest.
    FeedTrimsByArrival,
    /// A deleted post stays in inboxes.
    FeedShowsDeleted,
    /// Posts of one who is not followed any more stay in the inbox.
    FeedShowsUnfollowed,
    /// Deleted and unfollowed posts are left out after the page was made, so it is short before the end.
    FeedFilteredAfterPaging,
    /// Where the inbox ends, the feed goes on with the next older millisecond.
    FeedSkipsWhereInboxEnds,

    /// Nothing is ever taken from the old end of an inbox.
    InboxGrows,
    /// Posts that are pulled are in inboxes, too; pages show them once.
    InboxHasPulled,
    /// What is delivered again is in an inbox twice; pages show it once.
    InboxHasTwice,
    /// Everybody's posts are in an inbox; pages leave out what is not followed.
    InboxOfEverybody,
    /// The entries of an inbox run from old to new.
    InboxFromOldToNew,
    /// An inbox that was trimmed says that nothing is missing.
    InboxSaysItIsWhole,
    /// An inbox says that it has everything while the newest event is not delivered.
    InboxClaimsUndelivered,
    /// Everybody has an inbox, and looking at it makes it.
    InboxWithoutReading,
    /// Until the inbox that was forgotten is made again, a page is empty.
    InboxTakesPageAlong,
    /// An inbox that has too much is emptied.
    TrimmedInboxIsEmpty,
    /// Forgetting an inbox leaves it where it is.
    ForgottenInboxStays,
    /// An inbox that was forgotten is not made again.
    ForgottenInboxIsNotMade,

    /// The same comment again under its key is refused.
    CommentRetryRefused,
    /// The same comment again under its key is written again.
    CommentRetryWritesAgain,
    /// The same comment again gets the comment as it is by then.
    CommentRetryShowsCurrent,
    /// The same comment again says that it is new.
    CommentRetrySaysNew,
    /// The same comment again writes an event.
    CommentRetryEmitsEvent,
    /// The same comment again is refused if its thread is locked by then, or its post deleted.
    CommentRetryChecksPlace,
    /// The same comment again is refused if it was withdrawn since.
    CommentRetryOfWithdrawnRefused,
    /// The same comment again after a purge gets the text that was purged.
    CommentRetryAfterPurgeTellsText,
    /// The same comment again after a purge conflicts, as there is no text to compare.
    CommentRetryAfterPurgeConflicts,
    /// A key belongs to nobody: authors get each other's comments.
    CommentKeysShared,
    /// A known key gets its comment, whatever the text.
    CommentKeyIgnoresText,
    /// A known key gets its comment, whatever it is written to.
    CommentKeyIgnoresParent,
    /// A known key gets its comment, whatever it answers.
    CommentKeyIgnoresReply,
    /// The text of a retry is compared with what the comment says by then.
    CommentKeyComparesCurrentText,
    /// A request that was refused has used its key.
    CommentRefusalTakesKey,
    /// Whether a key is known is decided before the comment is written: two at once both write.
    CommentDecidedBefore,
    /// Ids follow the clock, also back.
    CommentIdsFromClock,
    /// Ids are of another version.
    CommentIdsOfVersion4,
    /// Comments are made when the clock says, also earlier than those before.
    CommentTimeGoesBackWithClock,
    /// A text loses the spaces around it.
    CommentTrimsBody,
    /// Comments can be written to posts that nobody made.
    CommentToUnknownPost,
    /// Comments can be written to deleted posts.
    CommentToDeletedPost,
    /// What is no post must be one too.
    CommentLooksForEveryParent,
    /// A reply may answer a comment of another thread.
    CommentReplyAcrossThreads,
    /// A reply may answer a comment that was withdrawn.
    CommentReplyToWithdrawn,
    /// Replies have no greatest depth.
    CommentDepthUnlimited,
    /// Replies go one deeper than allowed.
    CommentDepthOffByOne,

    /// A locked thread takes comments.
    ThreadLockIgnored,
    /// A locked thread takes replies.
    ThreadLockIgnoresReplies,
    /// A locked thread refuses edits.
    ThreadLockRefusesEdits,
    /// A lock holds for threads of all kinds with one id.
    ThreadLockSharedByKinds,
    /// A repeated lock writes an event.
    ThreadLockRepeatEmitsEvent,
    /// The thread of a post that is not there can be locked.
    ThreadLockOfUnknownPost,

    /// An edit sets a status that hides the comment.
    CommentEditHides,
    /// A comment can be edited once.
    CommentEditOnce,
    /// An edit wins whatever version it has seen.
    CommentEditIgnoresVersion,
    /// Versions are compared before the edit is made: two at once both win.
    CommentEditComparedBefore,
    /// A withdrawn comment can be edited.
    CommentEditOfWithdrawn,
    /// An edit that changes no letter makes no version.
    CommentEditOfSameTextIgnored,
    /// Texts are overwritten.
    CommentEditForgetsHistory,
    /// An edit moves the time of the comment.
    CommentEditMovesTime,
    /// An edit leaves no time.
    CommentEditForgetsTime,
    /// An edit sets the number of replies to nothing.
    CommentEditLosesReplies,
    /// A comment that was edited cannot be withdrawn.
    CommentEditedCannotBeWithdrawn,

    /// A repeated withdrawal writes an event.
    CommentDeletionRepeatEmitsEvent,
    /// A repeated withdrawal says that it changed something.
    CommentDeletionRepeatSaysChanged,
    /// Whether a withdrawal makes it worse is decided before: two at once both do.
    CommentWithdrawalDecidedBefore,
    /// The deletion of a removed comment makes it a deleted one.
    CommentStatusGetsBetter,
    /// A moderator cannot remove or purge what its author deleted.
    CommentDeletedCannotBeRemoved,
    /// A second removal replaces the reason.
    CommentRemovalTakesLastReason,
    /// Nobody knows who removed or purged a comment.
    CommentModeratorForgotten,
    /// The log does not tell who removed or purged a comment.
    CommentLogForgetsModerator,
    /// A purge makes unknown who removed or purged the comment.
    CommentPurgeForgetsModerator,
    /// A deletion erases the text at once.
    CommentDeletionErasesText,
    /// The withdrawal of an unknown comment is a success.
    CommentWithdrawalOfNothingSucceeds,
    /// A withdrawn comment leaves no tombstone.
    TombstonesVanish,
    /// Replies to a withdrawn comment are gone with it.
    TombstonesLoseReplies,
    /// Tombstones are left out after the page was made, so it is short before the end.
    TombstonesFilteredAfterPaging,
    /// A purged comment keeps what it said last.
    CommentPurgeLeavesText,
    /// A purged comment keeps its history.
    CommentPurgeLeavesHistory,
    /// The log shows the bodies of purged comments.
    CommentPurgeLeavesLog,
    /// The log shows the bodies of comments before they were edited.
    CommentLogTellsOldTexts,
    /// The log shows the bodies of deleted and removed comments.
    CommentLogTellsWithdrawn,

    /// The count of a thread has its tombstones.
    CommentCountHasTombstones,
    /// The count of a thread has no replies.
    CommentCountOfTopOnly,
    /// A count is one for threads of all kinds with one id.
    CommentCountSharedByKinds,
    /// A retry counts as one more.
    CommentCountDoubledByRetry,
    /// A comment that is withdrawn again, or worse, is counted down again.
    CommentCountedDownAgain,
    /// The number of replies leaves tombstones out.
    ReplyCountSkipsTombstones,
    /// The number of replies has those to replies.
    ReplyCountOfAllBelow,

    /// Comments are answered by id, not in the order asked.
    CommentsInOtherOrder,
    /// A page may have the text of one version and the number of another.
    ThreadReadTorn,
    /// A thread is always read from its beginning.
    ThreadNewestIgnored,
    /// Threads of all kinds with one id are one.
    ThreadsMixKinds,
    /// A page of a thread begins with the comment that the page before ended with.
    ThreadCursorInclusive,
    /// A page after a comment that is gone meanwhile, or of another thread, is empty.
    ThreadCursorNeedsComment,
    /// A page of a thread, newest first, leaves one out.
    ThreadNewestCursorSkips,
    /// A page of a thread, newest first, begins with the newest again.
    ThreadSecondPageFromStart,
    /// Of several branches the last is forgotten.
    BranchLastForgotten,
    /// Branches are answered by id, not in the order asked.
    BranchesInOtherOrder,
    /// A branch always begins with its first reply.
    BranchIgnoresAfter,
    /// A branch has the replies to its replies.
    BranchHasAllBelow,
    /// A branch leaves tombstones out, and all below them.
    BranchWithoutTombstones,
    /// An author's list has withdrawn comments.
    AuthorsListShowsWithdrawn,
    /// Withdrawn comments are left out after the page was made, so it is short before the end.
    AuthorsListFilteredAfterPaging,
    /// An author's list runs from old to new.
    AuthorsListOldestFirst,
    /// An author's list has comments to posts only.
    AuthorsListOfPostsOnly,
    /// A page of texts begins with the one that the page before ended with.
    HistoryCursorInclusive,
    /// A page of texts runs from new to old.
    HistoryNewestFirst,

    /// After a restart `since` may go back.
    RestartForgetsFloor,
    /// The newest write does not survive a restart.
    RestartLosesNewest,
    /// The follower side is rebuilt from a snapshot that lacks the newest change.
    RestartRebuildMissesTail,
    /// After a restart a follow makes a set of one, which then denies what the user had followed before.
    RestartTrustsPartialSet,
    /// Dismissals do not survive a restart.
    RestartForgetsDismissals,
    /// Suggestions that were stored for everyone do not survive a restart.
    RestartForgetsStored,
    /// Idempotency keys do not survive a restart.
    RestartForgetsKeys,
    /// After a restart ids are made from the clock again.
    RestartRepeatsGeneratedIds,
    /// The marks of deleted posts do not survive a restart.
    RestartForgetsDeletions,
    /// Posts that were not delivered when the store stopped never are.
    RestartForgetsUndelivered,
    /// Posts that were being delivered when the store stopped are delivered again, and doubled.
    RestartDeliversAgain,
    /// After a restart an inbox is taken to be complete.
    RestartForgetsWatermark,
    /// Locks do not survive a restart.
    RestartForgetsLocks,
    /// After a restart the texts of purged comments are back.
    RestartForgetsPurges,
    /// Idempotency keys of comments do not survive a restart.
    RestartForgetsCommentKeys,
    /// The reasons of moderators do not survive a restart.
    RestartForgetsReasons,
    /// Who removed comments does not survive a restart.
    RestartForgetsModerators,
    /// After a restart ids of comments are made from the clock again.
    RestartRepeatsCommentIds,
    /// A restart adds all comments to the counts once more.
    RestartDoublesCommentCounts,
}
