#!lua flags=allow-oom
-- Applies the changes of a tag from one position to another, and moves its watermark. Also while Redis is full: the sets that are there
-- stay right, and hardly grow.
--   KEYS: watermark; then mark and set of each follower that is changed
--   ARGV: from, to, milliseconds that a watermark is kept; then for each change: which follower, its sequence, '+' or '-', the user
-- Replies the watermark afterwards; -1 if there is none. One below `from` means that changes before these are missing: nothing was done.
local watermark = redis.call('HMGET', KEYS[1], 'generation', 'sequence')
if not watermark[1] then
    return -1
end
local reached, from, to = tonumber(watermark[2]), tonumber(ARGV[1]), tonumber(ARGV[2])
if reached < from or reached >= to then
    return reached
end
for at = 4, #ARGV, 4 do
    local follower, sequence = tonumber(ARGV[at]), tonumber(ARGV[at + 1])
    local mark_key, set_key = KEYS[2 * follower], KEYS[2 * follower + 1]
    local mark = sequence > reached and redis.call('GET', mark_key)
    if mark then
        local generation, version, size = string.match(mark, '(%S+) (%d+) (%d+)')
        size = tonumber(size)
        local left = redis.call('PTTL', mark_key)
        if generation ~= watermark[1] or left <= 0 or redis.call('SCARD', set_key) ~= size then
            redis.call('DEL', mark_key, set_key)
        elseif sequence > tonumber(version) then
            -- Without its mark first: if this ends in the middle, the set does not count.
            redis.call('DEL', mark_key)
            local changed, step
            if ARGV[at + 2] == '+' then
                changed, step = redis.call('SADD', set_key, ARGV[at + 3]), 1
            else
                changed, step = redis.call('SREM', set_key, ARGV[at + 3]), -1
            end
            -- A change that changes nothing was made on another set than this.
            if changed == 1 then
                redis.call('SET', mark_key, generation .. ' ' .. ARGV[at + 1] .. ' ' .. (size + step), 'PX', left)
                redis.call('PEXPIRE', set_key, left)
            else
                redis.call('DEL', set_key)
            end
        end
    end
end
redis.call('HSET', KEYS[1], 'sequence', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return to
