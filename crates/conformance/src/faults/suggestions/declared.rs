//! The faults of suggestions, each with the tests that must catch it. The files beside it plant them.

/// Hands the faults of suggestions on to the next macro, after those that were handed to it.
macro_rules! suggestion_faults {
    ($next:ident $($others:ident)*; $($faults:tt)*) => { $next! { $($others)*; $($faults)*
        /// A user is suggested to itself.
        SuggestsOneself: "nobody_is_suggested_to_themselves_or_again";
        /// Whom a user followed before those that are looked at is suggested.
        SuggestsFollowedLongAgo: "whom_a_user_followed_long_ago_is_not_suggested";
        /// The dismissed are suggested.
        SuggestsDismissed: "the_dismissed_are_not_suggested";
        /// The followed and the dismissed are left out after the best were chosen, so that places stay empty.
        SuggestFiltersTheBest: "the_best_are_kept";
        /// The lowest ids are looked at instead of the most recently followed.
        SuggestIgnoresRecency: "only_the_most_recent_followees_count";
        /// A re-followed user keeps the time of the first follow.
        SuggestForgetsRefollow: "only_the_most_recent_of_each_followee_count";
        /// The bound applies to the followees, but not to their followees.
        SuggestBoundsFirstStepOnly: "within_one_millisecond_high_ids_are_most_recent";
        /// Followees are weighed by how many follow them, not by all their edges.
        SuggestWeighsFollowersOnly: "candidates_are_whom_followees_follow";
        /// Followees are weighed by those of their edges that are looked at.
        SuggestWeighsWithinBounds: "scores_do_not_depend_on_bounds";
        /// The Jaccard similarity uses the candidate's followees.
        SuggestShareOfFollowees: "rankings_differ";
        /// Candidates with as many in between come by id, whatever their scores.
        SuggestTiesById: "ties_are_broken_by_score_then_id";
        /// Candidates that are equal come from the highest id to the lowest.
        SuggestTiesFromHighIds: "ties_are_broken_by_score_then_id";
        /// Every ranking is that by count.
        SuggestIgnoresRanking: "rankings_differ";
        /// `via` names followers of the candidate that the user does not follow.
        SuggestViaStrangers: "via_names_those_who_say_most";
        /// `via` names the lowest ids.
        SuggestViaById: "candidates_of_a_random_graph";
        /// `via` names all who are in between.
        SuggestViaAll: "candidates_of_one_who_follows_many";
        /// Candidates are counted in an array indexed by the low bits of their ids.
        SuggestCountsByLowBits: "candidates_of_extreme_ids";
        /// Edges of every kind lead on.
        SuggestMixesKinds: "other_kinds_suggest_nobody";
        /// A walk has not heard of the newest change.
        SuggestLagsBehind: "every_change_counts_in_the_next_walk";
        /// A check of a dismissal says no, so that what was dismissed after a run is served.
        CheckForgetsDismissals: "stored_suggestions_leave_out_who_is_known_since";

        /// Stored suggestions are served whatever their age.
        StoredServedWhenStale: "stored_suggestions_are_served_while_fresh";
        /// Stored suggestions are not served while the clock shows less than when they were computed.
        StoredOfFutureIsStale: "stored_suggestions_outlive_a_clock_that_is_turned_back";
        /// Empty suggestions are stored for users without candidates.
        StoredForNobody: "nothing_is_stored_for_whom_there_is_nothing";
        /// What was stored stays when there is nothing to suggest any more.
        StoredOutlivesItsReason: "a_run_replaces_what_was_stored";
        /// A run walks only for users with followers.
        EveryoneMissesTheUnfollowed: "everyone_gets_what_a_walk_finds";
        /// A run for everyone has the bound of a request.
        EveryoneIsBounded: "a_run_has_no_bound_unless_it_is_set";
        /// A run does not heed that it is to stop.
        EveryoneCannotBeStopped: "a_stopped_run_goes_on";
        /// A stopped run is forgotten.
        EveryoneForgetsStopped: "a_stopped_run_goes_on";
        /// A run goes on with a stopped one even if it is to start afresh.
        EveryoneNeverAfresh: "a_run_may_start_afresh";
        /// A run goes on with a stopped one that had other bounds.
        EveryoneMixesBounds: "a_run_with_other_bounds_starts_over";
        /// A run goes on with a stopped one however long ago that began.
        EveryoneGoesOnForever: "a_run_that_was_stopped_long_ago_starts_over";
        /// What was computed elsewhere for some users replaces what is stored for everyone.
        ComputedReplacesAll: "what_was_computed_elsewhere_is_stored";
        /// What was computed elsewhere is added to what was stored.
        ComputedIsAdded: "what_was_computed_elsewhere_is_stored";
        /// What was computed elsewhere gets another time.
        ComputedIsNow: "what_was_computed_elsewhere_is_stored";
        /// What was stored stays where nothing was computed elsewhere.
        ComputedEmptyIsSkipped: "what_was_computed_elsewhere_is_stored";
        /// Candidates are walked for however little is visible.
        FreshnessIgnoredByCandidates: "candidates_wait_for_a_position", "on shards: candidates_wait_for_a_position";
        /// Stored suggestions are shown however little is visible.
        FreshnessIgnoredByStored:
            "stored_suggestions_wait_for_a_position", "on shards: stored_suggestions_wait_for_a_position";
        /// Dismissals do not survive a restart.
        RestartForgetsDismissals: HISTORIES;
        /// Suggestions that were stored for everyone do not survive a restart.
        RestartForgetsStored: HISTORIES;
    } };
}
pub(in crate::faults) use suggestion_faults;
