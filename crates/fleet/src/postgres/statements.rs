//! Every statement of the store, by name. The text of each is a file in `sql`; one that reads either side of a user is two
//! statements.

use kinfolk_core::IdKind;
use kinfolk_core::graph::Side;

/// What a read begins with: see the file.
const GUARD: &str = include_str!("../sql/guard.sql");

/// Names statements, their files, and the side that a file for both sides reads.
macro_rules! statements {
    ($($name:ident = $file:literal $(on $side:ident)?,)+) => {
        /// A statement of the store.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[expect(missing_docs, reason = "each is described in its file")]
        pub enum Query { $($name),+ }

        impl Query {
            /// All statements.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            const TEMPLATES: &[Template] = &[$(Template {
                text: include_str!(concat!("../sql/", $file)),
                side: [$(Side::$side)?].as_slice(),
            }),+];
        }
    };
}

statements! {
    LockShards = "write/lock_shards.sql",
    Head = "write/head.sql",
    Edges = "write/edges.sql",
    Users = "write/users.sql",
    DeleteFollowing = "write/delete_following.sql",
    UpsertFollowing = "write/upsert_following.sql",
    UpsertUsers = "write/upsert_users.sql",
    AppendLog = "write/append_log.sql",
    Outcome = "write/outcome.sql",
    Since = "read/since.sql",
    FollowingPage = "read/list_page.sql" on Following,
    FollowersPage = "read/list_page.sql" on Followers,
    FriendsOfFewFollowers = "read/friends_of_few_followers.sql",
    FriendsOfFewFollowees = "read/friends_of_few_followees.sql",
    Counts = "read/counts.sql",
    FollowingIds = "read/list_ids.sql" on Following,
    FollowersIds = "read/list_ids.sql" on Followers,
    FollowingMembers = "read/list_members.sql" on Following,
    FollowersMembers = "read/list_members.sql" on Followers,
    RecentFollowees = "read/recent_followees.sql",
    Span = "log/span.sql",
    Changes = "log/changes.sql",
    CutByAge = "log/cut_by_age.sql",
    Trim = "log/trim.sql",
    KeptMarks = "log/kept_marks.sql",
    Marks = "project/marks.sql",
    LockMarks = "project/lock_marks.sql",
    HeldShards = "project/held_shards.sql",
    Apply = "project/apply.sql",
    AdvanceMarks = "project/advance_marks.sql",
    EdgesOfShard = "project/edges_of_shard.sql",
    RelayMarks = "relay/marks.sql",
    AdvanceRelayMarks = "relay/advance_marks.sql",
    UserCounts = "check/user_counts.sql",
    FollowingSets = "cache/following_sets.sql",
    StagedPage = "bulk/staged_page.sql",
    NextChunk = "bulk/next_chunk.sql",
    AdvanceImport = "bulk/advance_import.sql",
    EdgesPage = "read/edges_page.sql",
    FollowersOfShard = "bulk/followers_of_shard.sql",
    FollowingRows = "bulk/edge_rows.sql" on Following,
    FollowersRows = "bulk/edge_rows.sql" on Followers,
    FollowingChecksum = "bulk/edge_checksum.sql" on Following,
    FollowersChecksum = "bulk/edge_checksum.sql" on Followers,
    HoldShards = "bulk/hold_shards.sql",
    CountFollowing = "bulk/count_following.sql",
    CountFollowers = "bulk/count_followers.sql",
    UsersOfShard = "bulk/users_of_shard.sql",
    FollowerCountsOfShard = "bulk/follower_counts_of_shard.sql",
    LockFollowerCount = "bulk/lock_follower_count.sql",
    CorrectFollowerCount = "bulk/correct_follower_count.sql",
    CorrectFollowingCount = "bulk/correct_following_count.sql",
    LockMark = "bulk/lock_mark.sql",
    MovedLogPage = "moves/log_page.sql",
    MovedLogRows = "moves/append_log.sql",
    ReceiveFollowing = "moves/receive_following.sql",
    SetIncomingMarks = "moves/set_incoming_marks.sql",
    LogGaps = "bulk/log_gaps.sql",
    FillLog = "bulk/fill_log.sql",
}

impl Query {
    /// The text of the statement for a deployment.
    pub fn text(self, id_kind: IdKind) -> String {
        let Template { text, side } = &Self::TEMPLATES[self as usize];
        let text = text.replace("{guard}", GUARD);
        let text = side.iter().fold(text, |text, &side| on_side(&text, side));
        for_id_kind(&text, id_kind)
    }
}

/// The file of a statement, and the side that it reads if it is for both.
struct Template {
    text: &'static str,
    side: &'static [Side],
}

/// SQL that reads one side of a user: its table, the column of the user, and the column of those on its side.
fn on_side(template: &str, side: Side) -> String {
    let (table, user, member) = match side {
        Side::Following => ("following", "follower", "followee"),
        Side::Followers => ("followers", "followee", "follower"),
    };
    template.replace("{side}", table).replace("{user}", user).replace("{member}", member)
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
            let placeholders = ["{id}", "{guard}", "{side}", "{user}", "{member}"];
            assert!(placeholders.iter().all(|name| !text.contains(name)), "{query:?}: {text}");
        }
    }
}
