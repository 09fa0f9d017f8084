/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The walk over the bytes of values: every head there is, bytes that end where
 * they should not, lengths that nothing is behind, depth, references, and what
 * is put in their places.  A second reader, which shares nothing with it, is asked
 * as well.
 */
#include "../support/api_util.h"
#include "support/seam.h"

#include "wire/grow.h"
#include "wire/head.h"
#include "wire/walk.h"

#define DEPTH EVC_VALUE_DEPTH

/* Bytes written in the test, without the 0 byte. */
#define WALK(s) evc__value_walk((s), sizeof(s) - 1, NULL, NULL)

/* ---- heads ---- */

/* What the specification says of each first byte. */
static const struct {
	unsigned first, last, type, size;
	bool length; /* the number behind it says how much follows */
} kinds[] = {
	{ 0x00, 0x7f, EVC_VALUE_INTEGER, 1, false },
	{ 0x80, 0x8f, EVC_VALUE_MAP, 1, false },
	{ 0x90, 0x9f, EVC_VALUE_ARRAY, 1, false },
	{ 0xa0, 0xbf, EVC_VALUE_STRING, 1, false },
	{ 0xc0, 0xc0, EVC_VALUE_NIL, 1, false },
	{ 0xc2, 0xc3, EVC_VALUE_BOOL, 1, false },
	{ 0xc4, 0xc4, EVC_VALUE_BINARY, 2, true },
	{ 0xc5, 0xc5, EVC_VALUE_BINARY, 3, true },
	{ 0xc6, 0xc6, EVC_VALUE_BINARY, 5, true },
	{ 0xc7, 0xc7, HEAD_FOREIGN, 3, true },
	{ 0xc8, 0xc8, HEAD_FOREIGN, 4, true },
	{ 0xc9, 0xc9, HEAD_FOREIGN, 6, true },
	{ 0xca, 0xca, EVC_VALUE_DOUBLE, 5, false },
	{ 0xcb, 0xcb, EVC_VALUE_DOUBLE, 9, false },
	{ 0xcc, 0xcc, EVC_VALUE_INTEGER, 2, false },
	{ 0xcd, 0xcd, EVC_VALUE_INTEGER, 3, false },
	{ 0xce, 0xce, EVC_VALUE_INTEGER, 5, false },
	{ 0xcf, 0xcf, EVC_VALUE_INTEGER, 9, false },
	{ 0xd0, 0xd0, EVC_VALUE_INTEGER, 2, false },
	{ 0xd1, 0xd1, EVC_VALUE_INTEGER, 3, false },
	{ 0xd2, 0xd2, EVC_VALUE_INTEGER, 5, false },
	{ 0xd3, 0xd3, EVC_VALUE_INTEGER, 9, false },
	{ 0xd4, 0xd8, HEAD_FOREIGN, 2, false },
	{ 0xd9, 0xd9, EVC_VALUE_STRING, 2, true },
	{ 0xda, 0xda, EVC_VALUE_STRING, 3, true },
	{ 0xdb, 0xdb, EVC_VALUE_STRING, 5, true },
	{ 0xdc, 0xdc, EVC_VALUE_ARRAY, 3, true },
	{ 0xdd, 0xdd, EVC_VALUE_ARRAY, 5, true },
	{ 0xde, 0xde, EVC_VALUE_MAP, 3, true },
	{ 0xdf, 0xdf, EVC_VALUE_MAP, 5, true },
	{ 0xe0, 0xff, EVC_VALUE_INTEGER, 1, false },
};

#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

START_TEST(every_first_byte)
{
	unsigned char bytes[16];
	unsigned c, seen = 0;
	struct head h;
	size_t k, n;

	for (k = 0; k < N_KINDS; k++)
		for (c = kinds[k].first; c <= kinds[k].last; c++, seen++) {
			memset(bytes, 0, sizeof(bytes));
			bytes[0] = (unsigned char)c;
			for (n = 0; n < kinds[k].size; n++)
				ck_assert_msg(evc__head(bytes, n, &h) ==
						      HEAD_CUT,
					      "0x%02x of %zu bytes", c, n);
			for (; n <= sizeof(bytes); n++) {
				ck_assert(evc__head(bytes, n, &h) == HEAD_FINE);
				ck_assert_uint_eq(h.type, kinds[k].type);
				ck_assert_uint_eq(h.size, kinds[k].size);
			}
			if (kinds[k].length)
				ck_assert_uint_eq(h.n, 0);
		}
	/* All but one. */
	ck_assert_uint_eq(seen, 255);
	bytes[0] = 0xc1;
	ck_assert(evc__head(bytes, sizeof(bytes), &h) == HEAD_NONE);
	REFUSED(EVC_INVALID_ARGUMENT, WALK("\xc1"));
	HAS(evc_last_error(), "0xc1 at byte 0");
	REFUSED(EVC_INVALID_ARGUMENT, WALK("\x92\x01\xc1"));
	HAS(evc_last_error(), "0xc1 at byte 2");
}
END_TEST

START_TEST(lengths_are_in_network_order)
{
	unsigned char bytes[16];
	uint64_t want;
	struct head h;
	size_t k, i, width;

	for (k = 0; k < N_KINDS; k++) {
		if (!kinds[k].length)
			continue;
		memset(bytes, 0, sizeof(bytes));
		bytes[0] = (unsigned char)kinds[k].first;
		width = kinds[k].size - 1;
		if (kinds[k].type == HEAD_FOREIGN)
			width--;
		for (want = 0, i = 0; i < width; i++) {
			bytes[1 + i] = (unsigned char)(0x80 + i);
			want = want << 8 | (0x80 + i);
		}
		ck_assert(evc__head(bytes, sizeof(bytes), &h) == HEAD_FINE);
		ck_assert_uint_eq(h.n, want);
	}
}
END_TEST

/* The size of the value at the front, by the table alone; 0: there is none.  What
   follows an extension is none of its business. */
static size_t
size_by_table(const unsigned char *p, size_t n, unsigned deep)
{
	size_t at, k = 0, more;
	uint64_t items = 0, i;

	if (n == 0 || deep > DEPTH + 1)
		return 0;
	while (k < N_KINDS && (p[0] < kinds[k].first || p[0] > kinds[k].last))
		k++;
	if (k == N_KINDS || n < kinds[k].size)
		return 0;
	at = kinds[k].size;
	for (i = 1; kinds[k].length && i < at; i++)
		items = items << 8 | p[i];
	if (p[0] >= 0x80 && p[0] < 0xc0)
		items = p[0] & (p[0] < 0xa0 ? 0x0f : 0x1f);
	if (kinds[k].type != EVC_VALUE_ARRAY && kinds[k].type != EVC_VALUE_MAP)
		return items <= n - at ? at + (size_t)items : 0;
	if (deep > DEPTH)
		return 0;
	for (i = kinds[k].type == EVC_VALUE_MAP ? 2 * items : items; i > 0; i--) {
		more = size_by_table(p + at, n - at, deep + 1);
		if (more == 0)
			return 0;
		at += more;
	}
	return at;
}

/* Any bytes: the table and the walk take the same for a value, of the same
   size. */
START_TEST(the_table_agrees)
{
	unsigned char bytes[40];
	uint64_t random = 1;
	size_t i, size, agreed = 0;
	unsigned round, c;

	for (round = 0; round < 400; round++)
		for (c = 0; c < 256; c++) {
			bytes[0] = (unsigned char)c;
			for (i = 1; i < sizeof(bytes); i++) {
				random = random * 6364136223846793005u + 1;
				/* Small ones, mostly: lengths that fit. */
				bytes[i] = (unsigned char)(random >> 56);
				if (i < 6 || (random >> 40 & 1))
					bytes[i] &= i < 4 ? 0 : 0x83;
			}
			size = evc__walk_size(bytes, sizeof(bytes));
			if (size == 0 &&
			    evc__value_walk(bytes, sizeof(bytes), NULL, NULL) !=
				    0 &&
			    strstr(evc_last_error(), "extension") != NULL)
				continue;
			ck_assert_uint_eq(size, size_by_table(bytes,
							      sizeof(bytes), 1));
			agreed += size > 0;
		}
	ck_assert_uint_gt(agreed, 20000);
}
END_TEST

/* ---- too short, too long ---- */

/* One of each kind. */
static const unsigned char all_kinds[] =
	"\xdc\x00\x13"
	"\xc0\xc2\xc3\x05\xe0"
	"\xcc\x80\xcd\x01\x00\xce\x00\x01\x00\x00"
	"\xcf\x00\x00\x00\x01\x00\x00\x00\x00"
	"\xd0\x80\xd1\x80\x00\xd2\x80\x00\x00\x00"
	"\xd3\x80\x00\x00\x00\x00\x00\x00\x00"
	"\xca\x3f\x80\x00\x00\xcb\x3f\xf0\x00\x00\x00\x00\x00\x00"
	"\xa3" "abc" "\xd9\x03" "abc" "\xc4\x02" "xy"
	"\x82\xa1k\x91\x01\x02\x90";

START_TEST(cut_off_at_each_byte)
{
	size_t n, size = sizeof(all_kinds) - 1;
	unsigned char *exact;

	OK(evc__value_walk(all_kinds, size, NULL, NULL));
	for (n = 1; n < size; n++) {
		/* Of its own, so that a tool sees one byte too far. */
		exact = malloc(n);
		ck_assert_ptr_nonnull(exact);
		memcpy(exact, all_kinds, n);
		REFUSED(EVC_INVALID_ARGUMENT,
			evc__value_walk(exact, n, NULL, NULL));
		ck_assert_uint_eq(evc__walk_size(exact, n), 0);
		free(exact);
	}
}
END_TEST

START_TEST(bytes_behind_the_end)
{
	unsigned char bytes[sizeof(all_kinds)];

	memcpy(bytes, all_kinds, sizeof(bytes));
	bytes[sizeof(bytes) - 1] = 0xc0;
	REFUSED(EVC_INVALID_ARGUMENT,
		evc__value_walk(bytes, sizeof(bytes), NULL, NULL));
	HAS(evc_last_error(), "1 bytes more stand behind its end");
	ck_assert_uint_eq(evc__walk_size(bytes, sizeof(bytes)),
			  sizeof(bytes) - 1);
}
END_TEST

START_TEST(no_bytes_are_nil)
{
	OK(evc__value_walk(NULL, 0, NULL, NULL));
	OK(evc__value_walk("x", 0, NULL, NULL));
	OK(WALK("\xc0"));
	REFUSED(EVC_INVALID_ARGUMENT, evc__value_walk(NULL, 1, NULL, NULL));
	HAS(evc_last_error(), "NULL");
}
END_TEST

START_TEST(huge_lengths)
{
	/* Each says that far more follows than does. */
	static const char *const heads[] = {
		"\xc4\xff", "\xc5\xff\xff", "\xc6\xff\xff\xff\xff",
		"\xd9\xff", "\xda\xff\xff", "\xdb\xff\xff\xff\xff",
		"\xdc\xff\xff", "\xdd\xff\xff\xff\xff",
		"\xde\xff\xff", "\xdf\xff\xff\xff\xff",
		"\xbf", "\x9f", "\x8f",
		"\xc7\xff\x45", "\xc8\xff\xff\x45", "\xc9\xff\xff\xff\xff\x45",
	};
	unsigned char bytes[32];
	size_t i, n;

	for (i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		n = strlen(heads[i]);
		memset(bytes, 0xc0, sizeof(bytes));
		memcpy(bytes, heads[i], n);
		REFUSED(EVC_INVALID_ARGUMENT,
			evc__value_walk(bytes, n, NULL, NULL));
		REFUSED(EVC_INVALID_ARGUMENT,
			evc__value_walk(bytes, n + 7, NULL, NULL));
	}
	/* A map's length is of pairs. */
	REFUSED(EVC_INVALID_ARGUMENT, WALK("\x82\x01\x02\x03"));
	HAS(evc_last_error(), "a map of 2");
	OK(WALK("\x81\x01\x02"));
	/* What the outer one leaves does not bound the inner one. */
	REFUSED(EVC_INVALID_ARGUMENT, WALK("\x92\xdc\xff\xff\x01"));
	HAS(evc_last_error(), "at byte 1 is an array of 65535");
}
END_TEST

/* ---- depth ---- */

/* n arrays, or maps of one entry, inside each other, with an integer inside the
   innermost; how many bytes. */
static size_t
nest(unsigned char *to, unsigned n, bool maps, bool in_keys)
{
	size_t at = 0, tail = 0;
	unsigned i;

	for (i = 0; i < n; i++) {
		to[at++] = maps ? 0x81 : 0x91;
		if (maps && !in_keys)
			to[at++] = 0x01; /* the key */
		else if (maps)
			tail++; /* the value comes later */
	}
	to[at++] = 0x05;
	memset(to + at, 0xc0, tail);
	return at + tail;
}

START_TEST(how_deep)
{
	unsigned char bytes[3 * DEPTH + 8];
	unsigned kind, n;
	size_t size;

	for (kind = 0; kind < 3; kind++)
		for (n = 0; n <= DEPTH + 1; n++) {
			size = nest(bytes, n, kind > 0, kind > 1);
			if (n <= DEPTH) {
				OK(evc__value_walk(bytes, size, NULL, NULL));
				ck_assert_uint_eq(evc__walk_size(bytes, size),
						  size);
				continue;
			}
			REFUSED(EVC_INVALID_ARGUMENT,
				evc__value_walk(bytes, size, NULL, NULL));
			HAS(evc_last_error(), "too deep");
			HAS(evc_last_error(), "32");
		}
	/* Empty ones count as well. */
	size = nest(bytes, DEPTH, false, false);
	bytes[size - 1] = 0x90;
	REFUSED(EVC_INVALID_ARGUMENT, evc__value_walk(bytes, size, NULL, NULL));
	bytes[size - 2] = 0x90;
	OK(evc__value_walk(bytes, size - 1, NULL, NULL));
	/* Beside each other they do not. */
	memset(bytes, 0x90, sizeof(bytes));
	bytes[0] = 0xdc;
	bytes[1] = 0;
	bytes[2] = 64;
	OK(evc__value_walk(bytes, 67, NULL, NULL));
}
END_TEST

/* Inside of however many others the caller says that it stands, and however deep
   it is: no array is walked beyond its end. */
START_TEST(as_deep_as_anybody_asks)
{
	unsigned char bytes[3 * 200 + 8];
	unsigned kind, n, outside;
	evc_value v = { bytes, 0 };

	for (kind = 0; kind < 3; kind++)
		for (outside = 0; outside <= 200;
		     outside += outside < 40 ? 1 : 13)
			for (n = 0; n <= 200; n += n < 70 ? 1 : 7) {
				v.size = nest(bytes, n, kind > 0, kind > 1);
				ck_assert_msg(evc__walk_is_value(&v, outside) ==
						      (n == 0 ||
						       n + outside <= DEPTH),
					      "%u deep inside %u", n, outside);
			}
}
END_TEST

/* ---- references ---- */

struct seen {
	struct walk_ref refs[8];
	unsigned n, most;
};

static bool
note(const struct walk_ref *r, void *arg)
{
	struct seen *s = arg;

	ck_assert_uint_lt(s->n, 8);
	s->refs[s->n++] = *r;
	return s->n < s->most;
}

START_TEST(what_a_reference_looks_like)
{
	unsigned char bytes[REF_BYTES];

	evc__walk_put_ref(bytes, false, 0x01020304, 0x05060708090a0b0c);
	ck_assert_mem_eq(bytes, "\xc7\x0c\x45\x01\x02\x03\x04"
				"\x05\x06\x07\x08\x09\x0a\x0b\x0c", REF_BYTES);
	evc__walk_put_ref(bytes, true, UINT32_MAX, UINT64_MAX);
	ck_assert_mem_eq(bytes, "\xc7\x0c\x46\xff\xff\xff\xff"
				"\xff\xff\xff\xff\xff\xff\xff\xff", REF_BYTES);
}
END_TEST

START_TEST(references_are_found)
{
	/* [remote, {"k": per-worker}, remote] */
	unsigned char bytes[64] = { 0x93 };
	struct seen s = { .most = 8 };
	size_t n = 1 + REF_BYTES;

	evc__walk_put_ref(bytes + 1, false, 7, 1000);
	memcpy(bytes + n, "\x81\xa1k", 3);
	evc__walk_put_ref(bytes + n + 3, true, 8, UINT64_MAX);
	n += 3 + REF_BYTES;
	evc__walk_put_ref(bytes + n, false, UINT32_MAX, 0);
	n += REF_BYTES;
	OK(evc__value_walk(bytes, n, note, &s));
	ck_assert_uint_eq(s.n, 3);
	ck_assert(!s.refs[0].per_worker);
	ck_assert_uint_eq(s.refs[0].serial, 7);
	ck_assert_uint_eq(s.refs[0].id, 1000);
	ck_assert_uint_eq(s.refs[0].at, 1);
	ck_assert_uint_eq(s.refs[0].size, REF_BYTES);
	ck_assert(s.refs[1].per_worker);
	ck_assert_uint_eq(s.refs[1].serial, 8);
	ck_assert_uint_eq(s.refs[1].id, UINT64_MAX);
	ck_assert_uint_eq(s.refs[1].at, 1 + REF_BYTES + 3);
	ck_assert(!s.refs[2].per_worker);
	ck_assert_uint_eq(s.refs[2].serial, UINT32_MAX);
	ck_assert_uint_eq(s.refs[2].at, n - REF_BYTES);

	/* No more are wanted: what follows is not looked at, however wrong. */
	s = (struct seen){ .most = 2 };
	bytes[n - REF_BYTES] = 0xc1;
	OK(evc__value_walk(bytes, n, note, &s));
	ck_assert_uint_eq(s.n, 2);
	s = (struct seen){ .most = 8 };
	REFUSED(EVC_INVALID_ARGUMENT, evc__value_walk(bytes, n, note, &s));
}
END_TEST

START_TEST(a_reference_with_a_longer_head)
{
	static const char ext16[] = "\xc8\x00\x0c\x45\0\0\0\1\0\0\0\0\0\0\0\2";
	static const char ext32[] =
		"\xc9\x00\x00\x00\x0c\x46\0\0\0\3\0\0\0\0\0\0\0\4";
	struct seen s = { .most = 8 };

	OK(evc__value_walk(ext16, sizeof(ext16) - 1, note, &s));
	OK(evc__value_walk(ext32, sizeof(ext32) - 1, note, &s));
	ck_assert_uint_eq(s.n, 2);
	ck_assert_uint_eq(s.refs[0].serial, 1);
	ck_assert_uint_eq(s.refs[0].id, 2);
	ck_assert_uint_eq(s.refs[0].size, sizeof(ext16) - 1);
	ck_assert(s.refs[1].per_worker);
	ck_assert_uint_eq(s.refs[1].serial, 3);
	ck_assert_uint_eq(s.refs[1].id, 4);
	ck_assert_uint_eq(s.refs[1].size, sizeof(ext32) - 1);
}
END_TEST

START_TEST(other_extensions_are_refused)
{
	unsigned char bytes[32] = { 0 };
	unsigned i, type;

	for (i = 0xd4; i <= 0xd8; i++) {
		bytes[0] = (unsigned char)i;
		bytes[1] = EXT_REMOTE; /* not of 12 bytes */
		REFUSED(EVC_INVALID_ARGUMENT,
			evc__value_walk(bytes, 2 + (1u << (i - 0xd4)), NULL,
					NULL));
		HAS(evc_last_error(), "an extension of type 69");
	}
	for (type = 0; type < 256; type++) {
		bytes[0] = 0xc7;
		bytes[1] = EXT_SIZE;
		bytes[2] = (unsigned char)type;
		/* 12 bytes are three floats, too. */
		if (type == EXT_REMOTE || type == EXT_PER_WORKER ||
		    type == EXT_FLOATS)
			OK(evc__value_walk(bytes, REF_BYTES, NULL, NULL));
		else
			REFUSED(EVC_INVALID_ARGUMENT,
				evc__value_walk(bytes, REF_BYTES, NULL, NULL));
	}
	HAS(evc_last_error(), "an extension of type -1 and 12 bytes");
	for (i = 0; i < 16; i++) {
		bytes[1] = (unsigned char)i;
		bytes[2] = EXT_PER_WORKER;
		ck_assert_int_eq(evc__value_walk(bytes, 3 + i, NULL, NULL),
				 i == EXT_SIZE ? 0 : -EVC_INVALID_ARGUMENT);
	}
}
END_TEST

API_MAIN("walk", every_first_byte, lengths_are_in_network_order,
	 the_table_agrees, cut_off_at_each_byte, bytes_behind_the_end,
	 no_bytes_are_nil, huge_lengths, how_deep, as_deep_as_anybody_asks,
	 what_a_reference_looks_like, references_are_found,
	 a_reference_with_a_longer_head,
	 other_extensions_are_refused)
