-- Brings edges of a shard that is being moved here to where some rows or changes of it leave them: $1 to $4 are the edges that are gone,
-- $5 to $10 those that exist. A count changes by the rows that this very statement adds and removes.
--
-- Rows are found by subqueries, which are planned as looks by key and never as a walk. Nobody else writes them yet, so that a row stays
-- where it was found.
WITH removed AS (
    DELETE FROM following
    WHERE following.ctid = ANY (ARRAY(
        SELECT (
            SELECT found.ctid
            FROM following AS found
            WHERE found.shard = gone.shard
              AND found.kind = gone.kind
              AND found.follower = gone.follower
              AND found.followee = gone.followee
        )
        FROM unnest($1::smallint[], $2::smallint[], $3::{id}[], $4::{id}[])
            AS gone (shard, kind, follower, followee)
    ))
    RETURNING following.shard, following.kind, following.follower
),
there AS MATERIALIZED (
    SELECT there.*, (
        SELECT found.ctid
        FROM following AS found
        WHERE found.shard = there.shard
          AND found.kind = there.kind
          AND found.follower = there.follower
          AND found.followee = there.followee
    ) AS row_id
    FROM unnest($5::smallint[], $6::smallint[], $7::{id}[], $8::{id}[], $9::bigint[], $10::bigint[])
        AS there (shard, kind, follower, followee, since, sequence)
),
renewed AS (
    UPDATE following
    SET since = there.since, sequence = there.sequence
    FROM there
    WHERE following.ctid = there.row_id
),
added AS (
    INSERT INTO following (shard, kind, follower, followee, since, sequence)
    SELECT shard, kind, follower, followee, since, sequence FROM there WHERE row_id IS NULL
    RETURNING shard, kind, follower
),
steps AS (
    SELECT shard, kind, follower, -1 AS step FROM removed
    UNION ALL
    SELECT shard, kind, follower, 1 FROM added
),
summed AS MATERIALIZED (
    SELECT stepped.*, (
        SELECT found.ctid
        FROM users AS found
        WHERE found.shard = stepped.shard AND found.kind = stepped.kind AND found.id = stepped.follower
    ) AS row_id
    FROM (SELECT shard, kind, follower, sum(step)::bigint AS step FROM steps GROUP BY shard, kind, follower) AS stepped
    WHERE stepped.step <> 0
),
counted AS (
    UPDATE users
    SET following = users.following + summed.step
    FROM summed
    WHERE users.ctid = summed.row_id
)
INSERT INTO users (shard, kind, id, following, sequence)
SELECT shard, kind, follower, step, 0 FROM summed WHERE row_id IS NULL
