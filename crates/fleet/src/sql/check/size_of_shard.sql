-- How many edges a shard has.
SELECT coalesce(sum(users.following), 0)::bigint
FROM users
WHERE users.shard = $1::smallint
