/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pure decision under all joins, driven by a scripted clock.
 *
 * 1,000 random member histories run twice.  Once with evc__decide, as a join
 * would drive it: it looks when something rings and when its wait is over, and
 * learns of those who cannot ring by a probe only.  And once in a model that
 * knows everything at once: it puts all that happens into one list, walks it in
 * the order of time and notes when a join may first answer, and what.  The join
 * must never be before the model, and behind it by one step of the back-off at
 * most - by nothing when nobody had to be probed for.
 *
 * EVC_SEED=n runs other histories; a failure prints the seed.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "../support/support.h"

#include "core/join/join.h"
#include "histories.h"

#define HISTORIES 1000

/* ---- what a join does with it ---- */

struct run {
	enum evc__join_action answer; /* EVC__EMPTY, EVC__LATE; EVC__WAIT: none */
	uint64_t at;
	uint64_t stop; /* the one that counted, asked for or not */
	bool asked;
	unsigned probes;
	const char *broken;
};

static double
own_grace(const struct member *m)
{
	return m->own == 0 ? INFINITY : m->own;
}

/* When does something happen next that a join hears of without looking? */
static uint64_t
next_ring(const struct history *h, uint64_t now)
{
	uint64_t next = NEVER;
	unsigned i;

	if (h->stop != NEVER && h->stop > now)
		next = h->stop;
	if (h->grace_cut != NEVER && h->grace_cut > now && h->grace_cut < next)
		next = h->grace_cut;
	for (i = 0; i < h->n; i++) {
		const struct member *m = &h->m[i];

		if (m->begin > now && m->begin < next)
			next = m->begin;
		if (m->rings && m->end > now && m->end < next)
			next = m->end;
	}
	return next;
}

struct driver {
	const struct history *h;
	uint64_t now;
	bool known[MEMBERS]; /* known to have ended */
	struct evc__backoff backoff;
	bool stop_seen;
	/* the steps that probes must have come in */
	uint64_t last_probe, step;
};

static void
notice(struct driver *d, bool probe)
{
	unsigned i;

	for (i = 0; i < d->h->n; i++)
		if ((probe || d->h->m[i].rings) && d->h->m[i].end <= d->now)
			d->known[i] = true;
}

static struct evc__view
look(struct driver *d, const struct run *r)
{
	struct evc__view v = { .now = d->now,
			       .start = d->h->start,
			       .grace = d->h->grace,
			       .until_stop = d->h->until_stop };
	unsigned i;

	notice(d, false);
	if (r->stop <= d->now)
		v.stop = r->stop;
	if (d->h->grace_cut <= d->now) {
		v.grace_cut = d->h->grace_cut;
		v.cut_grace = d->h->cut_grace;
	}
	for (i = 0; i < d->h->n; i++) {
		const struct member *m = &d->h->m[i];

		if (d->known[i] || m->begin > d->now)
			continue;
		v.alive++;
		v.foreground += !m->background;
		if (own_grace(m) > v.longest)
			v.longest = own_grace(m);
		if (!m->rings && (v.stop != 0 || !d->h->until_stop))
			v.probes = true;
	}
	if (v.stop != 0 && !d->stop_seen) {
		d->stop_seen = true;
		d->backoff.step = 0;
		d->step = 0;
	}
	return v;
}

/* A probe: was there need, and did it come in its step? */
static const char *
check_probe(struct driver *d, const struct evc__view *v)
{
	uint64_t due = d->last_probe + d->step;

	if (!v->probes)
		return "probed, and nobody had to be";
	if (v->until_stop && v->stop == 0)
		return "probed before the stop that it waits for";
	if (d->step != 0 && v->now != due)
		return "a probe not at 1, 2, 4, 8, 16, 25, 25 ms";
	d->step = d->step == 0 ? MS : d->step * 2 > STEP ? STEP : d->step * 2;
	d->last_probe = v->now;
	return NULL;
}

static struct run
drive(const struct history *h)
{
	struct driver d = { .h = h, .now = h->start };
	struct run r = { .answer = EVC__WAIT, .at = NEVER, .stop = h->stop };
	unsigned looks = 0;
	bool last = false;

	while (d.now < h->give_up && r.broken == NULL) {
		struct evc__view v = look(&d, &r);
		struct evc__decision dec = evc__decide(&v, &d.backoff);
		uint64_t ring = next_ring(h, d.now), wake;

		if (++looks > 5000)
			r.broken = "looks without end";
		if (!v.probes)
			d.step = 0;
		switch (dec.next) {
		case EVC__PROBE:
			r.probes++;
			r.broken = check_probe(&d, &v);
			notice(&d, true);
			break;
		case EVC__ASK:
			/* Who has ended needs no stop: look once more. */
			if (!last) {
				last = true;
				notice(&d, true);
				break;
			}
			last = false;
			if (r.stop <= d.now)
				r.broken = "asks for a stop that is there";
			r.asked = true;
			r.stop = d.now;
			break;
		case EVC__LATE:
			/* A join looks once more before it says so. */
			if (!last) {
				last = true;
				notice(&d, true);
				break;
			}
			__attribute__((fallthrough));
		case EVC__EMPTY:
			r.answer = dec.next;
			r.at = d.now;
			return r;
		case EVC__WAIT:
			if (dec.wait_ns == 0)
				r.broken = "waits for no time at all";
			last = false;
			wake = dec.wait_ns == SYNC_FOREVER ?
				       NEVER :
				       d.now + dec.wait_ns;
			/* Somebody else rings, or an alarm comes early: that
			   must change nothing. */
			if (wake != NEVER && chance(20))
				wake -= dice(dec.wait_ns);
			d.now = wake < ring ? wake : ring;
			break;
		}
	}
	return r;
}

/* ---- the model: all that happens, in one list ---- */

struct event {
	uint64_t at;
	enum { JOIN, STOP, HURRY, BEGIN, END } what;
	unsigned who;
};

static int
by_time(const void *a, const void *b)
{
	uint64_t x = ((const struct event *)a)->at;
	uint64_t y = ((const struct event *)b)->at;

	return (x > y) - (x < y);
}

struct world {
	bool joining, stopped, told_phases;
	bool here[MEMBERS];
	unsigned alive, foreground;
};

struct truth {
	enum evc__join_action answer;
	uint64_t at;
	uint64_t deserted; /* when only the background was left, unstopped */
};

static uint64_t
plus(uint64_t t, double seconds)
{
	if (seconds <= 0)
		return t;
	return seconds > 1e6 ? NEVER : t + (uint64_t)(seconds * 1e9 + 0.5);
}

/* When is that member late?  Each says so for itself; the join has to wait for
   the last of them. */
static uint64_t
late_at(const struct history *h, uint64_t stop, const struct world *w,
	const struct member *m)
{
	uint64_t from = stop > h->start ? stop : h->start;
	uint64_t joins = plus(from, h->grace), own = plus(from, m->own);
	uint64_t cut = NEVER;

	if (w->told_phases)
		cut = (h->grace_cut > h->start ? h->grace_cut : h->start) +
		      h->cut_grace;
	if (m->own != 0 && own < joins)
		joins = own;
	return cut < joins ? cut : joins;
}

static uint64_t
all_late_at(const struct history *h, uint64_t stop, const struct world *w)
{
	uint64_t last = 0;
	unsigned i;

	for (i = 0; i < h->n; i++)
		if (w->here[i] && late_at(h, stop, w, &h->m[i]) > last)
			last = late_at(h, stop, w, &h->m[i]);
	return last;
}

static void
happen(const struct history *h, struct world *w, const struct event *e)
{
	switch (e->what) {
	case JOIN:
		w->joining = true;
		break;
	case STOP:
		w->stopped = true;
		break;
	case HURRY:
		w->told_phases = true;
		break;
	case BEGIN:
		w->here[e->who] = true;
		w->alive++;
		w->foreground += !h->m[e->who].background;
		break;
	case END:
		w->here[e->who] = false;
		w->alive--;
		w->foreground -= !h->m[e->who].background;
		break;
	}
}

static struct truth
truth(const struct history *h, uint64_t stop)
{
	struct event list[2 * MEMBERS + 3];
	struct truth t = { EVC__WAIT, NEVER, NEVER };
	struct world w = { 0 };
	unsigned n = 0, i;

	list[n++] = (struct event){ h->start, JOIN, 0 };
	list[n++] = (struct event){ stop, STOP, 0 };
	list[n++] = (struct event){ h->grace_cut, HURRY, 0 };
	for (i = 0; i < h->n; i++) {
		list[n++] = (struct event){ h->m[i].begin, BEGIN, i };
		list[n++] = (struct event){ h->m[i].end, END, i };
	}
	qsort(list, n, sizeof list[0], by_time);
	for (i = 0; i < n && list[i].at != NEVER; i++) {
		uint64_t now = list[i].at, until, late;

		happen(h, &w, &list[i]);
		until = i + 1 < n ? list[i + 1].at : NEVER;
		if (!w.joining || until == now)
			continue;
		if (!w.stopped && h->until_stop)
			continue;
		if (w.alive == 0) {
			t.answer = EVC__EMPTY;
			t.at = now;
			return t;
		}
		if (!w.stopped && w.foreground == 0 && t.deserted == NEVER)
			t.deserted = now;
		late = w.stopped ? all_late_at(h, stop, &w) : NEVER;
		if (late < until) {
			t.answer = EVC__LATE;
			t.at = late > now ? late : now;
			return t;
		}
	}
	return t;
}

/* Did somebody who cannot ring end so shortly before that a join may not know
   yet? */
static bool
news_under_way(const struct history *h, uint64_t t)
{
	unsigned i;

	for (i = 0; i < h->n; i++)
		if (!h->m[i].rings && h->m[i].end <= t &&
		    h->m[i].end + STEP >= t)
			return true;
	return false;
}

static const char *
in_time(const struct history *h, uint64_t should, uint64_t was)
{
	if (was < should)
		return "too early";
	if (was > should + STEP)
		return "later than one step of the back-off";
	if (was != should && !news_under_way(h, should))
		return "late, and nobody had to be probed for";
	return NULL;
}

static const char *
judge(const struct history *h, const struct run *r)
{
	struct truth t = truth(h, r->stop);
	const char *why = r->broken;

	/* A stop of the join's own: the truth without it says when. */
	uint64_t deserted = truth(h, h->stop).deserted;

	if (why == NULL && r->asked)
		why = h->until_stop ? "asked for the stop that it waits for" :
				      in_time(h, deserted, r->stop);
	else if (deserted != NEVER && deserted + STEP < h->stop &&
		 deserted + STEP < r->at)
		why = "did not ask, and only the background was left";
	if (why != NULL)
		return why;
	if (t.answer == EVC__WAIT || t.at >= h->give_up)
		return r->answer == EVC__WAIT ? NULL : "answered, and should "
						      "not";
	if (r->answer == EVC__WAIT)
		return "no answer";
	why = in_time(h, t.at, r->at);
	if (why != NULL)
		return why;
	if (r->answer == t.answer)
		return NULL;
	/* In the step before somebody's end was known, others may end. */
	return t.answer == EVC__LATE && r->at > t.at ? NULL : "another answer";
}

static void
show(const struct history *h, const struct run *r)
{
	struct truth t = truth(h, r->stop);

	show_history(h);
	printf("  stop %.6f%s; join: %d at %.6f; model: %d at %.6f\n",
	       AT(h, r->stop), r->asked ? " (asked for by the join)" : "",
	       r->answer, AT(h, r->at), t.answer, AT(h, t.at));
	fflush(stdout);
}

START_TEST(J1_thousand_histories_against_a_model)
{
	const char *env = getenv("EVC_SEED");
	uint64_t seed = env != NULL ? strtoull(env, NULL, 0) : 20260101;
	unsigned i, kinds[8] = { 0 }, probed = 0, asked = 0;

	for (i = 0; i < HISTORIES; i++) {
		struct history h;
		struct run r;
		const char *why;

		state = (seed + i) * UINT64_C(0x9e3779b97f4a7c15) | 1;
		dice(2);
		h = make_history();
		r = drive(&h);
		why = judge(&h, &r);
		if (why != NULL) {
			show(&h, &r);
			ck_abort_msg("%s; EVC_SEED=%llu", why,
				     (unsigned long long)(seed + i));
		}
		kinds[r.answer]++;
		probed += r.probes > 0;
		asked += r.asked;
	}
	/* The dice must have thrown all there is. */
	ck_assert_uint_gt(kinds[EVC__EMPTY], HISTORIES / 20);
	ck_assert_uint_gt(kinds[EVC__LATE], HISTORIES / 20);
	ck_assert_uint_gt(kinds[EVC__WAIT], HISTORIES / 50);
	ck_assert_uint_gt(probed, HISTORIES / 20);
	ck_assert_uint_gt(asked, HISTORIES / 100);
}
END_TEST

API_MAIN("decide", J1_thousand_histories_against_a_model)
