-- How many edges users of a shard have, in the order of the key, after one.
SELECT users.kind, users.id, users.following
FROM users
WHERE users.shard = $1::smallint
  AND (users.kind, users.id) > ($2::smallint, $3::{id})
ORDER BY users.kind, users.id
LIMIT $4::bigint
