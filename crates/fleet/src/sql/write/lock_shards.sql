-- A statement of its own: a lock and a read in one statement would read a snapshot from before the lock. Shards come in order, so
-- that two batches never wait for each other in a circle.
SELECT count(pg_advisory_xact_lock($1::integer, asked.shard)) FROM unnest($2::integer[]) AS asked (shard)
