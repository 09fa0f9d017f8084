/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The log hook's lines.  Never called by a request: joins, loops, evc_clear_stop
 * and evc_free pass on what has come in since the last time, without a lock.
 */
#include "core/core.h"

#include "base/text.h"

/* Lock held: the oldest error the hook has not heard of. */
static bool
next_error(evc_coord *c, evc_reason *ret)
{
	uint64_t w = sync_load(&c->word);
	unsigned i, oldest = NO_SLOT;

	for (i = 0; i < c->n_slots; i++)
		if (evc__reason_peek(c, i, w) != NULL && !c->slot[i].logged &&
		    evc__reason_is_error(c, i, w) &&
		    (oldest == NO_SLOT || evc__reason_before(c, i, oldest)))
			oldest = i;
	if (oldest == NO_SLOT)
		return false;
	c->slot[oldest].logged = true;
	return evc__reason_copy(c, oldest, w, ret);
}

static void
log_error(evc_coord *c, const evc_reason *r)
{
	char line[512];
	struct text t = evc__text_in(line, sizeof line);

	evc__text_fmt(&t, "%s: error %s (%d)", c->name,
		      evc_status_name(r->code), r->code);
	if (r->text[0] != '\0')
		evc__text_fmt(&t, ": %s", r->text);
	if (r->err != 0)
		evc__text_fmt(&t, ": %s", strerrordesc_np(r->err) != NULL ?
						  strerrordesc_np(r->err) :
						  "unknown errno value");
	evc__text_fmt(&t, "; by \"%s\" (tid %d)", r->who, r->tid);
	if (r->file[0] != '\0')
		evc__text_fmt(&t, " at %s:%d", r->file, r->line);
	if (r->func[0] != '\0')
		evc__text_fmt(&t, " in %s", r->func);
	c->log(EVC_LOG_ERROR, line, r, c->log_arg);
}

/* Errors that found no slot have no line of their own. */
static void
log_lost(evc_coord *c, unsigned lost)
{
	char line[128];
	struct text t = evc__text_in(line, sizeof line);

	evc__text_fmt(&t, "%s: %u more errors, without room for their texts",
		      c->name, lost);
	c->log(EVC_LOG_ERROR, line, NULL, c->log_arg);
}

void
evc__log_errors(evc_coord *c)
{
	unsigned lost, i;
	uint64_t w = sync_load(&c->word);
	evc_reason r;
	bool found;

	/* Errors make the word's code or, handed back late, none: a closed
	   round is looked through as well. */
	if (c->log == NULL ||
	    (WORD_ERR_CODE(w) == 0 && !(w & WORD_JOINED)))
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
	for (i = 0; i < c->n_slots; i++)
		if (lost > 0 && evc__reason_peek(c, i, w) != NULL &&
		    evc__reason_is_error(c, i, w) && !evc__reason_late(c, i))
			lost--;
	found = lost > c->lost_logged;
	c->lost_logged = found ? lost : c->lost_logged;
	sync_unlock(&c->lock);
	if (found)
		log_lost(c, lost);
}

void
evc__log_late(evc_coord *c, const evc_verdict *v, bool ignored)
{
	char line[320];
	struct text t = evc__text_in(line, sizeof line);

	if (c->log == NULL || v->n_stragglers == 0)
		return;
	evc__text_fmt(&t, "%s: a join ended after %.3f s with %u still alive: ",
		      c->name, v->took, v->n_stragglers);
	evc__text_add(&t, v->error.text);
	c->log(ignored ? EVC_LOG_INFO : EVC_LOG_ERROR, line, &v->error,
	       c->log_arg);
}

void
evc__log_hook(evc_coord *c, const char *name, evc_status st)
{
	char line[192];
	struct text t = evc__text_in(line, sizeof line);

	if (c->log == NULL || st == 0)
		return;
	evc__text_fmt(&t, "%s: hook %s ended with %s (%d) after its stop was "
			  "cleared",
		      c->name, name, evc_status_name(st), st);
	c->log(EVC_LOG_ERROR, line, NULL, c->log_arg);
}
