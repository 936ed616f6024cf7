INSERT INTO log (shard, sequence, batch, at, type, body)
SELECT $1::smallint, sequence, $2::uuid, at, type, body
FROM unnest($3::bigint[], $4::bigint[], $5::smallint[], $6::bytea[]) AS added (sequence, at, type, body)
