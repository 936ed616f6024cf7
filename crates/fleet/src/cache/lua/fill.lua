#!lua
-- Stores the whole set of a follower as it was at a position. Refused while Redis is full, by the line above.
--   KEYS: watermark, mark, set
--   ARGV: the position; the position and the generation of a new watermark, if there is none; milliseconds that a watermark is kept;
--         milliseconds that the set is kept; then its members
-- Replies 1 if the set is stored, 0 if the watermark has passed the position, 2 if a set of this position or a later one is there, 3 if
-- the set is stored and its watermark is a new one.
local watermark = redis.call('HMGET', KEYS[1], 'generation', 'sequence')
local position, generation, reached = tonumber(ARGV[1]), watermark[1], tonumber(watermark[2] or ARGV[2])
if position < reached then
    return 0
end
local is_new = not generation
if is_new then
    generation = ARGV[3]
    redis.call('HSET', KEYS[1], 'generation', generation, 'sequence', ARGV[2])
    redis.call('PEXPIRE', KEYS[1], ARGV[4])
end
local mark = redis.call('GET', KEYS[2])
if mark then
    local of, version, size = string.match(mark, '(%S+) (%d+) (%d+)')
    if of == generation and tonumber(version) >= position and redis.call('SCARD', KEYS[3]) == tonumber(size) then
        return 2
    end
end
-- Without a mark until the set is whole.
redis.call('DEL', KEYS[2], KEYS[3])
-- A call takes some thousands of arguments at most.
for first = 6, #ARGV, 4000 do
    redis.call('SADD', KEYS[3], unpack(ARGV, first, math.min(first + 3999, #ARGV)))
end
redis.call('SET', KEYS[2], generation .. ' ' .. ARGV[1] .. ' ' .. (#ARGV - 5), 'PX', ARGV[5])
redis.call('PEXPIRE', KEYS[3], ARGV[5])
return is_new and 3 or 1
