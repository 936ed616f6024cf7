-- All that some users follow, by the users' ordinals, and the newest change of the shard that it shows. Of a user who follows more than
-- the limit, one more than the limit.
WITH {guard}
SELECT refusal.*, found.ordinal, found.position, found.followees
FROM (VALUES (1)) AS always
LEFT JOIN refusal ON true
LEFT JOIN LATERAL (
    SELECT asked.ordinal,
        (SELECT coalesce(max(log.sequence), 0) FROM log WHERE log.shard = asked.shard) AS position,
        ARRAY(
            SELECT following.followee
            FROM following
            WHERE following.shard = asked.shard
              AND following.kind = $7::smallint
              AND following.follower = asked.follower
            ORDER BY following.followee
            LIMIT $10::bigint + 1
        ) AS followees
    FROM unnest($8::smallint[], $9::{id}[]) WITH ORDINALITY AS asked (shard, follower, ordinal)
    WHERE refusal.reason IS NULL
    OFFSET 0
) AS found ON true
