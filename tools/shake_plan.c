/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The plan of evc-shake: of the calls that a first run made, before which ones
 * the signal is sent.  Three in five moments are the 1st, 2nd, 4th, 8th ... call
 * of a kind after there was a handler, one in five is a call at random, one in
 * five an instant.
 * Called by: evc-shake.c and shake_print.c.
 * Locks: none; one thread.
 */
#include "shake_tool.h"

#include <stdlib.h>
#include <string.h>

/* splitmix64: the same numbers on each machine. */
static uint64_t
random_next(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15u;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static struct moment
instant_at_random(const struct options *o, const struct counts *c,
		  uint64_t *state)
{
	const double from = o->only_handled ? c->from : 0;

	return (struct moment){
		.kind = INSTANT,
		.after = from + (c->until - from) *
			(double)(random_next(state) % 100000) / 100000,
	};
}

/* A call at random; false: the program made none that may be taken. */
static bool
call_at_random(struct moment *m, const struct options *o,
	       const struct counts *c, uint64_t *state)
{
	const struct count *of;
	unsigned long from;

	for (unsigned tries = 0; tries < 1000 && c->n > 0; tries++) {
		of = &c->of[random_next(state) % c->n];
		from = o->only_handled ? of->early : 0;
		if (of->n == from)
			continue;
		*m = (struct moment){
			.kind = BEFORE_CALL,
			.nr = of->nr,
			.task = of->task,
			.n = from + 1 + random_next(state) % (of->n - from),
		};
		return true;
	}
	return false;
}

/* The calls 1, 2, 4, ... of each kind from the handler on; m NULL: only their number. */
static size_t
powers_of_two(struct moment *m, const struct counts *c)
{
	size_t all = 0;

	for (size_t i = 0; i < c->n; i++)
		for (unsigned long n = 1; n <= c->of[i].n - c->of[i].early;
		     n *= 2, all++)
			if (m != NULL)
				m[all] = (struct moment){
					.kind = BEFORE_CALL,
					.nr = c->of[i].nr,
					.task = c->of[i].task,
					.n = c->of[i].early + n,
				};
	return all;
}

size_t
plan_moments(struct moment *m, const struct options *o, const struct counts *c)
{
	size_t all = powers_of_two(NULL, c), n = 0, some = o->moments;
	struct moment *each = room_for(all + 1, sizeof *each);
	uint64_t state = o->seed;

	powers_of_two(each, c);
	some -= o->moments / 5 * 2;
	for (; n < some && all > 0; n++) {
		size_t i = random_next(&state) % all;

		m[n] = each[i];
		each[i] = each[--all];
	}
	free(each);
	for (; n < o->moments; n++)
		if (n % 2 != 0 || !call_at_random(&m[n], o, c, &state))
			m[n] = instant_at_random(o, c, &state);
	return n;
}

const char *
moment_text(const struct moment *m)
{
	static char text[64];

	if (m->kind == INSTANT)
		snprintf(text, sizeof text, "%.3fms", m->after * 1000);
	else
		snprintf(text, sizeof text, "%s#%lu@%u", call_name(m->nr),
			 m->n, m->task);
	return text;
}

bool
moment_parse(struct moment *m, const char *text)
{
	char name[32], *end;
	int at = 0;

	*m = (struct moment){ .kind = INSTANT };
	if (sscanf(text, "%31[a-z0-9_]#%lu@%u%n", name, &m->n, &m->task,
		   &at) == 3 && text[at] == '\0') {
		m->kind = BEFORE_CALL;
		m->nr = call_number(name);
		return m->nr >= 0 && m->n > 0 && m->task > 0;
	}
	m->after = strtod(text, &end) / 1000;
	return end != text && strcmp(end, "ms") == 0 && m->after >= 0 &&
		m->after < 86400;
}
