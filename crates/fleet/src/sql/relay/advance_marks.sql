-- Moves marks forward, and makes those that are not there. A relay that was asleep, or has not heard of an epoch, moves none back.
-- Shards come in order, so that two relays never wait for each other in a circle.
INSERT INTO relayed (shard, epoch, sequence)
SELECT shard, $1::bigint, sequence FROM unnest($2::smallint[], $3::bigint[]) AS moved (shard, sequence)
ON CONFLICT (shard) DO UPDATE SET epoch = EXCLUDED.epoch, sequence = EXCLUDED.sequence
WHERE (relayed.epoch, relayed.sequence) < (EXCLUDED.epoch, EXCLUDED.sequence)
