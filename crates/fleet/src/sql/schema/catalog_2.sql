-- Shards that are being moved, from the first page that is copied until nothing of the shard is left on its old host.
CREATE TABLE moves (
    shard      smallint PRIMARY KEY,
    from_host  text     NOT NULL REFERENCES hosts (name),
    to_host    text     NOT NULL REFERENCES hosts (name),
    -- The shard's term on its old host; it has the next one on the new host.
    term       bigint   NOT NULL
);
