-- How far each source may be trimmed as far as this host is concerned: what it shows, and what every shard has that is being moved here.
SELECT projected.source, projected.epoch, least(projected.sequence, (
    SELECT min(mark.sequence)
    FROM (
        SELECT (
            SELECT incoming_marks.sequence
            FROM incoming_marks
            WHERE incoming_marks.shard = incoming.shard AND incoming_marks.source = projected.source
        ) AS sequence
        FROM incoming
        WHERE incoming.shard >= 0 AND incoming.epoch = projected.epoch
    ) AS mark
))
FROM projected
WHERE projected.source = ANY ($1::smallint[])
