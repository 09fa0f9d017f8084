/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc_unpack: the parts of a value, by a format, into the caller's arguments.
 * Called by: the program; cluster/worker and cluster/variables.
 * Locks: none.
 */
#include "wire/walk.h"

#include <evcoord.h>
#include <limits.h>
#include <string.h>

#include "base/text.h"
#include "wire/format.h"
#include "wire/head.h"

struct unpack {
	const char *at; /* place in the format */
	va_list ap;
	const struct unpack_env *env;
	const unsigned char *end; /* end of the whole value */
	/* the place in the value, for texts */
	struct {
		const char *key; /* NULL: an element */
		size_t n;        /* length of the key, or the element's
				    number */
	} path[EVC_VALUE_DEPTH];
	unsigned depth;
};

/* The end of the value at p. */
static const unsigned char *
value_end(const struct unpack *u, const unsigned char *p)
{
	return p + evc__walk_size(p, (size_t)(u->end - p));
}

/* The letters of a format, and the type that each takes. */
static const struct {
	char letter;
	unsigned char type;
	const char *text;
} wants[] = {
	{ 'n', EVC_VALUE_NIL, "nil" },
	{ 'b', EVC_VALUE_BOOL, "a boolean" },
	{ 'i', EVC_VALUE_INTEGER, "an integer" },
	{ 'u', EVC_VALUE_INTEGER, "an integer" },
	{ 'I', EVC_VALUE_INTEGER, "an integer" },
	{ 'U', EVC_VALUE_INTEGER, "an integer" },
	{ 'd', EVC_VALUE_DOUBLE, "a number" },
	{ 's', EVC_VALUE_STRING, "a string" },
	{ 'S', EVC_VALUE_STRING, "a string" },
	{ 'B', EVC_VALUE_BINARY, "binary data" },
	{ 'w', EVC_VALUE_PER_WORKER, "a per-worker value" },
	{ '[', EVC_VALUE_ARRAY, "an array" },
	{ '{', EVC_VALUE_MAP, "a map" },
};

/* ---- what is wrong, and where ---- */

/* "in [2].path: " */
static void
add_path(const struct unpack *u, struct text *t)
{
	unsigned i;

	if (u->depth == 0)
		return;
	evc__text_add(t, "in ");
	for (i = 0; i < u->depth; i++)
		if (u->path[i].key != NULL)
			evc__text_fmt(t, ".%.*s",
				      u->path[i].n < 32 ? (int)u->path[i].n :
							  32,
				      u->path[i].key);
		else
			evc__text_fmt(t, "[%zu]", u->path[i].n);
	evc__text_add(t, ": ");
}

static evc_status __attribute__((format(printf, 3, 4)))
refuse_at(const struct unpack *u, evc_status status, const char *fmt, ...)
{
	char text[160];
	struct text t = evc__text_in(text, sizeof(text));
	va_list ap;

	add_path(u, &t);
	va_start(ap, fmt);
	evc__text_vfmt(&t, fmt, ap);
	va_end(ap);
	return evc_refuse(status, "%s", text);
}

/* 0, or refused: a value of this type is not what the letter takes. */
static evc_status
match_type(const struct unpack *u, char letter, unsigned type)
{
	size_t i;

	for (i = 0; i < sizeof(wants) / sizeof(wants[0]); i++)
		if (wants[i].letter == letter)
			break;
	if (i == sizeof(wants) / sizeof(wants[0]) || wants[i].type == type ||
	    (letter == 'd' && type == EVC_VALUE_INTEGER))
		return 0;
	return refuse_at(u, -EVC_INVALID_ARGUMENT, "%s, not %s",
			 evc__type_text(type), wants[i].text);
}

/* ---- numbers and texts ---- */

static evc_status
too_big(const struct unpack *u, const struct head *h, const char *type)
{
	return h->negative
		       ? refuse_at(u, -EVC_OUT_OF_RANGE, "%lld does not fit %s",
				   (long long)h->i, type)
		       : refuse_at(u, -EVC_OUT_OF_RANGE, "%llu does not fit %s",
				   (unsigned long long)h->u, type);
}

/* h == NULL: no value, for a key that is missing.  The argument is taken from
   the list, and its target stays as it is. */
static evc_status
unpack_integer(struct unpack *u, const struct head *h, char letter)
{
	uint64_t *to_U;
	unsigned *to_u;
	int64_t *to_I;
	int *to_i;

	switch (letter) {
	case 'i':
		to_i = va_arg(u->ap, int *);
		if (h == NULL)
			return 0;
		if (h->negative ? h->i < INT_MIN : h->u > INT_MAX)
			return too_big(u, h, "an int");
		*to_i = h->negative ? (int)h->i : (int)h->u;
		return 0;
	case 'u':
		to_u = va_arg(u->ap, unsigned *);
		if (h == NULL)
			return 0;
		if (h->negative || h->u > UINT_MAX)
			return too_big(u, h, "an unsigned");
		*to_u = (unsigned)h->u;
		return 0;
	case 'I':
		to_I = va_arg(u->ap, int64_t *);
		if (h == NULL)
			return 0;
		if (!h->negative && h->u > INT64_MAX)
			return too_big(u, h, "an int64_t");
		*to_I = h->negative ? h->i : (int64_t)h->u;
		return 0;
	default:
		to_U = va_arg(u->ap, uint64_t *);
		if (h == NULL)
			return 0;
		if (h->negative)
			return too_big(u, h, "a uint64_t");
		*to_U = h->u;
		return 0;
	}
}

static evc_status
copy_string(struct unpack *u, const struct head *h, const unsigned char *p)
{
	char *to = va_arg(u->ap, char *);
	size_t room = va_arg(u->ap, size_t);

	if (h == NULL)
		return 0;
	if (h->n >= room)
		return refuse_at(u, -EVC_OUT_OF_RANGE,
				 "a string of %llu bytes does not fit %zu with "
				 "its 0 byte",
				 (unsigned long long)h->n, room);
	/* The string would look shorter. */
	if (memchr(p + h->size, '\0', (size_t)h->n) != NULL)
		return refuse_at(
			u, -EVC_OUT_OF_RANGE,
			"a string with a 0 byte inside; S can read it");
	memcpy(to, p + h->size, (size_t)h->n);
	to[h->n] = '\0';
	return 0;
}

static evc_status
unpack_local(struct unpack *u, const struct head *h, const unsigned char *p)
{
	evc_local **to = va_arg(u->ap, evc_local **), *found;
	struct walk_ref r;

	if (h == NULL)
		return 0;
	evc__walk_ref(p, h, 0, &r);
	if (!u->env->local(&r, &found, u->env->arg))
		return refuse_at(
			u, -EVC_INVALID_ARGUMENT,
			"this worker has nothing of per-worker value %llu",
			(unsigned long long)r.id);
	*to = found;
	return 0;
}

static evc_status
unpack_letter(struct unpack *u, const struct head *h, const unsigned char *p)
{
	const void **bytes;
	const char **s;
	evc_value *v;
	double *d;
	size_t *n;
	int *b;

	switch (*u->at) {
	case 'b':
		b = va_arg(u->ap, int *);
		if (h != NULL)
			*b = h->b;
		return 0;
	case 'i':
	case 'u':
	case 'I':
	case 'U':
		return unpack_integer(u, h, *u->at);
	case 'd':
		d = va_arg(u->ap, double *);
		if (h != NULL)
			*d = h->type == EVC_VALUE_DOUBLE ? h->d :
			     h->negative ? (double)h->i : (double)h->u;
		return 0;
	case 's':
		return copy_string(u, h, p);
	case 'S':
		s = va_arg(u->ap, const char **);
		n = va_arg(u->ap, size_t *);
		if (h != NULL) {
			*s = (const char *)p + h->size;
			*n = (size_t)h->n;
		}
		return 0;
	case 'B':
		bytes = va_arg(u->ap, const void **);
		n = va_arg(u->ap, size_t *);
		if (h != NULL) {
			*bytes = p + h->size;
			*n = (size_t)h->n;
		}
		return 0;
	case 'v':
		v = va_arg(u->ap, evc_value *);
		if (h != NULL)
			*v = (evc_value){ p, (size_t)(value_end(u, p) - p) };
		return 0;
	case 'w':
		return unpack_local(u, h, p);
	default: /* n, * */
		return 0;
	}
}

/* ---- arrays and maps ---- */

static evc_status unpack_one(struct unpack *u, const unsigned char *p);

static evc_status
unpack_array(struct unpack *u, const struct head *h, const unsigned char *p)
{
	size_t n, i;
	evc_status st = 0;
	bool more;

	n = evc__format_count(u->at, &more);
	if (h != NULL && (h->n < n || (h->n > n && !more)))
		return refuse_at(u, -EVC_INVALID_ARGUMENT,
				 "an array of %llu, not of %zu%s",
				 (unsigned long long)h->n, n,
				 more ? " or more" : "");
	if (h != NULL)
		p += h->size;
	u->at++;
	u->path[u->depth++].key = NULL;
	for (i = 0; i < n && st == 0; i++) {
		u->path[u->depth - 1].n = i;
		if (i > 0 && p != NULL)
			p = value_end(u, p);
		st = unpack_one(u, p);
	}
	if (st != 0)
		return st; /* u->depth stays, for the text */
	u->depth--;
	u->at = format_next(u->at);
	u->at = format_next(u->at + (more ? 3 : 0)) + 1;
	return 0;
}

/* A map that is searched.  Each search begins behind the last find, because
   keys mostly come in order. */
struct map {
	const unsigned char *first, *at;
	uint64_t n, i;
};

static const unsigned char *
find_key(const struct unpack *u, struct map *m, const struct format_key *key)
{
	const unsigned char *k, *v;
	struct head h;
	uint64_t seen;

	for (seen = 0; seen < m->n; seen++) {
		if (m->i == m->n) {
			m->i = 0;
			m->at = m->first;
		}
		k = m->at;
		v = value_end(u, k);
		m->at = value_end(u, v);
		m->i++;
		evc__head(k, (size_t)(u->end - k), &h);
		if (h.type == EVC_VALUE_STRING && h.n == key->n &&
		    memcmp(k + h.size, key->word, key->n) == 0)
			return v;
	}
	return NULL;
}

static evc_status
unpack_entry(struct unpack *u, struct map *m)
{
	const unsigned char *v = NULL;
	struct format_key key;

	u->at = evc__format_key(format_next(u->at), &key);
	if (key.given) {
		key.word = va_arg(u->ap, const char *);
		if (key.word == NULL && m != NULL)
			return refuse_at(u, -EVC_INVALID_ARGUMENT,
					 "a key to look for that is NULL");
		key.n = m != NULL ? strlen(key.word) : 0;
	}
	if (m != NULL) {
		v = find_key(u, m, &key);
		if (v == NULL && !key.optional)
			return refuse_at(u, -EVC_NOT_FOUND, "no key %.*s",
					 key.n < 48 ? (int)key.n : 48,
					 key.word);
	}
	u->path[u->depth].key = key.word;
	u->path[u->depth++].n = key.n;
	return unpack_one(u, v);
}

static evc_status
unpack_map(struct unpack *u, const struct head *h, const unsigned char *p)
{
	struct map m = { 0 };
	evc_status st;
	size_t n;
	bool more;

	if (h != NULL) {
		m.first = m.at = p + h->size;
		m.n = h->n;
	}
	n = evc__format_count(u->at, &more);
	u->at++;
	for (; n > 0; n--) {
		st = unpack_entry(u, h != NULL ? &m : NULL);
		if (st != 0)
			return st;
		u->depth--;
	}
	u->at = format_next(u->at) + 1;
	return 0;
}

/* Read p by the format at u->at, and move u->at behind it. p == NULL: no value,
   and all targets stay as they are. */
static evc_status
unpack_one(struct unpack *u, const unsigned char *p)
{
	struct head head, *h = NULL;
	evc_status st;

	u->at = format_next(u->at);
	if (p != NULL) {
		evc__head(p, (size_t)(u->end - p), &head);
		h = &head;
		st = match_type(u, *u->at, h->type);
		if (st != 0)
			return st;
	}
	if (*u->at == '[')
		return unpack_array(u, h, p);
	if (*u->at == '{')
		return unpack_map(u, h, p);
	st = unpack_letter(u, h, p);
	u->at++;
	return st;
}

evc_status
evc__unpack(const evc_value *value, const struct unpack_env *env,
	    const char *format, va_list ap)
{
	struct unpack u;
	evc_status st;

	st = evc__format_check(format, FORMAT_UNPACK |
			       (env != NULL && env->local != NULL ?
					FORMAT_REFS : 0));
	if (st != 0)
		return st;
	if (value == NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "there is no value to read");
	st = evc__value_walk(value->data, value->size, NULL, NULL);
	if (st != 0)
		return st;
	u.at = format;
	u.env = env;
	u.end = value_begin(value) + value_size(value);
	u.depth = 0;
	va_copy(u.ap, ap);
	st = unpack_one(&u, value_begin(value));
	va_end(u.ap);
	return st;
}

evc_status
evc_unpack(const evc_value *value, const char *format, ...)
{
	evc_status st;
	va_list ap;

	va_start(ap, format);
	st = evc__unpack(value, NULL, format, ap);
	va_end(ap);
	return st;
}
