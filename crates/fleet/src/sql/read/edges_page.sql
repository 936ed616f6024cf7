-- Edges of one kind on a shard, by follower and followee, after one.
WITH {guard}
SELECT refusal.*, page.follower, page.followee, page.since
FROM (VALUES (1)) AS always
LEFT JOIN refusal ON true
LEFT JOIN LATERAL (
    SELECT following.follower, following.followee, following.since
    FROM following
    WHERE refusal.reason IS NULL
      AND following.shard = $7::smallint
      AND following.kind = $8::smallint
      AND (following.follower, following.followee) > ($9::{id}, $10::{id})
    ORDER BY following.follower, following.followee
    LIMIT $11::bigint
) AS page ON true
