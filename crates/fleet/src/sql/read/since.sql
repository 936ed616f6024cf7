-- Since when some edges exist, by their ordinals; edges that do not exist are left out.
WITH {guard}
SELECT refusal.*, found.ordinal, found.since
FROM (VALUES (1)) AS always
LEFT JOIN refusal ON true
LEFT JOIN LATERAL (
    SELECT edge.ordinal, edge.since
    FROM (
        SELECT asked.ordinal, (
            SELECT following.since
            FROM following
            WHERE following.shard = asked.shard
              AND following.kind = $7::smallint
              AND following.follower = asked.follower
              AND following.followee = asked.followee
        ) AS since
        FROM unnest($8::smallint[], $9::{id}[], $10::{id}[]) WITH ORDINALITY
            AS asked (shard, follower, followee, ordinal)
        WHERE refusal.reason IS NULL
        OFFSET 0
    ) AS edge
    WHERE edge.since IS NOT NULL
) AS found ON true
