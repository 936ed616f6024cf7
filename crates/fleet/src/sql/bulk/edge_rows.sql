-- What one side has about some edges, by their ordinals.
SELECT asked.ordinal, found.since, found.sequence
FROM unnest($1::smallint[], $2::smallint[], $3::{id}[], $4::{id}[]) WITH ORDINALITY
    AS asked (shard, kind, follower, followee, ordinal)
CROSS JOIN LATERAL (
    SELECT {side}.since, {side}.sequence
    FROM {side}
    WHERE {side}.shard = asked.shard
      AND {side}.kind = asked.kind
      AND {side}.follower = asked.follower
      AND {side}.followee = asked.followee
    OFFSET 0
) AS found
