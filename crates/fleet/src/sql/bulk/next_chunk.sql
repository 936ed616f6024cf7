-- The number of the next chunk of a shard. Under the lock of the shard it stays as it is.
SELECT chunk FROM import_progress WHERE shard = $1::smallint
