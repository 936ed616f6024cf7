-- Some of a user's followees by id, from an id on.
WITH {guard}
SELECT refusal.*, page.id
FROM (VALUES (1)) AS always
LEFT JOIN refusal ON true
LEFT JOIN LATERAL (
    SELECT following.followee AS id
    FROM following
    WHERE refusal.reason IS NULL
      AND following.shard = $7::smallint
      AND following.kind = $8::smallint
      AND following.follower = $9::{id}
      AND following.followee >= $10::{id}
    ORDER BY following.followee
    LIMIT $11::bigint
) AS page ON true
