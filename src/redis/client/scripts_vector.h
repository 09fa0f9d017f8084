/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions of the scripts for vectors, as protocol.h describes them: text
 * for the begin of a script.  `get` gives the bytes of a field, '' for none;
 * `set` takes them.  Numbers go from string to string, a few at a time, so a
 * vector is never a table.
 */
#ifndef EVC_REDIS_SCRIPTS_VECTOR_H
#define EVC_REDIS_SCRIPTS_VECTOR_H

#include "wire/vector.h"

/* clang-format off */
#define VECTORS \
	/* The width of a number and how many there are, of a vector's field. */ \
	"local function vector_of(bytes) " \
	"  if #bytes == 8 and string.sub(bytes, 1, 3) == '\\199\\5\\87' then " \
	"    local width, n = string.byte(bytes, 4), " \
	"      (struct.unpack('>I4', bytes, 5)) " \
	"    if width == 4 or width == 8 then return width, n end " \
	"  end " \
	"end " \
	"local function chunk(name, i) " \
	"  return string.format('\\1%07x', i) .. name " \
	"end " \
	/* The numbers in a value: their width, where they begin. */ \
	"local function numbers_in(bytes) " \
	"  local first, kind, at = string.byte(bytes) " \
	"  if not first then return nil " \
	"  elseif first >= 0xd4 and first <= 0xd8 then at = 3 " \
	"  elseif first == 0xc7 then at = 4 " \
	"  elseif first == 0xc8 then at = 5 " \
	"  elseif first == 0xc9 then at = 7 " \
	"  else return nil end " \
	"  kind = string.byte(bytes, at - 1) " \
	"  if kind == 0x47 then return 8, at end " \
	"  if kind == 0x48 then return 4, at end " \
	"end " \
	"local function vector_head(width, n) " \
	"  local size, kind = n * width, width == 8 and '\\71' or '\\72' " \
	"  if size < 256 then return '\\199' .. string.char(size) .. kind end " \
	"  if size < 65536 then " \
	"    return '\\200' .. struct.pack('>I2', size) .. kind " \
	"  end " \
	"  return '\\201' .. struct.pack('>I4', size) .. kind " \
	"end " \
	/* The bytes of chunk i; nil: it is not as long as the vector says, so the \
	   vector is damaged, and nobody goes on to look for the rest. */ \
	"local function chunk_of(get, name, i, width, n) " \
	"  local bytes = get(chunk(name, i)) " \
	"  if #bytes == math.min(512, n * width - i * 512) then return bytes end " \
	"end " \
	/* The value of a variable, in parts, for strings are dear: the server \
	   looks at each byte of a new one; and its bytes.  nil: chunks are \
	   missing; nil and its bytes: a vector of more than `most` (nil: each is \
	   read).  A size without the last chunk is no size. */ \
	"local function whole_value(get, name, most) " \
	"  local is = get(name) " \
	"  local width, n = vector_of(is) " \
	"  if not width then return {is}, #is end " \
	"  if most and n * width > most then " \
	"    return nil, chunk_of(get, name, math.ceil(n * width / 512) - 1, " \
	"      width, n) and n * width " \
	"  end " \
	"  local parts = {vector_head(width, n)} " \
	"  for i = 0, math.ceil(n * width / 512) - 1 do " \
	"    parts[i + 2] = chunk_of(get, name, i, width, n) " \
	"    if not parts[i + 2] then return nil end " \
	"  end " \
	"  return parts, n * width " \
	"end " \
	"local function set_value(get, set, name, bytes) " \
	"  local was, n = vector_of(get(name)) " \
	"  local width, at = numbers_in(bytes) " \
	"  local size = width and #bytes - at + 1 or 0 " \
	"  for from = 0, size - 1, 512 do " \
	"    set(chunk(name, from / 512), " \
	"      string.sub(bytes, at + from, at + from + 511)) " \
	"  end " \
	"  for i = math.ceil(size / 512), " \
	"      was and math.ceil(n * was / 512) - 1 or -1 do " \
	"    if get(chunk(name, i)) == '' then break end " \
	"    set(chunk(name, i), '') " \
	"  end " \
	"  if width then " \
	"    bytes = '\\199\\5\\87' .. string.char(width) " \
	"      .. struct.pack('>I4', size / width) " \
	"  end " \
	"  set(name, bytes) " \
	"end " \
	/* kind, width, n, from, place of the numbers */ \
	"local function patch_of(text) " \
	"  local kind, width = string.byte(text, 1, 2) " \
	"  local n, from = struct.unpack('<I4I4', text, 5) " \
	"  return kind, width, n, from, 13 + (kind == 1 and 4 * n or 0) " \
	"end " \
	/* Why an operation on elements was refused, for a text. */ \
	"local function vector_wrong(is, place, n) " \
	"  if is == 'place' then " \
	"    return string.format(': there is no element %d in a vector of %d', " \
	"      place, n) " \
	"  end " \
	"  if is == 'none' then " \
	"    return ' " VARIABLE_NOT_SET "' " \
	"  end " \
	"  return is == 'vector' and ' is no vector' " \
	"    or is == 'broken' and ' is damaged' " \
	"    or string.format(': the sum at element %d is no finite number', place) " \
	"end " \
	/* The elements, in parts; or nil, and why there are none. */ \
	"local function vector_get(get, name, text) " \
	"  local is = get(name) " \
	"  local width, n = vector_of(is) " \
	"  local kind, _, m, from = patch_of(text) " \
	"  if is == '' then return nil, 'none' end " \
	"  if not width then return nil, 'vector' end " \
	"  if kind == 2 then " \
	"    if n > 0 and not chunk_of(get, name, math.ceil(n * width / 512) - 1, " \
	"      width, n) then return nil, 'broken' end " \
	"    return {cmsgpack.pack(n)} " \
	"  end " \
	"  if kind == 0 and from + m > n and m > 0 then " \
	"    return nil, 'place', from + m - 1, n " \
	"  end " \
	"  local parts, per = {vector_head(width, m)}, 512 / width " \
	"  if kind == 0 and m > 0 then " \
	"    local first, last = from * width, (from + m) * width - 1 " \
	"    for i = math.floor(first / 512), math.floor(last / 512) do " \
	"      local bytes = chunk_of(get, name, i, width, n) " \
	"      if not bytes then return nil, 'broken' end " \
	"      parts[#parts + 1] = string.sub(bytes, " \
	"        math.max(first - i * 512, 0) + 1, last - i * 512 + 1) " \
	"    end " \
	"  elseif kind == 1 then " \
	"    local seen = {} " \
	"    for k = 0, m - 1 do " \
	"      local place = struct.unpack('<I4', text, 13 + 4 * k) " \
	"      if place >= n then return nil, 'place', place, n end " \
	"      local i = math.floor(place / per) " \
	"      local at = (place - i * per) * width " \
	"      seen[i] = seen[i] or chunk_of(get, name, i, width, n) " \
	"      if not seen[i] then return nil, 'broken' end " \
	"      parts[k + 2] = string.sub(seen[i], at + 1, at + width) " \
	"    end " \
	"  end " \
	"  return parts " \
	"end " \
	/* nil; or why nothing was added, and where.  The places grow. */ \
	"local function vector_add(get, set, name, text) " \
	"  local is = get(name) " \
	"  local width, n = vector_of(is) " \
	"  local kind, by, m, from, at = patch_of(text) " \
	"  if is == '' then return 'none' end " \
	"  if not width then return 'vector' end " \
	"  if kind == 0 and from + m > n and m > 0 then " \
	"    return 'place', from + m - 1, n " \
	"  end " \
	/* A wrong place counts before each sum. */ \
	"  if kind == 1 and m > 0 " \
	"    and struct.unpack('<I4', text, 9 + 4 * m) >= n then " \
	"    for k = 0, m - 1 do " \
	"      local place = struct.unpack('<I4', text, 13 + 4 * k) " \
	"      if place >= n then return 'place', place, n end " \
	"    end " \
	"  end " \
	"  local one, a = width == 8 and '<d' or '<f', by == 8 and '<d' or '<f' " \
	"  local eight, a8 = '<' .. string.rep(string.sub(one, 2), 8), " \
	"    '<' .. string.rep(string.sub(a, 2), 8) " \
	/* A float beyond this is infinite. */ \
	"  local most = width == 8 and math.huge or 3.4028235677973366e38 " \
	"  local new, per, k = {}, 512 / width, 0 " \
	"  local i, field, old, parts, upto " \
	"  local function finish() " \
	"    if not i then return end " \
	"    parts[#parts + 1] = string.sub(old, upto + 1) " \
	"    new[field] = table.concat(parts) " \
	"  end " \
	"  while k < m do " \
	"    local place = kind == 0 and from + k " \
	"      or (struct.unpack('<I4', text, 13 + 4 * k)) " \
	"    local c = math.floor(place / per) " \
	"    if c ~= i then " \
	"      finish() " \
	"      i, field, parts, upto = c, chunk(name, c), {}, 0 " \
	"      old = chunk_of(get, name, c, width, n) " \
	"      if not old then i = nil return 'broken' end " \
	"    end " \
	"    local p, step, put = (place - c * per) * width, 1, nil " \
	"    if kind == 0 and m - k >= 8 and p + 8 * width <= #old then " \
	"      local s1, s2, s3, s4, s5, s6, s7, s8 = " \
	"        struct.unpack(eight, old, p + 1) " \
	"      local t1, t2, t3, t4, t5, t6, t7, t8 = " \
	"        struct.unpack(a8, text, at + k * by) " \
	"      s1, s2, s3, s4, s5, s6, s7, s8 = s1 + t1, s2 + t2, s3 + t3, " \
	"        s4 + t4, s5 + t5, s6 + t6, s7 + t7, s8 + t8 " \
	/* Numbers that are not finite are found below, one by one. */ \
	"      if math.max(s1, s2, s3, s4, s5, s6, s7, s8) < most " \
	"        and math.min(s1, s2, s3, s4, s5, s6, s7, s8) > -most " \
	"        and s1 + s2 + s3 + s4 + s5 + s6 + s7 + s8 < math.huge then " \
	"        step = 8 " \
	"        put = struct.pack(eight, s1, s2, s3, s4, s5, s6, s7, s8) " \
	"      end " \
	"    end " \
	"    if step == 1 then " \
	"      local s = (struct.unpack(one, old, p + 1)) " \
	"        + (struct.unpack(a, text, at + k * by)) " \
	"      if not (s > -most and s < most) then return 'sum', place end " \
	"      put = struct.pack(one, s) " \
	"    end " \
	"    if p > upto then parts[#parts + 1] = string.sub(old, upto + 1, p) end " \
	"    parts[#parts + 1] = put " \
	"    upto, k = p + step * width, k + step " \
	"  end " \
	"  finish() " \
	"  for field, bytes in pairs(new) do set(field, bytes) end " \
	"end "
/* clang-format on */

#endif
