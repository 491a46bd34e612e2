-- One request of one key, by this server's clock: the token bucket of compaction/core/token_bucket.py.
--
-- KEYS[1]  hash: level (requests that may follow at once), at (milliseconds)
-- ARGV[1]  capacity in requests, ARGV[2] requests that flow in per millisecond
-- → {1 or 0 for allowed, level afterwards as text}

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local capacity, per_ms = tonumber(ARGV[1]), tonumber(ARGV[2])

local level = capacity
local kept = redis.call('HMGET', KEYS[1], 'level', 'at')
if kept[1] then
  level = math.min(capacity, tonumber(kept[1]) + math.max(0, now - tonumber(kept[2])) * per_ms)
end

local allowed = 0
if level >= 1 then
  allowed = 1
  level = level - 1
end

local text = string.format('%.9f', level)
redis.call('HSET', KEYS[1], 'level', text, 'at', string.format('%.0f', now))
redis.call('PEXPIRE', KEYS[1], math.ceil((capacity - level) / per_ms) + 1000)  -- full by then, as if it had never been
return {allowed, text}
