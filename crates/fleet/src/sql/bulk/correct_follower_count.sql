-- Only the sum of a user's buckets means something: any of them can be corrected.
UPDATE follower_counts
SET count = count + $4::bigint
WHERE shard = $1::smallint AND kind = $2::smallint AND followee = $3::{id} AND bucket = 0
