-- Notes what a process reports, and returns the reports of the last minute.
--   KEYS: the reports
--   ARGV: the name of the process and its report; without them, nothing is noted
-- Replies a list: the name and the report of each process.
local now = tonumber(redis.call('TIME')[1])
if ARGV[1] then
    redis.call('HSET', KEYS[1], ARGV[1], now .. ' ' .. ARGV[2])
    redis.call('EXPIRE', KEYS[1], 3600)
end
local reply = {}
local all = redis.call('HGETALL', KEYS[1])
for at = 1, #all, 2 do
    local noted, report = string.match(all[at + 1], '(%d+) (.*)')
    if noted and now - tonumber(noted) < 60 then
        reply[#reply + 1] = all[at]
        reply[#reply + 1] = report
    elseif ARGV[1] then
        redis.call('HDEL', KEYS[1], all[at])
    end
end
return reply
