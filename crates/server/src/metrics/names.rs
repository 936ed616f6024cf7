//! The protocols and operations that metrics distinguish, and their names on dashboards.

/// How a request came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP.
    Rest,
    /// The Redis protocol.
    Resp,
}

impl Protocol {
    /// All protocols, in the order of their numbers.
    pub const ALL: [Self; 2] = [Self::Rest, Self::Resp];

    /// The name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rest => "rest",
            Self::Resp => "resp",
        }
    }
}

/// Where suggestions come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// They were computed for everyone, and are fresh.
    Stored,
    /// They were found by a walk.
    Walk,
}

impl Source {
    /// All sources, in the order of their numbers.
    pub const ALL: [Self; 2] = [Self::Stored, Self::Walk];

    /// The name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stored => "stored",
            Self::Walk => "walk",
        }
    }
}

/// Declares operations once, with their names in metrics.
macro_rules! operations {
    ($($(#[$doc:meta])* $operation:ident = $name:literal,)+) => {
        /// What was asked.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[expect(missing_docs, reason = "each is the operation of that name")]
        pub enum Operation {
            $($(#[$doc])* $operation,)+
        }

        impl Operation {
            /// All operations, in the order of their numbers.
            pub const ALL: &[Self] = &[$(Self::$operation,)+];

            /// The name in metrics.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$operation => $name,)+
                }
            }
        }
    };
}

operations! {
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
