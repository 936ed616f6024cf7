-- The next staged edges of a shard, and the number of the chunk that they are.
SELECT import_progress.chunk, page.follower, page.since, page.followee, page.line
FROM import_progress
CROSS JOIN LATERAL (
    SELECT staged.follower, staged.since, staged.followee, staged.line
    FROM staged_edges AS staged
    WHERE staged.shard = $1::smallint
      AND (staged.follower, staged.since, staged.followee, staged.line)
          > (import_progress.follower, import_progress.since, import_progress.followee, import_progress.line)
    ORDER BY staged.follower, staged.since, staged.followee, staged.line
    LIMIT $2::bigint
) AS page
WHERE import_progress.shard = $1::smallint
