-- Adds what a process has spent to a budget that all processes share.
--   KEYS: the budget, as the moment at which it is full again: microseconds of this node's clock. It may be past
--   ARGV: what was spent; what is missing at least afterwards; what is missing if the budget is not known. All in microseconds
-- Replies what is missing from it now, in microseconds.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local known = redis.call('GET', KEYS[1])
local full_at = now + tonumber(ARGV[3])
if known then
    full_at = math.max(tonumber(known) + tonumber(ARGV[1]), now + tonumber(ARGV[2]))
end
local missing = math.max(full_at - now, 0)
-- A second more: what other processes have spent before the budget was full may come after that.
redis.call('SET', KEYS[1], string.format('%.0f', full_at), 'PX', string.format('%.0f', math.ceil(missing / 1000) + 1000))
return missing
