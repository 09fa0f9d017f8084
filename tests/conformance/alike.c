/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The same calls have the same answers on each engine: random calls with
 * variables, by the program and by functions, to a cluster of the engine and to
 * one of threads://: statuses, texts, values, outcomes.
 */
#include "tale.h"

#include <float.h>
#include <limits.h>
#include <math.h>
#include <unistd.h>

/* ---- one call ---- */

/* The side that calls: the program, or a function. */
struct side {
	evc_cluster *cl;
	evc_exec *x;
};

enum { SOME = 300, LONG = 100000 };

static const char *
draw_name(uint64_t *random)
{
	static const char *const names[] = { "a", "b",          "v",    "w",
					     "a", "b",          "v",    "w",
					     "",  "two\nlines", "\xff", "\1\1",
					     "*" };
	static char longer[600];

	if (draw(random, 40) == 0) {
		memset(longer, 'n', sizeof(longer));
		longer[draw(random, 2) ? 255 : 500] = '\0';
		return longer;
	}
	return names[draw(random, draw(random, 8) ? 8 : 13)];
}

static double
draw_number(uint64_t *random)
{
	static const double usual[] = { 0, 1, -1, 0.5, 3, 1e10 };
	static const double rare[] = { -0.0,
				       0.1,
				       1e-320,
				       DBL_MAX,
				       -DBL_MAX,
				       NAN,
				       INFINITY,
				       -INFINITY,
				       9007199254740993.0,
				       1e300,
				       FLT_MAX,
				       1e-40,
				       123456789012345678.0 };

	return draw(random, 5)
		       ? usual[draw(random, 6)]
		       : rare[draw(random, sizeof(rare) / sizeof(rare[0]))];
}

struct drawn_elements {
	evc_elements e;
	double doubles[SOME];
	float floats[SOME];
	uint32_t at[SOME];
};

static void
draw_elements(uint64_t *random, bool places, struct drawn_elements *ret)
{
	bool wide = draw(random, 2) > 0;
	size_t i;

	memset(&ret->e, 0, sizeof(ret->e));
	ret->e.n = draw(random, draw(random, 3) ? 12 : SOME);
	for (i = 0; i < ret->e.n; i++) {
		double d = draw_number(random);

		ret->doubles[i] = draw(random, 9) ? 1 : d;
		ret->floats[i] =
			ret->doubles[i] > -FLT_MAX && ret->doubles[i] < FLT_MAX
				? (float)ret->doubles[i]
				: 2;
		ret->at[i] = (uint32_t)draw(random, draw(random, 20) ? 8 : 400);
	}
	if (wide)
		ret->e.doubles = ret->doubles;
	else
		ret->e.floats = ret->floats;
	if (!places)
		return;
	if (draw(random, 2))
		ret->e.at = ret->at;
	else if (draw(random, 2))
		ret->e.from = draw(random, draw(random, 20) ? 6 : 300);
}

static void
tell_elements(struct tale *t, const struct drawn_elements *d)
{
	if (d->e.doubles != NULL)
		tell_bytes(t, d->doubles, d->e.n * sizeof(double));
	else
		tell_bytes(t, d->floats, d->e.n * sizeof(float));
}

/* Perhaps no value at all, perhaps one that is damaged. */
static evc_value
draw_value(uint64_t *random, bool *ret_owned)
{
	static struct drawn_elements d;
	/* Numbers in other spellings, nil, and what is no value. */
	static const struct {
		unsigned char bytes[10];
		unsigned size;
	} rare[] = {
		{ { 0xc1 }, 1 },
		{ { 0x92, 1 }, 2 },
		{ { 1, 2 }, 2 },
		{ { 0xa3, 'a', 'b' }, 3 },
		{ { 0xc0 }, 1 },
		{ { 0xc3 }, 1 },
		{ { 0xd0, 1 }, 2 },
		{ { 0xcc, 1 }, 2 },
		{ { 0xd3, 0, 0, 0, 0, 0, 0, 0, 1 }, 9 },
		{ { 0xcf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff }, 9 },
		{ { 0xd3, 0x80 }, 9 },
		{ { 0xca, 0x3f, 0x80 }, 5 },
		{ { 0xca, 0x7f, 0xc0 }, 5 },
		{ { 0xcb, 0x80 }, 9 },
		{ { 0xd4, 5, 1 }, 3 },
		{ { 0xc7, 0, 0x47 }, 3 },
		{ { 0xc7, 3, 0x47, 1, 2, 3 }, 6 },
		{ { 0xc7, 5, 0x57, 8, 0, 0, 0, 9 }, 8 },
		{ { 0x82, 0xa1, 'a', 1, 0xa1, 'a', 2 }, 7 },
	};
	static char letters[LONG];
	evc_value v = { NULL, 0 };
	size_t i;

	*ret_owned = true;
	switch (draw(random, 12)) {
	case 0:
		(void)evc_pack(&v, "I", (int64_t)draw(random, 1000) - 500);
		break;
	case 1:
	case 2:
	case 3:
		(void)evc_pack(&v, "d", draw_number(random));
		break;
	case 4:
		(void)evc_pack(&v, "s", "a text");
		break;
	case 5:
		(void)evc_pack(&v, "[is[d]]", 1, "two", 3.0);
		break;
	case 6:
	case 7:
		draw_elements(random, false, &d);
		(void)evc_pack(&v, "E", &d.e);
		break;
	case 8:
		i = draw(random, sizeof(rare) / sizeof(rare[0]));
		*ret_owned = false;
		v = (evc_value){ rare[i].bytes, rare[i].size };
		break;
	case 9:
		*ret_owned = false;
		break;
	case 10:
		memset(letters, 'x', sizeof(letters));
		letters[draw(random, LONG)] = '\0';
		(void)evc_pack(&v, "s", letters);
		break;
	default:
		(void)evc_pack(&v, "I", (int64_t)draw(random, 3));
	}
	return v;
}

static evc_status
get(const struct side *s, const char *name, evc_value *ret)
{
	return s->cl != NULL ? evc_variable_get(s->cl, name, ret)
			     : evc_exec_variable_get(s->x, name, ret);
}

/* expected: what is there, or something else. */
static evc_status
compare_set(const struct side *s, uint64_t *random, const char *name,
	    const evc_value *v)
{
	evc_value expected = { NULL, 0 }, *e = &expected;
	uint64_t again = *random;
	bool owned = draw(random, 2) > 0;
	evc_status st;

	if (owned)
		(void)get(s, name, &expected);
	else
		expected = draw_value(&again, &owned);
	if (expected.size == 0)
		e = NULL;
	st = s->cl != NULL ? evc_variable_compare_set(s->cl, name, e, v)
			   : evc_exec_variable_compare_set(s->x, name, e, v);
	if (owned)
		evc_value_free(&expected);
	return st;
}

static void
do_value(const struct side *s, uint64_t *random, struct tale *t)
{
	const char *name = draw_name(random);
	bool owned;
	evc_value v = draw_value(random, &owned);
	evc_status st;

	if (draw(random, 3) == 0) {
		tell(t, "compare_set %.9s", name);
		st = compare_set(s, random, name, &v);
	} else {
		tell(t, "set %.9s", name);
		st = s->cl != NULL ? evc_variable_set(s->cl, name, &v)
				   : evc_exec_variable_set(s->x, name, &v);
	}
	tell_status(t, st);
	if (owned)
		evc_value_free(&v);
}

static void
do_get(const struct side *s, uint64_t *random, struct tale *t)
{
	const char *name = draw_name(random);
	bool loose = draw(random, 4) == 0;
	evc_value v = { NULL, 0 };
	evc_status st;

	tell(t, "get %.9s", name);
	st = loose && s->x != NULL ? evc_exec_variable_get_loose(s->x, name, &v)
				   : get(s, name, &v);
	tell_status(t, st);
	if (st == 0)
		tell_bytes(t, v.data, v.size);
	evc_value_free(&v);
}

static void
do_number(const struct side *s, uint64_t *random, struct tale *t)
{
	const char *name = draw_name(random);
	double by = draw_number(random), now = 42;
	evc_status st;

	if (draw(random, 3) > 0) {
		double *to = draw(random, 2) ? &now : NULL;

		tell(t, "add %.9s %a%s", name, by, to != NULL ? " now" : "");
		st = s->cl != NULL ? evc_variable_add(s->cl, name, by, to)
				   : evc_exec_variable_add(s->x, name, by, to);
	} else {
		tell(t, "number %.9s", name);
		st = s->cl != NULL ? evc_variable_number(s->cl, name, &now)
				   : evc_exec_variable_number(s->x, name, &now);
	}
	tell_status(t, st);
	if (st == 0)
		tell(t, " now %a\n", now);
}

static void
do_vector(const struct side *s, uint64_t *random, struct tale *t)
{
	static struct drawn_elements d;
	const char *name = draw_name(random);
	size_t n = 0;
	evc_status st;

	switch (draw(random, 6)) {
	case 0:
		draw_elements(random, draw(random, 9) == 0, &d);
		tell(t, "vector set %.9s", name);
		st = s->cl != NULL ? evc_vector_set(s->cl, name, &d.e)
				   : evc_exec_vector_set(s->x, name, &d.e);
		break;
	case 1:
		tell(t, "vector size %.9s", name);
		st = s->cl != NULL ? evc_vector_size(s->cl, name, &n)
				   : evc_exec_vector_size(s->x, name, &n);
		tell(t, " %zu", n);
		break;
	case 2:
	case 3:
		draw_elements(random, true, &d);
		tell(t, "vector add %.9s %zu from %zu%s", name, d.e.n, d.e.from,
		     d.e.at != NULL ? " at" : "");
		st = s->cl != NULL ? evc_vector_add(s->cl, name, &d.e)
				   : evc_exec_vector_add(s->x, name, &d.e);
		break;
	default:
		draw_elements(random, true, &d);
		tell(t, "vector get %.9s %zu from %zu%s", name, d.e.n, d.e.from,
		     d.e.at != NULL ? " at" : "");
		if (s->cl != NULL)
			st = evc_vector_get(s->cl, name, &d.e);
		else
			st = draw(random, 3) == 0
				     ? evc_exec_vector_get_loose(s->x, name,
								 &d.e)
				     : evc_exec_vector_get(s->x, name, &d.e);
		tell_elements(t, &d);
	}
	tell_status(t, st);
}

static void
do_one(const struct side *s, uint64_t *random, struct tale *t)
{
	switch (draw(random, 8)) {
	case 0:
	case 1:
		do_value(s, random, t);
		break;
	case 2:
		do_get(s, random, t);
		break;
	case 3:
	case 4:
		do_number(s, random, t);
		break;
	default:
		do_vector(s, random, t);
	}
}

/* ---- functions ---- */

/* [random, n, code]: n calls; -> what they said; or fails with the code */
static evc_status
fn_calls(evc_exec *x, void *arg)
{
	struct side s = { .x = x };
	struct tale t = { NULL, 0, 0 };
	uint64_t random;
	unsigned n, i;
	double none;
	evc_status st;
	int code;

	(void)arg;
	if (evc_exec_unpack(x, "[Uui]", &random, &n, &code) < 0)
		return evc_exec_fail(x, EVC_INTERNAL, "%s", evc_last_error());
	tell(&t, "calls\n");
	for (i = 0; i < n; i++) {
		uint64_t r = random + i * 1000003;

		draw(&r, 2);
		draw(&r, 2);
		do_one(&s, &r, &t);
		/* An impossible addition may take others with it that are under
		   way. */
		(void)evc_exec_variable_number(x, "none", &none);
	}
	st = code > 0 ? evc_exec_fail(x, code, "%s", t.text)
		      : evc_exec_return(x, "s", t.text);
	free(t.text);
	return st;
}

static void
do_function(evc_cluster *cl, uint64_t random, struct tale *t)
{
	evc_schedule_opts o = { 0 };
	evc_remote *r = NULL;
	evc_value v = { NULL, 0 };
	unsigned n = (unsigned)draw(&random, 6);
	static char said[1 << 20];
	const char *p;
	evc_status st;

	if (draw(&random, 3) > 0)
		o.flags = EVC_TRANSACTIONAL;
	st = evc_schedule_pack(cl, "calls", &o, &r, "[Uui]", random, n,
			       draw(&random, 12) == 0 ? 7 : 0);
	tell(t, "function%s", o.flags ? ", transactional" : "");
	tell_status(t, st);
	if (st < 0)
		return;
	if (evc_remote_fetch(r, T_LIMIT, &v) == 0) {
		OK(evc_unpack(&v, "s", said, sizeof(said)));
		for (p = said; *p != '\0'; p += strnlen(p, 900))
			tell(t, "%.900s", p);
	}
	tell_end(t, r);
	evc_remote_free(r);
	tell(t, "join %d\n", evc_cluster_join(cl, T_LIMIT));
}

/* ---- all of it ---- */

static char dir[] = "/tmp/evcoord-alike-XXXXXX";

static bool
tell_variable(const char *name, const evc_value *value, void *arg)
{
	tell(arg, "is %.300s", name);
	tell_bytes(arg, value->data, value->size);
	return true;
}

/* Each saves what the other one restores. */
static void
do_checkpoint(evc_cluster *cl, uint64_t random, struct tale *t)
{
	char path[PATH_MAX];
	bool mine = cl == on.cl, saves = draw(&random, 2) > 0;

	snprintf(path, sizeof(path), "%s/%s", dir,
		 mine == saves ? "mine" : "other");
	if (saves)
		tell(t, "save %d\n", evc_cluster_save(cl, path));
	else
		tell(t, "restore %d\n", evc_cluster_restore(cl, path));
}

static void
do_step(evc_cluster *cl, uint64_t random, struct tale *t)
{
	struct side s = { .cl = cl };

	if (draw(&random, 30) == 0)
		do_checkpoint(cl, random, t);
	else if (draw(&random, 2))
		do_function(cl, random, t);
	else
		do_one(&s, &random, t);
	if (draw(&random, 20) == 0) {
		OK(evc_variable_each(cl, tell_variable, t));
		tell(t, "finished %llu\n",
		     (unsigned long long)evc_cluster_finished(cl));
	}
}

static void
remove_files(void)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/mine", dir);
	(void)unlink(path);
	snprintf(path, sizeof(path), "%s/other", dir);
	(void)unlink(path);
	OK(rmdir(dir));
}

START_TEST(the_same_calls_have_the_same_answers)
{
	ck_assert_ptr_nonnull(mkdtemp(dir));
	compare_with_threads(_i, do_step);
	remove_files();
}
END_TEST

static const evc_function functions[] = { { .name = "calls", .fn = fn_calls } };

CONFORMANCE_MAIN("alike", functions, ROW(the_same_calls_have_the_same_answers))
