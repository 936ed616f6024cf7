-- The most recent followees of some users, by the ordinals of the users.
WITH {guard}
SELECT refusal.*, recent.ordinal, recent.id
FROM (VALUES (1)) AS always
LEFT JOIN refusal ON true
LEFT JOIN LATERAL (
    SELECT asked.ordinal, page.id
    FROM unnest($8::smallint[], $9::{id}[]) WITH ORDINALITY AS asked (shard, id, ordinal)
    CROSS JOIN LATERAL (
        SELECT following.followee AS id
        FROM following
        WHERE refusal.reason IS NULL
          AND following.shard = asked.shard
          AND following.kind = $7::smallint
          AND following.follower = asked.id
          AND following.since >= 0
        ORDER BY following.since DESC, following.followee DESC
        LIMIT $10::bigint
    ) AS page
) AS recent ON true
