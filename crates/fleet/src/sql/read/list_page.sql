-- A page of one side of a user, the most recent first.
WITH {guard}
SELECT refusal.*, page.since, page.id
FROM (VALUES (1)) AS always
LEFT JOIN refusal ON true
LEFT JOIN LATERAL (
    SELECT {side}.since, {side}.{member} AS id
    FROM {side}
    WHERE refusal.reason IS NULL
      AND {side}.shard = $7::smallint
      AND {side}.kind = $8::smallint
      AND {side}.{user} = $9::{id}
      AND {side}.since >= 0
      AND ({side}.since, {side}.{member}) < ($10::bigint, $11::{id})
    ORDER BY {side}.since DESC, {side}.{member} DESC
    LIMIT $12::bigint
) AS page ON true
