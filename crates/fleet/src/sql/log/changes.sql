-- Changes of some shards after a sequence of each, in the order in which the shards are named. A shard that is not here in this
-- epoch has none. One that is closed still has those that it had.
SELECT asked.shard, page.sequence, page.at, page.type, page.body
FROM unnest($1::smallint[], $2::bigint[]) AS asked (shard, sequence)
JOIN shards ON shards.shard = asked.shard AND shards.epoch = $4::bigint
CROSS JOIN LATERAL (
    SELECT log.sequence, log.at, log.type, log.body
    FROM log
    WHERE log.shard = asked.shard AND log.sequence > asked.sequence
    ORDER BY log.sequence
    LIMIT $3::bigint
) AS page
LIMIT $3::bigint
