-- The limits that all workers share: one window of small buckets per credential and model, one list of calls in flight
-- per tenant. Atomic, and by this server's clock alone.
--
-- KEYS[1]  hash: born, paused_until (milliseconds), r:N, i:N, o:N (requests, input and output tokens of bucket N)
-- KEYS[2]  sorted set: the tenant's calls in flight, scored by the time at which they count no longer
-- ARGV[1]  what to do, ARGV[2] milliseconds per bucket, ARGV[3] buckets that count together
--
-- take    4 settle_ms  5..7 limits (-1: none)  8..10 cost  11 tenant's limit (-1: none)  12 call  13 call's milliseconds
--         → {what is in the way, wait in milliseconds, bucket, born, now}
-- settle  4 born  5 bucket  6..8 correction of the cost  9 call  10 milliseconds for which everybody is to pause
-- renew   4 milliseconds  5.. calls of the tenant that are still in flight → {}
-- record  4.. groups of four: age in milliseconds, cost; what this state does not know yet → {born, now}

local DAY_MS = 86400000  -- a state that nobody has asked for so long is forgotten
local KINDS = {'r', 'i', 'o'}

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local usage, calls = KEYS[1], KEYS[2]
local bucket_ms, span = tonumber(ARGV[2]), tonumber(ARGV[3])
local current = math.floor(now / bucket_ms)

local function whole(number)
  return string.format('%.0f', number)
end

local function birth()
  local born = redis.call('HGET', usage, 'born')
  if not born then
    born = whole(now)
    redis.call('HSET', usage, 'born', born)
  end
  redis.call('PEXPIRE', usage, DAY_MS)
  return tonumber(born)
end

local function add(bucket, costs)
  for place, kind in ipairs(KINDS) do
    if costs[place] ~= 0 then
      redis.call('HINCRBY', usage, kind .. ':' .. whole(bucket), whole(costs[place]))
    end
  end
end

local function numbers(first)
  return {tonumber(ARGV[first]), tonumber(ARGV[first + 1]), tonumber(ARGV[first + 2])}
end

-- What is used of each kind, by how many buckets ago; buckets that count no longer are dropped.
local function used()
  local sums, old = {r = {}, i = {}, o = {}}, {}
  local fields = redis.call('HGETALL', usage)
  for place = 1, #fields, 2 do
    local kind, bucket = string.match(fields[place], '^([rio]):(%d+)$')
    if kind then
      local ago = current - tonumber(bucket)
      if ago >= span then
        old[#old + 1] = fields[place]
      else
        sums[kind][ago] = tonumber(fields[place + 1])
      end
    end
  end
  if #old > 0 then
    redis.call('HDEL', usage, unpack(old))
  end
  return sums
end

-- Milliseconds until `cost` fits: as long as it takes for enough of the oldest buckets to count no longer.
local function wait_for(by_ago, limit, cost)
  local over = math.min(cost, limit) - limit
  for _, amount in pairs(by_ago) do
    over = over + amount
  end
  if over <= 0 then
    return 0
  end
  for ago = span - 1, 0, -1 do
    over = over - (by_ago[ago] or 0)
    if over <= 0 then
      return (current - ago + span) * bucket_ms - now
    end
  end
  return span * bucket_ms
end

local function take()
  local born = birth()
  local settle_ms = tonumber(ARGV[4])
  local function answer(obstacle, wait)
    return {obstacle, whole(wait), whole(current), whole(born), whole(now)}
  end
  if now - born < settle_ms then
    return answer('young', born + settle_ms - now)
  end
  local paused_until = tonumber(redis.call('HGET', usage, 'paused_until') or 0)
  if paused_until > now then
    return answer('paused', paused_until - now)
  end
  local tenant_limit = tonumber(ARGV[11])
  if tenant_limit >= 0 then
    redis.call('ZREMRANGEBYSCORE', calls, '-inf', whole(now))
    if redis.call('ZCARD', calls) >= tenant_limit then
      return answer('tenant', 0)
    end
  end
  local limits, costs, sums, longest = numbers(5), numbers(8), used(), 0
  for place, kind in ipairs(KINDS) do
    if limits[place] >= 0 then
      longest = math.max(longest, wait_for(sums[kind], limits[place], costs[place]))
    end
  end
  if longest > 0 then
    return answer('used up', longest)
  end
  add(current, costs)
  if tenant_limit >= 0 then
    redis.call('ZADD', calls, whole(now + tonumber(ARGV[13])), ARGV[12])
    redis.call('PEXPIRE', calls, DAY_MS)
  end
  return answer('', 0)
end

local function settle()
  local born = redis.call('HGET', usage, 'born')
  local bucket = tonumber(ARGV[5])
  if born == ARGV[4] and current - bucket < span then
    add(bucket, numbers(6))
  end
  redis.call('ZREM', calls, ARGV[9])
  local pause = tonumber(ARGV[10])
  if pause > 0 then
    birth()
    local paused_until = tonumber(redis.call('HGET', usage, 'paused_until') or 0)
    redis.call('HSET', usage, 'paused_until', whole(math.max(paused_until, now + pause)))
  end
  return {}
end

local function record()
  local born = birth()
  for first = 4, #ARGV, 4 do
    local bucket = math.floor((now - tonumber(ARGV[first])) / bucket_ms)
    if current - bucket < span then
      add(bucket, numbers(first + 1))
    end
  end
  return {whole(born), whole(now)}
end

local function renew()
  for place = 5, #ARGV do
    redis.call('ZADD', calls, whole(now + tonumber(ARGV[4])), ARGV[place])
  end
  return {}
end

local doing = {take = take, settle = settle, record = record, renew = renew}
return doing[ARGV[1]]()
