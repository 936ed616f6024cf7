-- Recorded counts of followers of a shard in the order of the key, after one, and whether their users have any follower.
SELECT counted.kind, counted.followee, counted.count, EXISTS (
    SELECT
    FROM followers
    WHERE followers.shard = counted.shard
      AND followers.kind = counted.kind
      AND followers.followee = counted.followee
)
FROM (
    SELECT follower_counts.shard, follower_counts.kind, follower_counts.followee, sum(follower_counts.count)::bigint AS count
    FROM follower_counts
    WHERE follower_counts.shard = $1::smallint
      AND (follower_counts.kind, follower_counts.followee) > ($2::smallint, $3::{id})
    GROUP BY follower_counts.shard, follower_counts.kind, follower_counts.followee
    ORDER BY follower_counts.shard, follower_counts.kind, follower_counts.followee
    LIMIT $4::bigint
) AS counted
