-- Brings the follower side to where the changes of a batch leave each edge: $1 to $4 are the edges that are gone, $5 to $11
-- those that exist. A count changes by the rows that this very statement adds and removes.
--
-- Rows are found by subqueries, which are planned as looks by key and never as a walk. The holder of the sources' marks is the
-- only one to change their rows, so that a row stays where it was found.
WITH removed AS (
    DELETE FROM followers
    WHERE followers.ctid = ANY (ARRAY(
        SELECT (
            SELECT found.ctid
            FROM followers AS found
            WHERE found.shard = gone.shard
              AND found.kind = gone.kind
              AND found.followee = gone.followee
              AND found.follower = gone.follower
        )
        FROM unnest($1::smallint[], $2::smallint[], $3::{id}[], $4::{id}[])
            AS gone (shard, kind, followee, follower)
    ))
    RETURNING followers.shard, followers.kind, followers.followee
),
there AS MATERIALIZED (
    SELECT there.*, (
        SELECT found.ctid
        FROM followers AS found
        WHERE found.shard = there.shard
          AND found.kind = there.kind
          AND found.followee = there.followee
          AND found.follower = there.follower
    ) AS row_id
    FROM unnest($5::smallint[], $6::smallint[], $7::{id}[], $8::{id}[], $9::bigint[], $10::smallint[], $11::bigint[])
        AS there (shard, kind, followee, follower, since, source, sequence)
),
renewed AS (
    UPDATE followers
    SET since = there.since, source = there.source, sequence = there.sequence
    FROM there
    WHERE followers.ctid = there.row_id
),
added AS (
    INSERT INTO followers (shard, kind, followee, follower, since, source, sequence)
    SELECT shard, kind, followee, follower, since, source, sequence FROM there WHERE row_id IS NULL
    RETURNING shard, kind, followee
),
steps AS (
    SELECT shard, kind, followee, -1 AS step FROM removed
    UNION ALL
    SELECT shard, kind, followee, 1 FROM added
)
INSERT INTO follower_counts (shard, kind, followee, bucket, count)
SELECT
    shard,
    kind,
    followee,
    -- The row is locked until the transaction ends. Several processes that project different sources would wait for each other
    -- at an account that all of them have changes of: each counts it in a bucket of its own. A bucket may be negative, the sum never.
    CASE WHEN count(*) < 8 THEN 0 ELSE 1 + pg_backend_pid() % 15 END,
    sum(step)
FROM steps
GROUP BY shard, kind, followee
HAVING sum(step) <> 0
-- In the order of the key, so that two projections never wait for each other in a circle: each has one bucket of a followee.
ORDER BY shard, kind, followee
ON CONFLICT (shard, kind, followee, bucket)
DO UPDATE SET count = follower_counts.count + EXCLUDED.count
