/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * External loggers of a group.  A worker calls a logger with an interval: it
 * takes the logger's next time away, and sets the next time after the call, so
 * no two calls are closer than the interval, whatever delays a thread.  Each
 * worker calls a logger without interval after each run, perhaps several
 * workers at once.
 * Called by: init.c, group.c; run.c after each run.
 * Locks: none; logger.next is atomic.
 */
#include "group/group.h"
#include "group/metrics.h"

/* A call runs; for other workers the next time is never. */
#define NOW SYNC_FOREVER

struct logger {
	evc_logger_fn *fn;
	void *arg;
	uint64_t every; /* ns; 0: after each run */
	/* atomic: the calling worker -> the next one: no call before this
	   time */
	_Atomic uint64_t next;
};

struct evc__loggers {
	unsigned n;
	struct logger logger[];
};

static bool
is_right(const evc_logger *from, unsigned n)
{
	unsigned i;

	if (n > EVC__LOGGERS_MOST || from == NULL)
		return false;
	for (i = 0; i < n; i++)
		if (from[i].fn == NULL || !(from[i].every >= 0))
			return false;
	return true;
}

evc_status
evc__loggers_new(const evc_logger *from, unsigned n, struct evc__loggers **ret)
{
	struct evc__loggers *ls;
	unsigned i;

	*ret = NULL;
	if (n == 0)
		return 0;
	if (!is_right(from, n))
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "loggers: %d at most, each with a function "
				  "and an interval >= 0", EVC__LOGGERS_MOST);
	ls = sync_alloc(1, sizeof *ls + n * sizeof ls->logger[0]);
	if (ls == NULL)
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
				  "loggers: no memory");
	for (i = 0; i < n; i++) {
		struct logger *l = &ls->logger[i];

		l->fn = from[i].fn;
		l->arg = from[i].arg;
		l->every = evc__ns(from[i].every);
		/* The least interval is 1 ns, not 0. */
		if (l->every == 0 && from[i].every > 0)
			l->every = 1;
	}
	ls->n = n;
	*ret = ls;
	return 0;
}

void
evc__loggers_free(struct evc__loggers *ls)
{
	sync_free(ls);
}

/* Is a call due, and did the caller get the turn? */
static bool
take_turn(struct logger *l, uint64_t now)
{
	uint64_t next;

	if (l->every == 0)
		return true;
	next = sync_load(&l->next);
	return now >= next && sync_cas(&l->next, &next, NOW);
}

/* Also when the worker's thread ends in the call. */
static void
give_turn(void *arg)
{
	struct logger *l = arg;

	if (l->every != 0)
		sync_store(&l->next, evc__deadline_in_ns(l->every));
}

static void
call_logger(struct evc__worker *w, unsigned i)
{
	struct logger *l = &w->group->loggers->logger[i];
	unsigned n;
	const evc_metric *all = evc__tally_read(w->tally, &n);
	evc_status st;

	/* There is at least worker_time, so NULL means no memory. */
	if (all == NULL) {
		evc_log(w->group->scope, EVC_LOG_WARNING, NULL,
			"no memory to call logger %u", i);
		return;
	}
	st = l->fn(w->group, all, n, l->arg);
	if (st != 0)
		evc_log(w->group->scope, EVC_LOG_WARNING, NULL,
			"logger %u has failed: %s (%d)", i,
			evc_status_name(st), st);
}

static void
call_in_turn(struct evc__worker *w, unsigned i)
{
	pthread_cleanup_push(give_turn, &w->group->loggers->logger[i]);
	call_logger(w, i);
	pthread_cleanup_pop(1);
}

void
evc__loggers_run(struct evc__worker *w, uint64_t now)
{
	struct evc__loggers *ls = w->group->loggers;
	unsigned i;

	for (i = 0; ls != NULL && i < ls->n; i++)
		if (take_turn(&ls->logger[i], now))
			call_in_turn(w, i);
}
