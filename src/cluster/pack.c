/* SPDX-License-Identifier: BSD-2-Clause */
#include "cluster/walk.h"

#include <evcoord.h>
#include <msgpack.h>

#include "cluster/format.h"
#include "cluster/grow.h"
#include "cluster/head.h"

struct pack {
	const char *format, *at;
	va_list ap;
	bool refs;
	unsigned depth;
	struct grow to;
	msgpack_packer packer; /* writes to `to` */
};

/* The longest string or binary data that a head can announce. */
#define LENGTH_MOST UINT32_MAX

static int
write_bytes(void *data, const char *bytes, size_t n)
{
	struct grow *g = data;

	grow_add(g, bytes, n);
	return g->failed ? -1 : 0;
}

static evc_status
wrong(const struct pack *k, evc_status status, const char *why)
{
	return evc__format_refuse(status, k->format, k->at, why);
}

static evc_status
text(struct pack *k, const char *s, size_t n)
{
	if (s == NULL && n > 0)
		return wrong(k, -EVC_INVALID_ARGUMENT, "a string at NULL");
	if ((uint64_t)n > LENGTH_MOST)
		return wrong(k, -EVC_RESOURCE_EXHAUSTED,
			     "a string of 4 GiB or more");
	msgpack_pack_str(&k->packer, n);
	msgpack_pack_str_body(&k->packer, s, n);
	return 0;
}

static evc_status
binary(struct pack *k, const void *p, size_t n)
{
	if (p == NULL && n > 0)
		return wrong(k, -EVC_INVALID_ARGUMENT, "binary data at NULL");
	if ((uint64_t)n > LENGTH_MOST)
		return wrong(k, -EVC_RESOURCE_EXHAUSTED,
			     "binary data of 4 GiB or more");
	msgpack_pack_bin(&k->packer, n);
	msgpack_pack_bin_body(&k->packer, p, n);
	return 0;
}

static bool
found(const struct walk_ref *r, void *arg)
{
	(void)r;
	*(bool *)arg = true;
	return false;
}

static evc_status
value(struct pack *k, const evc_value *v)
{
	bool has_ref = false;
	evc_status st;

	if (v == NULL) {
		msgpack_pack_nil(&k->packer);
		return 0;
	}
	if (!evc__walk_is_value(v, k->depth)) {
		/* Its own fault, or is it only too deep here? */
		st = evc__value_walk(v->data, v->size, NULL, NULL);
		return st != 0 ? st : wrong(k, -EVC_INVALID_ARGUMENT,
					    "this value is too deep here");
	}
	if (!k->refs && v->size > 0) {
		st = evc__value_walk(v->data, v->size, found, &has_ref);
		if (st == 0 && has_ref)
			return wrong(k, -EVC_INVALID_ARGUMENT,
				     "a remote or a per-worker value cannot "
				     "stand here");
	}
	grow_add(&k->to, value_begin(v), value_size(v));
	return 0;
}

static evc_status
ref(struct pack *k, bool per_worker)
{
	evc_per_worker *p = NULL;
	evc_remote *r = NULL;
	unsigned char bytes[REF_BYTES];
	uint32_t serial;
	uint64_t id;

	if (per_worker)
		p = va_arg(k->ap, evc_per_worker *);
	else
		r = va_arg(k->ap, evc_remote *);
	if (p == NULL && r == NULL)
		return wrong(k, -EVC_INVALID_ARGUMENT,
			     per_worker ? "a per-worker value that is NULL" :
					  "a remote that is NULL");
	if (per_worker)
		evc__per_worker_ref_of(p, &serial, &id);
	else if (!evc__remote_ref_of(r, &serial, &id))
		return wrong(k, -EVC_RESOURCE_EXHAUSTED, "no memory");
	evc__walk_put_ref(bytes, per_worker, serial, id);
	grow_add(&k->to, bytes, sizeof(bytes));
	return 0;
}

static evc_status pack_one(struct pack *k);

static evc_status
key(struct pack *k)
{
	struct format_key f;
	const char *behind = evc__format_key(k->at, &f);
	evc_status st = 0;

	if (f.given) {
		f.word = va_arg(k->ap, const char *);
		if (f.word == NULL)
			return wrong(k, -EVC_INVALID_ARGUMENT,
				     "a key that is NULL");
		f.n = strlen(f.word);
	}
	st = text(k, f.word, f.n);
	k->at = behind;
	return st;
}

static evc_status
inside(struct pack *k)
{
	bool map = *k->at == '{', more;
	size_t n = evc__format_count(k->at, &more);
	evc_status st = 0;

	if (map)
		msgpack_pack_map(&k->packer, n);
	else
		msgpack_pack_array(&k->packer, n);
	k->at++;
	k->depth++;
	for (; n > 0 && st == 0; n--) {
		k->at = format_next(k->at);
		if (map)
			st = key(k);
		if (st == 0)
			st = pack_one(k);
	}
	k->depth--;
	k->at = format_next(k->at);
	if (st == 0)
		k->at++;
	return st;
}

static evc_status
letter(struct pack *k)
{
	const char *s;
	const void *p;

	switch (*k->at) {
	case 'b':
		if (va_arg(k->ap, int))
			msgpack_pack_true(&k->packer);
		else
			msgpack_pack_false(&k->packer);
		return 0;
	case 'i':
		msgpack_pack_int(&k->packer, va_arg(k->ap, int));
		return 0;
	case 'u':
		msgpack_pack_unsigned_int(&k->packer,
					  va_arg(k->ap, unsigned));
		return 0;
	case 'I':
		msgpack_pack_int64(&k->packer, va_arg(k->ap, int64_t));
		return 0;
	case 'U':
		msgpack_pack_uint64(&k->packer, va_arg(k->ap, uint64_t));
		return 0;
	case 'd':
		msgpack_pack_double(&k->packer, va_arg(k->ap, double));
		return 0;
	case 's':
		s = va_arg(k->ap, const char *);
		if (s != NULL)
			return text(k, s, strlen(s));
		break;
	case 'S':
		s = va_arg(k->ap, const char *);
		return text(k, s, va_arg(k->ap, size_t));
	case 'B':
		p = va_arg(k->ap, const void *);
		return binary(k, p, va_arg(k->ap, size_t));
	case 'v':
		return value(k, va_arg(k->ap, const evc_value *));
	case 'r':
		return ref(k, false);
	case 'w':
		return ref(k, true);
	default: /* n */
		break;
	}
	msgpack_pack_nil(&k->packer);
	return 0;
}

static evc_status
pack_one(struct pack *k)
{
	evc_status st;

	k->at = format_next(k->at);
	if (*k->at == '[' || *k->at == '{')
		return inside(k);
	st = letter(k);
	if (st == 0)
		k->at++;
	return st;
}

evc_status
evc__pack(evc_value *ret_value, bool refs, const char *format, va_list ap)
{
	struct pack k;
	evc_status st;

	if (ret_value == NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "there is no place for the value");
	st = evc__format_check(format,
			       FORMAT_PACK | (refs ? FORMAT_REFS : 0));
	if (st != 0)
		return st;
	k.format = k.at = format;
	k.refs = refs;
	k.depth = 0;
	grow_init(&k.to);
	msgpack_packer_init(&k.packer, &k.to, write_bytes);
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

evc_status
evc_pack(evc_value *ret_value, const char *format, ...)
{
	evc_status st;
	va_list ap;

	va_start(ap, format);
	st = evc__pack(ret_value, true, format, ap);
	va_end(ap);
	return st;
}
