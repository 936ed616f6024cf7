//! The faults of posts, feeds and inboxes, each with the tests that must catch it. The files beside it plant them.

/// Hands the faults of posts, feeds and inboxes on to the next macro, after those that were handed to it.
macro_rules! feed_faults {
    ($next:ident $($others:ident)*; $($faults:tt)*) => { $next! { $($others)*; $($faults)*
        /// An inbox is shown however little is visible.
        FreshnessIgnoredByInbox: "an_inbox_waits_for_a_position", "on shards: an_inbox_waits_for_a_position";

        /// A repeated post writes an event.
        PostRepeatEmitsEvent:
            "the_same_id_again_changes_nothing", FEED_HISTORIES, "on shards: the_same_id_again_changes_nothing";
        /// A repeated post is said to be new.
        PostRepeatSaysNew: "the_same_wish_from_several_threads", FEED_HISTORIES;
        /// The same id with another content is taken for a repetition.
        PostIdIgnoresContent: "the_same_id_with_another_content_conflicts", FEED_HISTORIES;
        /// The same key with another content is taken for a repetition.
        PostKeyIgnoresContent: "the_same_key_with_another_content_conflicts", FEED_HISTORIES;
        /// A repetition that names no time is made now, and so conflicts with the first.
        PostRepeatComparesNow: "the_same_id_again_changes_nothing", FEED_HISTORIES;
        /// A repetition is refused once the time of its post is ahead of a clock that was turned back.
        PostRepeatOfFutureRefused: "the_same_id_again_changes_nothing", FEED_HISTORIES;
        /// Idempotency keys are shared by all authors.
        PostKeysShared: "a_key_belongs_to_its_author", FEED_HISTORIES;
        /// The key of a request with both a key and an id is not kept.
        PostForgetsKeyBesideId: "the_same_key_with_another_content_conflicts", FEED_HISTORIES;
        /// The id of a deleted post can be registered again.
        PostDeletedIdIsFree: "a_deleted_post_is_gone_for_good", FEED_HISTORIES;
        /// The key of a deleted post can be used again.
        PostDeletedKeyIsFree: "the_key_of_a_deleted_post_is_not_used_again", FEED_HISTORIES;
        /// Whether a post is there already is asked before the write, not with it.
        PostDecidedBefore: "different_wishes_for_one_id_at_once", FEED_HISTORIES;
        /// A post of the future is accepted.
        PostFutureAccepted: "a_post_of_the_future_is_refused", FEED_HISTORIES;
        /// A post that is over a day old is refused.
        PostPastRefused: "the_time_of_a_post_is_not_that_of_its_event", FEED_HISTORIES;
        /// A post that is ahead of the clock moves the time of everything after it.
        PostMovesTime: "the_time_of_a_post_is_not_that_of_its_event", FEED_HISTORIES;
        /// The `at` of a post's event is when the post was made.
        PostEventAtItsTime: "a_post_is_kept_as_it_was_given", FEED_HISTORIES;
        /// A post without a time is made when the clock says, even if that was turned back.
        PostTimeGoesBackWithClock: "a_post_without_a_time_is_made_at_its_event", FEED_HISTORIES;
        /// A payload is stored without the blanks around it.
        PostTrimsPayload: "a_payload_is_kept_byte_for_byte", FEED_HISTORIES;
        /// Ids are made from the clock alone.
        GeneratedIdsFromClock: "ids_that_are_made_rise", FEED_HISTORIES;
        /// An id is generated that a client has used for a post.
        GeneratedIdsCollide: "ids_that_are_made_pass_those_that_were_given", FEED_HISTORIES;
        /// A post is pulled from one follower more on.
        DeliveryOffByOne: "delivery_is_decided_by_the_followers_then", FEED_HISTORIES;
        /// Edges of all kinds count as followers.
        DeliveryCountsAllKinds: "delivery_is_decided_by_the_followers_then", FEED_HISTORIES;
        /// The delivery of a post is computed from the author's current followers.
        DeliveryNotRecorded: "an_author_may_cross_the_threshold", FEED_HISTORIES;
        /// Deleting what was never there succeeds.
        DeletionOfNothingSucceeds: "what_was_never_posted_cannot_be_deleted", FEED_HISTORIES;
        /// Deleting again writes an event.
        DeletionRepeatEmitsEvent:
            "deletions_from_several_threads", FEED_HISTORIES, "on shards: a_deleted_post_is_gone_for_good";
        /// The event of a deletion says that the post was made when it was deleted.
        DeletionForgetsTime: "a_deleted_post_is_gone_for_good", FEED_HISTORIES;
        /// A deleted post is reported as never registered.
        DeletionLeavesNoMark: "many_posts_are_answered_in_the_order_asked", FEED_HISTORIES;
        /// The log shows the payloads of deleted posts.
        PostLogTellsDeleted: "the_log_has_no_payload_of_a_deleted_post", FEED_HISTORIES;

        /// An author's posts have the deleted ones among them.
        PostsShowDeleted: "any_key_is_a_place_among_posts", FEED_HISTORIES;
        /// Deleted posts are left out after the page was made, so it is short before the end.
        PostsFilteredAfterPaging: "any_key_is_a_place_among_posts", FEED_HISTORIES;
        /// A page of posts or of a feed has the oldest that are left.
        PostsOldestFirst: "posts_run_from_new_to_old", FEED_HISTORIES;
        /// Within a millisecond posts run from low ids to high.
        PostsOrderedByTimeOnly: "pages_of_posts_may_end_inside_one_millisecond", FEED_HISTORIES;
        /// A cursor of time alone goes on with the next older millisecond.
        PostCursorByTimeSkips: "a_feed_of_one_millisecond", FEED_HISTORIES;
        /// A cursor of time alone goes on with the same millisecond.
        PostCursorByTimeRepeats: "a_walk_of_posts_with_changes_between_pages", FEED_HISTORIES;
        /// A page of posts begins with the one that the page before ended with.
        PostCursorInclusive: "any_key_is_a_place_in_a_feed", FEED_HISTORIES;
        /// A page after a post that is gone meanwhile is empty.
        PostCursorNeedsPost: "any_key_is_a_place_among_posts", FEED_HISTORIES;

        /// A feed has the posts of its own user.
        FeedShowsOwn: "a_feed_of_nobody_is_empty", FEED_HISTORIES;
        /// Edges of every kind make a feed.
        FeedMixesKinds: "a_feed_knows_only_follows", "an_inbox_knows_only_follows", FEED_HISTORIES;
        /// A feed runs in the order in which posts were registered.
        FeedInOrderOfArrival: "a_feed_of_posts_from_the_past", FEED_HISTORIES;
        /// A feed ends where its inbox ends.
        FeedEndsWithInbox: "a_feed_goes_on_where_an_inbox_ends", CONCURRENT_FEEDS, FEED_HISTORIES;
        /// An inbox that is not full is taken for the whole feed.
        FeedShortInboxIsWhole: "deletions_do_not_end_a_feed", FEED_HISTORIES;
        /// Pushed posts come before pulled ones, as their times are not kept.
        FeedMergesWithoutTime: "pushed_and_pulled_posts_are_merged", FEED_HISTORIES;
        /// Only the newest three posts of an author are pulled.
        FeedPullsRecentOnly: "pushed_and_pulled_posts_are_merged", FEED_HISTORIES;
        /// The pulled authors are computed from current follower counts: earlier pulled posts are lost.
        FeedCrossingLoses: "an_author_may_cross_the_threshold", CONCURRENT_FEEDS, FEED_HISTORIES;
        /// All posts of an author above the threshold are pulled, in addition to those that were pushed.
        FeedCrossingDoubles: "an_author_may_cross_the_threshold_among_others", CONCURRENT_FEEDS, FEED_HISTORIES;
        /// Posts that are pulled are pushed as well.
        FeedPushesPulled:
            "a_walk_while_authors_cross_the_threshold", "an_inbox_has_nothing_that_is_pulled", FEED_HISTORIES;
        /// Every third delivery is done twice, and doubles the post.
        FeedRedeliveryDoubles: "a_feed_merges_many_authors", FEED_HISTORIES;
        /// The newest event has not been delivered, and nobody asks for it.
        FeedLagsBehind: "every_author_sees_its_own_posts_and_deletions", CONCURRENT_FEEDS, FEED_HISTORIES;
        /// A follow brings nothing in.
        FeedFollowBringsNothing:
            "a_follow_brings_older_posts_in", "a_follow_brings_posts_into_an_inbox", FEED_HISTORIES;
        /// A follow brings some posts in, and the inbox is said to be complete as far as before.
        FeedBackfillLeavesHole:
            "a_follow_brings_more_in_than_an_inbox_holds", "a_follow_brings_posts_into_an_inbox", FEED_HISTORIES;
        /// The same, but only when one is followed again.
        FeedRefollowLeavesHole:
            "a_follow_again_brings_posts_back", "a_follow_again_makes_no_hole_in_an_inbox", FEED_HISTORIES;
        /// A post that is older than the newest of an inbox is not put into it.
        FeedIgnoresPast: "a_post_from_the_past_finds_its_place", "an_inbox_of_posts_from_the_past", FEED_HISTORIES;
        /// A post that has no place in a full inbox is dropped, and the inbox is said to be complete as far as before.
        FeedDropsPast: "a_feed_of_posts_from_the_past", "an_inbox_of_posts_from_the_past", FEED_HISTORIES;
        /// An inbox loses what came first, not what is oldest.
        FeedTrimsByArrival: "a_feed_of_posts_from_the_past", "an_inbox_of_posts_from_the_past", FEED_HISTORIES;
        /// A deleted post stays in inboxes.
        FeedShowsDeleted: "a_deleted_post_leaves_every_feed", CONCURRENT_FEEDS, FEED_HISTORIES;
        /// Posts of one who is not followed any more stay in the inbox.
        FeedShowsUnfollowed: "an_unfollow_takes_posts_out", CONCURRENT_FEEDS, FEED_HISTORIES;
        /// Deleted and unfollowed posts are left out after the page was made, so it is short before the end.
        FeedFilteredAfterPaging: "an_unfollow_takes_posts_out", FEED_HISTORIES;
        /// Where the inbox ends, the feed goes on with the next older millisecond.
        FeedSkipsWhereInboxEnds: FEED_HISTORIES;

        /// Nothing is ever taken from the old end of an inbox.
        InboxGrows: "an_inbox_is_trimmed_from_the_old_end", FEED_HISTORIES;
        /// Posts that are pulled are in inboxes, too; pages show them once.
        InboxHasPulled: "an_inbox_has_nothing_that_is_pulled", FEED_HISTORIES;
        /// What is delivered again is in an inbox twice; pages show it once.
        InboxHasTwice: "an_inbox_is_trimmed_from_the_old_end", FEED_HISTORIES;
        /// Everybody's posts are in an inbox; pages leave out what is not followed.
        InboxOfEverybody: "an_inbox_has_what_is_pushed", FEED_HISTORIES;
        /// The entries of an inbox run from old to new.
        InboxFromOldToNew: "an_inbox_is_made_of_the_newest", FEED_HISTORIES;
        /// An inbox that was trimmed says that nothing is missing.
        InboxSaysItIsWhole: "an_inbox_is_made_of_the_newest", FEED_HISTORIES;
        /// An inbox says that it has everything while the newest event is not delivered.
        InboxClaimsUndelivered: "an_inbox_keeps_its_promises_meanwhile", CONCURRENT_FEEDS, FEED_HISTORIES;
        /// Everybody has an inbox, and looking at it makes it.
        InboxWithoutReading: "who_has_not_read_has_no_inbox", FEED_HISTORIES;
        /// Until the inbox that was forgotten is made again, a page is empty.
        InboxTakesPageAlong: "an_inbox_can_be_forgotten_at_any_time", FEED_HISTORIES;
        /// An inbox that has too much is emptied.
        TrimmedInboxIsEmpty: "an_inbox_is_trimmed_from_the_old_end";
        /// Forgetting an inbox leaves it where it is.
        ForgottenInboxStays: "an_inbox_can_be_forgotten_at_any_time";
        /// An inbox that was forgotten is not made again.
        ForgottenInboxIsNotMade: "what_is_gone_is_gone_from_an_inbox_that_is_made_again";
        /// Idempotency keys do not survive a restart.
        RestartForgetsKeys: FEED_RESTARTS;
        /// After a restart ids are made from the clock again.
        RestartRepeatsGeneratedIds: FEED_RESTARTS;
        /// The marks of deleted posts do not survive a restart.
        RestartForgetsDeletions: FEED_HISTORIES;
        /// Posts that were not delivered when the store stopped never are.
        RestartForgetsUndelivered: FEED_HISTORIES;
        /// Posts that were being delivered when the store stopped are delivered again, and doubled.
        RestartDeliversAgain: FEED_HISTORIES;
        /// After a restart an inbox is taken to be complete.
        RestartForgetsWatermark: FEED_RESTARTS;
    } };
}
pub(in crate::faults) use feed_faults;
