/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is written: the bytes that the MessagePack specification has for each
 * format, at each boundary, and always the shortest that there are.
 */
#include "../support/api_util.h"

#include <evcoord/value.h>
#include <float.h>
#include <limits.h>
#include <math.h>

#include "wire/head.h"

#define SAME(v, s) \
	do { \
		ck_assert_uint_eq((v).size, sizeof(s) - 1); \
		ck_assert_mem_eq((v).data, (s), sizeof(s) - 1); \
	} while (0)

#define PACKS(s, ...) \
	do { \
		evc_value v_ = { NULL, 0 }; \
		OK(evc_pack(&v_, __VA_ARGS__)); \
		SAME(v_, s); \
		evc_value_free(&v_); \
	} while (0)

START_TEST(nil_and_booleans)
{
	PACKS("\xc0", "n");
	PACKS("\xc0", "s", (char *)NULL);
	PACKS("\xc0", "v", (evc_value *)NULL);
	PACKS("\xc2", "b", 0);
	PACKS("\xc3", "b", 1);
	PACKS("\xc3", "b", -7);
}
END_TEST

static const struct {
	uint64_t v;
	const char *bytes;
	size_t n;
} whole[] = {
	{ 0, "\x00", 1 },
	{ 1, "\x01", 1 },
	{ 127, "\x7f", 1 },
	{ 128, "\xcc\x80", 2 },
	{ 255, "\xcc\xff", 2 },
	{ 256, "\xcd\x01\x00", 3 },
	{ 65535, "\xcd\xff\xff", 3 },
	{ 65536, "\xce\x00\x01\x00\x00", 5 },
	{ UINT32_MAX, "\xce\xff\xff\xff\xff", 5 },
	{ UINT64_C(1) << 32, "\xcf\x00\x00\x00\x01\x00\x00\x00\x00", 9 },
	{ INT64_MAX, "\xcf\x7f\xff\xff\xff\xff\xff\xff\xff", 9 },
	{ UINT64_C(1) << 63, "\xcf\x80\x00\x00\x00\x00\x00\x00\x00", 9 },
	{ UINT64_MAX, "\xcf\xff\xff\xff\xff\xff\xff\xff\xff", 9 },
};

static const struct {
	int64_t v;
	const char *bytes;
	size_t n;
} below_0[] = {
	{ -1, "\xff", 1 },
	{ -32, "\xe0", 1 },
	{ -33, "\xd0\xdf", 2 },
	{ -128, "\xd0\x80", 2 },
	{ -129, "\xd1\xff\x7f", 3 },
	{ -32768, "\xd1\x80\x00", 3 },
	{ -32769, "\xd2\xff\xff\x7f\xff", 5 },
	{ INT32_MIN, "\xd2\x80\x00\x00\x00", 5 },
	{ INT64_C(-2147483649), "\xd3\xff\xff\xff\xff\x7f\xff\xff\xff", 9 },
	{ INT64_MIN, "\xd3\x80\x00\x00\x00\x00\x00\x00\x00", 9 },
};

static void
is(const evc_value *v, const char *bytes, size_t n)
{
	ck_assert_uint_eq(v->size, n);
	ck_assert_mem_eq(v->data, bytes, n);
}

START_TEST(integers)
{
	evc_value v;
	uint64_t u;
	int64_t i;
	size_t k;

	for (k = 0; k < sizeof(whole) / sizeof(whole[0]); k++) {
		OK(evc_pack(&v, "U", whole[k].v));
		is(&v, whole[k].bytes, whole[k].n);
		OK(evc_unpack(&v, "U", &u));
		ck_assert_uint_eq(u, whole[k].v);
		evc_value_free(&v);
		if (whole[k].v <= INT64_MAX) {
			OK(evc_pack(&v, "I", (int64_t)whole[k].v));
			is(&v, whole[k].bytes, whole[k].n);
			evc_value_free(&v);
		}
		if (whole[k].v <= UINT_MAX) {
			OK(evc_pack(&v, "u", (unsigned)whole[k].v));
			is(&v, whole[k].bytes, whole[k].n);
			evc_value_free(&v);
		}
	}
	for (k = 0; k < sizeof(below_0) / sizeof(below_0[0]); k++) {
		OK(evc_pack(&v, "I", below_0[k].v));
		is(&v, below_0[k].bytes, below_0[k].n);
		OK(evc_unpack(&v, "I", &i));
		ck_assert_int_eq(i, below_0[k].v);
		evc_value_free(&v);
	}
	PACKS("\xce\x7f\xff\xff\xff", "i", INT_MAX);
	PACKS("\xd2\x80\x00\x00\x00", "i", INT_MIN);
	PACKS("\xd0\xdf", "i", -33);
}
END_TEST

START_TEST(doubles)
{
	PACKS("\xcb\x00\x00\x00\x00\x00\x00\x00\x00", "d", 0.0);
	PACKS("\xcb\x80\x00\x00\x00\x00\x00\x00\x00", "d", -0.0);
	PACKS("\xcb\x3f\xf0\x00\x00\x00\x00\x00\x00", "d", 1.0);
	PACKS("\xcb\x3f\xb9\x99\x99\x99\x99\x99\x9a", "d", 0.1);
	PACKS("\xcb\xc0\x09\x21\xfb\x54\x44\x2d\x18", "d", -3.141592653589793);
	PACKS("\xcb\x7f\xf0\x00\x00\x00\x00\x00\x00", "d", (double)INFINITY);
	PACKS("\xcb\xff\xf0\x00\x00\x00\x00\x00\x00", "d", -(double)INFINITY);
	PACKS("\xcb\x7f\xef\xff\xff\xff\xff\xff\xff", "d", DBL_MAX);
	PACKS("\xcb\x00\x00\x00\x00\x00\x00\x00\x01", "d", 4.9406564584124654e-324);
	PACKS("\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00", "d", (double)NAN);
}
END_TEST

/* What stands before so many. */
static const struct {
	unsigned type;
	uint32_t n;
	const char *bytes;
	size_t size;
} lengths[] = {
	{ EVC_VALUE_STRING, 0, "\xa0", 1 },
	{ EVC_VALUE_STRING, 31, "\xbf", 1 },
	{ EVC_VALUE_STRING, 32, "\xd9\x20", 2 },
	{ EVC_VALUE_STRING, 255, "\xd9\xff", 2 },
	{ EVC_VALUE_STRING, 256, "\xda\x01\x00", 3 },
	{ EVC_VALUE_STRING, 65535, "\xda\xff\xff", 3 },
	{ EVC_VALUE_STRING, 65536, "\xdb\x00\x01\x00\x00", 5 },
	{ EVC_VALUE_STRING, UINT32_MAX, "\xdb\xff\xff\xff\xff", 5 },
	{ EVC_VALUE_BINARY, 0, "\xc4\x00", 2 },
	{ EVC_VALUE_BINARY, 255, "\xc4\xff", 2 },
	{ EVC_VALUE_BINARY, 256, "\xc5\x01\x00", 3 },
	{ EVC_VALUE_BINARY, 65535, "\xc5\xff\xff", 3 },
	{ EVC_VALUE_BINARY, 65536, "\xc6\x00\x01\x00\x00", 5 },
	{ EVC_VALUE_BINARY, UINT32_MAX, "\xc6\xff\xff\xff\xff", 5 },
	{ EVC_VALUE_ARRAY, 0, "\x90", 1 },
	{ EVC_VALUE_ARRAY, 15, "\x9f", 1 },
	{ EVC_VALUE_ARRAY, 16, "\xdc\x00\x10", 3 },
	{ EVC_VALUE_ARRAY, 65535, "\xdc\xff\xff", 3 },
	{ EVC_VALUE_ARRAY, 65536, "\xdd\x00\x01\x00\x00", 5 },
	{ EVC_VALUE_ARRAY, UINT32_MAX, "\xdd\xff\xff\xff\xff", 5 },
	{ EVC_VALUE_MAP, 0, "\x80", 1 },
	{ EVC_VALUE_MAP, 15, "\x8f", 1 },
	{ EVC_VALUE_MAP, 16, "\xde\x00\x10", 3 },
	{ EVC_VALUE_MAP, 65535, "\xde\xff\xff", 3 },
	{ EVC_VALUE_MAP, 65536, "\xdf\x00\x01\x00\x00", 5 },
	{ EVC_VALUE_MAP, UINT32_MAX, "\xdf\xff\xff\xff\xff", 5 },
};

#define N_LENGTHS (sizeof(lengths) / sizeof(lengths[0]))

START_TEST(what_stands_before)
{
	unsigned char to[HEAD_MOST];
	struct head h;
	size_t k;

	for (k = 0; k < N_LENGTHS; k++) {
		ck_assert_uint_eq(evc__put_length(to, lengths[k].type,
						  lengths[k].n),
				  lengths[k].size);
		ck_assert_mem_eq(to, lengths[k].bytes, lengths[k].size);
		ck_assert(evc__head(to, lengths[k].size, &h) == HEAD_FINE);
		ck_assert_uint_eq(h.type, lengths[k].type);
		ck_assert_uint_eq(h.n, lengths[k].n);
	}
}
END_TEST

/* A format of n nils in an array or a map; for free. */
static char *
format_of(bool map, size_t n)
{
	char *s = malloc(3 * n + 3), *at = s;

	ck_assert_ptr_nonnull(s);
	*at++ = map ? '{' : '[';
	for (; n > 0; n--, at += map ? 3 : 1)
		memcpy(at, map ? "k:n" : "n", map ? 3 : 1);
	memcpy(at, map ? "}" : "]", 2);
	return s;
}

/* The same by evc_pack, and what follows. */
START_TEST(strings_arrays_and_maps)
{
	static char text[65536];
	const unsigned char *p;
	char *format = NULL;
	evc_value v;
	size_t k, n, body = 0;

	memset(text, 'x', sizeof(text));
	for (k = 0; k < N_LENGTHS; k++) {
		n = lengths[k].n;
		if (n > sizeof(text))
			continue;
		switch (lengths[k].type) {
		case EVC_VALUE_STRING:
			OK(evc_pack(&v, "S", text, n));
			body = n;
			break;
		case EVC_VALUE_BINARY:
			OK(evc_pack(&v, "B", text, n));
			body = n;
			break;
		default:
			format = format_of(lengths[k].type == EVC_VALUE_MAP, n);
			OK(evc_pack(&v, format));
			body = lengths[k].type == EVC_VALUE_MAP ? 3 * n : n;
			free(format);
			break;
		}
		ck_assert_uint_eq(v.size, lengths[k].size + body);
		ck_assert_mem_eq(v.data, lengths[k].bytes, lengths[k].size);
		p = (const unsigned char *)v.data + lengths[k].size;
		if (lengths[k].type == EVC_VALUE_MAP && n > 0)
			ck_assert_mem_eq(p, "\xa1k\xc0", 3);
		else if (lengths[k].type == EVC_VALUE_ARRAY && n > 0)
			ck_assert_uint_eq(p[n - 1], 0xc0);
		else if (n > 0)
			ck_assert_mem_eq(p, text, n);
		OK(evc_value_check(&v));
		evc_value_free(&v);
	}
}
END_TEST

START_TEST(all_together)
{
	PACKS("\x82\xa7" "compact\xc3\xa6" "schema\x00", "{compact:b schema:i}",
	      1, 0);
	PACKS("\x94\x01\xa1" "a\xc4\x02\x00\x01\x91\xc0", "[iSB[n]]", 1, "a",
	      (size_t)1, "\0\1", (size_t)2);
}
END_TEST

API_MAIN("pack", nil_and_booleans, integers, doubles, what_stands_before,
	 strings_arrays_and_maps, all_together)
