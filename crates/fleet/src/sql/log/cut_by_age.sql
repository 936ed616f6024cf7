-- The last of the oldest changes of a shard that are from before a moment, looking at no more than a batch of them.
SELECT max(aged.sequence)
FROM (
    SELECT oldest.sequence, oldest.at
    FROM (
        SELECT log.sequence, log.at
        FROM log
        WHERE log.shard = $1::smallint
        ORDER BY log.sequence
        LIMIT $3::bigint
    ) AS oldest
) AS aged
WHERE aged.at < $2::bigint
