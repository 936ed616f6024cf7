-- Whoever changes how many followers a user has changes one of these rows in the same transaction: while all of them are locked,
-- their sum stays as it is. In the order of the key, as every writer locks them.
INSERT INTO follower_counts (shard, kind, followee, bucket, count)
SELECT $1::smallint, $2::smallint, $3::{id}, bucket, 0
FROM generate_series(0, 15) AS bucket
ON CONFLICT (shard, kind, followee, bucket) DO UPDATE SET count = follower_counts.count
