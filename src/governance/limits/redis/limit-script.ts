import { createHash } from "node:crypto";

/**
 * Everything that one server asks in one turn, as one script: Redis runs it alone, so it is one transaction, by Redis'
 * own clock. Numbers come and go as whole numbers: JSON and Lua would write large ones with an exponent.
 *
 * Keys below the prefix: `w:` calls of the last minute, one item for each millisecond, and `n:` their sum; `d:` calls of
 * a day; `m:` what a month has cost; `r:` and `v:` what each holder runs and has reserved; `alive` until when each holder
 * is believed to live; `seq:` the last batch of a holder that was run; `fenced:` holders whose batches come too late.
 * Where what was spent is on file elsewhere: `epoch` names this memory, and is gone with it; `missing` are the servers
 * that have not yet said again what they hold, and nothing is let through as long as it is there.
 */
const TEXT = String.raw`
local input = cjson.decode(ARGV[1])
local P = input.prefix
local DAY = 86400
local WINDOW = 60000

local function int(n) return string.format('%.0f', n) end
local function num(v) return tonumber(v or 0) or 0 end

local t = redis.call('TIME')
local wall = num(t[1]) * 1000 + math.floor(num(t[2]) / 1000)
local steady
if input.clock then
  wall, steady = input.clock[1], input.clock[2]
else
  local kept = redis.call('HMGET', P .. 'clock', 'last', 'shift')
  local last, shift = num(kept[1]), num(kept[2])
  steady = wall + shift
  if steady < last then
    shift = shift + last - steady
    steady = last
  end
  if steady > last or shift ~= num(kept[2]) then
    redis.call('HSET', P .. 'clock', 'last', int(steady), 'shift', int(shift))
  end
end
if wall < input.from or wall >= input.till then return {'day', wall} end
if input.epoch then
  if redis.call('GET', P .. 'epoch') ~= input.epoch then return {'lost', wall} end
  if num(redis.call('GET', P .. 'seq:' .. input.holder)) < input.acked then return {'stale', wall} end
end

local alive = {}
local function is_alive(holder)
  if alive[holder] == nil then
    alive[holder] = num(redis.call('ZSCORE', P .. 'alive', holder)) > steady
  end
  return alive[holder]
end
if redis.call('EXISTS', P .. 'fenced:' .. input.holder) == 1 or not (input.is_new or is_alive(input.holder)) then
  return {'holder', wall}
end
local function believe(holder)
  redis.call('ZADD', P .. 'alive', int(steady + input.lease), holder)
  alive[holder] = true
end
believe(input.holder)
if input.held then
  for _, each in ipairs(input.held) do
    local name, holder, n = unpack(each)
    believe(holder)
    redis.call('HSET', P .. name, holder, int(n))
  end
  redis.call('SREM', P .. 'missing', input.member)
end
local is_closed = input.epoch and redis.call('EXISTS', P .. 'missing') == 1
for _, holder in ipairs(input.also) do
  if is_alive(holder) then believe(holder) end
end
for _, holder in ipairs(input.drop) do
  redis.call('ZREM', P .. 'alive', holder)
  alive[holder] = false
end
redis.call('ZREMRANGEBYSCORE', P .. 'alive', '-inf', int(steady - DAY * 1000))

-- What a batch asks of one key again and again is read once, and written once at its end: nobody else runs meanwhile.
local helds, windows, months = {}, {}, {}

local function held(name)
  local known = helds[name]
  if known then return known end
  known = {sum = 0, of = {}, changed = {}}
  local all = redis.call('HGETALL', name)
  for i = 1, #all, 2 do
    local holder, n = all[i], num(all[i + 1])
    if is_alive(holder) then
      known.of[holder] = n
      known.sum = known.sum + n
    else
      redis.call('HDEL', name, holder)
    end
  end
  helds[name] = known
  return known
end
local function change(name, holder, n)
  local known = held(name)
  local had = known.of[holder] or 0
  local has = math.max(0, had + n)
  if has == had then return end
  known.of[holder] = has
  known.sum = known.sum + has - had
  known.changed[holder] = true
end

local function chunk(item)
  if not item then return nil end
  local at, n = string.match(item, '^(%d+):(%d+)$')
  return tonumber(at), tonumber(n)
end
local function window(key)
  local known = windows[key]
  if known then return known end
  local list, sum = P .. 'w:' .. key, P .. 'n:' .. key
  known = {count = num(redis.call('GET', sum)), added = 0, is_shorter = false}
  local at, n = chunk(redis.call('LINDEX', list, 0))
  while at and at <= steady - WINDOW do
    redis.call('LPOP', list)
    known.count = known.count - n
    known.is_shorter = true
    at, n = chunk(redis.call('LINDEX', list, 0))
  end
  if not at then known.count = 0 end
  known.first = at or -1
  known.day = num(redis.call('GET', P .. 'd:' .. input.day .. ':' .. key))
  windows[key] = known
  return known
end
local function month(name)
  local known = months[name]
  if not known then
    known = {spent = num(redis.call('GET', P .. 'm:' .. name)), added = 0}
    months[name] = known
  end
  return known
end
local function look(c)
  local key = c[1]
  local seen = window(key)
  local running, money = 0, 0
  if c[4] >= 0 then running = held(P .. 'r:' .. key).sum end
  if c[5] >= 0 then
    local name = input.month .. ':' .. key
    money = month(name).spent + held(P .. 'v:' .. name).sum
  end
  return {seen.count, seen.first, seen.day, running, money}
end
local function add(c)
  local seen = window(c[1])
  seen.count = seen.count + 1
  seen.day = seen.day + 1
  seen.added = seen.added + 1
  if seen.first < 0 then seen.first = steady end
end

local function write_window(key, seen)
  local list, sum = P .. 'w:' .. key, P .. 'n:' .. key
  if seen.added > 0 then
    local at, n = chunk(redis.call('LINDEX', list, -1))
    if at == steady then
      redis.call('LSET', list, -1, int(at) .. ':' .. int(n + seen.added))
    else
      redis.call('RPUSH', list, int(steady) .. ':' .. int(seen.added))
    end
    redis.call('PEXPIRE', list, 2 * WINDOW)
    redis.call('SET', sum, int(seen.count), 'PX', 2 * WINDOW)
    local day = P .. 'd:' .. input.day .. ':' .. key
    redis.call('INCRBY', day, int(seen.added))
    redis.call('EXPIRE', day, 40 * DAY)
  elseif seen.is_shorter then
    redis.call('SET', sum, int(seen.count), 'KEEPTTL')
  end
end
local function write_all()
  for key, seen in pairs(windows) do write_window(key, seen) end
  for name, known in pairs(helds) do
    for holder in pairs(known.changed) do
      local n = known.of[holder]
      if n > 0 then redis.call('HSET', name, holder, int(n)) else redis.call('HDEL', name, holder) end
    end
  end
  for name, known in pairs(months) do
    if known.added > 0 then
      redis.call('INCRBY', P .. 'm:' .. name, int(known.added))
      redis.call('EXPIRE', P .. 'm:' .. name, 400 * DAY)
    end
  end
end

local function wait_of(key, count, limit)
  local too_many = count + 1 - limit
  for _, item in ipairs(redis.call('LRANGE', P .. 'w:' .. key, 0, too_many - 1)) do
    local at, n = chunk(item)
    too_many = too_many - n
    if too_many <= 0 then return at + WINDOW - steady end
  end
  return WINDOW
end
local function objection(c, seen, reserve)
  if c[2] >= 0 and seen[1] + 1 > c[2] then return 1, wait_of(c[1], seen[1], c[2]) end
  if c[3] >= 0 and seen[3] + 1 > c[3] then return 2, 0 end
  if c[4] >= 0 and seen[4] + 1 > c[4] then return 3, 0 end
  if c[5] >= 0 and reserve > 0 and seen[5] + reserve > c[5] then return 4, 0 end
  return nil
end
local function put(answer, seen)
  for i = 1, 5 do answer[#answer + 1] = seen[i] end
end

local ops = {}
function ops.admit(op)
  if is_closed then return {-1} end
  local seen = {}
  local which, wait, at
  for i, c in ipairs(op.counters) do
    seen[i] = look(c)
    if not which then
      which, wait = objection(c, seen[i], op.reserve)
      at = i
    end
  end
  local answer = which and {0, at - 1, which - 1, wait} or {1, 0, 0, 0}
  for i, c in ipairs(op.counters) do
    if not which then
      add(c)
      if c[4] >= 0 then change(P .. 'r:' .. c[1], input.holder, 1) end
      if c[5] >= 0 and op.reserve > 0 then change(P .. 'v:' .. input.month .. ':' .. c[1], input.holder, op.reserve) end
      local count, first, day, running, money = unpack(seen[i])
      seen[i] = {count + 1, first >= 0 and first or steady, day + 1, running + 1, money + op.reserve}
    end
    put(answer, seen[i])
  end
  return answer
end
function ops.usage(op)
  local answer = {}
  for _, c in ipairs(op.counters) do put(answer, look(c)) end
  return answer
end
function ops.settle(op)
  for _, tried in ipairs(op.tried) do
    if num(redis.call('GET', P .. 'seq:' .. tried[1])) >= tried[2] then return {} end
  end
  -- Another memory than this has counted it, or will. Until it is known which, the money stays reserved.
  local is_counted = not op.epoch or op.epoch == input.epoch
  local gives = (is_counted or op.is_last) and op.reserve > 0 and not (op.given and op.given == input.epoch)
  local answer = {}
  for _, c in ipairs(op.counters) do
    local key = c[1]
    if c[4] >= 0 and not op.is_last then change(P .. 'r:' .. key, op.holder, -1) end
    if c[5] >= 0 then
      local name = op.month .. ':' .. key
      if gives then change(P .. 'v:' .. name, op.holder, -op.reserve) end
      local after = -1
      if op.cost > 0 and is_counted then
        local paid = month(name)
        paid.spent = paid.spent + op.cost
        paid.added = paid.added + op.cost
        after = paid.spent
      end
      answer[#answer + 1] = op.month == input.month and after or -1
    end
  end
  return answer
end

local answers = {}
for i, op in ipairs(input.ops) do answers[i] = ops[op.op](op) end
write_all()
redis.call('SET', P .. 'seq:' .. input.holder, int(input.seq), 'EX', DAY)
for _, holder in ipairs(input.fence) do redis.call('SET', P .. 'fenced:' .. holder, 1, 'EX', DAY) end
return {'ok', wall, steady, answers}
`;

/** A memory begins, with what is on file, all at once. What servers hold they say again. */
const BEGIN_TEXT = String.raw`
local input = cjson.decode(ARGV[1])
local P = input.prefix
for _, spent in ipairs(input.spent) do
  redis.call('SET', P .. 'm:' .. spent[2] .. ':' .. spent[1], spent[3], 'EX', 400 * 86400)
end
redis.call('DEL', P .. 'alive', P .. 'missing')
for _, member in ipairs(input.members) do redis.call('SADD', P .. 'missing', member) end
redis.call('PEXPIRE', P .. 'missing', input.lease)
redis.call('SET', P .. 'epoch', input.epoch)
return 1
`;

interface Script {
  readonly text: string;
  readonly digest: string;
}

function scriptOf(text: string): Script {
  return { text, digest: createHash("sha1").update(text).digest("hex") };
}

export const LIMIT_SCRIPT: Script = scriptOf(TEXT);
export const BEGIN_SCRIPT: Script = scriptOf(BEGIN_TEXT);
