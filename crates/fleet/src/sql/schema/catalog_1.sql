-- The catalog: what every process must know before it can reach a shard. Connection strings are not here: they may hold
-- passwords, and belong to each process's configuration.

CREATE TABLE deployment (
    only_one     boolean PRIMARY KEY DEFAULT true CHECK (only_one),
    -- Names the deployment on every host, so that no host serves two.
    identity     bigint  NOT NULL,
    id_kind      text    NOT NULL CHECK (id_kind IN ('integer', 'uuid')),
    shards       integer NOT NULL CHECK (shards BETWEEN 1 AND 4096),
    epoch        bigint  NOT NULL,
    -- Rises whenever a shard gets another host.
    map_version  bigint  NOT NULL
);

CREATE TABLE hosts (
    name  text PRIMARY KEY
);

CREATE TABLE shard_map (
    shard  smallint PRIMARY KEY,
    host   text     NOT NULL REFERENCES hosts (name),
    -- Rises with every move of the shard; the host has the same number.
    term   bigint   NOT NULL
);

-- The newest key signs; all of them verify.
CREATE TABLE signing_keys (
    number  integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    secret  bytea   NOT NULL CHECK (length(secret) = 32)
);
