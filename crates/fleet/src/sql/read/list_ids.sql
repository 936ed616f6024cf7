-- Some of the members of one side of a user by id, from an id on.
WITH {guard}
SELECT refusal.*, page.id
FROM (VALUES (1)) AS always
LEFT JOIN refusal ON true
LEFT JOIN LATERAL (
    SELECT {side}.{member} AS id
    FROM {side}
    WHERE refusal.reason IS NULL
      AND {side}.shard = $7::smallint
      AND {side}.kind = $8::smallint
      AND {side}.{user} = $9::{id}
      AND {side}.{member} >= $10::{id}
    ORDER BY {side}.{member}
    LIMIT $11::bigint
) AS page ON true
