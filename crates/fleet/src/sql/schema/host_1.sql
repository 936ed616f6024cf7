-- A host: the shards that it holds, and the follower side of their users. All shards share these tables, with the shard first
-- in every key: a schema for each shard would mean thousands of relations.
--
-- Times are milliseconds since 1970 that the processes set: the database's own clock is never used.

-- Which deployment the host belongs to, and under which name.
CREATE TABLE host (
    only_one  boolean PRIMARY KEY DEFAULT true CHECK (only_one),
    identity  bigint  NOT NULL,
    name      text    NOT NULL
);

-- Rarely written: what moves or restores a shard changes its row, and every read and write compares it.
CREATE TABLE shards (
    shard  smallint PRIMARY KEY,
    epoch  bigint   NOT NULL,
    term   bigint   NOT NULL,
    state  text     NOT NULL CHECK (state IN ('open', 'closed'))
);

-- How far the log of a shard was handed to the relay's topic. A shard that no relay serves has no row.
CREATE TABLE relayed (
    shard     smallint PRIMARY KEY,
    epoch     bigint   NOT NULL,
    sequence  bigint   NOT NULL
);

-- How far the follower side of this host shows the log of each source shard, on whichever host that is. Contiguous: a mark
-- of n means that every change up to n is applied here.
CREATE TABLE projected (
    source    smallint PRIMARY KEY,
    epoch     bigint   NOT NULL,
    sequence  bigint   NOT NULL
) WITH (fillfactor = 50);

-- How many edges a user has on its own side.
CREATE TABLE users (
    shard      smallint NOT NULL,
    kind       smallint NOT NULL,
    id         {id}     NOT NULL,
    following  bigint   NOT NULL CHECK (following >= 0),
    sequence   bigint   NOT NULL,
    PRIMARY KEY (shard, kind, id)
) WITH (fillfactor = 80);

-- The truth: every edge is a row on the shard of its follower. The key includes the time, so that the index alone answers a
-- check.
CREATE TABLE following (
    shard     smallint NOT NULL,
    kind      smallint NOT NULL,
    follower  {id}     NOT NULL,
    followee  {id}     NOT NULL,
    since     bigint   NOT NULL,
    sequence  bigint   NOT NULL,
    PRIMARY KEY (shard, kind, follower, followee) INCLUDE (since)
);
-- For lists alone, which say `since >= 0`. Without that condition, which always holds, a look for one edge could be planned as a
-- walk of this index, whenever the table's statistics are missing or old.
CREATE INDEX following_by_time ON following (shard, kind, follower, since DESC, followee DESC) WHERE since >= 0;

-- A projection of the truth: the same edge on the shard of its followee.
CREATE TABLE followers (
    shard     smallint NOT NULL,
    kind      smallint NOT NULL,
    followee  {id}     NOT NULL,
    follower  {id}     NOT NULL,
    since     bigint   NOT NULL,
    source    smallint NOT NULL,
    sequence  bigint   NOT NULL,
    PRIMARY KEY (shard, kind, followee, follower) INCLUDE (since)
);
CREATE INDEX followers_by_time ON followers (shard, kind, followee, since DESC, follower DESC) WHERE since >= 0;

-- How many rows of `followers` a user has: the sum of its buckets.
CREATE TABLE follower_counts (
    shard     smallint NOT NULL,
    kind      smallint NOT NULL,
    followee  {id}     NOT NULL,
    bucket    smallint NOT NULL,
    count     bigint   NOT NULL,
    PRIMARY KEY (shard, kind, followee, bucket)
) WITH (fillfactor = 80);

-- The change log of each shard, which is also the outbox. Sequences have no gaps. The last row of a shard always stays: it
-- holds the shard's newest sequence and the time that no later change may precede.
CREATE TABLE log (
    shard     smallint NOT NULL,
    sequence  bigint   NOT NULL,
    -- One for each transaction: settles what became of a commit whose reply was lost.
    batch     uuid     NOT NULL,
    at        bigint   NOT NULL,
    type      smallint NOT NULL,
    body      bytea    NOT NULL,
    PRIMARY KEY (shard, sequence)
);

-- The import that is being staged or applied, if there is one. Every host has its own row.
CREATE TABLE import (
    only_one         boolean  PRIMARY KEY DEFAULT true CHECK (only_one),
    fingerprint      text     NOT NULL,
    kind             smallint NOT NULL,
    -- The most edges of a follower; none for no limit.
    following_limit  bigint,
    -- So many edges of the input were looked at, and those whose followers are here are staged.
    taken            bigint   NOT NULL,
    self_follows     bigint   NOT NULL,
    -- Whether the whole input is staged.
    complete         boolean  NOT NULL
);

-- Edges of the import. An edge without a time has the highest one. Applied in the order of the key: of several lines about one
-- edge the earliest counts, and a follower with too many edges keeps the earliest.
CREATE TABLE staged_edges (
    shard     smallint NOT NULL,
    follower  {id}     NOT NULL,
    since     bigint   NOT NULL,
    followee  {id}     NOT NULL,
    -- Which edge of the input it is.
    line      bigint   NOT NULL,
    PRIMARY KEY (shard, follower, since, followee, line)
);

-- How far the import is applied to each shard, changed in the transaction of each chunk.
CREATE TABLE import_progress (
    shard       smallint PRIMARY KEY,
    chunk       bigint   NOT NULL,
    -- The key of the last staged edge that is applied.
    follower    {id}     NOT NULL,
    since       bigint   NOT NULL,
    followee    {id}     NOT NULL,
    line        bigint   NOT NULL,
    added       bigint   NOT NULL,
    duplicates  bigint   NOT NULL,
    over_limit  bigint   NOT NULL,
    -- The last change of the shard that the import has made.
    sequence    bigint   NOT NULL
) WITH (fillfactor = 50);
