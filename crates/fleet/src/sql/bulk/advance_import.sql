UPDATE import_progress
SET chunk = chunk + 1,
    follower = $2::{id},
    since = $3::bigint,
    followee = $4::{id},
    line = $5::bigint,
    added = added + $6::bigint,
    duplicates = duplicates + $7::bigint,
    over_limit = over_limit + $8::bigint,
    sequence = greatest(sequence, $9::bigint)
WHERE shard = $1::smallint
