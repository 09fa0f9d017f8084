/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Values that came from elsewhere: what they are, their elements one by one,
 * copies, and how they look as text.
 */
#include "../support/api_util.h"
#include "../support/locale_util.h"

#include <evcoord/value.h>

#define VALUE(s) ((evc_value){ (s), sizeof(s) - 1 })

/* [nil, {"a": [1, 2], 3: "x"}, 4] */
#define SOME "\x93\xc0\x82\xa1" "a\x92\x01\x02\x03\xa1x\x04"

/* ---- what it is ---- */

START_TEST(types)
{
	static const struct {
		evc_value v;
		unsigned type, count;
	} cases[] = {
		{ { NULL, 0 }, EVC_VALUE_NIL, 0 },
		{ { "\xc0", 1 }, EVC_VALUE_NIL, 0 },
		{ { "\xc2", 1 }, EVC_VALUE_BOOL, 0 },
		{ { "\x05", 1 }, EVC_VALUE_INTEGER, 0 },
		{ { "\xd3\xff\0\0\0\0\0\0\0", 9 }, EVC_VALUE_INTEGER, 0 },
		{ { "\xca\0\0\0\0", 5 }, EVC_VALUE_DOUBLE, 0 },
		{ { "\xcb\0\0\0\0\0\0\0\0", 9 }, EVC_VALUE_DOUBLE, 0 },
		{ { "\xa2xy", 3 }, EVC_VALUE_STRING, 0 },
		{ { "\xc4\x01x", 3 }, EVC_VALUE_BINARY, 0 },
		{ { "\x92\x01\x02", 3 }, EVC_VALUE_ARRAY, 2 },
		{ { "\xdc\0\0", 3 }, EVC_VALUE_ARRAY, 0 },
		{ { "\x82\x01\x02\x03\x04", 5 }, EVC_VALUE_MAP, 2 },
		{ { "\xc7\x0c\x45xxxxyyyyzzzz", 15 }, EVC_VALUE_REMOTE, 0 },
		{ { "\xc7\x0c\x46xxxxyyyyzzzz", 15 }, EVC_VALUE_PER_WORKER, 0 },
	};
	size_t k;

	for (k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		OK(evc_value_check(&cases[k].v));
		ck_assert_uint_eq(evc_value_type(&cases[k].v), cases[k].type);
		ck_assert_uint_eq(evc_value_count(&cases[k].v), cases[k].count);
	}
}
END_TEST

START_TEST(what_is_no_value)
{
	/* The outermost head of each is fine, as far as it is there. */
	static const evc_value bad[] = {
		{ NULL, 1 },
		{ "\xc1", 1 },
		{ "\xa2x", 2 },
		{ "\x92\x01", 2 },
		{ "\xdd\xff\xff\xff\xff", 5 },
		{ "\x81\x01", 2 },
		{ "\x91\xc1", 2 },
		{ "\x05\x05", 2 },
		{ "\xd4\x45x", 3 },
		{ "\xc7\x0c\x47xxxxyyyyzzzz", 15 },
	};
	evc_value copy = { "kept", 4 }, e = { "kept", 4 };
	char text[32];
	size_t k, at;

	for (k = 0; k < sizeof(bad) / sizeof(bad[0]); k++) {
		REFUSED(EVC_INVALID_ARGUMENT, evc_value_check(&bad[k]));
		REFUSED(EVC_INVALID_ARGUMENT, evc_value_copy(&copy, &bad[k]));
		REFUSED(EVC_INVALID_ARGUMENT, evc_value_at(&bad[k], 0, &e));
		ck_assert_uint_eq(evc_value_type(&bad[k]), 0);
		ck_assert_uint_eq(evc_value_count(&bad[k]), 0);
		at = 0;
		ck_assert(!evc_value_next(&bad[k], &at, &e, &e));
		ck_assert_uint_eq(at, 0);
		evc_value_print(&bad[k], text, sizeof(text));
		ck_assert_str_eq(text, "<no value>");
	}
	REFUSED(EVC_INVALID_ARGUMENT, evc_value_check(NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_value_copy(&copy, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_value_copy(NULL, &VALUE("\x01")));
	REFUSED(EVC_INVALID_ARGUMENT, evc_value_at(NULL, 0, &e));
	ck_assert_uint_eq(evc_value_type(NULL), 0);
	ck_assert_uint_eq(evc_value_count(NULL), 0);
	ck_assert(!evc_value_next(NULL, &at, &e, &e));
	ck_assert(!evc_value_next(&VALUE("\x91\x01"), NULL, &e, &e));
	ck_assert_uint_eq(evc_value_print(NULL, NULL, 0), 10);
	ck_assert(copy.size == 4 && e.size == 4);
}
END_TEST

START_TEST(a_question_leaves_the_last_error)
{
	evc_value bad = VALUE("\x92\x01");
	size_t at = 0;

	REFUSED(EVC_INVALID_ARGUMENT, evc_value_check(&VALUE("\xc1")));
	evc_value_type(&bad);
	evc_value_count(&bad);
	evc_value_next(&bad, &at, NULL, NULL);
	evc_value_print(&bad, NULL, 0);
	HAS(evc_last_error(), "0xc1 at byte 0");
}
END_TEST

START_TEST(copies)
{
	char bytes[] = SOME;
	evc_value v = { bytes, sizeof(bytes) - 1 }, copy = { NULL, 0 };

	OK(evc_value_copy(&copy, &v));
	memset(bytes, 0, sizeof(bytes));
	ck_assert_uint_eq(copy.size, sizeof(SOME) - 1);
	ck_assert_mem_eq(copy.data, SOME, sizeof(SOME) - 1);
	evc_value_free(&copy);
	ck_assert_ptr_null(copy.data);
	ck_assert_uint_eq(copy.size, 0);
	evc_value_free(&copy);
}
END_TEST

/* ---- its elements ---- */

START_TEST(element_by_element)
{
	evc_value v = VALUE(SOME), key = { "kept", 4 }, e, inner;
	size_t at = 0, in = 0;
	int i = 0;

	ck_assert(evc_value_next(&v, &at, &key, &e));
	ck_assert_uint_eq(key.size, 0); /* an array has none */
	ck_assert_uint_eq(evc_value_type(&e), EVC_VALUE_NIL);
	ck_assert(evc_value_next(&v, &at, NULL, &inner));
	ck_assert_uint_eq(evc_value_type(&inner), EVC_VALUE_MAP);

	ck_assert(evc_value_next(&inner, &in, &key, &e));
	ck_assert_uint_eq(key.size, 2);
	ck_assert_mem_eq(key.data, "\xa1" "a", 2);
	ck_assert_uint_eq(evc_value_count(&e), 2);
	ck_assert(evc_value_next(&inner, &in, &key, NULL));
	OK(evc_unpack(&key, "i", &i));
	ck_assert_int_eq(i, 3);
	ck_assert(!evc_value_next(&inner, &in, &key, &e));
	ck_assert(!evc_value_next(&inner, &in, &key, &e));

	ck_assert(evc_value_next(&v, &at, NULL, &e));
	OK(evc_unpack(&e, "i", &i));
	ck_assert_int_eq(i, 4);
	ck_assert(!evc_value_next(&v, &at, NULL, &e));
	/* Neither array nor map. */
	at = 0;
	ck_assert(!evc_value_next(&VALUE("\xa1x"), &at, NULL, &e));
	ck_assert(!evc_value_next(&VALUE("\xc0"), &at, NULL, &e));
	ck_assert(!evc_value_next(&VALUE("\x90"), &at, NULL, &e));
	ck_assert(!evc_value_next(&(evc_value){ NULL, 0 }, &at, NULL, &e));
	/* A place that is not the library's. */
	at = SIZE_MAX;
	ck_assert(!evc_value_next(&v, &at, NULL, &e));
}
END_TEST

START_TEST(by_index)
{
	evc_value v = VALUE(SOME), map, e = { "kept", 4 };
	int i = 0;

	OK(evc_value_at(&v, 1, &map));
	ck_assert_uint_eq(evc_value_count(&map), 2);
	OK(evc_value_at(&map, 1, &e));
	ck_assert_uint_eq(evc_value_type(&e), EVC_VALUE_STRING);
	OK(evc_value_at(&v, 2, &e));
	OK(evc_unpack(&e, "i", &i));
	ck_assert_int_eq(i, 4);
	OK(evc_value_at(&v, 0, NULL));
	e.size = 77;
	REFUSED(EVC_OUT_OF_RANGE, evc_value_at(&v, 3, &e));
	ck_assert_str_eq(evc_last_error(),
			 "there is no element 3 in an array of 3");
	REFUSED(EVC_OUT_OF_RANGE, evc_value_at(&map, SIZE_MAX, &e));
	HAS(evc_last_error(), "in a map of 2");
	REFUSED(EVC_INVALID_ARGUMENT, evc_value_at(&VALUE("\xa1x"), 0, &e));
	ck_assert_str_eq(evc_last_error(), "a string has no elements");
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_value_at(&(evc_value){ NULL, 0 }, 0, &e));
	ck_assert_uint_eq(e.size, 77);
}
END_TEST

START_TEST(a_long_array_is_walked_once)
{
	enum { MANY = 200000 };
	unsigned char *bytes = malloc(5 + MANY);
	evc_value v = { bytes, 5 + MANY }, e;
	size_t at = 0, n = 0;

	ck_assert_ptr_nonnull(bytes);
	bytes[0] = 0xdd;
	bytes[1] = MANY >> 24;
	bytes[2] = MANY >> 16 & 0xff;
	bytes[3] = MANY >> 8 & 0xff;
	bytes[4] = MANY & 0xff;
	memset(bytes + 5, 0x07, MANY);
	/* (Each step over all of it would be minutes.) */
	while (evc_value_next(&v, &at, NULL, &e)) {
		ck_assert_uint_eq(e.size, 1);
		n++;
	}
	ck_assert_uint_eq(n, MANY);
	free(bytes);
}
END_TEST

/* ---- as text ---- */

static void
prints(const char *want, const evc_value *v)
{
	size_t n = strlen(want), room, cut;
	char *text = malloc(n + 1);

	ck_assert_ptr_nonnull(text);
	ck_assert_uint_eq(evc_value_print(v, NULL, 0), n);
	ck_assert_uint_eq(evc_value_print(v, text, n + 1), n);
	ck_assert_str_eq(text, want);
	/* Cut where the room ends, but in no character. */
	for (room = 1; room <= n && room < 100; room++) {
		cut = room - 1;
		while (((unsigned char)want[cut] & 0xc0) == 0x80)
			cut--;
		memset(text, '#', n + 1);
		ck_assert_uint_eq(evc_value_print(v, text, room), n);
		ck_assert_uint_eq(strlen(text), cut);
		ck_assert_mem_eq(text, want, cut);
		ck_assert_int_eq(text[room], '#');
	}
	free(text);
}

/* A value by a format, as text. */
#define PRINTS(want, ...) \
	do { \
		evc_value printed_; \
		OK(evc_pack(&printed_, __VA_ARGS__)); \
		prints((want), &printed_); \
		evc_value_free(&printed_); \
	} while (0)

START_TEST(as_json)
{
	PRINTS("null", "");
	PRINTS("[null,true,false,7,-7]", "[nbbii]", 1, 0, 7, -7);
	PRINTS("[18446744073709551615,-9223372036854775808]", "[UI]",
	       UINT64_MAX, INT64_MIN);
	PRINTS("[1.5,0.1,1.0,-0.0,1e+20,0.30000000000000004,2.5e-309]",
	       "[ddddddd]", 1.5, 0.1, 1.0, -0.0, 1e20, 0.1 + 0.2, 2.5e-309);
	PRINTS("{\"path\":\"/etc\",\"n\":[]}", "{path:s n:[]}", "/etc");
	PRINTS("[[],{},{\"a\":{\"b\":null}}]", "[[]{}{a:{b:n}}]");
	PRINTS("\"\\\"\\\\/\\u0001\\u000a\\u007f\"", "s", "\"\\/\x01\n\x7f");
	PRINTS("\"a\\u0000b\\u0000\"", "S", "a\0b\0", (size_t)4);
	PRINTS("\"\\u0000\\u0000\"", "S", "\0\0", (size_t)2);
	PRINTS("\"\"", "s", "");
	PRINTS("\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"", "s",
	       "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
	/* No UTF-8. */
	PRINTS("\"\\ufffd\\ufffdx\"", "s", "\xff\xc3x");
}
END_TEST

START_TEST(what_json_has_no_words_for)
{
	unsigned char bytes[64] = { 0xc4, 40 };
	evc_value v = { bytes, 42 };
	char want[128];
	int i, n;

	PRINTS("[NaN,Infinity,-Infinity]", "[ddd]", NAN, INFINITY, -INFINITY);
	PRINTS("[<binary 0>,<binary 3: 01ff00>]", "[BB]", "", (size_t)0,
	       "\x01\xff", (size_t)3);
	prints("{1:2,null:[],\"k\":true}",
	       &VALUE("\x83\x01\x02\xc0\x90\xa1k\xc3"));
	prints("[<remote 7>,<per-worker value 18446744073709551615>]",
	       &VALUE("\x92\xc7\x0c\x45\0\0\0\1\0\0\0\0\0\0\0\7"
		      "\xc7\x0c\x46\0\0\0\1\xff\xff\xff\xff\xff\xff\xff\xff"));
	/* 32 bytes are shown. */
	n = snprintf(want, sizeof(want), "<binary 40: ");
	for (i = 0; i < 40; i++)
		bytes[2 + i] = (unsigned char)(i + 1);
	for (i = 0; i < 32; i++)
		n += snprintf(want + n, sizeof(want) - (size_t)n, "%02x",
			      i + 1);
	snprintf(want + n, sizeof(want) - (size_t)n, "...>");
	prints(want, &v);
}
END_TEST

/* Characters of two to four bytes at every place of a long string. */
START_TEST(long_strings)
{
	static const char *const characters[] = { "\xc3\xa4", "\xe2\x82\xac",
						  "\xf0\x9f\x98\x80" };
	char s[400], want[402];
	size_t k, before, i, n;

	for (k = 0; k < 3; k++)
		for (before = 0; before < 8; before++) {
			memset(s, '.', before);
			for (n = before; n < 380; n += strlen(characters[k]))
				memcpy(s + n, characters[k],
				       strlen(characters[k]));
			s[n] = '\0';
			snprintf(want, sizeof(want), "\"%s\"", s);
			PRINTS(want, "s", s);
		}
	/* And bytes that begin no character. */
	memset(s, 0x80, 200);
	s[200] = '\0';
	want[0] = '\0';
	{
		char all[6 * 200 + 3] = "\"";

		for (i = 0; i < 200; i++)
			strcat(all, "\\ufffd");
		strcat(all, "\"");
		PRINTS(all, "s", s);
	}
}
END_TEST

START_TEST(a_point_in_every_locale)
{
	if (!comma_begin()) {
		comma_end();
		T_SKIP("there is no locale here that writes 0,5");
	}
	PRINTS("[0.5,1e+20,1.5e-07,1.0]", "[dddd]", 0.5, 1e20, 1.5e-7, 1.0);
	comma_end();
}
END_TEST

API_MAIN("value_walk", types, what_is_no_value,
	 a_question_leaves_the_last_error, copies, element_by_element, by_index,
	 a_long_array_is_walked_once, as_json, what_json_has_no_words_for,
	 long_strings, a_point_in_every_locale)
