-- Rows of the follower side of a shard in the order of the key, after one.
SELECT followers.kind, followers.followee, followers.follower, followers.since, followers.source, followers.sequence
FROM followers
WHERE followers.shard = $1::smallint
  AND (followers.kind, followers.followee, followers.follower) > ($2::smallint, $3::{id}, $4::{id})
ORDER BY followers.kind, followers.followee, followers.follower
LIMIT $5::bigint
