-- A page of a user's friends, found among its followees: for users with fewer followees than followers. Only the friends are
-- sorted, and no more of them are kept than the page holds.
WITH {guard}
SELECT refusal.*, page.since, page.id
FROM (VALUES (1)) AS always
LEFT JOIN refusal ON true
LEFT JOIN LATERAL (
    SELECT friend.since, friend.id
    FROM (
        SELECT following.followee AS id, (
            SELECT followers.since
            FROM followers
            WHERE followers.shard = $7::smallint
              AND followers.kind = $8::smallint
              AND followers.followee = $9::{id}
              AND followers.follower = following.followee
        ) AS since
        FROM following
        WHERE refusal.reason IS NULL
          AND following.shard = $7::smallint
          AND following.kind = $8::smallint
          AND following.follower = $9::{id}
        OFFSET 0
    ) AS friend
    WHERE (friend.since, friend.id) < ($10::bigint, $11::{id})
    ORDER BY friend.since DESC, friend.id DESC
    LIMIT $12::bigint
) AS page ON true
