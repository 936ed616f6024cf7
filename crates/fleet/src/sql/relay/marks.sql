-- How far some shards were relayed.
SELECT shard, epoch, sequence FROM relayed WHERE shard = ANY ($1::smallint[])
