//! The protocols and operations that metrics distinguish, and their names on dashboards.

/// Declares what metrics distinguish once, with the names in metrics.
macro_rules! named {
    ($(#[$meta:meta])* $type:ident { $($(#[$doc:meta])* $value:ident = $name:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "a value without a comment is what its name says")]
        pub enum $type {
            $($(#[$doc])* $value,)+
        }

        impl $type {
            /// All of them, in the order of their numbers.
            pub const ALL: &[Self] = &[$(Self::$value,)+];

            /// The name in metrics.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $name,)+
                }
            }
        }
    };
}

named! {
    /// How a request came in.
    Protocol {
        /// HTTP.
        Rest = "rest",
        /// The Redis protocol.
        Resp = "resp",
    }
}

named! {
    /// Where suggestions come from.
    Source {
        /// They were computed for everyone, and are fresh.
        Stored = "stored",
        /// They were found by a walk.
        Walk = "walk",
    }
}

named! {
    /// What was asked.
    Operation {
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
        /// Suggestions for everyone.
        Suggest = "suggest",
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
