-- The rows are found by subqueries, which are planned as looks by key and never as a walk of the shard. Under the lock of the
-- shard a row stays where it was found.
DELETE FROM following
WHERE following.ctid = ANY (ARRAY(
    SELECT (
        SELECT found.ctid
        FROM following AS found
        WHERE found.shard = removed.shard
          AND found.kind = removed.kind
          AND found.follower = removed.follower
          AND found.followee = removed.followee
    )
    FROM unnest($1::smallint[], $2::smallint[], $3::{id}[], $4::{id}[]) AS removed (shard, kind, follower, followee)
))
