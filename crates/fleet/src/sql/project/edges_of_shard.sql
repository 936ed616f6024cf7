-- Edges of a shard in the order of the key, after one.
SELECT following.kind, following.follower, following.followee, following.since, following.sequence
FROM following
WHERE following.shard = $1::smallint
  AND (following.kind, following.follower, following.followee) > ($2::smallint, $3::{id}, $4::{id})
ORDER BY following.kind, following.follower, following.followee
LIMIT $5::bigint
