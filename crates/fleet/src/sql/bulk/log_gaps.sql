-- Changes of a shard that the next one does not follow on, from a sequence on, with the next one. The last change that was looked
-- at has none.
SELECT page.sequence, page.next
FROM (
    SELECT entry.sequence, lead(entry.sequence) OVER (ORDER BY entry.sequence) AS next
    FROM (
        SELECT log.sequence
        FROM log
        WHERE log.shard = $1::smallint AND log.sequence >= $2::bigint
        ORDER BY log.sequence
        LIMIT $3::bigint
    ) AS entry
) AS page
WHERE page.next IS NULL OR page.next > page.sequence + 1
ORDER BY page.sequence
