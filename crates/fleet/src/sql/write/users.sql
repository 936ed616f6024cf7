-- How many edges some users have, in their order. One row, however many users there are.
SELECT coalesce(array_agg(coalesce((
    SELECT users.following
    FROM users
    WHERE users.shard = asked.shard AND users.kind = asked.kind AND users.id = asked.id
), 0) ORDER BY asked.ordinal), '{}')
FROM unnest($1::smallint[], $2::smallint[], $3::{id}[]) WITH ORDINALITY AS asked (shard, kind, id, ordinal)
