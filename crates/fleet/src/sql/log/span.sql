-- The oldest and newest change of some shards that are here, and what makes them current. A shard without a change has none.
SELECT shards.shard, shards.epoch, shards.term, shards.state = 'closed', oldest.sequence, newest.sequence
FROM unnest($1::smallint[]) AS asked (shard)
JOIN shards ON shards.shard = asked.shard
LEFT JOIN LATERAL (
    SELECT log.sequence FROM log WHERE log.shard = asked.shard ORDER BY log.sequence LIMIT 1
) AS oldest ON true
LEFT JOIN LATERAL (
    SELECT log.sequence FROM log WHERE log.shard = asked.shard ORDER BY log.sequence DESC LIMIT 1
) AS newest ON true
