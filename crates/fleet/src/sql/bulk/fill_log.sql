-- Entries for changes that are lost, after the last one before them, with its time.
INSERT INTO log (shard, sequence, batch, at, type, body)
SELECT log.shard, missing.sequence, $4::uuid, log.at, $5::smallint, $6::bytea
FROM log
CROSS JOIN LATERAL generate_series(log.sequence + 1, $3::bigint) AS missing (sequence)
WHERE log.shard = $1::smallint AND log.sequence = $2::bigint
ON CONFLICT (shard, sequence) DO NOTHING
