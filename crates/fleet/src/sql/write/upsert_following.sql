-- An edge that was removed and added again in one batch keeps its row and gets a new time.
INSERT INTO following (shard, kind, follower, followee, since, sequence)
SELECT shard, kind, follower, followee, since, sequence
FROM unnest($1::smallint[], $2::smallint[], $3::{id}[], $4::{id}[], $5::bigint[], $6::bigint[])
    AS added (shard, kind, follower, followee, since, sequence)
ON CONFLICT (shard, kind, follower, followee)
DO UPDATE SET since = EXCLUDED.since, sequence = EXCLUDED.sequence
