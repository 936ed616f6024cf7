-- A page of a user's followees, the most recent first.
WITH {guard}
SELECT refusal.*, page.since, page.id
FROM (VALUES (1)) AS always
LEFT JOIN refusal ON true
LEFT JOIN LATERAL (
    SELECT following.since, following.followee AS id
    FROM following
    WHERE refusal.reason IS NULL
      AND following.shard = $7::smallint
      AND following.kind = $8::smallint
      AND following.follower = $9::{id}
      AND following.since >= 0
      AND (following.since, following.followee) < ($10::bigint, $11::{id})
    ORDER BY following.since DESC, following.followee DESC
    LIMIT $12::bigint
) AS page ON true
