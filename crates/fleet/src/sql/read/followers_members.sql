-- Which of some users are among a user's followers.
WITH {guard}
SELECT refusal.*, member.id
FROM (VALUES (1)) AS always
LEFT JOIN refusal ON true
LEFT JOIN LATERAL (
    SELECT asked.id
    FROM unnest($10::{id}[]) AS asked (id)
    WHERE refusal.reason IS NULL
      AND (
          SELECT true
          FROM followers
          WHERE followers.shard = $7::smallint
            AND followers.kind = $8::smallint
            AND followers.followee = $9::{id}
            AND followers.follower = asked.id
      )
) AS member ON true
