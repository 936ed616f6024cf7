-- Recorded counts of a shard in the order of the key, after one, and whether their users have any edge.
SELECT users.kind, users.id, users.following, EXISTS (
    SELECT
    FROM following
    WHERE following.shard = users.shard AND following.kind = users.kind AND following.follower = users.id
)
FROM users
WHERE users.shard = $1::smallint AND (users.kind, users.id) > ($2::smallint, $3::{id})
ORDER BY users.kind, users.id
LIMIT $4::bigint
