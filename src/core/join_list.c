/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A join in progress, whatever drives it: it looks, it is answered.
 *
 * A join that finds nothing alive closes the round and answers all that wait; a
 * join whose grace is over, and a member's own join, answer for themselves
 * alone.
 */
#include "core/join.h"

#include <math.h>

#include "base/self.h"
#include "base/text.h"

#define ALL_JOIN_FLAGS \
	(EVC_JOIN_STOP_FIRST | EVC_JOIN_IGNORE_LIVE | EVC_JOIN_STRICT)
#define SIGNAL_GRACE 8.0
#define DEFAULT_GRACE 120.0

evc_status
evc__join_check(evc_coord *c, const evc_join_opts *o, const char *func)
{
	if (o == NULL)
		return 0;
	if (evc__check_room(o->reserved_, func) < 0 ||
	    evc__check_grace(o->grace, func) < 0)
		return -EVC_INVALID_ARGUMENT;
	if (o->flags & ~(unsigned)ALL_JOIN_FLAGS)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "%s: unknown flags %#x", func,
				   o->flags & ~(unsigned)ALL_JOIN_FLAGS);
	if (o->n_threads > 0 && o->threads == NULL)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "%s: n_threads without threads", func);
	if (o->reactor != NULL && o->reactor->c != c)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "%s: another coordinator's reactor", func);
	if ((o->flags & EVC_JOIN_STRICT) && !evc_should_stop(c) &&
	    !(o->flags & EVC_JOIN_STOP_FIRST))
		return evc__refuse(-EVC_FAILED_PRECONDITION,
				   "%s: no stop was asked for", func);
	return 0;
}

void
evc__join_begin(struct evc__join *j, evc_coord *c, const evc_join_opts *o)
{
	struct evc__request q = { .text = "a join that stops first",
				  .func = "EVC_JOIN_STOP_FIRST" };
	uint64_t w;

	j->c = c;
	if (o != NULL)
		j->opts = *o;
	j->tid = evc__tid();
	j->start_ns = evc__now(c);
	list_init(&j->here);
	sync_lock(&c->lock);
	j->self = evc__member_self(c);
	if (j->self != NULL)
		j->self->n_joining++;
	list_append(&c->joins, &j->node);
	/* evc_run holds a join open: a round that was closed before it began
	   must not hand errors back while it runs. */
	w = sync_load_sc(&c->word);
	while (j->until_stop && (w & WORD_JOINED) && !(w & WORD_FLAG))
		if (sync_cas(&c->word, &w, w & ~WORD_JOINED))
			break;
	sync_unlock(&c->lock);
	if (j->opts.flags & EVC_JOIN_STOP_FIRST)
		evc__request(c, &q);
}

void
evc__join_end(struct evc__join *j)
{
	list_remove(&j->node);
	if (j->self != NULL)
		j->self->n_joining--;
}

evc_status
evc__join_result(const struct evc__join *j, evc_verdict *ret_verdict)
{
	evc__log_errors(j->c);
	evc__log_late(j->c, &j->verdict, j->opts.flags & EVC_JOIN_IGNORE_LIVE);
	if (ret_verdict != NULL)
		*ret_verdict = j->verdict;
	return j->result;
}

/* ---- lock held ---- */

/* When the stop was asked for; 0 when it was not. */
static uint64_t
stop_time(evc_coord *c, uint64_t w)
{
	const evc_reason *r;

	if (!(w & WORD_FLAG))
		return 0;
	r = evc__reason_peek(c, WORD_WIN_SLOT(w), w);
	if (r != NULL)
		return r->mono_ns != 0 ? r->mono_ns : 1;
	if (c->seen_ns == 0)
		c->seen_ns = evc__now(c) | 1; /* 0 would be "no stop" */
	return c->seen_ns;
}

static double
resolve_grace(evc_coord *c, const struct evc__join *j, uint64_t w)
{
	const evc_reason *r = NULL;
	double g = j->opts.grace != 0 ? j->opts.grace : c->grace;

	if (g == EVC_NO_GRACE)
		return 0;
	if (g != 0)
		return g;
	/* Service managers kill after 10 s, or after 90. */
	if (w & WORD_FLAG)
		r = evc__reason_peek(c, WORD_WIN_SLOT(w), w);
	return r != NULL && r->kind == EVC_BY_SIGNAL ? SIGNAL_GRACE :
						       DEFAULT_GRACE;
}

static int
hooks_not_of(const struct evc__join *j)
{
	return j->reactor == NULL ? j->tid : 0;
}

static void
fill_verdict(struct evc__join *j, uint64_t w, evc_verdict *v, unsigned alive)
{
	evc_coord *c = j->c;
	uint64_t from = stop_time(c, w);
	char names[128], text[sizeof v->error.text];
	struct text t;

	memset(v, 0, sizeof *v);
	v->round = WORD_ROUND(w);
	v->n_ended = c->n_ended;
	v->n_errors = evc__n_errors(c, w);
	v->n_stragglers = alive;
	v->took = (double)(evc__now(c) - (from != 0 ? from : j->start_ns)) /
		  1e9;
	if (w & WORD_FLAG &&
	    !evc__reason_copy(c, WORD_WIN_SLOT(w), w, &v->stop)) {
		v->stop.code = (evc_status)(w >> 32 & 255);
		v->stop.kind = EVC_BY_REQUEST;
		v->stop.round = v->round;
		v->stop.mono_ns = from;
	}
	v->code = WORD_ERR_CODE(w);
	if (v->code != 0 &&
	    !evc__reason_copy(c, WORD_ERR_SLOT(w), w, &v->error)) {
		v->error.code = v->code;
		v->error.kind = EVC_BY_ERROR;
		v->error.round = v->round;
	}
	if (alive == 0)
		return;
	if (v->code == 0 && !(j->opts.flags & EVC_JOIN_IGNORE_LIVE))
		v->code = EVC_DEADLINE_EXCEEDED;
	if (v->error.code == 0) {
		v->error.code = v->code;
		v->error.round = v->round;
	}
	evc__names(c, j->self, (w & WORD_FLAG) != 0, hooks_not_of(j), names,
		   sizeof names);
	/* Names matter most: the error's own text gives way. */
	t = evc__text_in(text, sizeof text);
	if (v->error.text[0] != '\0') {
		evc__text_fmt(&t, "%.*s; late: ",
			      (int)(sizeof text - strlen(names) - 9),
			      v->error.text);
	} else
		evc__text_add(&t, "still running: ");
	evc__text_add(&t, names);
	memcpy(v->error.text, text, sizeof text);
}

static void
answer(struct evc__join *j, const evc_verdict *v)
{
	evc_coord *c = j->c;

	j->verdict = *v;
	j->result = v->code;
	j->answered = true;
	sync_store(&c->joined_mark,
		   WORD_STOPS(sync_load(&c->word)) + 1);
}

/* A run that waits for its stop holds the round open. */
static bool
held_open(evc_coord *c, uint64_t w)
{
	struct list *n, *tmp;

	if (w & WORD_FLAG)
		return false;
	LIST_EACH(n, tmp, &c->joins)
		if (LIST_OF(n, struct evc__join, node)->until_stop)
			return true;
	return false;
}

/* A join that left somebody out - itself, a hook of its own thread - speaks for
   itself alone, and so does one beside a run that waits for its stop. */
static bool
for_itself(struct evc__join *j, uint64_t w)
{
	return j->self != NULL || held_open(j->c, w) ||
	       evc__census(j->c, NULL, (w & WORD_FLAG) != 0, 0).alive > 0;
}

/*
 * Close the round, if nothing came in since it was found empty: set CLOSING,
 * look at the count once more, swap.  Whatever begins adds to the count first
 * and takes CLOSING away afterwards; an error or a request changes the word; in
 * each case the second CAS fails.
 */
static bool
close_round(struct evc__join *j, uint64_t w)
{
	evc_coord *c = j->c;
	struct list *n, *tmp;
	uint64_t closed;

	if (!sync_cas(&c->word, &w, w | WORD_CLOSING))
		return false;
	w |= WORD_CLOSING;
	if (sync_load_sc(&c->alive) != 0) {
		sync_and(&c->word, ~WORD_CLOSING);
		return false;
	}
	closed = (w & ~WORD_CLOSING) | WORD_JOINED;
	if (!sync_cas(&c->word, &w, closed))
		return false;
	fill_verdict(j, closed, &c->verdict, 0);
	LIST_EACH(n, tmp, &c->joins) {
		struct evc__join *other = LIST_OF(n, struct evc__join, node);

		if (!other->answered)
			answer(other, &c->verdict);
	}
	evc__ring(c);
	return true;
}

/* All that the decision depends on. */
static struct evc__view
view_of(struct evc__join *j, uint64_t w)
{
	evc_coord *c = j->c;
	uint64_t stop = stop_time(c, w);
	struct evc__census k =
		evc__census(c, j->self, stop != 0, hooks_not_of(j));
	struct evc__view v = {
		.now = evc__now(c),
		.start = j->start_ns,
		.stop = stop,
		.grace = resolve_grace(c, j, w),
		.longest = k.longest,
		.alive = k.alive,
		.foreground = k.foreground,
		.until_stop = j->until_stop,
	};

	if (stop != 0) {
		v.hurry = evc__hurried(c, WORD_STOP_NUMBER(w));
		v.hurry_grace = sync_load(&c->hurry_grace_ns);
		v.probes = c->n_threads > 0;
	} else if (j->until_stop)
		/* It looks for no end that cannot ring; but who has rung it
		   joins, if not at once. */
		v.probes = c->n_lingering > 0;
	else
		v.probes = c->n_probed > 0;
	return v;
}

/* Look once.  true: the state may have changed, look again. */
static bool
look(struct evc__join *j, bool *last_probe, uint64_t *ret_wait_ns)
{
	evc_coord *c = j->c;
	uint64_t w = sync_load_sc(&c->word);
	struct evc__view v = view_of(j, w);
	struct evc__request q = { .kind = EVC_BY_EMPTY,
				  .text = "only background members are left" };
	struct evc__decision d;
	evc_verdict verdict;

	if (v.stop != 0 && !j->stop_seen) {
		j->stop_seen = true;
		j->backoff.step = 0;
	}
	d = evc__decide(&v, &j->backoff);
	*ret_wait_ns = evc__real_ns(c, d.wait_ns);
	/* Who has ended is neither late nor left in the background, noticed or
	   not. */
	if ((d.next == EVC__ASK || d.next == EVC__LATE) && !*last_probe) {
		*last_probe = true;
		evc__members_probe(c);
		return true;
	}
	switch (d.next) {
	case EVC__WAIT:
		return false;
	case EVC__PROBE:
		evc__members_probe(c);
		return true;
	case EVC__ASK:
		evc__request(c, &q);
		return true;
	case EVC__EMPTY:
		if (!for_itself(j, w)) {
			/* Not closed: something just came in, or has not
			   quite left. */
			*ret_wait_ns = BACKOFF_FIRST_NS;
			return close_round(j, w) ||
			       sync_load_sc(&c->word) != w;
		}
		fill_verdict(j, w, &verdict, 0);
		answer(j, &verdict);
		return true;
	case EVC__LATE:
		fill_verdict(j, w, &verdict, v.alive);
		answer(j, &verdict);
		return true;
	}
	return false;
}

bool
evc__join_look(struct evc__join *j, uint64_t *ret_wait_ns)
{
	evc_coord *c = j->c;
	bool last_probe = false;
	uint64_t w;

	for (;;) {
		if (j->answered)
			return true;
		if (evc__members_reap(c, j->reap_ns))
			continue;
		w = sync_load_sc(&c->word);
		if ((w & WORD_JOINED) && (!j->until_stop || (w & WORD_FLAG)))
			answer(j, &c->verdict);
		else if (!look(j, &last_probe, ret_wait_ns))
			return false;
	}
}

bool
evc_joined(const evc_coord *c)
{
	return c != NULL && sync_load(&c->joined_mark) ==
				    WORD_STOPS(sync_load(&c->word)) + 1;
}
