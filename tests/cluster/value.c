/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Values: each letter of a format both ways, what does not fit and what is
 * said of it, and formats that are none.
 */
#include "../support/api_util.h"

#include <evcoord/value.h>
#include <limits.h>

#define VALUE(s) ((evc_value){ (s), sizeof(s) - 1 })

/* Refused with that code and exactly that text. */
#define SAYS(code, text, call) \
	do { \
		REFUSED(code, call); \
		ck_assert_str_eq(evc_last_error(), (text)); \
	} while (0)

/* A value of these bytes. */
#define IS(v, s) \
	do { \
		ck_assert_uint_eq((v)->size, sizeof(s) - 1); \
		if (sizeof(s) > 1) \
			ck_assert_mem_eq((v)->data, (s), sizeof(s) - 1); \
	} while (0)

/* What evc_pack makes of it. */
#define PACKS(s, ...) \
	do { \
		evc_value packed_ = { NULL, 77 }; \
		OK(evc_pack(&packed_, __VA_ARGS__)); \
		IS(&packed_, s); \
		OK(evc_value_check(&packed_)); \
		evc_value_free(&packed_); \
		ck_assert_ptr_null(packed_.data); \
		ck_assert_uint_eq(packed_.size, 0); \
	} while (0)

/* ---- each letter ---- */

START_TEST(each_letter_is_packed)
{
	evc_value inner = VALUE("\x92\x01\x02"), nil = { NULL, 0 };

	PACKS("", "");
	PACKS("", " , \n");
	PACKS("\xc0", "n");
	PACKS("\xc2", "b", 0);
	PACKS("\xc3", "b", 1);
	PACKS("\xc3", "b", -7);
	PACKS("\x07", "i", 7);
	PACKS("\xff", "i", -1);
	PACKS("\xcd\x01\x00", "u", 256u);
	PACKS("\xd3\x80\0\0\0\0\0\0\0", "I", INT64_MIN);
	PACKS("\xcf\xff\xff\xff\xff\xff\xff\xff\xff", "U", UINT64_MAX);
	PACKS("\xcb\x3f\xf8\0\0\0\0\0\0", "d", 1.5);
	PACKS("\xa3" "abc", "s", "abc");
	PACKS("\xa0", "s", "");
	PACKS("\xc0", "s", (char *)NULL);
	PACKS("\xa3" "a\0c", "S", "a\0c", (size_t)3);
	PACKS("\xa0", "S", (char *)NULL, (size_t)0);
	PACKS("\xc4\x02" "xy", "B", "xyz", (size_t)2);
	PACKS("\xc4\x00", "B", NULL, (size_t)0);
	PACKS("\x92\x01\x02", "v", &inner);
	PACKS("\xc0", "v", &nil);
	PACKS("\xc0", "v", (evc_value *)NULL);
	PACKS("\x90", "[]");
	PACKS("\x80", "{}");
	PACKS("\x93\x01\xa1x\x92\x01\x02", "[i s,v]", 1, "x", &inner);
	PACKS("\x92\x01\x02", " [ i,,\ti ]\n", 1, 2);
	PACKS("\x82\xa1" "a\x01\xa2" "bc\x91\xc0", "{a:i bc : [n]}", 1);
	PACKS("\x81\xa3key\x05", "{%:i}", "key", 5);
	PACKS("\x82\xa1x\x81\xa1y\x01\xa1z\x02", "{%:{%:i}%:i}", "x", "y", 1,
	      "z", 2);
	PACKS("\x92\x81\xa4" "a.-_\xc0\x90", "[{a.-_:n}[]]");
	PACKS("\x82\xa2.a\x01\xa3...\x91\x02", "{.a:i ...:[i]}", 1, 2);
}
END_TEST

START_TEST(each_letter_is_read)
{
	evc_value v, inner;
	const char *s = NULL;
	const void *p = NULL;
	uint64_t U = 0;
	int64_t I = 0;
	unsigned u = 0;
	size_t n = 0, m = 0;
	double d = 0;
	char text[8];
	int b = 7, i = 0;

	OK(evc_pack(&v, "[nbiuIUdsSBvn]", 1, -2, 3u, INT64_C(-4), UINT64_C(5),
		    6.5, "seven", "ei\0ht", (size_t)5, "nine", (size_t)4,
		    &VALUE("\x91\x0a")));
	OK(evc_unpack(&v, "[nbiuIUdsSBv*]", &b, &i, &u, &I, &U, &d, text,
		      sizeof(text), &s, &n, &p, &m, &inner));
	ck_assert_int_eq(b, 1);
	ck_assert_int_eq(i, -2);
	ck_assert_uint_eq(u, 3);
	ck_assert_int_eq(I, -4);
	ck_assert_uint_eq(U, 5);
	ck_assert_double_eq(d, 6.5);
	ck_assert_str_eq(text, "seven");
	ck_assert_uint_eq(n, 5);
	ck_assert_mem_eq(s, "ei\0ht", 5);
	ck_assert_uint_eq(m, 4);
	ck_assert_mem_eq(p, "nine", 4);
	IS(&inner, "\x91\x0a");
	/* They point into the value. */
	ck_assert(s > (const char *)v.data &&
		  s < (const char *)v.data + v.size);
	ck_assert(inner.data > v.data);
	OK(evc_unpack(&v, "[nb...]", &b));
	OK(evc_unpack(&v, "[...]"));
	OK(evc_unpack(&v, "*"));
	OK(evc_unpack(&v, "v", &inner));
	ck_assert_ptr_eq(inner.data, v.data);
	ck_assert_uint_eq(inner.size, v.size);
	evc_value_free(&v);
}
END_TEST

START_TEST(nil_is_nil)
{
	evc_value nils[] = { { NULL, 0 }, { "x", 0 }, VALUE("\xc0") }, v;
	char text[4];
	size_t i;

	for (i = 0; i < 3; i++) {
		OK(evc_value_check(&nils[i]));
		ck_assert_uint_eq(evc_value_type(&nils[i]), EVC_VALUE_NIL);
		ck_assert_uint_eq(evc_value_count(&nils[i]), 0);
		OK(evc_unpack(&nils[i], "n"));
		OK(evc_unpack(&nils[i], "*"));
		OK(evc_unpack(&nils[i], "v", &v));
		ck_assert_uint_eq(evc_value_type(&v), EVC_VALUE_NIL);
		SAYS(EVC_INVALID_ARGUMENT, "nil, not a string",
		     evc_unpack(&nils[i], "s", text, sizeof(text)));
		SAYS(EVC_INVALID_ARGUMENT, "nil, not an array",
		     evc_unpack(&nils[i], "[]"));
		ck_assert_uint_eq(evc_value_print(&nils[i], NULL, 0), 4);
		OK(evc_value_copy(&v, &nils[i]));
		ck_assert_uint_eq(evc_value_type(&v), EVC_VALUE_NIL);
		evc_value_free(&v);
	}
	evc_value_free(NULL);
}
END_TEST

/* ---- numbers ---- */

/* Which of the four integer letters take it? */
static void
fits(const char *letters, const evc_value *v)
{
	static const char formats[][2] = { "i", "u", "I", "U" };
	static const char *const types[] = { "an int", "an unsigned",
					     "an int64_t", "a uint64_t" };
	uint64_t room, before;
	unsigned k;
	int st;

	for (k = 0; k < 4; k++) {
		before = room = UINT64_C(0x5a5a5a5a5a5a5a5a);
		st = evc_unpack(v, formats[k], (void *)&room);
		if (strchr(letters, formats[k][0]) != NULL) {
			ck_assert_msg(st == 0, "%s: %s", formats[k],
				      evc_last_error());
			continue;
		}
		ck_assert_int_eq(st, -EVC_OUT_OF_RANGE);
		HAS(evc_last_error(), types[k]);
		ck_assert_uint_eq(room, before);
	}
}

START_TEST(limits_of_integers)
{
	static const struct {
		int64_t n;
		const char *fits;
	} cases[] = {
		{ INT64_MIN, "I" },          { INT_MIN - INT64_C(1), "I" },
		{ INT_MIN, "iI" },           { -32769, "iI" },
		{ -32768, "iI" },            { -129, "iI" },
		{ -128, "iI" },              { -33, "iI" },
		{ -32, "iI" },               { -1, "iI" },
		{ 0, "iuIU" },               { 127, "iuIU" },
		{ 128, "iuIU" },             { 255, "iuIU" },
		{ 256, "iuIU" },             { 65535, "iuIU" },
		{ 65536, "iuIU" },           { INT_MAX, "iuIU" },
		{ INT_MAX + INT64_C(1), "uIU" }, { UINT_MAX, "uIU" },
		{ UINT_MAX + INT64_C(1), "IU" }, { INT64_MAX, "IU" },
	};
	volatile double as_double;
	uint64_t U;
	int64_t I;
	evc_value v;
	double d;
	size_t k;

	for (k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		OK(evc_pack(&v, "I", cases[k].n));
		fits(cases[k].fits, &v);
		OK(evc_unpack(&v, "I", &I));
		ck_assert_int_eq(I, cases[k].n);
		OK(evc_unpack(&v, "d", &d));
		/* i387 computes with more digits than a double has. */
		as_double = (double)cases[k].n;
		ck_assert_double_eq(d, as_double);
		evc_value_free(&v);
	}
	OK(evc_pack(&v, "U", UINT64_MAX));
	fits("U", &v);
	OK(evc_unpack(&v, "U", &U));
	ck_assert_uint_eq(U, UINT64_MAX);
	OK(evc_unpack(&v, "d", &d));
	ck_assert_double_eq(d, 18446744073709551616.0);
	SAYS(EVC_OUT_OF_RANGE, "18446744073709551615 does not fit an int64_t",
	     evc_unpack(&v, "I", &I));
	evc_value_free(&v);
	SAYS(EVC_OUT_OF_RANGE, "in [1]: -5 does not fit a uint64_t",
	     evc_unpack(&VALUE("\x92\x01\xfb"), "[*U]", &U));
}
END_TEST

START_TEST(every_way_to_write_a_number)
{
	/* Others write small ones in long ways. */
	static const evc_value ones[] = {
		{ "\x01", 1 },
		{ "\xcc\x01", 2 },
		{ "\xcd\0\x01", 3 },
		{ "\xce\0\0\0\x01", 5 },
		{ "\xcf\0\0\0\0\0\0\0\x01", 9 },
		{ "\xd0\x01", 2 },
		{ "\xd1\0\x01", 3 },
		{ "\xd2\0\0\0\x01", 5 },
		{ "\xd3\0\0\0\0\0\0\0\x01", 9 },
	}, minus[] = {
		{ "\xfe", 1 },
		{ "\xd0\xfe", 2 },
		{ "\xd1\xff\xfe", 3 },
		{ "\xd2\xff\xff\xff\xfe", 5 },
		{ "\xd3\xff\xff\xff\xff\xff\xff\xff\xfe", 9 },
	};
	unsigned u;
	double d;
	size_t k;
	int i;

	for (k = 0; k < sizeof(ones) / sizeof(ones[0]); k++) {
		OK(evc_unpack(&ones[k], "i", &i));
		OK(evc_unpack(&ones[k], "u", &u));
		OK(evc_unpack(&ones[k], "d", &d));
		ck_assert(i == 1 && u == 1 && d == 1.0);
	}
	for (k = 0; k < sizeof(minus) / sizeof(minus[0]); k++) {
		OK(evc_unpack(&minus[k], "i", &i));
		OK(evc_unpack(&minus[k], "d", &d));
		ck_assert(i == -2 && d == -2.0);
	}
	OK(evc_unpack(&VALUE("\xca\x3f\xc0\0\0"), "d", &d));
	ck_assert_double_eq(d, 1.5);
	/* A double is no integer, not even a whole one. */
	SAYS(EVC_INVALID_ARGUMENT, "a double, not an integer",
	     evc_unpack(&VALUE("\xcb\x3f\xf0\0\0\0\0\0\0"), "i", &i));
	SAYS(EVC_INVALID_ARGUMENT, "a boolean, not an integer",
	     evc_unpack(&VALUE("\xc3"), "u", &u));
	SAYS(EVC_INVALID_ARGUMENT, "an integer, not a boolean",
	     evc_unpack(&VALUE("\x01"), "b", &i));
}
END_TEST

/* ---- texts ---- */

START_TEST(a_copied_text_has_to_fit)
{
	evc_value v = VALUE("\xa3" "abc"), zero = VALUE("\xa3" "a\0c");
	char text[4] = "...", none;
	const char *s;
	size_t n;

	OK(evc_unpack(&v, "s", text, (size_t)4));
	ck_assert_str_eq(text, "abc");
	strcpy(text, "...");
	SAYS(EVC_OUT_OF_RANGE,
	     "a string of 3 bytes does not fit 3 with its 0 byte",
	     evc_unpack(&v, "s", text, (size_t)3));
	REFUSED(EVC_OUT_OF_RANGE, evc_unpack(&v, "s", &none, (size_t)0));
	REFUSED(EVC_OUT_OF_RANGE, evc_unpack(&zero, "s", text, sizeof(text)));
	HAS(evc_last_error(), "a 0 byte inside");
	ck_assert_str_eq(text, "...");
	OK(evc_unpack(&zero, "S", &s, &n));
	ck_assert_uint_eq(n, 3);
	OK(evc_unpack(&VALUE("\xa0"), "s", text, (size_t)1));
	ck_assert_str_eq(text, "");
}
END_TEST

START_TEST(texts_and_binary_of_every_size)
{
	static const size_t sizes[] = { 0,   1,   31,   32,    255,  256,
					511, 512, 513, 65535, 65536, 300000 };
	char *big = malloc(300000);
	const char *s;
	const void *p;
	evc_value v;
	size_t k, n, m;

	ck_assert_ptr_nonnull(big);
	memset(big, 'x', 300000);
	for (k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		OK(evc_pack(&v, "{s:S b:B}", big, sizes[k], big, sizes[k]));
		OK(evc_value_check(&v));
		OK(evc_unpack(&v, "{b:B s:S}", &p, &n, &s, &m));
		ck_assert(n == sizes[k] && m == sizes[k]);
		ck_assert(memcmp(p, big, n) == 0 && memcmp(s, big, m) == 0);
		evc_value_free(&v);
	}
	free(big);
	/* One is not the other. */
	SAYS(EVC_INVALID_ARGUMENT, "binary data, not a string",
	     evc_unpack(&VALUE("\xc4\x01x"), "S", &s, &n));
	SAYS(EVC_INVALID_ARGUMENT, "a string, not binary data",
	     evc_unpack(&VALUE("\xa1x"), "B", &p, &n));
	v = (evc_value){ "kept", 4 };
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_pack(&v, "[iS]", 1, (char *)NULL, (size_t)1));
	HAS(evc_last_error(), "byte 2: a string at NULL");
	REFUSED(EVC_INVALID_ARGUMENT, evc_pack(&v, "B", NULL, (size_t)1));
	HAS(evc_last_error(), "binary data at NULL");
	REFUSED(EVC_INVALID_ARGUMENT, evc_pack(&v, "{%:n}", (char *)NULL));
	HAS(evc_last_error(), "a key that is NULL");
	ck_assert_uint_eq(v.size, 4);
	if (sizeof(size_t) > 4) {
		REFUSED(EVC_RESOURCE_EXHAUSTED,
			evc_pack(&v, "S", "x", SIZE_MAX));
		REFUSED(EVC_RESOURCE_EXHAUSTED,
			evc_pack(&v, "B", "x", (size_t)UINT32_MAX + 1));
	}
}
END_TEST

/* ---- arrays and maps ---- */

START_TEST(arrays_have_the_length_that_is_asked_for)
{
	evc_value v = VALUE("\x93\x01\x02\x93\x03\x04\xa1x");
	int a = 0, b = 0, c = 0;

	OK(evc_unpack(&v, "[ii[ii*]]", &a, &b, &c, &a));
	OK(evc_unpack(&v, "[i...]", &a));
	OK(evc_unpack(&v, "[ii* ...]", &a, &b));
	SAYS(EVC_INVALID_ARGUMENT, "an array of 3, not of 2",
	     evc_unpack(&v, "[ii]", &a, &b));
	SAYS(EVC_INVALID_ARGUMENT, "an array of 3, not of 0",
	     evc_unpack(&v, "[]"));
	SAYS(EVC_INVALID_ARGUMENT, "an array of 3, not of 4 or more",
	     evc_unpack(&v, "[ii**...]", &a, &b));
	SAYS(EVC_INVALID_ARGUMENT, "in [2]: an array of 3, not of 4",
	     evc_unpack(&v, "[**[****]]"));
	SAYS(EVC_INVALID_ARGUMENT, "in [2][2]: a string, not an integer",
	     evc_unpack(&v, "[**[*ii]]", &a, &b));
	/* What came before the mismatch is filled. */
	ck_assert_int_eq(a, 4);
	SAYS(EVC_INVALID_ARGUMENT, "in [0]: an integer, not a map",
	     evc_unpack(&v, "[{}...]"));
	SAYS(EVC_INVALID_ARGUMENT, "an array, not a map", evc_unpack(&v, "{}"));
	SAYS(EVC_INVALID_ARGUMENT, "in [2]: an array, not nil",
	     evc_unpack(&v, "[**n]"));
}
END_TEST

START_TEST(maps_are_read_by_their_keys)
{
	char path[16] = "";
	evc_value v;
	int a = -1, b = -1, c = -1;

	OK(evc_pack(&v, "{path:s size:i more:{x:i y:i} %:i}", "/etc", 5, 6, 7,
		    "odd key", 8));
	ck_assert_uint_eq(evc_value_count(&v), 4);
	/* In any order, not all of them, one twice. */
	OK(evc_unpack(&v, "{path:s size:i}", path, sizeof(path), &a));
	ck_assert_str_eq(path, "/etc");
	ck_assert_int_eq(a, 5);
	OK(evc_unpack(&v, "{%:i more:{y:i x:i} size:i size:d}", "odd key", &a,
		      &b, &c, &a, &(double){ 0 }));
	ck_assert(a == 5 && b == 7 && c == 6);
	OK(evc_unpack(&v, "{}"));
	SAYS(EVC_NOT_FOUND, "no key siz",
	     evc_unpack(&v, "{path:* siz:i}", &a));
	SAYS(EVC_NOT_FOUND, "in .more: no key z",
	     evc_unpack(&v, "{more:{x:i z:i}}", &a, &b));
	SAYS(EVC_NOT_FOUND, "no key path2", evc_unpack(&v, "{%:*}", "path2"));
	SAYS(EVC_INVALID_ARGUMENT, "in .more.x: an integer, not a string",
	     evc_unpack(&v, "{more:{x:s}}", path, sizeof(path)));
	SAYS(EVC_INVALID_ARGUMENT, "in .odd key: an integer, not a boolean",
	     evc_unpack(&v, "{%:b}", "odd key", &a));
	REFUSED(EVC_INVALID_ARGUMENT, evc_unpack(&v, "{%:i}", NULL, &a));
	evc_value_free(&v);
	v = VALUE("\x93\x01\x02\x81\xa4path\x07");
	SAYS(EVC_INVALID_ARGUMENT, "in [2].path: an integer, not a string",
	     evc_unpack(&v, "[ii{path:s}]", &a, &b, path, sizeof(path)));
}
END_TEST

START_TEST(keys_that_may_be_missing)
{
	evc_value v = VALUE("\x82\xa1" "a\x01\xa1" "c\x03");
	evc_value none = VALUE("\x80");
	int a = -1, b = -1, c = -1, i = -1;
	const char *s = "s";
	char text[4] = "t";
	const void *p = "p";
	evc_value inner = { "v", 1 };
	uint64_t U = 9;
	int64_t I = 9;
	unsigned u = 9;
	size_t n = 9;
	double d = 9;

	OK(evc_unpack(&v, "{a:i b?:i c?:i}", &a, &b, &c));
	ck_assert(a == 1 && b == -1 && c == 3);
	/* The arguments of a missing one are passed over, however many. */
	OK(evc_unpack(&v, "{x?:[b i u I U d s S B v n * {k:i %:i j?:s} ...]"
		      " c:i}", &i, &i, &u, &I, &U, &d, text, sizeof(text), &s,
		      &n, &p, &n, &inner, &i, "k", &i, text, sizeof(text), &a));
	ck_assert_int_eq(a, 3);
	ck_assert(i == -1 && u == 9 && I == 9 && U == 9 && d == 9 && n == 9);
	ck_assert_str_eq(text, "t");
	ck_assert_str_eq(s, "s");
	ck_assert_str_eq(p, "p");
	ck_assert_str_eq(inner.data, "v");
	OK(evc_unpack(&v, "{%?:i %?:i}", "b", &b, "a", &c));
	ck_assert(b == -1 && c == 1);
	OK(evc_unpack(&none, "{a ? : i}", &b));
	ck_assert_int_eq(b, -1);
	/* One that is there has to be right. */
	SAYS(EVC_INVALID_ARGUMENT, "in .a: an integer, not a string",
	     evc_unpack(&v, "{a?:s}", text, sizeof(text)));
	SAYS(EVC_NOT_FOUND, "no key a", evc_unpack(&none, "{a:i}", &b));
}
END_TEST

START_TEST(maps_of_others)
{
	/* Keys that are no strings, one that is there twice, and a value that
	   looks like a key. */
	evc_value v = VALUE("\x85\x01\xa1k\xa1k\x02\xa1k\x03\xc0\x04"
			    "\x91\xa1k\x05");
	int i = 0;

	OK(evc_unpack(&v, "{k:i}", &i));
	ck_assert_int_eq(i, 2);
	SAYS(EVC_NOT_FOUND, "no key K", evc_unpack(&v, "{K:i}", &i));
	/* Points in a map are letters like others. */
	OK(evc_unpack(&v, "{...?:[{.:i}...] .a?:i k:i}", &i, &i, &i));
	SAYS(EVC_NOT_FOUND, "no key ...", evc_unpack(&v, "{...:i}", &i));
}
END_TEST

/* ---- formats that are none ---- */

static void
no_format(const char *format, const char *why, bool when_packing)
{
	evc_value v = { "kept", 4 };
	int st;

	/* Nothing is taken from the list: the arguments would be wrong. */
	st = when_packing ? evc_pack(&v, format) : evc_unpack(&VALUE("\xc0"),
							      format);
	ck_assert_msg(st == -EVC_INVALID_ARGUMENT, "\"%s\": %d", format, st);
	HAS(evc_last_error(), why);
	ck_assert_uint_eq(v.size, 4);
}

START_TEST(formats_are_looked_at_as_a_whole)
{
	static const struct {
		const char *format, *why;
	} wrong[] = {
		{ "q", "byte 0: q is no type" },
		{ "[i i i Q]", "byte 7: Q is no type" },
		{ "\x01", "0x01 is no type" },
		{ "\xff", "0xff is no type" },
		{ "i i", "byte 2: a format is one value" },
		{ "[] []", "a format is one value" },
		{ "[i]]", "byte 3: a format is one value" },
		{ "[", "byte 0: this is not closed" },
		{ "[i [i]", "byte 0: this is not closed" },
		{ "[i [i ", "byte 3: this is not closed" },
		{ "{a:i", "byte 0: this is not closed" },
		{ "]", "closes nothing" },
		{ "}", "closes nothing" },
		{ "[i}", "byte 2: } stands where a type should" },
		{ "{a:i]", "byte 4: ] closes a map" },
		{ "{a:]", "] closes a map" },
		{ "{a:}", "} stands where a type should" },
		{ "{a:", "a type is missing" },
		{ "{a}", "byte 2: there is no : behind the key" },
		{ "{a i}", "there is no : behind the key" },
		{ "{a:i b}", "byte 6: there is no : behind the key" },
		{ "{:i}", "byte 1: this is no key" },
		{ "{*:i}", "this is no key" },
		{ "{[i]:i}", "this is no key" },
		{ "{...}", "there is no : behind the key" },
		{ "{%%:i}", "there is no : behind the key" },
		{ "{%a:i}", "there is no : behind the key" },
		{ "...", ". is no type" },
		{ "[..]", ". is no type" },
		{ "[.i]", ". is no type" },
		{ "?", "? is no type" },
	}, packing[] = {
		{ "*", "* cannot stand here" },
		{ "[i...]", "byte 2: ... is for reading alone" },
		{ "{a?:i}", "byte 1: KEY? is for reading alone" },
		{ "{%?:i}", "KEY? is for reading alone" },
	}, reading[] = {
		{ "", "a type is missing" },
		{ " ", "a type is missing" },
		{ "r", "r cannot stand here" },
		{ "[w]", "byte 1: w cannot stand here" },
		{ "[... i]", "... is the last in an array" },
		{ "[......]", "... is the last in an array" },
		{ "{a??:i}", "there is no : behind the key" },
	};
	size_t k;

	for (k = 0; k < sizeof(wrong) / sizeof(wrong[0]); k++) {
		no_format(wrong[k].format, wrong[k].why, true);
		no_format(wrong[k].format, wrong[k].why, false);
	}
	for (k = 0; k < sizeof(packing) / sizeof(packing[0]); k++)
		no_format(packing[k].format, packing[k].why, true);
	for (k = 0; k < sizeof(reading) / sizeof(reading[0]); k++)
		no_format(reading[k].format, reading[k].why, false);
	no_format(NULL, "NULL", true);
	no_format(NULL, "NULL", false);
	SAYS(EVC_INVALID_ARGUMENT,
	     "the format \"[i i i i i i i i i i i i i i i i i i i i...\", "
	     "byte 51: q is no type",
	     evc_unpack(&VALUE("\xc0"), "[i i i i i i i i i i i i i i i i i i "
			"i i i i i i i q]"));
}
END_TEST

START_TEST(how_deep)
{
	char format[2 * EVC_VALUE_DEPTH + 8];
	unsigned n;
	evc_value v = { NULL, 0 }, w;
	int i = 0;

	for (n = 0; n <= EVC_VALUE_DEPTH + 1; n++) {
		memset(format, '[', n);
		format[n] = 'i';
		memset(format + n + 1, ']', n);
		format[2 * n + 1] = '\0';
		if (n > EVC_VALUE_DEPTH) {
			REFUSED(EVC_INVALID_ARGUMENT, evc_pack(&v, format, 5));
			HAS(evc_last_error(), "byte 32: this is too deep");
			REFUSED(EVC_INVALID_ARGUMENT,
				evc_unpack(&VALUE("\xc0"), format, &i));
			break;
		}
		OK(evc_pack(&v, format, (int)n));
		OK(evc_value_check(&v));
		OK(evc_unpack(&v, format, &i));
		ck_assert_int_eq(i, (int)n);
		/* And with one more around. */
		if (n < EVC_VALUE_DEPTH) {
			OK(evc_pack(&w, "{a:v}", &v));
			OK(evc_value_check(&w));
			evc_value_free(&w);
		} else {
			REFUSED(EVC_INVALID_ARGUMENT,
				evc_pack(&w, "{a:v}", &v));
			HAS(evc_last_error(), "byte 3: this value is too deep");
		}
		evc_value_free(&v);
	}
}
END_TEST

START_TEST(bytes_that_are_no_value)
{
	evc_value bad = VALUE("\x92\x01"), v = { "kept", 4 };
	int i;

	REFUSED(EVC_INVALID_ARGUMENT, evc_pack(&v, "[v]", &bad));
	HAS(evc_last_error(), "no value");
	REFUSED(EVC_INVALID_ARGUMENT, evc_unpack(&bad, "[ii]", &i, &i));
	HAS(evc_last_error(), "no value");
	REFUSED(EVC_INVALID_ARGUMENT, evc_unpack(&bad, "*"));
	REFUSED(EVC_INVALID_ARGUMENT, evc_unpack(&VALUE("\x01\x02"), "i", &i));
	REFUSED(EVC_INVALID_ARGUMENT, evc_unpack(NULL, "i", &i));
	REFUSED(EVC_INVALID_ARGUMENT, evc_pack(NULL, "i", 1));
	REFUSED(EVC_INVALID_ARGUMENT, evc_pack(&v, "r", (evc_remote *)NULL));
	HAS(evc_last_error(), "a remote that is NULL");
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_pack(&v, "w", (evc_per_worker *)NULL));
	HAS(evc_last_error(), "a per-worker value that is NULL");
	ck_assert_uint_eq(v.size, 4);
}
END_TEST

API_MAIN("value", each_letter_is_packed, each_letter_is_read, nil_is_nil,
	 limits_of_integers, every_way_to_write_a_number,
	 a_copied_text_has_to_fit, texts_and_binary_of_every_size,
	 arrays_have_the_length_that_is_asked_for, maps_are_read_by_their_keys,
	 keys_that_may_be_missing, maps_of_others,
	 formats_are_looked_at_as_a_whole, how_deep, bytes_that_are_no_value)
