-- Whether the shard may be written here, and the newest change of its log.
SELECT shards.epoch, shards.term, shards.state = 'open', newest.sequence, newest.at, newest.type, newest.body
FROM shards
LEFT JOIN LATERAL (
    SELECT log.sequence, log.at, log.type, log.body
    FROM log
    WHERE log.shard = shards.shard
    ORDER BY log.sequence DESC
    LIMIT 1
) AS newest ON true
WHERE shards.shard = $1::smallint
