-- The shards that are here, closed or not. Read under the locks of marks: no shard comes or goes while somebody has one of them.
SELECT coalesce(array_agg(shards.shard), '{}') FROM shards WHERE shards.shard >= 0
