DELETE FROM following
USING unnest($2::smallint[], $3::{id}[], $4::{id}[]) AS gone (kind, follower, followee)
WHERE following.shard = $1::smallint
  AND following.kind = gone.kind
  AND following.follower = gone.follower
  AND following.followee = gone.followee
