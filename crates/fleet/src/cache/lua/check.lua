#!lua flags=allow-oom
-- Whether edges exist.
--   KEYS: watermark; then mark and set of each follower
--   ARGV: for each follower, how many users are asked for, then these users
-- Replies a list: for each follower the position that the answer shows, or -1 without a set that counts; then 1 or 0 for each user.
local reply = {}
local watermark = redis.call('HMGET', KEYS[1], 'generation', 'sequence')
local argument = 1
for follower = 1, (#KEYS - 1) / 2 do
    local mark_key, set_key = KEYS[2 * follower], KEYS[2 * follower + 1]
    local count = tonumber(ARGV[argument])
    local shown = -1
    local mark = watermark[1] and redis.call('GET', mark_key)
    if mark then
        local generation, sequence, size = string.match(mark, '(%S+) (%d+) (%d+)')
        if generation ~= watermark[1] then
            shown = -1
        elseif redis.call('SCARD', set_key) ~= tonumber(size) then
            redis.call('DEL', mark_key, set_key)
        else
            shown = math.max(tonumber(sequence), tonumber(watermark[2]))
        end
    end
    reply[#reply + 1] = shown
    if shown >= 0 then
        local members = redis.call('SMISMEMBER', set_key, unpack(ARGV, argument + 1, argument + count))
        for _, is_member in ipairs(members) do
            reply[#reply + 1] = is_member
        end
    end
    argument = argument + 1 + count
end
return reply
