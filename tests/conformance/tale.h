/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What two clusters say to the same calls is written down, and compared: texts
 * of what was said, and numbers that are random and come again.
 */
#ifndef TESTS_CONFORMANCE_TALE_H
#define TESTS_CONFORMANCE_TALE_H

#include "functions.h"

#include <stdarg.h>
#include <stdlib.h>

static MAYBE_UNUSED uint64_t
draw(uint64_t *random, uint64_t below)
{
	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	return *random % below;
}

struct tale {
	char *text;
	size_t len, size;
};

static MAYBE_UNUSED void
tell(struct tale *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (t->size - t->len < 1024) {
		t->size = t->size * 2 + 4096;
		t->text = realloc(t->text, t->size);
		if (t->text == NULL)
			abort();
	}
	va_start(ap, fmt);
	n = vsnprintf(t->text + t->len, 1000, fmt, ap);
	va_end(ap);
	t->len += n > 999 ? 999 : (size_t)n;
}

static MAYBE_UNUSED void
tell_bytes(struct tale *t, const void *data, size_t size)
{
	const unsigned char *p = data;
	uint64_t sum = 14695981039346656037u;
	size_t i;

	for (i = 0; i < size; i++)
		sum = (sum ^ p[i]) * 1099511628211u;
	tell(t, " %zu bytes, %llx:", size, (unsigned long long)sum);
	for (i = 0; i < size && i < 24; i++)
		tell(t, " %02x", p[i]);
	tell(t, "\n");
}

static MAYBE_UNUSED void
tell_status(struct tale *t, evc_status st)
{
	tell(t, " -> %d%s%s\n", st, st < 0 ? " " : "",
	     st < 0 ? evc_last_error() : "");
}

/* The outcome of a function, when it is there. */
static MAYBE_UNUSED void
tell_end(struct tale *t, evc_remote *r)
{
	evc_value v = { NULL, 0 };
	char text[8192];
	evc_remote_info i;
	evc_status st = evc_remote_fetch(r, T_LIMIT, &v);

	OK(evc_remote_get(r, &i));
	tell(t,
	     " fetch %d%s%s; state %u, kind %u, code %d, attempts %u, deaths "
	     "%u, %s on %s: %s\n",
	     st, st < 0 ? " " : "", st < 0 ? evc_last_error() : "", i.state,
	     i.kind, i.code, i.attempts, i.deaths, i.function, i.worker,
	     i.text);
	tell(t, " %zu:", evc_remote_text(r, text, sizeof(text)));
	tell_bytes(t, text, strlen(text));
	if (st == 0)
		tell_bytes(t, v.data, v.size);
}

/* Step i of what two clusters are asked to do. */
typedef void step_fn(evc_cluster *cl, uint64_t random, struct tale *t);

/* A cluster of the engine and one of threads://, with one worker each, so that
   all has one order: do each step on both.  EVC_SEED: the first random number.
   EVC_STEPS: so many steps. */
static MAYBE_UNUSED void
compare_with_threads(int engine, step_fn *step)
{
	uint64_t seed = (uint64_t)from_environment("EVC_SEED", 1);
	int n = from_environment("EVC_STEPS", 400), i;
	evc_cluster_config cfg = { .functions = table, .n_functions = n_table };
	struct tale a = { NULL, 0, 0 }, b = { NULL, 0, 0 };
	evc_cluster *other = NULL;
	size_t same, line = 0;
	uint64_t random;

	begin(engine, 1);
	OK(evc_cluster_open(on.c, "threads://1", &cfg, &other));
	for (i = 0; i < n; i++) {
		random = (seed << 20) + (uint64_t)i * 7919 + 1;
		draw(&random, 2);
		draw(&random, 2);
		a.len = b.len = 0;
		tell(&a, "step %d\n", i);
		tell(&b, "step %d\n", i);
		step(on.cl, random, &a);
		step(other, random, &b);
		for (same = 0;
		     a.text[same] != '\0' && a.text[same] == b.text[same];
		     same++)
			if (a.text[same] == '\n')
				line = same;
		ck_assert_msg(a.text[same] == b.text[same],
			      "EVC_SEED=%llu, step %d\n%s:%.400s\n"
			      "threads:%.400s\n",
			      (unsigned long long)seed, i, on.engine->name,
			      a.text + line, b.text + line);
	}
	evc_cluster_close(other);
	free(a.text);
	free(b.text);
}

#endif
