//! The protocols and operations that metrics distinguish, and their names on dashboards.

named! {
    /// The protocol of a request.
    pub Protocol {
        /// HTTP.
        Rest = "rest",
        /// The Redis protocol.
        Resp = "resp",
    }
}

named! {
    /// The source of suggestions.
    pub Source {
        /// Computed for all users, and fresh.
        Stored = "stored",
        /// Computed on request.
        Walk = "walk",
    }
}

named! {
    /// The operation of a request.
    pub Operation {
        Check = "check",
        CheckMany = "check_many",
        Relationships = "relationships",
        Follow = "follow",
        Unfollow = "unfollow",
        RemoveFollower = "remove_follower",
        Following = "following",
        Followers = "followers",
        Friends = "friends",
        Counts = "counts",
        Common = "common",
        KnownFollowers = "known_followers",
        Suggestions = "suggestions",
        Dismiss = "dismiss",
        /// Registering a post.
        Post = "post",
        DeletePost = "delete_post",
        /// One post, or those of a user.
        Posts = "posts",
        Feed = "feed",
        /// Writing a comment.
        Comment = "comment",
        EditComment = "edit_comment",
        DeleteComment = "delete_comment",
        /// Removing and purging comments, locking threads.
        Moderate = "moderate",
        /// One comment or its history, those of a thread or of a user.
        Comments = "comments",
        Changes = "changes",
        ChangesStream = "changes_stream",
        Import = "import",
        Export = "export",
        Verify = "verify",
        Backup = "backup",
        Compact = "compact",
        /// Computing suggestions for all users.
        Suggest = "suggest",
        /// Pages of the console; what it writes counts as the operation that it is.
        Console = "console",
        /// Anything about the connection or the server itself.
        Other = "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_places() {
        for (at, operation) in Operation::ALL.iter().enumerate() {
            assert_eq!(*operation as usize, at);
        }
        for (at, source) in Source::ALL.iter().enumerate() {
            assert_eq!(*source as usize, at);
        }
        for (at, protocol) in Protocol::ALL.iter().enumerate() {
            assert_eq!(*protocol as usize, at);
        }
    }
}
