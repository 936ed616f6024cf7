-- Some of a user's followers by id, from an id on.
WITH {guard}
SELECT refusal.*, page.id
FROM (VALUES (1)) AS always
LEFT JOIN refusal ON true
LEFT JOIN LATERAL (
    SELECT followers.follower AS id
    FROM followers
    WHERE refusal.reason IS NULL
      AND followers.shard = $7::smallint
      AND followers.kind = $8::smallint
      AND followers.followee = $9::{id}
      AND followers.follower >= $10::{id}
    ORDER BY followers.follower
    LIMIT $11::bigint
) AS page ON true
