import { createHash } from "node:crypto";

/**
 * A session is a hash: `home` is the server that has it, `taken` how often another took it over, `state` what a server needs to go on with
 * it; `s:` an open stream and `c:` one that has ended. The events of a stream are a list beside it. Only the home writes.
 */
export interface Script {
  readonly digest: string;
  readonly text: string;
}

/** Where a session is: its home, or else the server that its id names; and where that one is. */
export const LOCATE_SCRIPT: Script = script(String.raw`
local input = cjson.decode(ARGV[1])
local home = redis.call('HGET', input.key, 'home') or input.named
return {home, redis.call('GET', input.servers .. home) or ''}
`);

/** Takes over a session whose home does not live any more, with all that is kept of it. */
export const TAKE_SCRIPT: Script = script(String.raw`
local input = cjson.decode(ARGV[1])
local key = input.key
if redis.call('HGET', key, 'home') ~= input.from then return false end
if redis.call('EXISTS', input.servers .. input.from) == 1 then return false end
redis.call('HSET', key, 'home', input.me)
local taken = redis.call('HINCRBY', key, 'taken', 1)
local streams = {}
local fields = redis.call('HGETALL', key)
for i = 1, #fields, 2 do
  local kind, id = string.match(fields[i], '^([sc]):(.+)$')
  if id then streams[#streams + 1] = {id, kind, fields[i + 1], redis.call('LRANGE', key .. ':' .. id, 0, -1)} end
end
return {redis.call('HGET', key, 'state'), taken, streams}
`);

/** What a home writes. What it says of a session that is somebody else's by now counts for nothing. */
export const WRITE_SCRIPT: Script = script(String.raw`
local input = cjson.decode(ARGV[1])

local write = {}
function write.state(op)
  redis.call('HSET', op.key, 'home', input.me, 'state', op.state)
  redis.call('PEXPIRE', op.key, op.lifeMs)
end
function write.event(op)
  local list = op.key .. ':' .. op.stream
  local last = redis.call('LINDEX', list, -1)
  if last and tonumber(string.match(last, '^%d+')) >= op.sequence then return end
  redis.call('RPUSH', list, op.event)
  redis.call('LTRIM', list, -op.keep, -1)
  redis.call('PEXPIRE', list, op.lifeMs)
  if op.about then redis.call('HSET', op.key, 's:' .. op.stream, op.about) end
end
function write.close(op)
  redis.call('HDEL', op.key, 's:' .. op.stream)
  redis.call('HSET', op.key, 'c:' .. op.stream, op.about)
  redis.call('PEXPIRE', op.key .. ':' .. op.stream, op.lifeMs)
end
function write.forget(op)
  redis.call('HDEL', op.key, 's:' .. op.stream, 'c:' .. op.stream)
  redis.call('DEL', op.key .. ':' .. op.stream)
end
function write.keep(op)
  redis.call('PEXPIRE', op.key, op.lifeMs)
  for _, field in ipairs(redis.call('HKEYS', op.key)) do
    if string.sub(field, 1, 2) == 's:' then redis.call('PEXPIRE', op.key .. ':' .. string.sub(field, 3), op.lifeMs) end
  end
end
write['end'] = function(op)
  for _, field in ipairs(redis.call('HKEYS', op.key)) do
    if string.match(field, '^[sc]:') then redis.call('DEL', op.key .. ':' .. string.sub(field, 3)) end
  end
  redis.call('DEL', op.key)
end

local answers = {}
for index, op in ipairs(input.ops) do
  local home = redis.call('HGET', op.key, 'home')
  if home and home ~= input.me then
    answers[index] = 'taken'
  elseif not home and op.op ~= 'state' and op.op ~= 'end' then
    answers[index] = 'missing'
  else
    write[op.op](op)
    answers[index] = 'ok'
  end
end
return answers
`);

function script(text: string): Script {
  return { text, digest: createHash("sha1").update(text).digest("hex") };
}
