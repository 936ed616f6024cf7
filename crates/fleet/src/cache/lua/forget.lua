-- Removes the watermark of a tag, if it is still where somebody has seen it: its sets do not count any more.
--   KEYS: watermark
--   ARGV: where it was
if redis.call('HGET', KEYS[1], 'sequence') == ARGV[1] then
    return redis.call('DEL', KEYS[1])
end
return 0
