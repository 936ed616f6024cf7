-- Which of some users are among a user's followees.
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
          FROM following
          WHERE following.shard = $7::smallint
            AND following.kind = $8::smallint
            AND following.follower = $9::{id}
            AND following.followee = asked.id
      )
) AS member ON true
