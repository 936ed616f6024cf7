INSERT INTO log (shard, sequence, batch, at, type, body)
SELECT shard, sequence, $1::uuid, at, type, body
FROM unnest($2::smallint[], $3::bigint[], $4::bigint[], $5::smallint[], $6::bytea[])
    AS added (shard, sequence, at, type, body)
