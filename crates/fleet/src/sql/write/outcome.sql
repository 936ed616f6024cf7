-- Whether the batch that planned this sequence is the one that has it.
SELECT EXISTS (
    SELECT FROM log WHERE shard = $1::smallint AND sequence = $2::bigint AND batch = $3::uuid
)
