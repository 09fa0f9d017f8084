/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses of engines: SCHEME://PLACE?NAME=VALUE&NAME=VALUE.
 *
 * A byte with a meaning here stands in a value as %XX; a plus is a plus.
 *
 * PURE: text in, text out.
 * Called by: cluster/open, the engines, tools/evc-cluster.
 * Locks: none.
 */
#include "wire/uri.h"

#include <evcoord.h>
#include <string.h>

#include "base/sync.h"

static bool
is_letter(char c)
{
	return c >= 'a' && c <= 'z';
}

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static int
hex_digit(char c)
{
	if (is_digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* A copy of n bytes of text; NULL: no memory. */
static char *
copy_text(const char *s, size_t n)
{
	char *to = sync_alloc(1, n + 1);

	if (to != NULL)
		memcpy(to, s, n);
	return to;
}

static evc_status
no_memory(void)
{
	return evc_refuse(-EVC_RESOURCE_EXHAUSTED, "no memory");
}

/* The length of the scheme; 0: no scheme before "://". */
static size_t
scheme_length(const char *uri)
{
	size_t n = 0;

	while (is_letter(uri[n]) ||
	       (n > 0 && (is_digit(uri[n]) || uri[n] == '+' ||
			  uri[n] == '-' || uri[n] == '.')))
		n++;
	return strncmp(uri + n, "://", 3) == 0 ? n : 0;
}

/* ---- options ---- */

/* Decode in place: the writer is never ahead of the reader. false: a % without
   two digits, or a 0 byte, which no text can have. */
static bool
decode_text(char *s)
{
	char *to = s;
	int high, low;

	for (; *s != '\0'; s++) {
		if (*s != '%') {
			*to++ = *s;
			continue;
		}
		high = hex_digit(s[1]);
		low = high >= 0 ? hex_digit(s[2]) : -1;
		if (low < 0 || high + low == 0)
			return false;
		*to++ = (char)(high << 4 | low);
		s += 2;
	}
	*to = '\0';
	return true;
}

/* "NAME=VALUE" with a name?  The search for the name comes before the decoding,
   so that no %3D moves its end. */
static evc_status
check_option(char *option)
{
	const char *is = strchr(option, '=');
	size_t n = is != NULL ? (size_t)(is - option) : 0;

	if (n == 0 || memchr(option, '%', n) != NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "option \"%.60s\" is not NAME=VALUE", option);
	if (!decode_text(option + n + 1))
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "in option \"%.60s\" a %% is not followed by"
				  " two hexadecimal digits, or by 00",
				  option);
	return 0;
}

static evc_status
take_options(const char *s, struct cluster_uri *u)
{
	size_t n = 1, i, len;
	const char *at;
	evc_status st = 0;

	for (at = s; *at != '\0'; at++)
		n += *at == '&';
	/* A NULL ends the list. */
	u->options = sync_alloc(n + 1, sizeof(char *));
	if (u->options == NULL)
		return no_memory();
	if (*s == '\0')
		return 0;
	for (i = 0; st == 0 && i < n; i++) {
		len = strcspn(s, "&");
		u->options[i] = copy_text(s, len);
		st = u->options[i] != NULL ? check_option(u->options[i]) :
					     no_memory();
		s += len + 1;
	}
	return st;
}

/* ---- the whole ---- */

evc_status
evc__uri_parse(const char *uri, struct cluster_uri *ret_uri)
{
	struct cluster_uri u = { .place = NULL };
	size_t n = scheme_length(uri), len;
	const char *place;
	evc_status st;

	if (n == 0 || n >= sizeof u.scheme)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "\"%.60s\" is no address: it does not begin"
				  " with SCHEME://",
				  uri);
	memcpy(u.scheme, uri, n);
	place = uri + n + 3;
	len = strcspn(place, "?");
	u.place = copy_text(place, len);
	if (u.place == NULL)
		st = no_memory();
	else
		st = take_options(place[len] == '?' ? place + len + 1 : "",
				  &u);
	if (st < 0)
		evc__uri_free(&u);
	else
		*ret_uri = u;
	return st;
}

void
evc__uri_free(struct cluster_uri *u)
{
	size_t i;

	for (i = 0; u->options != NULL && u->options[i] != NULL; i++)
		sync_free(u->options[i]);
	sync_free(u->options);
	sync_free(u->place);
	u->options = NULL;
	u->place = NULL;
}

const char *
evc__uri_option(const char *const *options, const char *name, unsigned index)
{
	size_t n = strlen(name);

	for (; options != NULL && *options != NULL; options++)
		if (strncmp(*options, name, n) == 0 && (*options)[n] == '=' &&
		    index-- == 0)
			return *options + n + 1;
	return NULL;
}

bool
evc__uri_number(const char *text, unsigned most, unsigned *ret)
{
	uint64_t n = 0;
	const char *s;

	for (s = text; is_digit(*s) && n <= most; s++)
		n = n * 10 + (unsigned)(*s - '0');
	if (*s != '\0' || n > most || (n == 0 && s != text))
		return false;
	*ret = (unsigned)n;
	return true;
}
