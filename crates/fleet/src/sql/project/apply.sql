-- Brings the follower side to where the changes of a batch leave each edge: $1 to $4 are the edges that are gone, $5 to $10
-- those that exist. A count changes by the rows that this very statement adds and removes.
WITH removed AS (
    DELETE FROM followers
    USING unnest($1::smallint[], $2::smallint[], $3::{id}[], $4::{id}[]) AS gone (shard, kind, followee, follower)
    WHERE followers.shard = gone.shard
      AND followers.kind = gone.kind
      AND followers.followee = gone.followee
      AND followers.follower = gone.follower
    RETURNING followers.shard, followers.kind, followers.followee
),
there AS (
    SELECT *
    FROM unnest($5::smallint[], $6::smallint[], $7::{id}[], $8::{id}[], $9::bigint[], $10::smallint[], $11::bigint[])
        AS there (shard, kind, followee, follower, since, source, sequence)
),
renewed AS (
    UPDATE followers
    SET since = there.since, source = there.source, sequence = there.sequence
    FROM there
    WHERE followers.shard = there.shard
      AND followers.kind = there.kind
      AND followers.followee = there.followee
      AND followers.follower = there.follower
),
added AS (
    INSERT INTO followers (shard, kind, followee, follower, since, source, sequence)
    SELECT shard, kind, followee, follower, since, source, sequence FROM there
    ON CONFLICT DO NOTHING
    RETURNING shard, kind, followee
),
steps AS (
    SELECT shard, kind, followee, -1 AS step FROM removed
    UNION ALL
    SELECT shard, kind, followee, 1 FROM added
)
INSERT INTO follower_counts (shard, kind, followee, bucket, count)
SELECT shard, kind, followee, 0, sum(step)
FROM steps
GROUP BY shard, kind, followee
HAVING sum(step) <> 0
-- In the order of the key, so that two projections of one followee never wait for each other in a circle.
ORDER BY shard, kind, followee
ON CONFLICT (shard, kind, followee, bucket)
DO UPDATE SET count = follower_counts.count + EXCLUDED.count
