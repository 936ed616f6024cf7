-- A shard that is 'closing' is still read here, but not written: its last changes are on their way to another host.
ALTER TABLE shards DROP CONSTRAINT shards_state_check;
ALTER TABLE shards ADD CONSTRAINT shards_state_check CHECK (state IN ('open', 'closing', 'closed'));

-- Shards that are being moved to another host. Their logs are not trimmed meanwhile.
CREATE TABLE outgoing (
    shard  smallint PRIMARY KEY,
    -- The process that moves the shard: an earlier one finds another number here and gives up.
    mover  bigint   NOT NULL
);

-- Shards that are being moved here.
CREATE TABLE incoming (
    shard    smallint PRIMARY KEY,
    epoch    bigint   NOT NULL,
    mover    bigint   NOT NULL,
    -- The newest change of the shard before its edges were copied: every later one is applied to the copy.
    started  bigint   NOT NULL,
    -- Changes up to here are in the log of the copy; those after `started` are applied, too.
    applied  bigint   NOT NULL,
    -- Which table is being copied: 0 following, 1 followers, 2 none any more; and the key of the last row that was.
    stage    smallint NOT NULL,
    kind     smallint NOT NULL,
    owner    {id}     NOT NULL,
    member   {id}     NOT NULL,
    -- Rows that were copied.
    copied   bigint   NOT NULL
) WITH (fillfactor = 50);

-- How far the follower side of an incoming shard shows each source. No log is trimmed past it.
CREATE TABLE incoming_marks (
    shard     smallint NOT NULL,
    source    smallint NOT NULL,
    sequence  bigint   NOT NULL,
    PRIMARY KEY (shard, source)
) WITH (fillfactor = 50);
