INSERT INTO users (shard, kind, id, following, sequence)
SELECT shard, kind, id, following, sequence
FROM unnest($1::smallint[], $2::smallint[], $3::{id}[], $4::bigint[], $5::bigint[])
    AS changed (shard, kind, id, following, sequence)
ON CONFLICT (shard, kind, id)
DO UPDATE SET following = EXCLUDED.following, sequence = EXCLUDED.sequence
