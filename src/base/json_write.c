/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes JSON into a text buffer.
 * Called by: the reports and metrics of observe, group, cluster and tools.
 * Locks: none; the buffer is the caller's.
 */
#include "base/json_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

void
evc__text_ns(struct text *t, uint64_t ns)
{
	evc__text_fmt(t, "%llu.%09llu", (unsigned long long)(ns / 1000000000),
		      (unsigned long long)(ns % 1000000000));
}

void
evc__text_seconds(struct text *t, double s)
{
	uint64_t ns;

	if (s < 0) {
		evc__text_add(t, "-");
		s = -s;
	}
	/* At most three hundred years; NaN becomes so many, too. */
	if (!(s < 1e10))
		s = 1e10;
	ns = (uint64_t)(s * 1e9 + 0.5);
	evc__text_ns(t, ns);
}

void
evc__text_double(struct text *t, double v)
{
	char digits[40], *s;

	snprintf(digits, sizeof digits, "%.15g", v);
	if (strtod(digits, NULL) != v)
		snprintf(digits, sizeof digits, "%.17g", v);
	/* The other bytes are the locale's point, of one byte or more. */
	for (s = digits; *s != '\0'; s++)
		if (strchr("+-0123456789e", *s) == NULL) {
			size_t n = strcspn(s, "+-0123456789e");

			*s = '.';
			memmove(s + 1, s + n, strlen(s + n) + 1);
		}
	evc__text_add(t, digits);
}

static void
add_quoted(struct text *t, const char *s)
{
	char part[5];
	uint32_t v;
	size_t n;

	evc__text_add(t, "\"");
	for (; *s != '\0'; s += n > 0 ? n : 1) {
		n = evc__utf8(s, &v);
		if (n == 0)
			evc__text_add(t, "\\ufffd");
		else if (v == '"' || v == '\\')
			evc__text_fmt(t, "\\%c", *s);
		else if (v < 0x20 || v == 0x7f)
			evc__text_fmt(t, "\\u%04x", (unsigned)v);
		else {
			memcpy(part, s, n);
			part[n] = '\0';
			evc__text_add(t, part);
		}
	}
	evc__text_add(t, "\"");
}

void
evc__json_key(struct evc__json *j, const char *name)
{
	evc__text_add(j->t, j->more ? "," : "");
	j->more = true;
	if (name != NULL) {
		add_quoted(j->t, name);
		evc__text_add(j->t, ":");
	}
}

void
evc__json_begin(struct evc__json *j, const char *name, const char *bracket)
{
	evc__json_key(j, name);
	evc__text_add(j->t, bracket);
	j->more = false;
}

void
evc__json_end(struct evc__json *j, const char *bracket)
{
	evc__text_add(j->t, bracket);
	j->more = true;
}

void
evc__json_null(struct evc__json *j, const char *name)
{
	evc__json_key(j, name);
	evc__text_add(j->t, "null");
}

void
evc__json_string(struct evc__json *j, const char *name, const char *s)
{
	if (s == NULL) {
		evc__json_null(j, name);
		return;
	}
	evc__json_key(j, name);
	add_quoted(j->t, s);
}

void
evc__json_number(struct evc__json *j, const char *name, uint64_t v)
{
	evc__json_key(j, name);
	evc__text_fmt(j->t, "%llu", (unsigned long long)v);
}

void
evc__json_number_if(struct evc__json *j, const char *name, bool applies,
		    uint64_t v)
{
	if (applies)
		evc__json_number(j, name, v);
	else
		evc__json_null(j, name);
}

void
evc__json_integer(struct evc__json *j, const char *name, int v)
{
	evc__json_key(j, name);
	evc__text_int(j->t, v);
}

void
evc__json_seconds(struct evc__json *j, const char *name, double s)
{
	evc__json_key(j, name);
	evc__text_seconds(j->t, s);
}

void
evc__json_seconds_if(struct evc__json *j, const char *name, double s)
{
	if (s >= 0)
		evc__json_seconds(j, name, s);
	else
		evc__json_null(j, name);
}

void
evc__json_boolean(struct evc__json *j, const char *name, bool v)
{
	evc__json_key(j, name);
	evc__text_add(j->t, v ? "true" : "false");
}

void
evc__json_string_if(struct evc__json *j, const char *name, const char *s)
{
	evc__json_string(j, name, s[0] != '\0' ? s : NULL);
}
