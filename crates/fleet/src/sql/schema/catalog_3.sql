-- The process that moves a shard, by the number that it has on the hosts. Only it ends the move.
ALTER TABLE moves ADD COLUMN mover bigint NOT NULL DEFAULT 0;
