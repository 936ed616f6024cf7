-- Which of some edges exist, by their ordinals, and since when. One row, however many edges there are.
SELECT coalesce(array_agg(asked.ordinal), '{}'), coalesce(array_agg(edge.since), '{}')
FROM unnest($1::smallint[], $2::smallint[], $3::{id}[], $4::{id}[]) WITH ORDINALITY
    AS asked (shard, kind, follower, followee, ordinal)
CROSS JOIN LATERAL (
    SELECT (
        SELECT following.since
        FROM following
        WHERE following.shard = asked.shard
          AND following.kind = asked.kind
          AND following.follower = asked.follower
          AND following.followee = asked.followee
    ) AS since
) AS edge
WHERE edge.since IS NOT NULL
