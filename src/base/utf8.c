/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks UTF-8 characters.
 * Called by: the writers of text and of machine formats.
 * Locks: none.
 */
#include "base/utf8.h"

size_t
evc__utf8(const char *s, uint32_t *ret)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *u = (const unsigned char *)s;
	size_t n = u[0] < 0x80		    ? 1 :
		   (u[0] & 0xe0) == 0xc0    ? 2 :
		   (u[0] & 0xf0) == 0xe0    ? 3 :
		   (u[0] & 0xf8) == 0xf0    ? 4 :
					      0;
	uint32_t v = n == 1 ? u[0] : u[0] & (0x7fu >> n);
	size_t i;

	if (n == 0)
		return 0;
	/* The 0 byte at the end continues no character. */
	for (i = 1; i < n; i++) {
		if ((u[i] & 0xc0) != 0x80)
			return 0;
		v = v << 6 | (u[i] & 0x3f);
	}
	/* Too long an encoding, no character, or half of a UTF-16 pair. */
	if (v < least[n] || v > 0x10ffff || (v >= 0xd800 && v <= 0xdfff))
		return 0;
	*ret = v;
	return n;
}

size_t
evc__utf8_cut(const char *s, size_t n)
{
	size_t i = n, have;
	unsigned char first;

	while (i > 0 && n - i < 3 && ((unsigned char)s[i - 1] & 0xc0) == 0x80)
		i--;
	if (i == 0)
		return n;
	first = (unsigned char)s[i - 1];
	have = n - i + 1;
	return (first >= 0xc0 && have < 2) || (first >= 0xe0 && have < 3) ||
			       (first >= 0xf0 && have < 4) ?
		       i - 1 :
		       n;
}

bool
evc__utf8_visible(uint32_t v)
{
	if (v < 0x20 || (v >= 0x7f && v < 0xa0))
		return false;
	return v != 0x61c && v != 0x200e && v != 0x200f &&
	       !(v >= 0x2028 && v <= 0x202e) && !(v >= 0x2066 && v <= 0x2069);
}
