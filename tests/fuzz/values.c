/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes, as a value: either all calls refuse them, or all agree about what
 * they are - elements one by one, by formats made for them and by wrong ones,
 * as text, copied, packed into another value, with other values in the places
 * of remotes.
 */
#include "fuzz/fuzz.h"

#include <evcoord.h>
#include <evcoord/value.h>

#include "wire/head.h"
#include "wire/walk.h"

/* ---- made-up values ---- */

struct out {
	unsigned char *p;
	size_t n, room;
};

static void
put(struct out *o, const void *bytes, size_t n)
{
	if (n <= o->room - o->n) {
		memcpy(o->p + o->n, bytes, n);
		o->n += n;
	}
}

static void
put_head(struct out *o, unsigned char c, uint64_t v, unsigned width)
{
	unsigned char bytes[9] = { c };
	unsigned i;

	for (i = 0; i < width; i++)
		bytes[1 + i] = (unsigned char)(v >> (8 * (width - 1 - i)));
	put(o, bytes, 1 + width);
}

static void
make_scalar(struct fuzz *f, struct out *o)
{
	static const char text[] = "path\xc3\xa4\0\"\\\n" "s:%size";
	static const struct {
		unsigned char c;
		unsigned width;
	} numbers[] = { { 0xca, 4 }, { 0xcb, 8 }, { 0xcc, 1 }, { 0xcd, 2 },
			{ 0xce, 4 }, { 0xcf, 8 }, { 0xd0, 1 }, { 0xd1, 2 },
			{ 0xd2, 4 }, { 0xd3, 8 } };
	unsigned char ref[REF_BYTES];
	size_t k, n;

	switch (fuzz_below(f, 6)) {
	case 0:
		k = fuzz_below(f, sizeof(numbers) / sizeof(numbers[0]));
		put_head(o, numbers[k].c, fuzz_random(f) >> fuzz_below(f, 64),
			 numbers[k].width);
		break;
	case 1:
		n = fuzz_below(f, sizeof(text));
		k = fuzz_below(f, sizeof(text) - n);
		if (fuzz_once_in(f, 2))
			put_head(o, (unsigned char)(0xa0 + n), 0, 0);
		else
			put_head(o, fuzz_once_in(f, 2) ? 0xd9 : 0xc4, n, 1);
		put(o, text + k, n);
		break;
	case 4:
		n = fuzz_below(f, sizeof(text) / 8);
		put_head(o, 0xc7, n * 8, 1);
		put(o, fuzz_once_in(f, 2) ? "\x47" : "\x48", 1);
		put(o, text, n * 8);
		break;
	case 2:
		evc__walk_put_ref(ref, fuzz_once_in(f, 3), 1,
				  fuzz_below(f, 4));
		put(o, ref, sizeof(ref));
		break;
	case 3:
		put_head(o, (unsigned char)(0xc0 + (fuzz_once_in(f, 2) ?
				0 : 2 + fuzz_below(f, 2))), 0, 0);
		break;
	default:
		put_head(o, (unsigned char)(fuzz_below(f, 160) + 0xe0), 0, 0);
		break;
	}
}

static void
make_one(struct fuzz *f, struct out *o, unsigned depth)
{
	bool map = fuzz_once_in(f, 2);
	size_t n, i;

	/* Now and then as deep as may be, and one more. */
	if (depth > EVC_VALUE_DEPTH || fuzz_below(f, 100) > 60) {
		make_scalar(f, o);
		return;
	}
	n = fuzz_once_in(f, 3) ? fuzz_below(f, 6) : 1;
	if (fuzz_once_in(f, 4))
		put_head(o, map ? 0xde : 0xdc, n, 2);
	else
		put_head(o, (unsigned char)((map ? 0x80 : 0x90) + n), 0, 0);
	for (i = 0; i < n; i++) {
		if (map && fuzz_once_in(f, 2))
			put(o, "\xa1k", 2);
		else if (map)
			make_scalar(f, o);
		make_one(f, o, depth + 1);
	}
}

static size_t
make(struct fuzz *f, unsigned char *to, size_t room)
{
	struct out o = { to, 0, room };
	size_t n;

	for (n = fuzz_once_in(f, 8) ? fuzz_below(f, 35) : 0; n > 0; n--)
		put(&o, "\x91", 1);
	make_one(f, &o, 0);
	return o.n;
}

/* ---- formats, right and wrong ---- */

/* Whatever a format asks for is filled here: each place takes the longest
   string, and ends with a 0 byte. */
#define PLACES 64
static char places[PLACES][FUZZ_MOST + 64];

static bool
any_local(const struct walk_ref *r, evc_local **ret, void *arg)
{
	*ret = arg;
	return r->id % 4 != 3;
}

static evc_status
unpack(const evc_value *v, const char *format, ...)
{
	struct unpack_env env = { any_local, places };
	evc_status st;
	va_list ap;

	va_start(ap, format);
	st = evc__unpack(v, &env, format, ap);
	va_end(ap);
	return st;
}

#define EIGHT(i) \
	places[i], places[(i) + 1], places[(i) + 2], places[(i) + 3], \
		places[(i) + 4], places[(i) + 5], places[(i) + 6], \
		places[(i) + 7]
#define ALL_PLACES \
	EIGHT(0), EIGHT(8), EIGHT(16), EIGHT(24), EIGHT(32), EIGHT(40), \
		EIGHT(48), EIGHT(56)

/* A format takes two places for each of its letters at most. */
struct format {
	char text[256];
	size_t n;
	unsigned letters;
	bool right; /* the value is what it asks for */
};

static void
say(struct format *m, const char *s, size_t n)
{
	if (m->n + n < sizeof(m->text)) {
		memcpy(m->text + m->n, s, n);
		m->n += n;
		m->text[m->n] = '\0';
	}
}

static void
letter_for(struct fuzz *f, struct format *m, unsigned type)
{
	static const char *const right[] = {
		[EVC_VALUE_NIL] = "n",     [EVC_VALUE_BOOL] = "b",
		[EVC_VALUE_INTEGER] = "iuIUd", [EVC_VALUE_DOUBLE] = "d",
		[EVC_VALUE_STRING] = "sS", [EVC_VALUE_BINARY] = "B",
		[EVC_VALUE_ARRAY] = "v",   [EVC_VALUE_MAP] = "v",
		[EVC_VALUE_REMOTE] = "v",  [EVC_VALUE_PER_WORKER] = "w",
		[EVC_VALUE_VECTOR] = "v",
	};
	static const char any[] = "nbiuIUdsSBvw*";

	if (fuzz_once_in(f, 8))
		say(m, "*", 1);
	else if (fuzz_once_in(f, 8))
		say(m, "v", 1);
	else if (fuzz_once_in(f, 20)) {
		m->right = false;
		say(m, any + fuzz_below(f, sizeof(any) - 1), 1);
	} else
		say(m, right[type] + fuzz_below(f, strlen(right[type])), 1);
	m->letters++;
}

/* Is it a string that can be a key in a format? */
static bool
is_word(const evc_value *key, const char **s, size_t *n)
{
	size_t i;

	if (evc_unpack(key, "S", s, n) != 0 || *n == 0 || *n > 12)
		return false;
	for (i = 0; i < *n; i++)
		if (strchr(" ,\t\n\v\f\r:?%*[]{}", (*s)[i]) != NULL)
			return false;
	return true;
}

static void
format_for(struct fuzz *f, struct format *m, const evc_value *v, unsigned depth)
{
	unsigned type = evc_value_type(v);
	bool map = type == EVC_VALUE_MAP, more = false;
	evc_value key, e;
	const char *s;
	size_t at = 0, n;

	if ((!map && type != EVC_VALUE_ARRAY) || fuzz_once_in(f, 6) ||
	    depth > 8 || m->letters > 12) {
		letter_for(f, m, type);
		return;
	}
	say(m, map ? "{" : "[", 1);
	while (!more && evc_value_next(v, &at, &key, &e)) {
		if (!map && (m->letters > 12 || fuzz_once_in(f, 10))) {
			more = true;
		} else if (!map) {
			format_for(f, m, &e, depth + 1);
		} else if (m->letters <= 12 && is_word(&key, &s, &n)) {
			/* Another entry may have the same key. */
			m->right &= evc_value_count(v) == 1;
			say(m, s, n);
			say(m, fuzz_once_in(f, 3) ? "?:" : ":",
			    fuzz_once_in(f, 3) ? 2 : 1);
			m->right &= m->text[m->n - 1] == ':';
			format_for(f, m, &e, depth + 1);
		}
		if (fuzz_once_in(f, 3))
			say(m, " ", 1);
	}
	if (map && m->letters <= 12 && fuzz_once_in(f, 4)) {
		say(m, "missing?:[SSv{a:s}]", 19);
		m->letters += 4;
	}
	if (more)
		say(m, "...", 3);
	say(m, map ? "}" : "]", 1);
}

static void
by_formats(struct fuzz *f, const evc_value *v)
{
	static const char wrong[] = "[]{}:?%*.,nbiuIUdsSBvwrq ";
	struct format m = { .right = true };
	evc_status st;

	format_for(f, &m, v, 0);
	st = unpack(v, m.text, ALL_PLACES);
	/* Whole, or cut off? */
	m.right &= m.n + 20 < sizeof(m.text);
	if (m.right && st != 0 && st != -EVC_OUT_OF_RANGE &&
	    strstr(evc_last_error(), "has nothing of") == NULL) {
		fprintf(stderr, "%s: %s\n", m.text, evc_last_error());
		FUZZ_CHECK(f, !"a format that was made for it is refused");
	}
	/* Damaged: any letter may be one now. */
	if (m.n <= PLACES / 2) {
		m.text[fuzz_below(f, m.n)] =
			wrong[fuzz_below(f, sizeof(wrong) - 1)];
		(void)unpack(v, m.text, ALL_PLACES);
	}
}

/* ---- what all must agree about ---- */

static size_t
read_elements(struct fuzz *f, const evc_value *v)
{
	size_t n = evc_value_count(v), from = fuzz_below(f, n + 1);
	double some[2];
	evc_elements e = { .doubles = some, .n = 2, .from = from };

	FUZZ_CHECK(f, n <= v->size / 4);
	FUZZ_CHECK(f, evc_value_elements(v, &e) ==
			      (n >= 2 && from <= n - 2 ? 0 :
							   -EVC_OUT_OF_RANGE));
	return 0;
}

static size_t
one_by_one(struct fuzz *f, const evc_value *v, unsigned depth)
{
	size_t at = 0, n = 0, count = evc_value_count(v), last = 0, size = 0;
	size_t index = fuzz_below(f, count);
	evc_value key, e, same;
	const unsigned char *end = v->data;
	unsigned type = evc_value_type(v);

	FUZZ_CHECK(f, type >= EVC_VALUE_NIL && type <= EVC_VALUE_VECTOR);
	if (type == EVC_VALUE_VECTOR)
		return read_elements(f, v);
	FUZZ_CHECK(f, depth <= EVC_VALUE_DEPTH);
	while (evc_value_next(v, &at, &key, &e)) {
		FUZZ_CHECK(f, at > last && at <= v->size);
		last = at;
		end = (const unsigned char *)e.data + e.size;
		size += e.size + key.size;
		FUZZ_CHECK(f, (key.size > 0) == (type == EVC_VALUE_MAP));
		if (key.size > 0)
			one_by_one(f, &key, depth + 1);
		one_by_one(f, &e, depth + 1);
		if (n++ != index)
			continue;
		FUZZ_CHECK(f, evc_value_at(v, index, &same) == 0);
		FUZZ_CHECK(f, same.data == e.data && same.size == e.size);
	}
	FUZZ_CHECK(f, n == count);
	FUZZ_CHECK(f, evc_value_at(v, count, &same) < 0);
	if (n > 0) {
		FUZZ_CHECK(f, end == (const unsigned char *)v->data + v->size);
		FUZZ_CHECK(f, v->size - size >= 1 && v->size - size <= 5);
	}
	return n;
}

static void
as_text(struct fuzz *f, const evc_value *v)
{
	static char whole[16 * FUZZ_MOST], part[64];
	size_t n = evc_value_print(v, whole, sizeof(whole)), i;
	size_t room = fuzz_below(f, sizeof(part));

	FUZZ_CHECK(f, n > 0 && n < sizeof(whole) && strlen(whole) == n);
	for (i = 0; i < n; i++)
		FUZZ_CHECK(f, (unsigned char)whole[i] >= ' ');
	FUZZ_CHECK(f, evc_value_print(v, part, room) == n);
	if (room > 0) {
		/* No character is cut. */
		FUZZ_CHECK(f, n < room ? strlen(part) == n :
				  strlen(part) < room && strlen(part) + 4 >= room);
		FUZZ_CHECK(f, strncmp(part, whole, strlen(part)) == 0);
	}
}

/* "[[[v]]]" */
static void
nested_format(char *to, size_t deep)
{
	memset(to, '[', deep);
	to[deep] = 'v';
	memset(to + deep + 1, ']', deep);
	to[2 * deep + 1] = '\0';
}

/* Inside of any number of others: whoever asks whether it may stand there hears
   what happens to who puts it there. */
static void
at_any_depth(struct fuzz *f, const evc_value *v)
{
	size_t deep = fuzz_below(f, 2 * EVC_VALUE_DEPTH);
	bool fits = evc__walk_is_value(v, (unsigned)deep);
	char format[4 * EVC_VALUE_DEPTH + 2];
	evc_value outer = { NULL, 0 }, inner;

	nested_format(format, deep);
	if (evc_pack(&outer, format, v) == 0) {
		FUZZ_CHECK(f, fits);
		FUZZ_CHECK(f, evc__walk_size(outer.data, outer.size) ==
				      outer.size);
		FUZZ_CHECK(f, evc_unpack(&outer, format, &inner) == 0);
		FUZZ_CHECK(f, inner.size == v->size);
		evc_value_free(&outer);
	} else {
		FUZZ_CHECK(f, !fits || deep > EVC_VALUE_DEPTH);
		FUZZ_CHECK(f, strstr(evc_last_error(), "deep") != NULL);
	}
	(void)evc_unpack(v, format, &inner);
}

static void
in_another(struct fuzz *f, const evc_value *v)
{
	evc_value outer, inner, copy;

	FUZZ_CHECK(f, evc_value_copy(&copy, v) == 0);
	FUZZ_CHECK(f, copy.size == v->size);
	FUZZ_CHECK(f, memcmp(copy.data, v->data, v->size) == 0);
	if (evc_pack(&outer, "[b v]", 1, &copy) == 0) {
		FUZZ_CHECK(f, evc_unpack(&outer, "[* v]", &inner) == 0);
		FUZZ_CHECK(f, inner.size == v->size);
		FUZZ_CHECK(f, memcmp(inner.data, v->data, v->size) == 0);
		evc_value_free(&outer);
	} else {
		FUZZ_CHECK(f, strstr(evc_last_error(), "too deep") != NULL);
	}
	evc_value_free(&copy);
}

struct places {
	const evc_value *v; /* for some of them, itself */
	unsigned n, remotes;
	unsigned most; /* the walk ends with this one; 0: with none */
};

static bool
count(const struct walk_ref *r, void *arg)
{
	struct places *p = arg;

	p->n++;
	p->remotes += !r->per_worker;
	return p->n != p->most;
}

static bool
resolve(const struct walk_ref *r, evc_value *ret, void *arg)
{
	struct places *p = arg;

	p->remotes--;
	switch (r->id % 4) {
	case 0:
		return false;
	case 1:
		return true; /* nil */
	case 2:
		*ret = *p->v;
		return true;
	default:
		*ret = (evc_value){ "\xa3" "abc", 4 };
		return true;
	}
}

static void
with_others_in_it(struct fuzz *f, const evc_value *v)
{
	struct places p = { .v = v }, some = { .v = v };
	evc_value result;
	unsigned remotes;

	FUZZ_CHECK(f, evc__value_walk(v->data, v->size, count, &p) == 0);
	remotes = p.remotes;
	some.most = (unsigned)fuzz_below(f, p.n + 2);
	FUZZ_CHECK(f, evc__value_walk(v->data, v->size, count, &some) == 0);
	FUZZ_CHECK(f, some.n == (some.most > 0 && some.most < p.n ? some.most :
								    p.n));
	if (evc__walk_splice(v, resolve, &p, &result) != 0) {
		FUZZ_CHECK(f, remotes > 0);
		FUZZ_CHECK(f, strstr(evc_last_error(), "deep") != NULL);
		return;
	}
	/* Each was asked for, once. */
	FUZZ_CHECK(f, p.remotes == 0);
	FUZZ_CHECK(f, evc_value_check(&result) == 0);
	if (remotes == 0) {
		FUZZ_CHECK(f, result.size == v->size);
		FUZZ_CHECK(f, memcmp(result.data, v->data, v->size) == 0);
	}
	evc_value_free(&result);
}

static bool
nothing(struct fuzz *f, const evc_value *v)
{
	evc_value e, fine = { "\x01", 1 }, copy = { NULL, 0 };
	struct places p = { .v = &fine };
	char text[16] = "";
	size_t at = 0;

	FUZZ_CHECK(f, evc_value_type(v) == 0);
	FUZZ_CHECK(f, evc_value_count(v) == 0);
	FUZZ_CHECK(f, !evc_value_next(v, &at, &e, &e));
	FUZZ_CHECK(f, evc_value_at(v, 0, &e) == -EVC_INVALID_ARGUMENT);
	FUZZ_CHECK(f, evc_unpack(v, "*") == -EVC_INVALID_ARGUMENT);
	FUZZ_CHECK(f, evc_pack(&copy, "v", v) == -EVC_INVALID_ARGUMENT);
	FUZZ_CHECK(f, evc_value_copy(&copy, v) == -EVC_INVALID_ARGUMENT);
	FUZZ_CHECK(f, evc__walk_splice(v, resolve, &p, &copy) ==
			      -EVC_INVALID_ARGUMENT);
	FUZZ_CHECK(f, copy.data == NULL && copy.size == 0);
	evc_value_print(v, text, sizeof(text));
	FUZZ_CHECK(f, strcmp(text, "<no value>") == 0);
	return false;
}

static bool
one(struct fuzz *f, const unsigned char *bytes, size_t n)
{
	evc_value v = { bytes, n };
	size_t at;
	evc_value e;

	/* Any length, any bound. */
	(void)evc__walk_size(bytes, fuzz_below(f, n + 1));
	(void)evc__walk_is_value(&v, (unsigned)fuzz_random(f));
	/* A place that is not the library's, in whatever it is. */
	at = fuzz_below(f, n + 2);
	while (evc_value_next(&v, &at, NULL, &e))
		FUZZ_CHECK(f, at <= n);
	if (evc_value_check(&v) != 0) {
		FUZZ_CHECK(f, evc_last_error()[0] != '\0');
		return nothing(f, &v);
	}
	as_text(f, &v);
	if (n == 0)
		return true;
	one_by_one(f, &v, 0);
	by_formats(f, &v);
	in_another(f, &v);
	at_any_depth(f, &v);
	with_others_in_it(f, &v);
	return true;
}

static const struct fuzz_seed seeds[] = {
	FUZZ_SEED(""),
	FUZZ_SEED("\xc0"),
	FUZZ_SEED("\x93\x01\xa3" "abc\xcb\x3f\xf8\0\0\0\0\0\0"),
	FUZZ_SEED("\x82\xa4path\xa4/etc\xa4size\xcd\x10\x00"),
	FUZZ_SEED("\xdc\x00\x02\xc4\x02xy\xd9\x02hi"),
	FUZZ_SEED("\xde\x00\x01\xa1k\x92\xc2\xc3"),
	FUZZ_SEED("\xdd\x00\x00\x00\x01\xdf\x00\x00\x00\x01\x01\x02"),
	FUZZ_SEED("\x92\xc7\x0c\x45\0\0\0\1\0\0\0\0\0\0\0\2"
		  "\xc7\x0c\x46\0\0\0\1\0\0\0\0\0\0\0\1"),
	FUZZ_SEED("\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91"
		  "\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91"
		  "\x91\x91\x91\x90"),
	FUZZ_SEED("\xd0\x80\xd1\x80\x00\xd2\x80\x00\x00\x00"),
};

FUZZ_MAIN({ .name = "values",
	    .one = one,
	    .make = make,
	    .seeds = seeds,
	    .n_seeds = sizeof(seeds) / sizeof(seeds[0]) })
