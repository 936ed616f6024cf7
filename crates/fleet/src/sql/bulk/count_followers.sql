-- How many followers some users of a shard have, and how many they are recorded to have, by their ordinals. No more than $4 are
-- counted.
SELECT
    asked.ordinal,
    (
        SELECT count(*)
        FROM (
            SELECT
            FROM followers
            WHERE followers.shard = $1::smallint AND followers.kind = asked.kind AND followers.followee = asked.id
            LIMIT $4::bigint
        ) AS counted
    ),
    coalesce((
        SELECT sum(follower_counts.count)::bigint
        FROM follower_counts
        WHERE follower_counts.shard = $1::smallint
          AND follower_counts.kind = asked.kind
          AND follower_counts.followee = asked.id
    ), 0)
FROM unnest($2::smallint[], $3::{id}[]) WITH ORDINALITY AS asked (kind, id, ordinal)
