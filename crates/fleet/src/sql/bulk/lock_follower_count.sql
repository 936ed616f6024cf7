-- Whoever changes followers of a user changes this row in the same transaction: while it is locked, they stay as they are.
INSERT INTO follower_counts (shard, kind, followee, bucket, count)
VALUES ($1::smallint, $2::smallint, $3::{id}, 0, 0)
ON CONFLICT (shard, kind, followee, bucket) DO UPDATE SET count = follower_counts.count
