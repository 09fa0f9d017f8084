/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads answers, which are not trusted: each function checks the type that its
 * caller expects.  A number may come as a number or as a text, and a text as a
 * bulk or as a status.
 * Called by: all files that read an answer; any thread.
 * Locks: none.
 */
#include "redis/client/redis.h"

static bool
is_bytes(const redisReply *r)
{
	return r != NULL && r->str != NULL &&
	       (r->type == REDIS_REPLY_STRING || r->type == REDIS_REPLY_STATUS);
}

static const redisReply *
element_of(const redisReply *r, size_t i)
{
	return r != NULL && r->type == REDIS_REPLY_ARRAY && i < r->elements
		       ? r->element[i]
		       : NULL;
}

const char *
evc__reply_word(const redisReply *r)
{
	const redisReply *e = element_of(r, 0);

	/* A text with a 0 byte is no word. */
	return is_bytes(e) && strlen(e->str) == e->len ? e->str : NULL;
}

bool
evc__reply_is(const redisReply *r, const char *word)
{
	const char *is = evc__reply_word(r);

	return is != NULL && strcmp(is, word) == 0;
}

const char *
evc__reply_bytes(const redisReply *r, size_t i, size_t *ret_n)
{
	const redisReply *e = element_of(r, i);

	if (!is_bytes(e))
		return NULL;
	*ret_n = e->len;
	return e->str;
}

bool
evc__reply_is_plain(const char *s, size_t n, bool blanks)
{
	size_t i;

	for (i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];

		if (c < ' ' || c > '~' || (c == ' ' && !blanks))
			return false;
	}
	return true;
}

bool
evc__reply_number(const redisReply *r, size_t i, int64_t *ret)
{
	const redisReply *e = element_of(r, i);
	char *end;
	long long n;

	if (e != NULL && e->type == REDIS_REPLY_INTEGER) {
		*ret = e->integer;
		return true;
	}
	/* strtoll would skip blanks before a number. */
	if (!is_bytes(e) || e->len == 0 || e->len > 20 ||
	    !(e->str[0] == '-' || (e->str[0] >= '0' && e->str[0] <= '9')))
		return false;
	errno = 0;
	n = strtoll(e->str, &end, 10);
	if (errno != 0 || end != e->str + e->len || end[-1] == '-')
		return false;
	*ret = n;
	return true;
}

const char *
evc__reply_field(const redisReply *entry, const char *name, size_t *ret_n)
{
	const redisReply *fields = element_of(entry, 1), *e;
	size_t i, n = strlen(name);

	if (fields == NULL || fields->type != REDIS_REPLY_ARRAY)
		return NULL;
	for (i = 0; i + 1 < fields->elements; i += 2) {
		e = fields->element[i];
		if (is_bytes(e) && e->len == n && memcmp(e->str, name, n) == 0)
			return evc__reply_bytes(fields, i + 1, ret_n);
	}
	return NULL;
}

const char *
evc__reply_why(const redisReply *r)
{
	if (r == NULL)
		return "the connection was lost";
	if (r->type == REDIS_REPLY_ERROR && r->str != NULL)
		return r->str;
	return "an unexpected answer";
}

bool
evc__reply_is_error(const redisReply *r, const char *prefix)
{
	return r != NULL && r->type == REDIS_REPLY_ERROR && r->str != NULL &&
	       strncmp(r->str, prefix, strlen(prefix)) == 0;
}

evc_status
evc__reply_status(const redisReply *r)
{
	static const struct {
		const char *prefix;
		evc_status status;
	} known[] = {
		{ "GARBAGE", -EVC_DATA_LOSS },
		{ "WRONGTYPE", -EVC_DATA_LOSS },
		{ "OOM", -EVC_RESOURCE_EXHAUSTED },
		{ "READONLY", -EVC_RESOURCE_EXHAUSTED },
		{ "NOPERM", -EVC_RESOURCE_EXHAUSTED },
		{ "MISCONF", -EVC_RESOURCE_EXHAUSTED },
		{ "NOREPLICAS", -EVC_RESOURCE_EXHAUSTED },
		{ "BUSY", -EVC_UNAVAILABLE },
		{ "LOADING", -EVC_UNAVAILABLE },
		{ "MASTERDOWN", -EVC_UNAVAILABLE },
		{ "CLUSTERDOWN", -EVC_UNAVAILABLE },
		{ "TRYAGAIN", -EVC_UNAVAILABLE },
	};
	size_t i;

	for (i = 0; i < sizeof known / sizeof known[0]; i++)
		if (evc__reply_is_error(r, known[i].prefix))
			return known[i].status;
	return -EVC_INTERNAL;
}

bool
evc__reply_has_no_id(const redisReply *r)
{
	return r != NULL && r->type == REDIS_REPLY_ERROR && r->str != NULL &&
	       strstr(r->str, "exhausted the last possible ID") != NULL;
}
