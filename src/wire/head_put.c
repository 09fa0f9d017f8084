/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Heads of MessagePack values, written: each value in its shortest form, as the
 * specification asks.
 * Called by: pack.c, cluster/variables and cluster/worker.
 * Locks: none.
 */
#include "wire/head.h"

#include <string.h>

/* A first byte, and a number of 1, 2, 4 or 8 bytes behind. */
static size_t
put_sized_number(unsigned char *to, unsigned first, unsigned width, uint64_t v)
{
	to[0] = (unsigned char)first;
	head_put_number(to + 1, width, v);
	return 1 + width;
}

size_t
evc__put_nil(unsigned char to[static HEAD_MOST])
{
	to[0] = evc__nil;
	return 1;
}

size_t
evc__put_bool(unsigned char to[static HEAD_MOST], bool b)
{
	to[0] = b ? 0xc3 : 0xc2;
	return 1;
}

size_t
evc__put_unsigned(unsigned char to[static HEAD_MOST], uint64_t v)
{
	if (v <= 0x7f)
		return put_sized_number(to, (unsigned)v, 0, 0);
	return v <= UINT8_MAX    ? put_sized_number(to, 0xcc, 1, v)
	       : v <= UINT16_MAX ? put_sized_number(to, 0xcd, 2, v)
	       : v <= UINT32_MAX ? put_sized_number(to, 0xce, 4, v)
				 : put_sized_number(to, 0xcf, 8, v);
}

size_t
evc__put_signed(unsigned char to[static HEAD_MOST], int64_t v)
{
	if (v >= 0)
		return evc__put_unsigned(to, (uint64_t)v);
	if (v >= -32)
		return put_sized_number(to, (unsigned char)v, 0, 0);
	return v >= INT8_MIN    ? put_sized_number(to, 0xd0, 1, (uint64_t)v)
	       : v >= INT16_MIN ? put_sized_number(to, 0xd1, 2, (uint64_t)v)
	       : v >= INT32_MIN ? put_sized_number(to, 0xd2, 4, (uint64_t)v)
				: put_sized_number(to, 0xd3, 8, (uint64_t)v);
}

size_t
evc__put_double(unsigned char to[static HEAD_MOST], double d)
{
	uint64_t bits;

	memcpy(&bits, &d, sizeof bits);
	return put_sized_number(to, 0xcb, 8, bits);
}

size_t
evc__put_length(unsigned char to[static HEAD_MOST], unsigned type, uint32_t n)
{
	/* A length up to `most` stands in the first byte, a longer one in 1, 2
	   or 4 bytes. */
	static const struct {
		unsigned char fix, most, of_1, of_2, of_4; /* 0: no such form */
	} forms[] = {
		[EVC_VALUE_STRING] = { 0xa0, 31, 0xd9, 0xda, 0xdb },
		[EVC_VALUE_BINARY] = { 0, 0, 0xc4, 0xc5, 0xc6 },
		[EVC_VALUE_ARRAY] = { 0x90, 15, 0, 0xdc, 0xdd },
		[EVC_VALUE_MAP] = { 0x80, 15, 0, 0xde, 0xdf },
	};

	if (forms[type].fix != 0 && n <= forms[type].most)
		return put_sized_number(to, forms[type].fix | n, 0, 0);
	if (forms[type].of_1 != 0 && n <= UINT8_MAX)
		return put_sized_number(to, forms[type].of_1, 1, n);
	return n <= UINT16_MAX ? put_sized_number(to, forms[type].of_2, 2, n)
			       : put_sized_number(to, forms[type].of_4, 4, n);
}
