-- The shards that are here, and their terms. Read under the locks of marks: no shard comes or goes while somebody has one of them.
SELECT coalesce(array_agg(held.shard), '{}'), coalesce(array_agg(held.term), '{}')
FROM (
    SELECT shards.shard, shards.term FROM shards WHERE shards.shard >= 0 AND shards.state <> 'closed' ORDER BY shards.shard
) AS held
