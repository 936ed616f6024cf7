-- A statement of its own: a lock and a read in one statement would read a snapshot from before the lock.
SELECT pg_advisory_xact_lock($1::integer, $2::integer)
