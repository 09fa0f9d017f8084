/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses of engines: what is one, what is not and why, and what an engine
 * reads out of it.
 */
#include "../support/api_util.h"
#include "support/seam.h"

#include "wire/uri.h"

/* A parsed address that has to be one. */
static struct cluster_uri
parsed(const char *uri)
{
	struct cluster_uri u;
	evc_status st = evc__uri_parse(uri, &u);

	ck_assert_msg(st == 0, "%s: %s", uri, evc_last_error());
	return u;
}

static const char *
option(const struct cluster_uri *u, const char *name, unsigned index)
{
	return evc__uri_option((const char *const *)u->options, name, index);
}

static unsigned
n_options(const struct cluster_uri *u)
{
	unsigned n = 0;

	while (u->options[n] != NULL)
		n++;
	return n;
}

/* No address, and the text says why. */
static void
refused(const char *uri, const char *why)
{
	struct cluster_uri u;
	char text[200];

	REFUSED(EVC_INVALID_ARGUMENT, evc__uri_parse(uri, &u));
	snprintf(text, sizeof(text), "%s", evc_last_error());
	HAS(text, why);
}

START_TEST(the_parts_of_an_address)
{
	struct cluster_uri u = parsed("threads://4");

	ck_assert_str_eq(u.scheme, "threads");
	ck_assert_str_eq(u.place, "4");
	ck_assert_uint_eq(n_options(&u), 0);
	evc__uri_free(&u);
	/* twice is as good as once */
	evc__uri_free(&u);

	u = parsed("x://");
	ck_assert_str_eq(u.scheme, "x");
	ck_assert_str_eq(u.place, "");
	ck_assert_uint_eq(n_options(&u), 0);
	evc__uri_free(&u);

	u = parsed("a2+b-c.d://user:word@[::1]:77/0#x?one=1&two=2");
	ck_assert_str_eq(u.scheme, "a2+b-c.d");
	ck_assert_str_eq(u.place, "user:word@[::1]:77/0#x");
	ck_assert_uint_eq(n_options(&u), 2);
	ck_assert_str_eq(u.options[0], "one=1");
	ck_assert_str_eq(u.options[1], "two=2");
	evc__uri_free(&u);

	u = parsed("fifteen-letters://4?");
	ck_assert_str_eq(u.scheme, "fifteen-letters");
	ck_assert_str_eq(u.place, "4");
	ck_assert_uint_eq(n_options(&u), 0);
	evc__uri_free(&u);
}
END_TEST

START_TEST(options_are_decoded_and_found_by_name)
{
	struct cluster_uri u = parsed("processes://2?program=/bin/a%20b&arg=-x"
				      "&arg=%26%3D%25&arg=1+1=2&empty=&ar=?");

	ck_assert_uint_eq(n_options(&u), 6);
	ck_assert_str_eq(option(&u, "program", 0), "/bin/a b");
	ck_assert_ptr_null(option(&u, "program", 1));
	ck_assert_str_eq(option(&u, "arg", 0), "-x");
	ck_assert_str_eq(option(&u, "arg", 1), "&=%");
	/* a plus is a plus, and only the first = ends the name */
	ck_assert_str_eq(option(&u, "arg", 2), "1+1=2");
	ck_assert_ptr_null(option(&u, "arg", 3));
	ck_assert_str_eq(option(&u, "empty", 0), "");
	ck_assert_str_eq(option(&u, "ar", 0), "?");
	ck_assert_ptr_null(option(&u, "a", 0));
	ck_assert_ptr_null(option(&u, "", 0));
	evc__uri_free(&u);
	ck_assert_ptr_null(evc__uri_option(NULL, "arg", 0));

	u = parsed("x://?a=%e2%82%ac%0A%Ff");
	ck_assert_str_eq(option(&u, "a", 0), "\xe2\x82\xac\n\xff");
	evc__uri_free(&u);
}
END_TEST

START_TEST(what_is_no_address)
{
	refused("", "SCHEME://");
	refused("threads", "SCHEME://");
	refused("threads:4", "SCHEME://");
	refused("threads:/4", "SCHEME://");
	refused("://4", "SCHEME://");
	refused("4threads://4", "SCHEME://");
	refused("Threads://4", "SCHEME://");
	refused("thr eads://4", "SCHEME://");
	refused("sixteen-letters-://4", "SCHEME://");
	/* said, but cut */
	refused("an-address-that-is-much-longer-than-what-fits-into-a-text-of-"
		"the-library-and-so-on-and-so-on-and-so-on-and-so-on-and-so-on",
		"SCHEME://");
}
END_TEST

START_TEST(what_is_no_option)
{
	refused("x://4?a", "\"a\" is not NAME=VALUE");
	refused("x://4?=1", "\"=1\" is not NAME=VALUE");
	refused("x://4?a=1&", "\"\" is not NAME=VALUE");
	refused("x://4?&a=1", "\"\" is not NAME=VALUE");
	refused("x://4?a=1&&b=2", "\"\" is not NAME=VALUE");
	refused("x://4?a%3D1=2", "\"a%3D1=2\" is not NAME=VALUE");
	refused("x://4?a=%", "two hexadecimal digits");
	refused("x://4?a=%4", "two hexadecimal digits");
	refused("x://4?a=%4&b=1", "two hexadecimal digits");
	refused("x://4?a=%g0", "two hexadecimal digits");
	refused("x://4?a=%0g", "two hexadecimal digits");
	refused("x://4?a=b%00c", "00");
}
END_TEST

START_TEST(numbers)
{
	static const char *const none[] = {
		"0",	      "00",
		"-1",	      "+1",
		" 1",	      "1 ",
		"1x",	      "x",
		"0x1",	      "101",
		"4294967297", "18446744073709551617",
		"99999999999999999999999999",
	};
	unsigned n = 7;
	size_t i;

	ck_assert(evc__uri_number("", 100, &n));
	ck_assert_uint_eq(n, 0);
	ck_assert(evc__uri_number("1", 100, &n));
	ck_assert_uint_eq(n, 1);
	ck_assert(evc__uri_number("100", 100, &n));
	ck_assert_uint_eq(n, 100);
	ck_assert(evc__uri_number("007", 100, &n));
	ck_assert_uint_eq(n, 7);
	ck_assert(evc__uri_number("4294967295", UINT32_MAX, &n));
	ck_assert_uint_eq(n, UINT32_MAX);
	ck_assert(!evc__uri_number("4294967296", UINT32_MAX, &n));
	for (i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		ck_assert_msg(!evc__uri_number(none[i], 100, &n), "%s",
			      none[i]);
	/* one that is none changes nothing */
	ck_assert_uint_eq(n, UINT32_MAX);
}
END_TEST

/* Each allocation, one after the other; what came before it is given back,
   which the address sanitizer sees. */
START_TEST(without_memory_it_is_refused)
{
	static const char uri[] = "x://place?a=1&b=2";
	struct cluster_uri u;
	unsigned nth;

	for (nth = 1; nth <= 3; nth++) {
		seam_fail("alloc", "copy_text", nth, ENOMEM);
		REFUSED(EVC_RESOURCE_EXHAUSTED, evc__uri_parse(uri, &u));
		seam_reset();
	}
	seam_fail("alloc", "take_options", 1, ENOMEM);
	REFUSED(EVC_RESOURCE_EXHAUSTED, evc__uri_parse(uri, &u));
	seam_reset();
	u = parsed(uri);
	evc__uri_free(&u);
}
END_TEST

API_MAIN("uri", the_parts_of_an_address, options_are_decoded_and_found_by_name,
	 what_is_no_address, what_is_no_option, numbers,
	 without_memory_it_is_refused)
