INSERT INTO users (shard, kind, id, following, sequence)
VALUES ($1::smallint, $2::smallint, $3::{id}, $4::bigint, 0)
ON CONFLICT (shard, kind, id) DO UPDATE SET following = EXCLUDED.following
