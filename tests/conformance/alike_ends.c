/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions end alike on each engine: random schedules, with results of others
 * and per-worker values among their arguments, errors, wrong calls, joins, to a
 * cluster of the engine and to one of threads://.
 */
#include "tale.h"

#include <unistd.h>

/* ---- functions ---- */

/* [values...] -> [values...], with a number more; too large a result is 7. */
static evc_status
fn_join(evc_exec *x, void *arg)
{
	const evc_value *v = evc_exec_args(x);

	(void)arg;
	if (v->size > 300)
		return 7;
	return evc_exec_return(x, "[vi]", v, 5);
}

/* [code, text]: ends so, whatever the code is */
static evc_status
fn_end(evc_exec *x, void *arg)
{
	char text[300];
	int code;

	(void)arg;
	if (evc_exec_unpack(x, "[is]", &code, text, sizeof(text)) < 0)
		return evc_exec_fail(x, EVC_INTERNAL, "%s", evc_last_error());
	if (text[0] != '\0')
		evc_exec_fail(x, code, "%s", text);
	return code;
}

/* [what, value]: a wrong unpack, or a wrong result */
static evc_status
fn_wrong(evc_exec *x, void *arg)
{
	evc_value v = { "\xc1", 1 };
	unsigned what;
	int n;

	(void)arg;
	if (evc_exec_unpack(x, "[uv]", &what, &v) < 0)
		return evc_exec_fail(x, EVC_INTERNAL, "%s", evc_last_error());
	switch (what) {
	case 0:
		return evc_exec_unpack(x, "[i]", &n) < 0
			       ? evc_exec_fail(x, 9, "%s", evc_last_error())
			       : 0;
	case 1:
		return evc_exec_return(x, "[v", &v);
	case 2:
		v = (evc_value){ "\xc1", 1 };
		return evc_exec_return(x, "v", &v);
	case 3:
		return evc_exec_unpack_named(x, "{n:i}", &n) < 0
			       ? evc_exec_fail(x, 9, "%s", evc_last_error())
			       : 0;
	case 4:
		evc_exec_fail(x, 20, "said, and not meant");
		return evc_exec_return(x, "i", 1);
	case 5:
		return evc_exec_return(x, "d", 0.0 / (n = 0, (double)n));
	default:
		evc_exec_return(x, "s", "lost");
		return evc_exec_fail(x, 256, "%s", "too much\nof it\x01\xff");
	}
}

/* [iterator] -> its next element, or the code of its end */
static evc_status
fn_next(evc_exec *x, void *arg)
{
	evc_value v = { NULL, 0 };
	evc_local *it = NULL;
	evc_status st;

	(void)arg;
	if (evc_exec_unpack(x, "[w]", &it) < 0)
		return evc_exec_fail(x, 9, "%s", evc_last_error());
	st = evc_exec_next(x, it, &v);
	if (st < 0)
		return evc_exec_fail(x, 8, "%s", evc_last_error());
	return st > 0 ? st : evc_exec_return(x, "v", &v);
}

/* [local] -> its value */
static evc_status
fn_look(evc_exec *x, void *arg)
{
	evc_local *l = NULL;

	(void)arg;
	if (evc_exec_unpack(x, "[w]", &l) < 0)
		return evc_exec_fail(x, 9, "%s", evc_last_error());
	return evc_exec_return(x, "v", evc_local_value(l));
}

/* ---- steps ---- */

enum { SLOTS = 4 };

static struct slots {
	evc_remote *r[SLOTS];
	evc_per_worker *w[SLOTS];
} of[2];

static const char *
draw_text(uint64_t *random)
{
	static char longer[6000];

	switch (draw(random, 8)) {
	case 0:
		return "";
	case 1:
		return "two\nlines\x01\xfe";
	case 2:
		memset(longer, 'y', sizeof(longer));
		longer[draw(random, sizeof(longer))] = '\0';
		return longer;
	default:
		return "why not";
	}
}

static evc_schedule_opts
draw_opts(uint64_t *random)
{
	evc_schedule_opts o = { 0 };

	switch (draw(random, 12)) {
	case 0:
		o.priority = (int)draw(random, 20) - 10;
		break;
	case 1:
		o.worker = draw(random, 2) ? "worker 0" : "nobody";
		break;
	case 2:
		o.flags = (unsigned)draw(random, 4);
		break;
	case 3:
		o.retry = (evc_backoff){ .times = (unsigned)draw(random, 3),
					 .first = 0.001 };
		break;
	case 4:
		o.wait = draw(random, 2) ? -1 : 0.1;
		break;
	case 5:
		o.reserved_[3] = draw(random, 2);
		break;
	case 6:
		o.deaths = (unsigned)draw(random, 3);
		break;
	}
	return o;
}

static void
keep_remote(struct slots *s, uint64_t *random, evc_remote *r, struct tale *t)
{
	evc_remote **at = &s->r[draw(random, SLOTS)];

	if (r == NULL)
		return;
	tell_end(t, r);
	evc_remote_free(*at);
	*at = r;
}

static void
do_schedule(evc_cluster *cl, struct slots *s, uint64_t *random, struct tale *t)
{
	evc_schedule_opts o = draw_opts(random);
	evc_remote *r = NULL, *a = s->r[draw(random, SLOTS)],
		   *b = s->r[draw(random, SLOTS)];
	evc_per_worker *w = s->w[draw(random, SLOTS)];
	evc_status st;

	switch (draw(random, 12)) {
	case 0:
	case 1:
		tell(t, "join %d %d", a != NULL, b != NULL);
		st = evc_schedule_pack(cl, "join", &o, &r, "[rr]", a, b);
		break;
	case 2:
		tell(t, "join deep");
		st = evc_schedule_pack(cl, "join", &o, &r, "[i[{k:[r]}]s]", 1,
				       a, "x");
		break;
	case 3:
	case 4: {
		static const int codes[] = { 0, 1, 7, 255, 256, -1, -5, 3 };
		int code = codes[draw(random, 8)];

		tell(t, "end %d", code);
		st = evc_schedule_pack(cl, "end", &o, &r, "[is]", code,
				       draw_text(random));
		break;
	}
	case 5:
	case 6: {
		unsigned what = (unsigned)draw(random, 7);

		tell(t, "wrong %u", what);
		st = a != NULL ? evc_schedule_pack(cl, "wrong", &o, &r, "[ur]",
						   what, a)
			       : evc_schedule_pack(cl, "wrong", &o, &r, "[us]",
						   what, "none");
		break;
	}
	case 7:
		/* Nodes that know another function may come yet. */
		tell(t, "no name");
		st = evc_schedule_pack(cl, draw(random, 2) ? "" : NULL, &o, &r,
				       "[i]", 1);
		break;
	case 8:
	case 9:
		tell(t, "look %d", w != NULL);
		st = evc_schedule_pack(cl, "look", &o, &r, "[w]", w);
		break;
	case 10:
		tell(t, "look at no local");
		st = evc_schedule_pack(cl, draw(random, 2) ? "look" : "next",
				       &o, &r, "[i]", 1);
		break;
	default:
		tell(t, "next %d", w != NULL);
		st = evc_schedule_pack(cl, "next", &o, &r, "[w]", w);
	}
	tell_status(t, st);
	keep_remote(s, random, r, t);
}

static void
do_per_worker(evc_cluster *cl, struct slots *s, uint64_t *random,
	      struct tale *t)
{
	evc_per_worker *w = NULL, **at = &s->w[draw(random, SLOTS)],
		       *from = s->w[draw(random, SLOTS)];
	evc_dataset_opts o = { .repeat = draw(random, 3) };
	evc_value v = { NULL, 0 };
	evc_status st;

	switch (draw(random, 6)) {
	case 0:
		OK(evc_pack(&v, "[ss]", "a", "b"));
		tell(t, "value");
		st = evc_per_worker_value(cl, "v", "join", &v, &w);
		break;
	case 1:
		OK(evc_pack(&v, "[is]", (int)draw(random, 4), "not built"));
		tell(t, "value that fails");
		st = evc_per_worker_value(cl, "f", "end", &v, &w);
		break;
	case 2:
		OK(evc_pack(&v, "[isd[i]]", 1, "two", 3.0, 4));
		if (draw(random, 3) == 0)
			o.map = draw(random, 2) ? "join" : "end";
		tell(t, "dataset of %s", o.map != NULL ? o.map : "");
		st = evc_per_worker_dataset_of(cl, "d", &v, &o, &w);
		break;
	case 3:
		OK(evc_pack(&v, "[is]", 1, "x"));
		tell(t, "dataset that keeps nothing");
		st = evc_per_worker_dataset(cl, "n", "join", &v, &o, &w);
		break;
	case 4:
		tell(t, "iterator %d", from != NULL);
		st = evc_per_worker_iterator(from, &w);
		break;
	default:
		OK(evc_pack(&v, "s", "no array"));
		tell(t, "dataset of no array");
		st = evc_per_worker_dataset_of(cl, "", &v, &o, &w);
	}
	tell_status(t, st);
	evc_value_free(&v);
	if (w == NULL)
		return;
	evc_per_worker_free(*at);
	*at = w;
}

static void
do_settled(evc_cluster *cl, struct slots *s, uint64_t *random, struct tale *t)
{
	unsigned i = (unsigned)draw(random, SLOTS), k;
	evc_reason why;
	bool done = false;

	switch (draw(random, 6)) {
	case 0:
		tell(t, "cancel");
		tell_status(t, evc_remote_cancel(s->r[i]));
		break;
	case 1:
		tell(t, "drop");
		evc_remote_free(s->r[i]);
		s->r[i] = NULL;
		break;
	case 2:
		tell(t, "drop per worker");
		evc_per_worker_free(s->w[i]);
		s->w[i] = NULL;
		break;
	case 3:
		tell(t, "done");
		tell_status(t, evc_cluster_done(cl, &done));
		tell(t, " %d", done);
		break;
	case 4:
		if (s->r[i] != NULL)
			tell_end(t, s->r[i]);
		break;
	default:
		for (k = 0; k < 4; k++) {
			memset(&why, 0, sizeof(why));
			tell(t, "error %u", k);
			tell_status(t, evc_cluster_error_get(cl, k, &why));
			tell(t, " %d %d: %s\n", (int)why.kind, (int)why.code,
			     why.text);
		}
		tell(t, "join");
		tell_status(t, evc_cluster_join(cl, T_LIMIT));
	}
}

static void
do_step(evc_cluster *cl, uint64_t random, struct tale *t)
{
	struct slots *s = &of[cl == on.cl];

	switch (draw(&random, 8)) {
	case 0:
		do_per_worker(cl, s, &random, t);
		break;
	case 1:
	case 2:
		do_settled(cl, s, &random, t);
		break;
	default:
		do_schedule(cl, s, &random, t);
	}
}

static void
drop_all(void)
{
	unsigned i, k;

	for (i = 0; i < 2; i++)
		for (k = 0; k < SLOTS; k++) {
			evc_remote_free(of[i].r[k]);
			evc_per_worker_free(of[i].w[k]);
		}
}

START_TEST(functions_end_alike)
{
	compare_with_threads(_i, do_step);
	drop_all();
}
END_TEST

static const evc_function functions[] = {
	{ .name = "join", .fn = fn_join },   { .name = "end", .fn = fn_end },
	{ .name = "wrong", .fn = fn_wrong }, { .name = "next", .fn = fn_next },
	{ .name = "look", .fn = fn_look },
};

CONFORMANCE_MAIN("alike_ends", functions, ROW(functions_end_alike))
