-- Why this host may not answer a read, if there is a reason. Every read begins with this, in the snapshot of its rows.
--   $1 epoch; $2 shards whose rows are read, $3 their terms, $4 how far their truth must have come;
--   $5 sources whose changes the follower side must show, $6 up to which sequence.
-- Reasons: 1 the shard is not here in this epoch and term, 2 its truth is behind, 3 the follower side is behind.
refusal AS (
    SELECT 1 AS reason, asked.shard, 0::bigint AS current
    FROM unnest($2::smallint[], $3::bigint[]) AS asked (shard, term)
    LEFT JOIN shards ON shards.shard = asked.shard
    WHERE (shards.epoch, shards.term) IS DISTINCT FROM ($1::bigint, asked.term) OR shards.state = 'closed'
    UNION ALL
    SELECT 2, asked.shard, newest.sequence
    FROM unnest($2::smallint[], $4::bigint[]) AS asked (shard, sequence)
    CROSS JOIN LATERAL (
        SELECT coalesce(max(log.sequence), 0) AS sequence FROM log WHERE log.shard = asked.shard
    ) AS newest
    WHERE asked.sequence > newest.sequence
    UNION ALL
    SELECT 3, asked.source, coalesce(projected.sequence, 0)
    FROM unnest($5::smallint[], $6::bigint[]) AS asked (source, sequence)
    LEFT JOIN projected ON projected.source = asked.source AND projected.epoch = $1::bigint
    WHERE asked.sequence > coalesce(projected.sequence, 0)
    LIMIT 1
)
