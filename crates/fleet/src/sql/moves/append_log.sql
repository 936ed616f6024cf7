-- Entries of the log of a shard that is being moved here.
INSERT INTO log (shard, sequence, batch, at, type, body)
SELECT $1::smallint, sequence, batch, at, type, body
FROM unnest($2::bigint[], $3::uuid[], $4::bigint[], $5::smallint[], $6::bytea[])
    AS copied (sequence, batch, at, type, body)
ON CONFLICT (shard, sequence) DO NOTHING
