-- Removes the oldest changes of a shard up to a sequence: never the last one, none that a relay has not sent yet, and none while the
-- shard is being moved.
DELETE FROM log
WHERE log.shard = $1::smallint
  AND log.sequence <= $2::bigint
  AND log.sequence < (SELECT max(newest.sequence) FROM log AS newest WHERE newest.shard = $1::smallint)
  AND log.sequence <= coalesce(
      (SELECT relayed.sequence FROM relayed WHERE relayed.shard = $1::smallint), $2::bigint
  )
  AND NOT EXISTS (SELECT FROM outgoing WHERE outgoing.shard = $1::smallint)
