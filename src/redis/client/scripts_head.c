/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions of the scripts.  Numbers are doubles on both sides: a sum made
 * here is the sum that the coordinator's own memory would make, written in the
 * same way: a whole number below 2^53 as an integer.
 * Called by: login.c and say.c put the text before each script.
 * Locks: none; constants.
 */
#include "redis/client/redis.h"

/* What scripts need that change no variable.  The server runs the text before
   each script, whole, and a function costs about 0.2 us even when the script
   does not call the function. */
#define SHORT_HEAD \
	"local call = redis.call " \
	/* The error for a key of another type; nil: the type is right. */ \
	"local function wrong(key, type) " \
	"  local is = call('TYPE', key).ok " \
	"  if is ~= type and is ~= 'none' then " \
	"    return redis.error_reply('GARBAGE ' .. key .. ': it is a ' .. is " \
	"      .. ', not a ' .. type) " \
	"  end " \
	"end " \
	"local function garbage(key, why) " \
	"  return redis.error_reply('GARBAGE ' .. key .. ': ' .. why) " \
	"end " \
	"local function all_right(types) " \
	"  for i, type in ipairs(types) do " \
	"    local bad = wrong(KEYS[i], type) " \
	"    if bad then return bad end " \
	"  end " \
	"end " \
	"local function whole(text) " \
	"  return #text <= 15 and string.match(text, '^%d+$') and tonumber(text) " \
	"end " \
	/* A command that may create a key of a generation.  The coordinator \
	   limits the life of the key; without a coordinator the key ends after \
	   ten of the longest leases. */ \
	"local function make(command, key, ...) " \
	"  local is_new = call('EXISTS', key) == 0 " \
	"  local answer = call(command, key, ...) " \
	"  if is_new then call('PEXPIRE', key, '864000000') end " \
	"  return answer " \
	"end "

const char evc__script_head_short[] = SHORT_HEAD;

const char evc__script_head[] =
	SHORT_HEAD
	/* The two counts of the variables. */
	"local function counts(key) "
	"  local two = {'finished', 'changes'} "
	"  for i = 1, 2 do "
	"    two[i] = call('HGET', key, two[i]) or '0' "
	"    if not whole(two[i]) then return garbage(key, 'it has no counts') end "
	"  end "
	"  return nil, two "
	"end "
	/* Note how many variables there are after a change of this cluster,
	   together with the count of changes.  A program that changes variables
	   and counts them otherwise is no server that has lost variables. */
	"local function count(key, var, n) "
	"  local changes = call('HINCRBY', key, 'changes', n) "
	"  call('HSET', key, 'names', "
	"    string.format('%.0f', changes) .. ' ' .. call('HLEN', var)) "
	"end "
	"local function are_gone(key, var) "
	"  if not call('HGET', key, 'whole') then return true end "
	"  local changes, names = string.match(call('HGET', key, 'names') or '', "
	"    '^(%d+) (%d+)$') "
	"  return names and call('HGET', key, 'changes') == changes "
	"    and not wrong(var, 'hash') "
	"    and call('HLEN', var) < tonumber(names) "
	"end "
	/* A script of a former connection may come after the same script and
	   later ones came on a new connection.  No client waits for this
	   answer. */
	"local function is_late(key, last, seq) "
	"  if (tonumber(last) or 0) > tonumber(seq) then "
	"    return garbage(key, 'it has a later answer') "
	"  end "
	"end "
	/* The last answer, if that answer was to the same question. */
	"local function answered(key, asker, seq) "
	"  local old = call('HGET', key, asker) "
	"  if not old then return end "
	"  local fine, last = pcall(cmsgpack.unpack, old) "
	"  if not fine or type(last) ~= 'table' then "
	"    return garbage(key, 'what it has is no answer') "
	"  end "
	"  if last[1] == seq then return last[2] end "
	"  return is_late(key, last[1], seq) "
	"end "
	/* nil has two spellings; here nil has no bytes. */
	"local function value(bytes) "
	"  return bytes and bytes ~= '\\192' and bytes or '' "
	"end "
	"local function is_whole(x) "
	"  return x > -9007199254740992 and x < 9007199254740992 "
	"    and x == math.floor(x) "
	"end "
	/* The number of a variable; nil: no number. */
	"local function number(bytes) "
	"  local first, size = string.byte(bytes), 1 "
	"  if not first then return nil end "
	"  if first >= 0xcc and first <= 0xd3 then size = 1 + 2 ^ (first % 4) "
	"  elseif first == 0xca then size = 5 "
	"  elseif first == 0xcb then size = 9 "
	"  elseif first > 0x7f and first < 0xe0 then return nil end "
	"  if #bytes ~= size then return nil end "
	"  if first == 0xcb then return (struct.unpack('>d', bytes, 2)) end "
	"  if first == 0xca then return (struct.unpack('>f', bytes, 2)) end "
	/* An unsigned number. */
	"  if first == 0xcf then "
	"    return struct.unpack('>I4', bytes, 2) * 2 ^ 32 "
	"      + struct.unpack('>I4', bytes, 6) "
	"  end "
	"  return (cmsgpack.unpack(bytes)) "
	"end "
	/* A number as exact bytes, in any spelling: two different numbers of 64
	   bits may be the same double. */
	"local function exactly(bytes) "
	"  local first, x = string.byte(bytes), number(bytes) "
	"  if not x or x ~= x then return nil end "
	"  if first == 0xcf and string.byte(bytes, 2) > 0x7f then "
	"    return 'vast' .. string.sub(bytes, 2) "
	"  end "
	"  if first == 0xcf or first == 0xd3 then return string.sub(bytes, 2) end "
	"  if x == math.floor(x) then "
	"    if x >= -2 ^ 63 and x < 2 ^ 63 then return struct.pack('>i8', x) end "
	"    if x >= 2 ^ 63 and x < 2 ^ 64 then "
	"      return 'vast' .. struct.pack('>I8', x) "
	"    end "
	"  end "
	"  return 'broken' .. struct.pack('>d', x) "
	"end "
	"local function is_equal(a, b) "
	"  if a == b then return true end "
	"  local x = exactly(a) "
	"  return x and x == exactly(b) "
	"end "
	"local function bytes_of(x) "
	"  if is_whole(x) then return cmsgpack.pack(x) end "
	"  return '\\203' .. struct.pack('>d', x) "
	"end "
	/* The number to be added; nil: no number. */
	"local function addend(text) "
	"  local x = tonumber(text) "
	"  if x and x > -math.huge and x < math.huge then return x end "
	"end "
	/* The key of what a snapshot keeps; false: no snapshot is read. */
	"local function snapshot(key) "
	"  local bad = wrong(key, 'hash') "
	"  return bad, not bad and call('EXISTS', key) == 1 and key "
	"end "
	"local function put(key, name, bytes, pre) "
	"  if pre then "
	"    call('HSETNX', pre, name, value(call('HGET', key, name))) "
	"  end "
	"  if bytes == '' then call('HDEL', key, name) "
	"  else call('HSET', key, name, bytes) end "
	"end ";
