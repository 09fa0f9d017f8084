/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A value as text: JSON, and where JSON has no words, a form for logs: <binary
 * 3: 010203>, <remote 7>, NaN, and keys of any type.
 * Called by: the program (evc_value_print).
 * Locks: none.
 */
#include <evcoord/value.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_write.h"
#include "wire/head.h"
#include "wire/vector.h"

#define BINARY_MOST 32 /* bytes shown */
#define PART 60        /* bytes of a string that are quoted at once */

/* The number of bytes to quote at once: no 0 byte, and no end inside a UTF-8
   character, which has at most three bytes behind its first. */
static size_t
part_of(const char *s, size_t n)
{
	size_t to = strnlen(s, n < PART ? n : PART), back = to;

	if (to == n || s[to] == '\0')
		return to;
	while (back > to - 3 && ((unsigned char)s[back] & 0xc0) == 0x80)
		back--;
	return ((unsigned char)s[back] & 0xc0) == 0x80 ? to : back;
}

static void
print_string(struct text *to, const char *s, size_t n)
{
	char part[PART + 1], quoted[6 * PART + 3];
	size_t some;

	evc__text_add(to, "\"");
	while (n > 0) {
		struct text t = evc__text_in(quoted, sizeof(quoted));
		struct evc__json j = { &t, false };

		some = part_of(s, n);
		memcpy(part, s, some);
		part[some] = '\0';
		evc__json_string(&j, NULL, part);
		quoted[t.len - 1] = '\0';
		evc__text_add(to, quoted + 1);
		if (some < n && s[some] == '\0') {
			evc__text_add(to, "\\u0000");
			some++;
		}
		s += some;
		n -= some;
	}
	evc__text_add(to, "\"");
}

/* A double with as few digits as read back the same, but at least 15; with a
   point in every locale, and never like an integer. */
static void
print_double(struct text *to, double d)
{
	char text[64], *s;
	bool whole = true;
	int digits = 15;

	if (!isfinite(d)) {
		evc__text_add(to, isnan(d) ? "NaN" : d < 0 ? "-Infinity" :
							     "Infinity");
		return;
	}
	do
		snprintf(text, sizeof(text), "%.*g", digits, d);
	while (strtod(text, NULL) != d && ++digits <= 17);
	for (s = text; *s != '\0'; s++) {
		if (strchr("0123456789-+", *s) != NULL)
			continue;
		whole = false;
		if (*s != 'e') {
			*s = '.';
			/* (A point of several bytes.) */
			while (strchr("0123456789", s[1]) == NULL)
				memmove(s + 1, s + 2, strlen(s + 1));
		}
	}
	evc__text_add(to, text);
	evc__text_add(to, whole ? ".0" : "");
}

static void
print_binary(struct text *to, const unsigned char *p, size_t n)
{
	size_t i;

	evc__text_fmt(to, "<binary %zu%s", n, n > 0 ? ": " : "");
	for (i = 0; i < n && i < BINARY_MOST; i++)
		evc__text_fmt(to, "%02x", p[i]);
	evc__text_add(to, i < n ? "...>" : ">");
}

static void print_value(struct text *to, const evc_value *v);

static void
print_inside(struct text *to, const evc_value *v, bool map)
{
	evc_value key, element;
	const char *between = "";
	size_t at = 0;

	evc__text_add(to, map ? "{" : "[");
	while (evc_value_next(v, &at, &key, &element)) {
		evc__text_add(to, between);
		if (map) {
			print_value(to, &key);
			evc__text_add(to, ":");
		}
		print_value(to, &element);
		between = ",";
	}
	evc__text_add(to, map ? "}" : "]");
}

static void
print_vector(struct text *to, const evc_value *v)
{
	struct vector x = { .n = 0 };
	size_t i;

	(void)evc__vector_look(v, &x);
	evc__text_add(to, "[");
	for (i = 0; i < x.n; i++) {
		if (i > 0)
			evc__text_add(to, ",");
		print_double(to, vector_number(x.at, x.width, i));
	}
	evc__text_add(to, "]");
}

static void
print_value(struct text *to, const evc_value *v)
{
	const unsigned char *p = value_begin(v);
	struct walk_ref r;
	struct head h;

	(void)evc__head(p, value_size(v), &h);
	switch (h.type) {
	case EVC_VALUE_NIL:
		evc__text_add(to, "null");
		break;
	case EVC_VALUE_BOOL:
		evc__text_add(to, h.b ? "true" : "false");
		break;
	case EVC_VALUE_INTEGER:
		if (h.negative)
			evc__text_int(to, h.i);
		else
			evc__text_fmt(to, "%llu", (unsigned long long)h.u);
		break;
	case EVC_VALUE_DOUBLE:
		print_double(to, h.d);
		break;
	case EVC_VALUE_STRING:
		print_string(to, (const char *)p + h.size, (size_t)h.n);
		break;
	case EVC_VALUE_BINARY:
		print_binary(to, p + h.size, (size_t)h.n);
		break;
	case EVC_VALUE_ARRAY:
	case EVC_VALUE_MAP:
		print_inside(to, v, h.type == EVC_VALUE_MAP);
		break;
	case EVC_VALUE_VECTOR:
		print_vector(to, v);
		break;
	default:
		evc__walk_ref(p, &h, 0, &r);
		evc__text_fmt(to, "<%s %llu>",
			      r.per_worker ? "per-worker value" : "remote",
			      (unsigned long long)r.id);
		break;
	}
}

size_t
evc_value_print(const evc_value *value, char *buf, size_t n)
{
	struct text t = evc__text_in(buf, buf != NULL ? n : 0);

	if (value == NULL || !evc__walk_is_value(value, 0))
		evc__text_add(&t, "<no value>");
	else
		print_value(&t, value);
	return t.len;
}
