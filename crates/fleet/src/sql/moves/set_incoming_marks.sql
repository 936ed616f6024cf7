-- Notes how far the follower side of an incoming shard shows some sources.
INSERT INTO incoming_marks (shard, source, sequence)
SELECT $1::smallint, source, sequence FROM unnest($2::smallint[], $3::bigint[]) AS moved (source, sequence)
ON CONFLICT (shard, source) DO UPDATE SET sequence = EXCLUDED.sequence
