/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The answer of a join: the first error of the round, or the late members.
 *
 * Called by: list.c, scope_join_run.c, clear and free.
 * Locks: the coordinator's is held, but for evc__log_end and evc__join_result,
 * which take the lock.
 */
#include "core/core.h"
#include "core/join/join.h"

#include "base/self.h"
#include "base/text.h"

int
evc__hooks_not_of(const struct evc__join *j)
{
	/* A step returns to a thread that may then run its hooks, so only the
	   hook that runs now is left out. */
	if (j->stepped)
		return -evc__tid();
	return j->reactor == NULL ? j->tid : 0;
}

void
evc__verdict_fill(struct evc__join *j, uint64_t w, evc_verdict *v,
		  unsigned alive)
{
	evc_coord *c = j->c;
	uint64_t from = evc__stop_time(c, w), now;
	static const char running[] = "; still running: ";
	char names[160], text[sizeof v->error.text], said[sizeof text];
	struct text t;
	unsigned n;

	memset(v, 0, sizeof *v);
	v->round = WORD_ROUND(w);
	v->n_ended = c->member.n_ended + sync_load(&c->member.n_ended_below);
	v->n_errors = evc__n_errors(c, w);
	v->n_stragglers = alive;
	from = from != 0 ? from : j->start_ns;
	now = evc__now(c);
	/* A clock of the user's may go back. */
	v->took = now > from ? (double)(now - from) / 1e9 : 0;
	if (w & WORD_FLAG &&
	    !evc__reason_copy(c, WORD_WIN_SLOT(w), w, &v->stop)) {
		v->stop.code = (evc_status)(w >> 32 & 255);
		v->stop.kind = EVC_BY_REQUEST;
		v->stop.round = v->round;
		v->stop.mono_ns = evc__stop_time(c, w);
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
	n = evc__names(c, j->self, (w & WORD_FLAG) != 0, evc__hooks_not_of(j),
		       names, sizeof names);
	v->n_stragglers = n > 0 ? n : alive;
	/* The names must fit, so the text of the error is cut first. */
	evc__copy_ends(said, sizeof text - strlen(names) - strlen(running),
		       v->error.text);
	t = evc__text_in(text, sizeof text);
	evc__text_fmt(&t, "%s%s%s", said,
		      said[0] != '\0' ? running : running + 2, names);
	memcpy(v->error.text, text, sizeof text);
}

void
evc__verdict_now(evc_coord *c, uint64_t w, evc_verdict *v)
{
	struct evc__join j = { .c = c };

	evc__verdict_fill(&j, w, v, 0);
}

void
evc__log_end(evc_coord *c)
{
	uint64_t w = sync_load(&c->word);
	evc_verdict v;
	bool over;

	evc__log_errors(c);
	if (c->log.fn == NULL || !(w & WORD_FLAG) ||
	    sync_load(&c->log.over) == WORD_STOP_NUMBER(w))
		return;
	sync_lock(&c->lock);
	/* Members that have ended but were not joined yet do not count as
	   alive. */
	evc__members_refresh(c);
	over = evc__count_alive(c, NULL, true, 0).alive == 0;
	w = sync_load(&c->word);
	over = (over || (w & WORD_JOINED)) && evc__log_over_due(c, w);
	if (over && (w & WORD_JOINED))
		v = c->join.verdict;
	else if (over)
		evc__verdict_now(c, w, &v);
	if (over)
		evc__log_over(c, &v);
	sync_unlock(&c->lock);
}
