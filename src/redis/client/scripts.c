/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The texts of the scripts, as protocol.h describes them, behind those of
 * scripts_head.c.  The server runs a script whole, or stops at garbage before
 * the script has changed anything.
 * Called by: login.c loads the scripts, say.c sends them.
 * Locks: none; constants.
 */
#include "redis/client/redis.h"

#define OURS \
	"if call('GET', KEYS[1]) ~= ARGV[1] or call('GET', KEYS[2]) ~= ARGV[2] " \
	"then return {'fenced'} end "
#define EVENT(key, w, i, s, d) \
	"make('XADD', " key ", '*', 'w', " w ", 'i', " i ", 's', " s ", 'd', " d ") "

/* clang-format off */
const struct redis_script_text evc__scripts[SCRIPTS] = {
[SCRIPT_TAKE] = { "take",
	"local bad = all_right({'string', 'string', 'string'}) "
	"if bad then return bad end "
	"local version = call('GET', KEYS[3]) "
	"if version and version ~= ARGV[3] then return {'version', version} end "
	"local is = call('GET', KEYS[1]) "
	"if is and is ~= ARGV[1] then "
	"  return {'taken', is, tostring(call('PTTL', KEYS[1]))} "
	"end "
	"local old = call('GET', KEYS[2]) or '0' "
	"if not whole(old) then return garbage(KEYS[2], 'it is no number') end "
	/* The same TAKE again, late, or after a lost answer. */
	"local again = is and whole(old) > tonumber(ARGV[4]) "
	"local fresh = ARGV[5] == '1' and not again "
	"local first = ARGV[5] == '0' and not again "
	"local two = {'0', '0'} "
	"if not fresh then "
	"  bad = wrong(KEYS[4], 'hash') "
	"  if bad then return bad end "
	"  bad, two = counts(KEYS[4]) "
	"  if bad then return bad end "
	"end "
	"if not again then "
	"  old = string.format('%.0f', math.max(whole(old), tonumber(ARGV[4])) + 1) "
	"  call('SET', KEYS[3], ARGV[3]) "
	"  call('SET', KEYS[2], old) "
	"  call('UNLINK', KEYS[6], KEYS[7]) "
	"end "
	"call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) "
	"if fresh then call('UNLINK', KEYS[4], KEYS[5]) end "
	/* Variables that were deleted before are no loss of this cluster. */
	"if first and call('TYPE', KEYS[5]).ok == 'hash' then "
	"  count(KEYS[4], KEYS[5], 0) "
	"elseif first then call('HDEL', KEYS[4], 'names') end "
	"return {'ok', old, two[2]} " },
[SCRIPT_LOCK] = { "lock",
	"local bad = all_right({'string', 'string', 'hash'}) "
	"if bad then return bad end "
	"local is = call('GET', KEYS[1]) or '' "
	"local is_ours = call('GET', KEYS[2]) == ARGV[2] "
	/* The lock was written by hand.  As in TAKE a new generation begins, or
	   nodes would go on in the old one.  DEL comes first, as in FENCE, for
	   a server without memory. */
	"if is_ours and is ~= '' and is ~= ARGV[1] then "
	"  call('DEL', KEYS[2]) "
	"  call('SET', KEYS[2], string.format('%.0f', tonumber(ARGV[2]) + 1)) "
	"end "
	"if is ~= ARGV[1] or not is_ours then return {'lost', is} end "
	"local bad, two = counts(KEYS[3]) "
	"if bad then return bad end "
	"call('PEXPIRE', KEYS[1], ARGV[3]) "
	"local gone = are_gone(KEYS[3], KEYS[4]) "
	/* No program of this cluster has used a variable. */
	"if gone and two[2] == ARGV[4] then "
	"  gone = call('HDEL', KEYS[3], 'names') == 0 "
	"end "
	"return {'ok', two[2], gone and 'gone' or ''} " },
[SCRIPT_RELEASE] = { "release",
	"local bad = wrong(KEYS[1], 'string') "
	"if bad then return bad end "
	"local ours = call('GET', KEYS[1]) == ARGV[1] "
	"if ours then call('UNLINK', KEYS[1]) end "
	"for i = 2, #KEYS do call('UNLINK', KEYS[i]) end "
	"return {ours and 'ok' or 'lost'} " },
[SCRIPT_FENCE] = { "fence",
	"local bad = all_right({'string', 'string', 'stream'}) "
	"if bad then return bad end "
	"if call('GET', KEYS[1]) ~= ARGV[1] then return {'gen'} end "
	"local is = call('GET', KEYS[2]) "
	"local beat = call('TYPE', KEYS[4]).ok == 'string' "
	"  and call('GET', KEYS[4]) or '' "
	/* DEL even without a lease: a script whose first write needs no memory
	   may use memory afterwards, on a server that has none for others. */
	"if is == ARGV[2] or not is then call('DEL', KEYS[2]) end "
	"local id = " EVENT("KEYS[3]", "ARGV[3]", "ARGV[4]", "'fence'", "''")
	"return {'ok', beat, id} " },
[SCRIPT_REGISTER] = { "register",
	"local bad = all_right({'string', 'string', 'string', 'stream'}) "
	"if bad then return bad end "
	"if call('GET', KEYS[2]) ~= ARGV[1] or call('EXISTS', KEYS[1]) == 0 then "
	"  return {'no'} "
	"end "
	/* A late script of a former connection.  The lease belongs to the
	   node's next session. */
	"local is = call('GET', KEYS[3]) or '' "
	"local inc = string.match(is, '^' .. ARGV[1] .. ' (%d+)$') "
	"if inc and tonumber(inc) > tonumber(ARGV[5]) then return {'no'} end "
	"call('SET', KEYS[3], ARGV[2], 'PX', ARGV[3]) "
	EVENT("KEYS[4]", "ARGV[4]", "ARGV[5]", "'0'", "ARGV[6]")
	"return {'ok'} " },
[SCRIPT_RENEW] = { "renew",
	"local bad = all_right({'string', 'string', 'string'}) "
	"if bad then return bad end "
	"if call('GET', KEYS[2]) ~= ARGV[1] then "
	"  return {'fenced', 'there is another generation'} "
	"end "
	"if call('GET', KEYS[3]) ~= ARGV[2] then "
	"  return {'fenced', 'its lease is over'} "
	"end "
	"if call('EXISTS', KEYS[1]) == 0 then return {'alone'} end "
	"call('PEXPIRE', KEYS[3], ARGV[3]) "
	/* The key may have been of any type. */
	"call('SET', KEYS[4], ARGV[4], 'PX', ARGV[5]) "
	/* This text is for people, and its key may be of any type. */
	"local is = call('TYPE', KEYS[5]).ok "
	"if ARGV[7] ~= '' and (is == 'hash' or is == 'none') then "
	"  call('HSET', KEYS[5], ARGV[6], ARGV[7]) "
	"  call('PEXPIRE', KEYS[5], ARGV[5]) "
	"end "
	"return {'ok'} " },
[SCRIPT_LEAVE] = { "leave",
	"local bad = all_right({'string', 'stream'}) "
	"if bad then return bad end "
	"if call('GET', KEYS[1]) ~= ARGV[1] then return {'fenced'} end "
	"call('DEL', KEYS[1]) "
	EVENT("KEYS[2]", "ARGV[2]", "ARGV[3]", "ARGV[4]", "ARGV[5]")
	"return {'ok'} " },
[SCRIPT_SEND] = { "send",
	"local bad = all_right({'string', 'string', 'stream', 'hash', 'hash', "
	"  'hash'}) "
	"if bad then return bad end "
	OURS
	"local asker = ARGV[3] .. '.' .. ARGV[4] "
	"local before = answered(KEYS[6], asker, ARGV[5]) "
	"if before then return before end "
	"local pre "
	"bad, pre = snapshot(KEYS[7]) "
	"bad = bad or counts(KEYS[5]) "
	"if bad then return bad end "
	"if are_gone(KEYS[5], KEYS[4]) then return {'gone'} end "
	"local now, answer, parts = {}, {'ok'}, {ARGV[6]} "
	"local at, done, changes = 8, 0, 0 "
	"for i = 1, tonumber(ARGV[7]) do "
	"  local mine, why, m = {}, nil, tonumber(ARGV[at + 2]) "
	"  for k = 1, m do "
	"    local u = at + 3 + (k - 1) * 3 "
	"    local op, name, to = ARGV[u], ARGV[u + 1], ARGV[u + 2] "
	/* A read that does not hold: an empty text. */
	"    if op == '8' or op == '9' then "
	"      local is = now[name] or value(call('HGET', KEYS[4], name)) "
	"      if op == '9' and #is > 64 then is = redis.sha1hex(is) end "
	"      if is ~= to then why = '' break end "
	"    elseif op == '1' then "
	"      local is = mine[name] or now[name] "
	"        or value(call('HGET', KEYS[4], name)) "
	"      local x, by = is == '' and 0 or number(is), addend(to) "
	"      if x and by then mine[name] = bytes_of(x + by) "
	"      elseif x then why = why or 'variable ' .. name .. ': ' .. to "
	"        .. ' is nothing to add' "
	"      else why = why or 'variable ' .. name .. ' is no number' end "
	"    elseif op == '2' then mine[name] = value(to) "
	"    else return redis.error_reply('GARBAGE op') end "
	"  end "
	"  if why then "
	"    answer[#answer + 1] = tostring(i - 1) "
	"    answer[#answer + 1] = why "
	"  else "
	"    for name, bytes in pairs(mine) do now[name] = bytes end "
	"    parts[#parts + 1] = ARGV[at] "
	"    if ARGV[at + 1] == '1' then "
	"      done = done + 1 "
	"      if m > 0 then changes = changes + 1 end "
	"    end "
	"  end "
	"  at = at + 3 + m * 3 "
	"end "
	/* Writes that a server without memory refuses come first.  Without a
	   result there is no event: the node sends the failures. */
	"local said = table.concat(parts) "
	"if said ~= '' then "
	EVENT("KEYS[3]", "ARGV[3]", "ARGV[4]", "ARGV[5]", "said")
	"end "
	"for name, bytes in pairs(now) do put(KEYS[4], name, bytes, pre) end "
	"call('HINCRBY', KEYS[5], 'finished', done) "
	"count(KEYS[5], KEYS[4], changes) "
	"make('HSET', KEYS[6], asker, cmsgpack.pack({ARGV[5], answer})) "
	"return answer " },
[SCRIPT_VARIABLE] = { "variable",
	"local bad = all_right({'string', 'string', 'hash', 'hash', 'hash'}) "
	"if bad then return bad end "
	OURS
	"local answers, pre, changes = {'ok'}, nil, 0 "
	"bad, pre = snapshot(KEYS[6]) "
	"bad = bad or counts(KEYS[4]) "
	/* All is checked before the first write. */
	"for i = 3, #ARGV, 6 do "
	"  local asker, seq, op, name, a = unpack(ARGV, i, i + 4) "
	"  local before = op ~= '3' and answered(KEYS[5], asker, seq) "
	"  if before and before.err then bad = bad or before end "
	"  if op == '1' and not addend(a) or not string.match(op, '^[1234]$') "
	"  then bad = bad or redis.error_reply('GARBAGE op') end "
	"  answers[#answers + 1] = before or false "
	"end "
	"if bad then return bad end "
	"if are_gone(KEYS[4], KEYS[3]) then return {'gone'} end "
	"for i = 3, #ARGV, 6 do "
	"  local k, answer = (i + 9) / 6, {'ok'} "
	"  local asker, seq, op, name, a, b = unpack(ARGV, i, i + 5) "
	"  local is = value(call('HGET', KEYS[3], name)) "
	"  if answers[k] then answer = answers[k] "
	"  elseif op == '3' then "
	"    if is == '' then answer = {'none'} else answer[2] = is end "
	"  else "
	"    if op == '1' then "
	"      local x = is == '' and 0 or number(is) "
	"      if x then "
	"        answer[2] = bytes_of(x + addend(a)) "
	"        put(KEYS[3], name, answer[2], pre) "
	"      else answer = {'number'} end "
	"    elseif op == '2' then put(KEYS[3], name, value(a), pre) "
	"    elseif is_equal(is, value(a)) then "
	"      put(KEYS[3], name, value(b), pre) "
	"    else answer = {'other'} end "
	"    if answer[1] == 'ok' then changes = changes + 1 end "
	"    make('HSET', KEYS[5], asker, cmsgpack.pack({seq, answer})) "
	"  end "
	"  answers[k] = answer "
	"end "
	"if changes > 0 then count(KEYS[4], KEYS[3], changes) end "
	"return answers " },
[SCRIPT_ALL] = { "all",
	"local bad = all_right({'string', 'string', 'hash', 'hash', 'hash', "
	"  'hash'}) "
	"if bad then return bad end "
	OURS
	"local what, mark = ARGV[3], ARGV[1] .. ' ' .. ARGV[4] "
	"local stands = call('HGET', KEYS[5], '') == mark "
	"if what == 'drop' then "
	"  if stands then call('UNLINK', KEYS[5]) end "
	"  return {'ok'} "
	"end "
	"local bad, two = counts(KEYS[4]) "
	"if bad then return bad end "
	"if are_gone(KEYS[4], KEYS[3]) then return {'gone'} end "
	"local answer = {'ok', two[1], two[2]} "
	"if what == 'end' then "
	"  if not stands then return {'none'} end "
	"  call('UNLINK', KEYS[5]) "
	"elseif what == 'begin' then "
	"  bad = is_late(KEYS[6], call('HGET', KEYS[6], 'snapshot'), ARGV[4]) "
	"  if bad then return bad end "
	"  local some = call('HSCAN', KEYS[3], '0', 'COUNT', ARGV[5]) "
	"  answer[4] = some[1] "
	"  for i = 1, #some[2] do answer[4 + i] = some[2][i] end "
	/* Writes without need of memory come first.  A few variables are here
	   already, at one moment. */
	"  if call('EXISTS', KEYS[5]) == 1 or some[1] ~= '0' then "
	"    call('UNLINK', KEYS[5]) "
	"  end "
	"  if some[1] ~= '0' then "
	"    call('HSET', KEYS[5], '', mark) "
	"    make('HSET', KEYS[6], 'snapshot', ARGV[4]) "
	"  end "
	"end "
	"return answer " },
[SCRIPT_FILL] = { "fill",
	"local bad = all_right({'string', 'string', 'hash', 'hash'}) "
	"if bad then return bad end "
	OURS
	"local mark = ARGV[1] .. ' ' .. ARGV[3] "
	"local is = call('HGET', KEYS[3], '') "
	"if ARGV[4] == 'drop' then "
	"  if is == mark then call('UNLINK', KEYS[3]) end "
	"  return {'ok'} "
	"end "
	"local old = call('HGET', KEYS[4], 'replace') "
	"if old == ARGV[3] then return {'ok'} end "
	"bad = is_late(KEYS[4], old, ARGV[3]) "
	"  or is_late(KEYS[4], call('HGET', KEYS[4], 'fill'), ARGV[3]) "
	"if bad then return bad end "
	"if is ~= mark then "
	"  if ARGV[4] ~= 'first' then return {'none'} end "
	"  make('HSET', KEYS[4], 'fill', ARGV[3]) "
	"  call('UNLINK', KEYS[3]) "
	"  call('HSET', KEYS[3], '', mark) "
	"end "
	"for i = 5, #ARGV, 1000 do "
	"  call('HSET', KEYS[3], unpack(ARGV, i, math.min(i + 999, #ARGV))) "
	"end "
	"return {'ok'} " },
[SCRIPT_REPLACE] = { "replace",
	"local bad = all_right({'string', 'string', 'hash', 'hash', 'hash', "
	"  'hash', 'hash'}) "
	"if bad then return bad end "
	OURS
	"local old = call('HGET', KEYS[5], 'replace') "
	"if old == ARGV[3] then return {'ok'} end "
	"bad = is_late(KEYS[5], old, ARGV[3]) or counts(KEYS[4]) "
	"if bad then return bad end "
	"if call('HGET', KEYS[7], '') ~= ARGV[1] .. ' ' .. ARGV[3] then "
	"  return {'none'} "
	"end "
	"if call('HLEN', KEYS[7]) ~= tonumber(ARGV[5]) + 1 then "
	"  return garbage(KEYS[7], 'it has not all variables') "
	"end "
	"call('UNLINK', KEYS[3], KEYS[6]) "
	"call('HDEL', KEYS[7], '') "
	"if call('EXISTS', KEYS[7]) == 1 then call('RENAME', KEYS[7], KEYS[3]) end "
	"call('HSET', KEYS[4], 'finished', ARGV[4]) "
	"count(KEYS[4], KEYS[3], 1) "
	"make('HSET', KEYS[5], 'replace', ARGV[3]) "
	"return {'ok'} " },
};
/* clang-format on */
