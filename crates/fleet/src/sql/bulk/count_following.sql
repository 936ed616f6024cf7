-- How many edges some users of a shard have, and how many they are recorded to have, by their ordinals. No more than $4 are
-- counted.
SELECT
    asked.ordinal,
    (
        SELECT count(*)
        FROM (
            SELECT
            FROM following
            WHERE following.shard = $1::smallint AND following.kind = asked.kind AND following.follower = asked.id
            LIMIT $4::bigint
        ) AS counted
    ),
    coalesce((
        SELECT users.following
        FROM users
        WHERE users.shard = $1::smallint AND users.kind = asked.kind AND users.id = asked.id
    ), 0)
FROM unnest($2::smallint[], $3::{id}[]) WITH ORDINALITY AS asked (kind, id, ordinal)
