/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The check of a format string, and the steps through a checked one.
 * Called by: pack.c and unpack.c.
 * Locks: none.
 */
#include "wire/format.h"

#include <evcoord.h>
#include <string.h>

#include "base/text.h"

struct check {
	const char *format, *at;
	unsigned flags, depth;
};

evc_status
evc__format_refuse(evc_status status, const char *format, const char *at,
		   const char *why)
{
	return evc_refuse(status, "the format \"%.40s%s\", byte %zu: %s",
			  format, strlen(format) > 40 ? "..." : "",
			  (size_t)(at - format), why);
}

static evc_status
refuse_at(const struct check *k, const char *why)
{
	return evc__format_refuse(-EVC_INVALID_ARGUMENT, k->format, k->at, why);
}

static bool
in_word(char c)
{
	return c != '\0' && strchr(" ,\t\n\v\f\r:?%*[]{}", c) == NULL;
}

const char *
evc__format_key(const char *at, struct format_key *ret)
{
	ret->word = at;
	while (in_word(*at))
		at++;
	ret->n = (size_t)(at - ret->word);
	ret->given = ret->n == 0 && *at == '%';
	at = format_next(at + ret->given);
	ret->optional = *at == '?';
	at = format_next(at + ret->optional);
	return *at == ':' ? at + 1 : at;
}

static evc_status
check_letter(struct check *k)
{
	static const char both[] = "nbiuIUdsSBv";
	bool unpack = k->flags & FORMAT_UNPACK;
	char c = *k->at, text[48];
	struct text t = evc__text_in(text, sizeof(text));

	if (strchr(both, c) != NULL || c == (unpack ? '*' : 'E') ||
	    (c == 'w' && (k->flags & FORMAT_REFS)) ||
	    ((c == 'r' || c == 'R') && (k->flags & FORMAT_REFS) && !unpack)) {
		/* R is an array. */
		if (c == 'R' && k->depth == EVC_VALUE_DEPTH)
			return refuse_at(k, "this is too deep");
		k->at++;
		return 0;
	}
	if (c == '*' || c == 'E' || c == 'r' || c == 'R' || c == 'w')
		evc__text_fmt(&t, "%c cannot stand here", c);
	else if (c >= ' ' && c <= '~')
		evc__text_fmt(&t, "%c is no type", c);
	else
		evc__text_fmt(&t, "0x%02x is no type", (unsigned char)c);
	return refuse_at(k, text);
}

/* An array ends behind "...". */
static evc_status
check_more(struct check *k)
{
	if (strncmp(k->at, "...", 3) != 0)
		return refuse_at(k, ". is no type");
	if (!(k->flags & FORMAT_UNPACK))
		return refuse_at(k, "... is for reading alone");
	k->at = format_next(k->at + 3);
	return *k->at == ']' ? 0 : refuse_at(k, "... is the last in an array");
}

static evc_status
check_key(struct check *k)
{
	struct format_key key;
	const char *end = evc__format_key(k->at, &key);

	if (key.n == 0 && !key.given)
		return refuse_at(k, *k->at == ']' ? "] closes a map"
						  : "this is no key");
	if (key.optional && !(k->flags & FORMAT_UNPACK))
		return refuse_at(k, "KEY? is for reading alone");
	if (end[-1] != ':') {
		k->at = end;
		return refuse_at(k, "there is no : behind the key");
	}
	k->at = end;
	return 0;
}

static evc_status check_value(struct check *k);

static evc_status
check_inside(struct check *k)
{
	char close = *k->at == '[' ? ']' : '}';
	const char *open = k->at++;
	evc_status st = 0;

	if (++k->depth > EVC_VALUE_DEPTH) {
		k->at = open;
		return refuse_at(k, "this is too deep");
	}
	while (st == 0 && *(k->at = format_next(k->at)) != close) {
		if (*k->at == '\0') {
			k->at = open;
			return refuse_at(k, "this is not closed");
		}
		if (close == ']' && *k->at == '.') {
			st = check_more(k);
			continue;
		}
		if (close == '}')
			st = check_key(k);
		if (st == 0)
			st = check_value(k);
	}
	if (st == 0)
		k->at++;
	k->depth--;
	return st;
}

static evc_status
check_value(struct check *k)
{
	k->at = format_next(k->at);
	switch (*k->at) {
	case '[':
	case '{':
		return check_inside(k);
	case ']':
		return refuse_at(k, k->depth > 0 ? "] closes a map"
						 : "] closes nothing");
	case '}':
		return refuse_at(k, k->depth > 0
					    ? "} stands where a type should"
					    : "} closes nothing");
	case '\0':
		return refuse_at(k, "a type is missing");
	default:
		return check_letter(k);
	}
}

evc_status
evc__format_check(const char *format, unsigned flags)
{
	struct check k = { .format = format, .at = format, .flags = flags };
	evc_status st;

	if (format == NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT, "the format is NULL");
	if ((flags & FORMAT_PACK) && *format_next(format) == '\0')
		return 0;
	st = check_value(&k);
	if (st != 0)
		return st;
	k.at = format_next(k.at);
	return *k.at == '\0' ? 0 : refuse_at(&k, "a format is one value");
}

/* Step over the value at `at`. */
static const char *
skip_value(const char *at)
{
	struct format_key key;
	bool map = *at == '{', inside = map || *at == '[';

	at++;
	if (!inside)
		return at;
	while (*(at = format_next(at)) != (map ? '}' : ']')) {
		if (!map && *at == '.') {
			at += 3;
			continue;
		}
		if (map)
			at = format_next(evc__format_key(at, &key));
		at = skip_value(at);
	}
	return at + 1;
}

size_t
evc__format_count(const char *at, bool *ret_more)
{
	struct format_key key;
	bool map = *at == '{';
	size_t n;

	*ret_more = false;
	at = format_next(at + 1);
	for (n = 0; *at != (map ? '}' : ']'); n++) {
		if (!map && *at == '.') {
			*ret_more = true;
			break;
		}
		if (map)
			at = format_next(evc__format_key(at, &key));
		at = format_next(skip_value(at));
	}
	return n;
}
