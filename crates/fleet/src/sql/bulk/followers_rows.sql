-- The rows of some edges on the side of their followees, by their ordinals.
SELECT asked.ordinal, found.since, found.sequence
FROM unnest($1::smallint[], $2::smallint[], $3::{id}[], $4::{id}[]) WITH ORDINALITY
    AS asked (shard, kind, follower, followee, ordinal)
CROSS JOIN LATERAL (
    SELECT followers.since, followers.sequence
    FROM followers
    WHERE followers.shard = asked.shard
      AND followers.kind = asked.kind
      AND followers.followee = asked.followee
      AND followers.follower = asked.follower
    OFFSET 0
) AS found
