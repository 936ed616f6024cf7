UPDATE projected
SET sequence = moved.sequence
FROM unnest($1::smallint[], $2::bigint[]) AS moved (source, sequence)
WHERE projected.source = moved.source
