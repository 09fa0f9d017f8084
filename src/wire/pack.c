/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc__pack: a value from a format and its arguments.  The caller gives the
 * functions that name remotes and per-worker values.
 * Called by: cluster/core (evc_pack), cluster/calls and cluster/worker.
 * Locks: none; the caller's functions may take the cluster's lock.
 */
#include "wire/walk.h"

#include <evcoord.h>

#include "wire/format.h"
#include "wire/grow.h"
#include "wire/head.h"
#include "wire/vector.h"

struct pack {
	const char *format, *at;
	va_list ap;
	const struct pack_refs *refs;
	unsigned depth;
	struct grow to;
};

static evc_status
refuse_at(const struct pack *k, evc_status status, const char *why)
{
	return evc__format_refuse(status, k->format, k->at, why);
}

/* A string or binary data; a head has 32 bits for the length at most. */
static evc_status
pack_bytes(struct pack *k, unsigned type, const void *p, size_t n)
{
	bool is_text = type == EVC_VALUE_STRING;
	unsigned char head[HEAD_MOST];

	if (p == NULL && n > 0)
		return refuse_at(k, -EVC_INVALID_ARGUMENT,
				 is_text ? "a string at NULL"
					 : "binary data at NULL");
	if (!evc__is_length(n))
		return refuse_at(k, -EVC_RESOURCE_EXHAUSTED,
				 is_text ? "a string of 4 GiB or more"
					 : "binary data of 4 GiB or more");
	grow_add(&k->to, head, evc__put_length(head, type, (uint32_t)n));
	grow_add(&k->to, p, n);
	return 0;
}

static evc_status
pack_text(struct pack *k, const char *s, size_t n)
{
	return pack_bytes(k, EVC_VALUE_STRING, s, n);
}

static bool
note_found(const struct walk_ref *r, void *arg)
{
	(void)r;
	*(bool *)arg = true;
	return false;
}

static evc_status
pack_value(struct pack *k, const evc_value *v)
{
	bool has_ref = false;
	evc_status st;

	if (v == NULL) {
		grow_add(&k->to, &evc__nil, 1);
		return 0;
	}
	if (!evc__walk_is_value(v, k->depth)) {
		/* The value is wrong, or too deep here only. */
		st = evc__value_walk(v->data, v->size, NULL, NULL);
		return st != 0 ? st
			       : refuse_at(k, -EVC_INVALID_ARGUMENT,
					   "this value is too deep here");
	}
	if (k->refs == NULL && v->size > 0) {
		st = evc__value_walk(v->data, v->size, note_found, &has_ref);
		if (st == 0 && has_ref)
			return refuse_at(k, -EVC_INVALID_ARGUMENT,
					 "a remote or a per-worker value "
					 "cannot stand here");
	}
	grow_add(&k->to, value_begin(v), value_size(v));
	return 0;
}

static void
add_ref(struct pack *k, bool per_worker, uint32_t serial, uint64_t id)
{
	unsigned char bytes[REF_BYTES];

	evc__walk_put_ref(bytes, per_worker, serial, id);
	grow_add(&k->to, bytes, sizeof(bytes));
}

static evc_status
pack_remote(struct pack *k, evc_remote *r)
{
	uint32_t serial;
	uint64_t id;
	evc_status st;

	if (r == NULL)
		return refuse_at(k, -EVC_INVALID_ARGUMENT,
				 "a remote that is NULL");
	st = k->refs->remote(r, &serial, &id);
	if (st < 0)
		return refuse_at(k, st,
				 st == -EVC_FAILED_PRECONDITION
					 ? "a remote of a fork child's parent"
					 : "no memory");
	add_ref(k, false, serial, id);
	return 0;
}

static evc_status
pack_remotes(struct pack *k, evc_remote *const *r, size_t n)
{
	unsigned char head[HEAD_MOST];
	evc_status st = 0;
	size_t i;

	if (r == NULL && n > 0)
		return refuse_at(k, -EVC_INVALID_ARGUMENT, "remotes at NULL");
	if (!evc__is_length(n))
		return refuse_at(k, -EVC_RESOURCE_EXHAUSTED,
				 "an array of 2^32 remotes or more");
	grow_add(&k->to, head,
		 evc__put_length(head, EVC_VALUE_ARRAY, (uint32_t)n));
	for (i = 0; i < n && st == 0; i++)
		st = pack_remote(k, r[i]);
	return st;
}

static evc_status
pack_vector(struct pack *k, const evc_elements *e)
{
	evc_value v;
	evc_status st = evc__elements_check(e, true);

	if (st == 0)
		st = evc__elements_vector(e, &v);
	if (st < 0)
		return st;
	grow_add(&k->to, v.data, v.size);
	evc_value_free(&v);
	return 0;
}

static evc_status
pack_per_worker(struct pack *k, const evc_per_worker *p)
{
	uint32_t serial;
	uint64_t id;

	if (p == NULL)
		return refuse_at(k, -EVC_INVALID_ARGUMENT,
				 "a per-worker value that is NULL");
	k->refs->per_worker(p, &serial, &id);
	add_ref(k, true, serial, id);
	return 0;
}

static evc_status pack_one(struct pack *k);

static evc_status
pack_key(struct pack *k)
{
	struct format_key f;
	const char *behind = evc__format_key(k->at, &f);
	evc_status st = 0;

	if (f.given) {
		f.word = va_arg(k->ap, const char *);
		if (f.word == NULL)
			return refuse_at(k, -EVC_INVALID_ARGUMENT,
					 "a key that is NULL");
		f.n = strlen(f.word);
	}
	st = pack_text(k, f.word, f.n);
	k->at = behind;
	return st;
}

static evc_status
pack_inside(struct pack *k)
{
	bool map = *k->at == '{', more;
	size_t n = evc__format_count(k->at, &more);
	unsigned char head[HEAD_MOST];
	evc_status st = 0;

	if (!evc__is_length(n))
		return refuse_at(k, -EVC_RESOURCE_EXHAUSTED, "too many");
	grow_add(&k->to, head,
		 evc__put_length(head,
				 map ? EVC_VALUE_MAP : EVC_VALUE_ARRAY,
				 (uint32_t)n));
	k->at++;
	k->depth++;
	for (; n > 0 && st == 0; n--) {
		k->at = format_next(k->at);
		if (map)
			st = pack_key(k);
		if (st == 0)
			st = pack_one(k);
	}
	k->depth--;
	k->at = format_next(k->at);
	if (st == 0)
		k->at++;
	return st;
}

size_t
evc__put_letter(unsigned char to[static HEAD_MOST], char letter, va_list *ap)
{
	switch (letter) {
	case 'n':
		return evc__put_nil(to);
	case 'b':
		return evc__put_bool(to, va_arg(*ap, int) != 0);
	case 'i':
		return evc__put_signed(to, va_arg(*ap, int));
	case 'u':
		return evc__put_unsigned(to, va_arg(*ap, unsigned));
	case 'I':
		return evc__put_signed(to, va_arg(*ap, int64_t));
	case 'U':
		return evc__put_unsigned(to, va_arg(*ap, uint64_t));
	case 'd':
		return evc__put_double(to, va_arg(*ap, double));
	default:
		return 0;
	}
}

static evc_status
pack_letter(struct pack *k)
{
	unsigned char small[HEAD_MOST];
	evc_remote *const *r;
	const char *s;
	const void *p;

	switch (*k->at) {
	case 's':
		s = va_arg(k->ap, const char *);
		return s != NULL ? pack_text(k, s, strlen(s))
				 : pack_value(k, NULL);
	case 'S':
		s = va_arg(k->ap, const char *);
		return pack_text(k, s, va_arg(k->ap, size_t));
	case 'B':
		p = va_arg(k->ap, const void *);
		return pack_bytes(k, EVC_VALUE_BINARY, p,
				  va_arg(k->ap, size_t));
	case 'v':
		return pack_value(k, va_arg(k->ap, const evc_value *));
	case 'r':
		return pack_remote(k, va_arg(k->ap, evc_remote *));
	case 'R':
		r = va_arg(k->ap, evc_remote *const *);
		return pack_remotes(k, r, va_arg(k->ap, size_t));
	case 'E':
		return pack_vector(k, va_arg(k->ap, const evc_elements *));
	case 'w':
		return pack_per_worker(k, va_arg(k->ap,
						 const evc_per_worker *));
	default:
		grow_add(&k->to, small,
			 evc__put_letter(small, *k->at, &k->ap));
		return 0;
	}
}

static evc_status
pack_one(struct pack *k)
{
	evc_status st;

	k->at = format_next(k->at);
	if (*k->at == '[' || *k->at == '{')
		return pack_inside(k);
	st = pack_letter(k);
	if (st == 0)
		k->at++;
	return st;
}

evc_status
evc__pack(evc_value *ret_value, const struct pack_refs *refs,
	  struct spare *spare, const char *format, va_list ap)
{
	struct pack k;
	evc_status st;

	if (ret_value == NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "there is no place for the value");
	st = evc__format_check(format,
			       FORMAT_PACK | (refs != NULL ? FORMAT_REFS : 0));
	if (st != 0)
		return st;
	k.format = k.at = format;
	k.refs = refs;
	k.depth = 0;
	grow_init(&k.to);
	k.to.spare = spare;
	va_copy(k.ap, ap);
	if (*format_next(format) != '\0')
		st = pack_one(&k);
	va_end(k.ap);
	if (st != 0)
		grow_drop(&k.to);
	else if (!grow_take(&k.to, ret_value))
		st = evc_refuse(-EVC_RESOURCE_EXHAUSTED,
				"no memory for a value");
	return st;
}
