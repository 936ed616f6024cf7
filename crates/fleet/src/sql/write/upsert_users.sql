INSERT INTO users (shard, kind, id, following, sequence)
SELECT $1::smallint, kind, id, following, $5::bigint
FROM unnest($2::smallint[], $3::{id}[], $4::bigint[]) AS changed (kind, id, following)
ON CONFLICT (shard, kind, id)
DO UPDATE SET following = EXCLUDED.following, sequence = EXCLUDED.sequence
