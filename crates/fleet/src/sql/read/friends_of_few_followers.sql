-- A page of a user's friends, found among its followers: for users with fewer followers than followees.
WITH {guard}
SELECT refusal.*, page.since, page.id
FROM (VALUES (1)) AS always
LEFT JOIN refusal ON true
LEFT JOIN LATERAL (
    SELECT followers.since, followers.follower AS id
    FROM followers
    WHERE refusal.reason IS NULL
      AND followers.shard = $7::smallint
      AND followers.kind = $8::smallint
      AND followers.followee = $9::{id}
      AND followers.since >= 0
      AND (followers.since, followers.follower) < ($10::bigint, $11::{id})
      AND (
          SELECT true
          FROM following
          WHERE following.shard = $7::smallint
            AND following.kind = $8::smallint
            AND following.follower = $9::{id}
            AND following.followee = followers.follower
      )
    ORDER BY followers.since DESC, followers.follower DESC
    LIMIT $12::bigint
) AS page ON true
