-- Those of some shards that are open here in this epoch and term. What moves a shard changes its row, and waits for the end of
-- this transaction.
SELECT shards.shard
FROM unnest($1::smallint[], $2::bigint[]) AS asked (shard, term)
JOIN shards ON shards.shard = asked.shard
           AND shards.epoch = $3::bigint
           AND shards.term = asked.term
           AND shards.state = 'open'
FOR SHARE OF shards
