-- Which of some users are on one side of a user.
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
          FROM {side}
          WHERE {side}.shard = $7::smallint
            AND {side}.kind = $8::smallint
            AND {side}.{user} = $9::{id}
            AND {side}.{member} = asked.id
      )
) AS member ON true
