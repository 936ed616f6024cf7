-- How many edges some users have on each side, by their ordinals.
WITH {guard}
SELECT refusal.*, counted.ordinal, counted.following, counted.followers
FROM (VALUES (1)) AS always
LEFT JOIN refusal ON true
LEFT JOIN LATERAL (
    SELECT
        asked.ordinal,
        coalesce((
            SELECT users.following
            FROM users
            WHERE users.shard = asked.shard AND users.kind = $7::smallint AND users.id = asked.id
        ), 0) AS following,
        coalesce((
            SELECT sum(follower_counts.count)
            FROM follower_counts
            WHERE follower_counts.shard = asked.shard
              AND follower_counts.kind = $7::smallint
              AND follower_counts.followee = asked.id
        ), 0)::bigint AS followers
    FROM unnest($8::smallint[], $9::{id}[]) WITH ORDINALITY AS asked (shard, id, ordinal)
    WHERE refusal.reason IS NULL
) AS counted ON true
