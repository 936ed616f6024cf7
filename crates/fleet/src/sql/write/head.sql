-- Whether some shards may be written here, and the newest change of the log of each.
SELECT shards.shard, shards.epoch, shards.term, shards.state = 'open', newest.sequence, newest.at, newest.type, newest.body
FROM unnest($1::smallint[]) AS asked (shard)
JOIN shards ON shards.shard = asked.shard
LEFT JOIN LATERAL (
    SELECT log.sequence, log.at, log.type, log.body
    FROM log
    WHERE log.shard = shards.shard
    ORDER BY log.sequence DESC
    LIMIT 1
) AS newest ON true
