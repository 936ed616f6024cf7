-- Entries of a shard's log as they are, after a sequence.
SELECT log.sequence, log.batch, log.at, log.type, log.body
FROM log
WHERE log.shard = $1::smallint AND log.sequence > $2::bigint
ORDER BY log.sequence
LIMIT $3::bigint
