-- How many of some edges one side has, and the sums of what it says about them, each times the weight of its edge. Numeric, so
-- that nothing that a damaged row says overflows.
SELECT
    count(*),
    coalesce(sum(found.since::numeric * asked.weight), 0)::text,
    coalesce(sum(found.sequence::numeric * asked.weight), 0)::text
FROM unnest($1::smallint[], $2::smallint[], $3::{id}[], $4::{id}[], $5::bigint[])
    AS asked (shard, kind, follower, followee, weight)
CROSS JOIN LATERAL (
    SELECT {side}.since, {side}.sequence
    FROM {side}
    WHERE {side}.shard = asked.shard
      AND {side}.kind = asked.kind
      AND {side}.follower = asked.follower
      AND {side}.followee = asked.followee
    OFFSET 0
) AS found
