//! Every statement of the store, by name. The text of each is a file in `sql`.

use kinfolk_core::IdKind;

/// What a read begins with: see the file.
const GUARD: &str = include_str!("../sql/guard.sql");

/// Names statements and their files.
macro_rules! statements {
    ($($name:ident = $file:literal,)+) => {
        /// A statement of the store.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[expect(missing_docs, reason = "each is described in its file")]
        pub enum Query { $($name),+ }

        impl Query {
            /// All statements.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            const TEMPLATES: &[&str] = &[$(include_str!(concat!("../sql/", $file))),+];
        }
    };
}

statements! {
    LockShard = "write/lock_shard.sql",
    Head = "write/head.sql",
    Edges = "write/edges.sql",
    Users = "write/users.sql",
    DeleteFollowing = "write/delete_following.sql",
    UpsertFollowing = "write/upsert_following.sql",
    UpsertUsers = "write/upsert_users.sql",
    AppendLog = "write/append_log.sql",
    Outcome = "write/outcome.sql",
    Since = "read/since.sql",
    FollowingPage = "read/following_page.sql",
    FollowersPage = "read/followers_page.sql",
    FriendsOfFewFollowers = "read/friends_of_few_followers.sql",
    FriendsOfFewFollowees = "read/friends_of_few_followees.sql",
    Counts = "read/counts.sql",
    FollowingIds = "read/following_ids.sql",
    FollowersIds = "read/followers_ids.sql",
    FollowingMembers = "read/following_members.sql",
    FollowersMembers = "read/followers_members.sql",
    RecentFollowees = "read/recent_followees.sql",
    Span = "log/span.sql",
    Changes = "log/changes.sql",
    CutByAge = "log/cut_by_age.sql",
    Trim = "log/trim.sql",
    Marks = "project/marks.sql",
    LockMarks = "project/lock_marks.sql",
    Apply = "project/apply.sql",
    AdvanceMarks = "project/advance_marks.sql",
    EdgesOfShard = "project/edges_of_shard.sql",
    StagedPage = "bulk/staged_page.sql",
    NextChunk = "bulk/next_chunk.sql",
    AdvanceImport = "bulk/advance_import.sql",
    EdgesPage = "read/edges_page.sql",
    FollowersOfShard = "bulk/followers_of_shard.sql",
    FollowingRows = "bulk/following_rows.sql",
    FollowersRows = "bulk/followers_rows.sql",
    CountFollowing = "bulk/count_following.sql",
    CountFollowers = "bulk/count_followers.sql",
    UsersOfShard = "bulk/users_of_shard.sql",
    FollowerCountsOfShard = "bulk/follower_counts_of_shard.sql",
    LockFollowerCount = "bulk/lock_follower_count.sql",
    CorrectFollowerCount = "bulk/correct_follower_count.sql",
    CorrectFollowingCount = "bulk/correct_following_count.sql",
    LockMark = "bulk/lock_mark.sql",
    LogGaps = "bulk/log_gaps.sql",
    FillLog = "bulk/fill_log.sql",
}

impl Query {
    /// The text of the statement for a deployment.
    pub fn text(self, id_kind: IdKind) -> String {
        for_id_kind(&Self::TEMPLATES[self as usize].replace("{guard}", GUARD), id_kind)
    }
}

/// SQL with the type of the deployment's ids.
pub(crate) fn for_id_kind(template: &str, id_kind: IdKind) -> String {
    let column_type = match id_kind {
        IdKind::Integer => "bigint",
        IdKind::Uuid => "uuid",
    };
    template.replace("{id}", column_type)
}

/// The texts of all statements for one deployment.
#[derive(Debug)]
pub(crate) struct Statements(Vec<String>);

impl Statements {
    pub(crate) fn new(id_kind: IdKind) -> Self {
        Self(Query::ALL.iter().map(|query| query.text(id_kind)).collect())
    }

    pub(crate) fn text(&self, query: Query) -> &str {
        &self.0[query as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_placeholder_is_left() {
        for &query in Query::ALL {
            let text = query.text(IdKind::Uuid);
            assert!(!text.contains("{id}") && !text.contains("{guard}"), "{query:?}: {text}");
        }
    }
}
