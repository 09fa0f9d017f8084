/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lines for the log hook.  A request writes no line, because it may stand
 * in a signal handler; the helper thread, joins, loops, evc_clear_stop and
 * evc_free write the news since the last call, and queue.c hands them out.
 *
 * Called by: the helper, joins, loop turns, hooks, clear, free, src/wake;
 * evc_log.
 * Locks: the coordinator's, held from the look at the news until the line is in
 * the queue, so that lines keep their order.  Atomics: begun, over.
 */
#include "core/core.h"
#include "core/wake/left.h"

#include "base/deadline.h"
#include "base/reason.h"
#include "base/text.h"

/* Lock held: the oldest error that the hook has not heard of. */
static bool
next_error(evc_coord *c, evc_reason *ret)
{
	uint64_t w = sync_load(&c->word);
	unsigned i, oldest = NO_SLOT;

	for (i = 0; i < c->stop.n_slots; i++)
		if (evc__reason_peek(c, i, w) != NULL &&
		    !c->stop.slot[i].logged && evc__reason_is_error(c, i, w) &&
		    (oldest == NO_SLOT || evc__reason_before(c, i, oldest)))
			oldest = i;
	if (oldest == NO_SLOT)
		return false;
	c->stop.slot[oldest].logged = true;
	return evc__reason_copy(c, oldest, w, ret);
}

/* "CODE (n): text: errno's meaning; by "NAME" (tid n) at file:line in func" */
static void
add_reason(struct text *t, const evc_reason *r)
{
	evc__text_fmt(t, "%s (%d)", evc_status_name(r->code), r->code);
	if (r->text[0] != '\0')
		evc__text_fmt(t, ": %s", r->text);
	evc__text_errno(t, r->text, r->err);
	evc__text_fmt(t, "; by \"%s\" (tid %d)", r->who, r->tid);
	if (r->file[0] != '\0')
		evc__text_fmt(t, " at %s:%d", r->file, r->line);
	if (r->func[0] != '\0')
		evc__text_fmt(t, " in %s", r->func);
}

static void
log_error(evc_coord *c, const evc_reason *r)
{
	char line[512];
	struct text t = evc__lines_in(line, sizeof line);

	evc__text_fmt(&t, "%s: error ", c->name);
	add_reason(&t, r);
	evc__log_put(c, EVC_LOG_ERROR, r->real_ns, r, line);
}

/* A line for errors that have no slot, and so no line of their own. */
static void
log_lost(evc_coord *c, unsigned lost)
{
	char line[128];
	struct text t = evc__lines_in(line, sizeof line);

	evc__text_fmt(&t, "%s: %u more errors, without room for their texts",
		      c->name, lost);
	evc__log_put(c, EVC_LOG_ERROR, 0, NULL, line);
}

/* Lock held. */
static void
log_errors(evc_coord *c)
{
	unsigned lost, i;
	uint64_t w = sync_load(&c->word);
	evc_reason r;

	/* The word does not have the code of an error that was handed back
	   late.  So a closed round is searched, too. */
	if (WORD_ERR_CODE(w) == 0 && !(w & WORD_JOINED))
		return;
	while (next_error(c, &r))
		log_error(c, &r);
	w = sync_load(&c->word);
	lost = evc__n_errors(c, w);
	for (i = 0; i < c->stop.n_slots; i++)
		if (lost > 0 && evc__reason_peek(c, i, w) != NULL &&
		    evc__reason_is_error(c, i, w) && !evc__reason_late(c, i))
			lost--;
	if (lost <= c->log.n_lost)
		return;
	c->log.n_lost = lost;
	log_lost(c, lost);
}

/* ---- the stop ---- */

/* A stop has ended: name the calls that are left behind.  They are no error,
   because no member waits for them. */
static void
log_left(evc_coord *c)
{
	char line[320];
	struct text t = evc__lines_in(line, sizeof line);

	evc__text_fmt(&t, "%s: left behind: ", c->name);
	if (evc__left_names(c, &t))
		evc__log_put(c, EVC_LOG_INFO, 0, NULL, line);
}

/* The number of the present stop, or 0. */
static uint32_t
present_stop(uint64_t w)
{
	return w & WORD_FLAG ? WORD_STOP_NUMBER(w) : 0;
}

static void
log_begun(evc_coord *c, uint64_t w, const evc_reason *r)
{
	char line[512];
	struct text t = evc__lines_in(line, sizeof line);
	evc_status code = (evc_status)(w >> 32 & 255);

	evc__text_fmt(&t, "stop of %s requested: ", c->name);
	if (r != NULL)
		add_reason(&t, r);
	else
		evc__text_fmt(&t, "%s (%d)", evc_status_name(code), code);
	evc__log_put(c, EVC_LOG_INFO, r != NULL ? r->real_ns : 0, r, line);
}

static void
log_cleared(evc_coord *c)
{
	char line[128];
	struct text t = evc__lines_in(line, sizeof line);

	evc__text_fmt(&t, "stop of %s cleared", c->name);
	evc__log_put(c, EVC_LOG_INFO, 0, NULL, line);
}

/* Lock held: a stop has begun; a stop in a scope's set-up has no line.  Before,
   if the end of an earlier stop has no line: the earlier stop was cleared. */
static void
log_begin(evc_coord *c)
{
	uint64_t w = sync_load(&c->word);
	uint32_t n = present_stop(w), last = sync_load(&c->log.begun);
	evc_reason r;
	bool has;

	if (n == last || c->life.held)
		return;
	if (last != sync_load(&c->log.over)) {
		log_cleared(c);
		sync_store(&c->log.over, last);
	}
	if (n == 0)
		return;
	has = evc__reason_copy(c, WORD_WIN_SLOT(w), w, &r);
	/* The log of the parent has the line for this stop. */
	if (has && r.kind == EVC_BY_PARENT)
		sync_store(&c->log.over, n);
	else
		log_begun(c, w, has ? &r : NULL);
	/* Last, because a thread that reads n finds the line in the queue. */
	sync_store(&c->log.begun, n);
}

/* Has a second signal cut the grace of stop n, without a line so far? */
static bool
cut_is_news(const evc_coord *c, uint32_t n)
{
	return n != 0 && n != sync_load(&c->log.cut) &&
	       evc__grace_cut_at(c, n) != 0;
}

/* "second SIGTERM from pid n, uid n: the grace is cut to 1.000 s"; after the end
   of the time nothing is cut, and another line names the late members. */
static void
log_cut(evc_coord *c)
{
	uint64_t w = sync_load(&c->word), ns = sync_load(&c->wake.cut_grace_ns);
	uint32_t n = present_stop(w);
	char line[320];
	struct text t = evc__lines_in(line, sizeof line);
	const char *end = NULL;
	evc_reason r;
	unsigned i;

	if (!cut_is_news(c, n))
		return;
	for (i = 0; i < c->stop.n_slots && end == NULL; i++)
		if (evc__reason_copy(c, i, w, &r) && r.kind == EVC_BY_SIGNAL)
			end = strstr(r.text, CUTS_GRACE);
	/* The reason of a signal that was kept comes after the cut; there may
	   also have been no place for the reason. */
	if (end == NULL && !(w & WORD_JOINED))
		return;
	evc__text_fmt(&t, "%s: second %.*s: ", c->name,
		      end != NULL ? (int)(end - r.text) : 6,
		      end != NULL ? r.text : "signal");
	if (c->log.timed_out == n || sync_load_sc(&c->tree->reported) == n)
		evc__text_add(&t, "the time of the stop is over already");
	else
		evc__text_fmt(&t, "the grace is cut to %.3f s",
			      (double)ns / 1e9);
	if (ns != SYNC_FOREVER && n != sync_load(&c->log.over))
		evc__log_put(c, EVC_LOG_WARNING, end != NULL ? r.real_ns : 0,
			     end != NULL ? &r : NULL, line);
	sync_store(&c->log.cut, n);
}

bool
evc__log_over_due(evc_coord *c, uint64_t w)
{
	uint32_t n = present_stop(w);

	if (n == 0 || n != sync_load(&c->log.begun) ||
	    n == sync_load(&c->log.over))
		return false;
	sync_store(&c->log.over, n);
	return true;
}

void
evc__log_over(evc_coord *c, const evc_verdict *v)
{
	char line[160];
	struct text t = evc__lines_in(line, sizeof line);

	evc__text_fmt(&t, "stop of %s ended after %.3f s; %u member%s ended",
		      c->name, v->took, v->n_ended,
		      v->n_ended == 1 ? "" : "s");
	evc__log_put(c, EVC_LOG_INFO, 0, NULL, line);
	log_left(c);
}

/* Is there perhaps news for the log? */
static bool
has_news(evc_coord *c)
{
	uint64_t w = sync_load(&c->word);
	uint32_t n = present_stop(w), last = sync_load(&c->log.begun);

	return (n != last && (n != 0 || last != sync_load(&c->log.over))) ||
	       cut_is_news(c, n) || WORD_ERR_CODE(w) != 0 || (w & WORD_JOINED);
}

/* Lock held. */
static void
log_news(evc_coord *c)
{
	uint64_t w;

	if (c->log.fn == NULL)
		return;
	log_begin(c);
	log_cut(c);
	log_errors(c);
	w = sync_load(&c->word);
	/* A join has closed the round. */
	if ((w & WORD_JOINED) && evc__log_over_due(c, w))
		evc__log_over(c, &c->join.verdict);
}

void
evc__log_news(evc_coord *c)
{
	if (c->log.fn == NULL || !has_news(c))
		return;
	sync_lock(&c->lock);
	log_news(c);
	sync_unlock(&c->lock);
}

void
evc__log_errors(evc_coord *c)
{
	evc__later_run(c);
	/* A release may have forked. */
	if (evc__same_process(c))
		evc__log_news(c);
}

void
evc__log_settle(evc_coord *c, uint64_t ns)
{
	uint64_t until = evc__deadline_in_ns(ns);

	sync_lock(&c->lock);
	log_news(c);
	sync_unlock(&c->lock);
	while (!evc__log_flush(c, LOG_HANGS_NS) && sync_mono() < until &&
	       !evc__log_hangs(c->tree))
		;
}

void
evc__log_ending(evc_coord *c, const char *left)
{
	char line[512];
	struct text t = evc__lines_in(line, sizeof line);
	uint64_t w;

	if (c->log.fn == NULL)
		return;
	evc__log_errors(c);
	evc__text_fmt(&t, "stop of %s is about to end; %s", c->name,
		      left);
	sync_lock(&c->lock);
	w = sync_load(&c->word);
	/* Never after a line that says that the stop has ended. */
	if ((w & WORD_FLAG) && !(w & WORD_JOINED) &&
	    present_stop(w) != c->log.late)
		evc__log_put(c, EVC_LOG_WARNING, 0, NULL, line);
	sync_unlock(&c->lock);
}

void
evc__log_extend(evc_coord *c, const char *name, double granted,
		const char *reason)
{
	char line[320];
	struct text t = evc__lines_in(line, sizeof line);

	if (c->log.fn == NULL)
		return;
	evc__log_errors(c);
	evc__text_fmt(&t, "stop of %s extended by %.3f s for %s", c->name,
		      granted, name);
	if (reason != NULL && reason[0] != '\0')
		evc__text_fmt(&t, ": %s", reason);
	evc__log_put(c, EVC_LOG_WARNING, 0, NULL, line);
}

void
evc__log_late(evc_coord *c, const evc_verdict *v, bool ignored)
{
	uint32_t stop;
	char line[320];
	struct text t = evc__lines_in(line, sizeof line);

	if (c->log.fn == NULL || v->n_stragglers == 0)
		return;
	sync_lock(&c->lock);
	stop = present_stop(sync_load(&c->word));
	if (stop != 0)
		c->log.late = stop;
	evc__text_fmt(&t, "%s of %s ended after %.3f s; %s",
		      stop != 0 ? "stop" : "join", c->name, v->took,
		      v->error.text);
	evc__log_put(c, ignored ? EVC_LOG_INFO : EVC_LOG_ERROR, 0, &v->error,
		     line);
	sync_unlock(&c->lock);
	if (stop != 0)
		log_left(c);
}

void
evc__log_hook(evc_coord *c, const char *name, evc_status st)
{
	char line[192];
	struct text t = evc__lines_in(line, sizeof line);

	if (c->log.fn == NULL || st == 0)
		return;
	evc__text_fmt(&t, "%s: hook %s ended with %s (%d) after its stop was "
			  "cleared",
		      c->name, name, evc_status_name(st), st);
	evc__log_put(c, EVC_LOG_ERROR, 0, NULL, line);
}

void
evc__log_held(evc_coord *c, int level, const char *fmt, ...)
{
	char line[512];
	struct text t = evc__lines_in(line, sizeof line);
	va_list ap;

	if (c->log.fn == NULL)
		return;
	log_news(c);
	evc__text_fmt(&t, "%s: ", c->name);
	va_start(ap, fmt);
	evc__text_vfmt(&t, fmt, ap);
	va_end(ap);
	evc__log_put(c, level, 0, NULL, line);
}

bool
evc_log_flush(evc_coord *c, double timeout)
{
	return c == NULL || c->log.fn == NULL ||
	       evc__log_flush(c, evc__ns(timeout));
}

/* No lock: lines for the news of c and above come first, because they may be
   the cause of the next line. */
static void
log_causes(evc_coord *c)
{
	if (c->parent != NULL)
		log_causes(c->parent);
	evc__log_news(c);
}

void
evc_log(evc_coord *c, int level, const evc_reason *r, const char *fmt, ...)
{
	char line[512];
	struct text t = evc__lines_in(line, sizeof line);
	va_list ap;

	if (c == NULL || c->log.fn == NULL)
		return;
	evc__text_fmt(&t, "%s: ", c->name);
	va_start(ap, fmt);
	evc__text_vfmt(&t, fmt, ap);
	va_end(ap);
	log_causes(c);
	evc__log_put_programs(c, level, r, line);
}
