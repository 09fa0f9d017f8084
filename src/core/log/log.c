/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lines for the log hook.  A request never calls the hook; joins, loops,
 * evc_clear_stop and evc_free pass on the news since the last call.
 *
 * Called by: joins, loop turns, hooks, clear, free, src/wake; evc_log.
 * Locks: none while the hook runs; the coordinator's guards n_lost and is held
 * to read reasons.  Atomics: begun, over.
 */
#include "core/core.h"

#include "base/text.h"
#include "base/unwind.h"

SHUT_VOID(call, (evc_coord *c, int level, const char *line,
		 const evc_reason *r),
	  c->log.fn(level, line, r, c->log.arg))

/* The hook may write, and a write is a cancellation point: so cancellation is
   off during the call. */
static void
call_hook(evc_coord *c, int level, const char *line, const evc_reason *r)
{
	int old;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	call(c, level, line, r);
	pthread_setcancelstate(old, NULL);
}

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
	if (r->err != 0)
		evc__text_fmt(t, ": %s", strerrordesc_np(r->err) != NULL ?
						  strerrordesc_np(r->err) :
						  "unknown errno value");
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
	call_hook(c, EVC_LOG_ERROR, line, r);
}

/* A line for errors that have no slot, and so no line of their own. */
static void
log_lost(evc_coord *c, unsigned lost)
{
	char line[128];
	struct text t = evc__lines_in(line, sizeof line);

	evc__text_fmt(&t, "%s: %u more errors, without room for their texts",
		      c->name, lost);
	call_hook(c, EVC_LOG_ERROR, line, NULL);
}

/* Tell the hook of new errors. */
static void
log_errors(evc_coord *c)
{
	unsigned lost, i;
	uint64_t w = sync_load(&c->word);
	evc_reason r;
	bool found;

	/* The word does not have the code of an error that was handed back
	   late.  So a closed round is searched, too. */
	if (WORD_ERR_CODE(w) == 0 && !(w & WORD_JOINED))
		return;
	do {
		sync_lock(&c->lock);
		found = next_error(c, &r);
		sync_unlock(&c->lock);
		if (found)
			log_error(c, &r);
	} while (found);
	sync_lock(&c->lock);
	w = sync_load(&c->word);
	lost = evc__n_errors(c, w);
	for (i = 0; i < c->stop.n_slots; i++)
		if (lost > 0 && evc__reason_peek(c, i, w) != NULL &&
		    evc__reason_is_error(c, i, w) && !evc__reason_late(c, i))
			lost--;
	found = lost > c->log.n_lost;
	c->log.n_lost = found ? lost : c->log.n_lost;
	sync_unlock(&c->lock);
	if (found)
		log_lost(c, lost);
}

/* ---- the stop ---- */

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
	call_hook(c, EVC_LOG_INFO, line, r);
}

static void
log_cleared(evc_coord *c)
{
	char line[128];
	struct text t = evc__lines_in(line, sizeof line);

	evc__text_fmt(&t, "stop of %s cleared", c->name);
	call_hook(c, EVC_LOG_INFO, line, NULL);
}

/* Tell the hook that a stop has begun.  Before, if the hook did not hear the
   end of an earlier stop: tell that the earlier stop was cleared. */
static void
log_begin(evc_coord *c)
{
	bool cleared, begun, has;
	uint32_t n, last;
	evc_reason r;
	uint64_t w;

	n = present_stop(sync_load(&c->word));
	last = sync_load(&c->log.begun);
	if ((n == 0 || n == last) &&
	    (n == last || last == sync_load(&c->log.over)))
		return;
	sync_lock(&c->lock);
	w = sync_load(&c->word);
	n = present_stop(w);
	last = sync_load(&c->log.begun);
	cleared = n != last && last != sync_load(&c->log.over);
	begun = n != 0 && n != last;
	has = begun && evc__reason_copy(c, WORD_WIN_SLOT(w), w, &r);
	if (cleared)
		sync_store(&c->log.over, last);
	if (begun)
		sync_store(&c->log.begun, n);
	/* The log of the parent has the line for this stop. */
	if (has && r.kind == EVC_BY_PARENT) {
		sync_store(&c->log.over, n);
		begun = false;
	}
	sync_unlock(&c->lock);
	if (cleared)
		log_cleared(c);
	if (begun)
		log_begun(c, w, has ? &r : NULL);
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
	call_hook(c, EVC_LOG_INFO, line, NULL);
}

/* A join has closed the round. */
static void
log_closed(evc_coord *c)
{
	uint64_t w = sync_load(&c->word);
	evc_verdict v;
	bool over;

	if (present_stop(w) == 0 ||
	    present_stop(w) == sync_load(&c->log.over) || !(w & WORD_JOINED))
		return;
	sync_lock(&c->lock);
	w = sync_load(&c->word);
	over = (w & WORD_JOINED) && evc__log_over_due(c, w);
	if (over)
		v = c->join.verdict;
	sync_unlock(&c->lock);
	if (over)
		evc__log_over(c, &v);
}

void
evc__log_errors(evc_coord *c)
{
	if (c->log.fn == NULL)
		return;
	if (c->flags & EVC_LOG_STOPS)
		log_begin(c);
	log_errors(c);
	if (c->flags & EVC_LOG_STOPS)
		log_closed(c);
}

void
evc__log_ending(evc_coord *c, const char *names)
{
	char line[512];
	struct text t = evc__lines_in(line, sizeof line);

	if (c->log.fn == NULL)
		return;
	evc__log_errors(c);
	evc__text_fmt(&t, "stop of %s is about to end; still running: %s",
		      c->name, names);
	call_hook(c, EVC_LOG_WARNING, line, NULL);
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
	call_hook(c, EVC_LOG_WARNING, line, NULL);
}

void
evc__log_late(evc_coord *c, const evc_verdict *v, bool ignored)
{
	char line[320];
	struct text t = evc__lines_in(line, sizeof line);

	if (c->log.fn == NULL || v->n_stragglers == 0)
		return;
	evc__text_fmt(&t, "%s of %s ended after %.3f s; %s",
		      present_stop(sync_load(&c->word)) != 0 ? "stop" : "join",
		      c->name, v->took, v->error.text);
	call_hook(c, ignored ? EVC_LOG_INFO : EVC_LOG_ERROR, line, &v->error);
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
	call_hook(c, EVC_LOG_ERROR, line, NULL);
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
	call_hook(c, level, line, r);
}
