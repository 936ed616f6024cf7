-- The rows of some edges on the side of their followers, by their ordinals.
SELECT asked.ordinal, found.since, found.sequence
FROM unnest($1::smallint[], $2::smallint[], $3::{id}[], $4::{id}[]) WITH ORDINALITY
    AS asked (shard, kind, follower, followee, ordinal)
CROSS JOIN LATERAL (
    SELECT following.since, following.sequence
    FROM following
    WHERE following.shard = asked.shard
      AND following.kind = asked.kind
      AND following.follower = asked.follower
      AND following.followee = asked.followee
    OFFSET 0
) AS found
