-- Marks that nobody else is moving right now. What another owner is at is left to it.
SELECT source, epoch, sequence
FROM projected
WHERE source = ANY ($1::smallint[])
ORDER BY source
FOR UPDATE SKIP LOCKED
