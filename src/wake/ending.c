/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lines of the log near the end of a stop: shortly before, the names of the
 * members alive, or of the loops that have not turned, also of the scopes below
 * that have no escalation of their own; when the time is over, a report.
 * Called by: evc_new and evc_escalation_set; the helper thread, for the job.
 * Locks: the coordinator's, given up for each line.
 */
#include "core/core.h"
#include "core/helper/job.h"
#include "core/join/watch.h"
#include "core/life/scope.h"
#include "wake/ending.h"

#include "base/text.h"

#include <unistd.h>

/* The job looks at the end again so often: a second signal, more time or
   progress may have moved the end. */
#define LOOK_NS (100 * UINT64_C(1000000))

/* So long the report waits for the joins: less than at_end waits for them. */
#define ANSWER_NS (40 * UINT64_C(1000000))

/* Bytes for a report at first: to make a report twice costs all looks at
   threads, and their stacks, twice. */
#define REPORT_FEW 65536

struct ending {
	struct evc__helper_job job; /* first: write_when_due() gets it */
	uint32_t named; /* lock: number of the latest stop with the line of
			   members' names */
	uint64_t over_ns; /* lock: time of the line for the end of stop
			     c->log.timed_out */
	uint32_t again;   /* lock: number of the latest stop with a second such
			     line */
	uint64_t answer_ns; /* lock: end of the wait for the joins of stop
			       awaited, by the real clock */
	uint32_t awaited;
	/* atomic: threads of the helper: number of the latest stop with a
	   report */
	_Atomic uint32_t written;
};

/* No lock, inside the refgate of c: write the line for the stop of c with this
   number.  Hooks are not named, nor scopes: the members of a scope have a line
   of their own.  No function of the program is called for a name, because such a
   function may hang. */
static void
write_names(evc_coord *c, uint32_t stop)
{
	char buf[192], names[160];
	struct text t = evc__text_in(buf, sizeof buf);
	unsigned n, i;
	uint64_t w;
	bool now;
	evc_coord **s;

	sync_lock(&c->lock);
	if (evc__names_live(c, false, names, sizeof names) > 0)
		evc__text_fmt(&t, "; still running: %s", names);
	else
		evc__text_silent_loops(&t, c);
	w = sync_load_sc(&c->word);
	now = t.len > 0 && (w & WORD_FLAG) && WORD_STOP_NUMBER(w) == stop &&
	      evc__step_reached(c, STEP_ENDING);
	sync_unlock(&c->lock);
	if (now)
		evc__log_ending(c, buf + strlen("; "));
	s = evc__scopes_keep(c, &n);
	for (i = 0; s != NULL && i < n; i++)
		if (sync_load(&s[i]->wake.escalation) == NULL &&
		    sync_load_sc(&s[i]->stop.alive) > 0)
			write_names(s[i],
				    WORD_STOP_NUMBER(sync_load(&s[i]->word)));
	evc__scopes_give_back(s, n);
}

/* ---- the report, when the time is over ---- */

/* Lock held: does something of the stop still run, or hang?  No report is
   written for a join that ignores members alive. */
static bool
is_late(evc_coord *c)
{
	struct list *n, *tmp;
	bool late = evc__count_alive(c, NULL, true, 0).alive > 0 ||
		    sync_load_sc(&c->tree->answered) !=
			    WORD_STOP_NUMBER(sync_load(&c->word));

	LIST_EACH(n, tmp, &c->join.all)
		if (LIST_OF(n, struct evc__join, node)->opts.flags &
		    EVC_JOIN_IGNORE_LIVE)
			late = false;
	return late;
}

/* Lock held: what the stop lacks on the side of its joins. */
static void
add_join(const evc_coord *c, uint32_t stop, struct text *t)
{
	if (sync_load(&c->word) & WORD_JOINED)
		evc__text_add(t, "; a join is answered, and has not returned: "
				 "a run of the loop inside another one, or a "
				 "release function");
	else if (list_empty(&c->join.all) && c->join.decided != stop)
		evc__text_add(t, "; no join was called");
}

/* The report, each line with the name of c. */
static void
add_lines(struct text *t, const evc_coord *c, const char *report)
{
	const char *line, *end;

	for (line = report; *line != '\0'; line = end + (*end == '\n')) {
		end = line + strcspn(line, "\n");
		evc__text_fmt(t, "%s: %.*s\n", c->name, (int)(end - line),
			      line);
	}
}

/* No lock: the report, allocated; NULL: no memory.  A report that does not fit
   is made a second time. */
static char *
take_report(evc_coord *c)
{
	size_t room = REPORT_FEW, n;
	char *report = sync_alloc(room, 1);

	n = report != NULL ? evc_report(c, EVC_REPORT_TEXT, report, room) : 0;
	if (n < room)
		return report;
	sync_free(report);
	/* The report may grow between the two calls. */
	room = n + n / 4 + 1;
	report = sync_alloc(room, 1);
	if (report != NULL)
		(void)evc_report(c, EVC_REPORT_TEXT, report, room);
	return report;
}

/* No lock: put the report into the log, once; without a log hook the report goes
   to standard error, because at_end asks for it. */
static void
write_report(evc_coord *c, struct ending *e, uint32_t stop)
{
	struct text length = evc__lines_in(NULL, 0), t;
	char *report, *all = NULL;

	if (c->log.fn == NULL) {
		(void)evc_dump(c, STDERR_FILENO, EVC_REPORT_TEXT);
		return;
	}
	report = take_report(c);
	if (report != NULL) {
		add_lines(&length, c, report);
		all = sync_alloc(length.len + 1, 1);
	}
	/* A thread that hung in the report may come back. */
	if (all != NULL && sync_xchg(&e->written, stop) != stop) {
		t = evc__lines_in(all, length.len + 1);
		add_lines(&t, c, report);
		/* Without the end of the last line. */
		all[strlen(all) - 1] = '\0';
		evc__log_put(c, EVC_LOG_ERROR, 0, NULL, all);
	}
	sync_free(all);
	sync_free(report);
}

/* Lock held: did a second signal come after the end of this stop?  The signal
   is answered by the line for the end, once. */
static bool
asked_again(const evc_coord *c, struct ending *e, uint32_t stop)
{
	if (c->log.timed_out != stop || e->again == stop ||
	    evc__grace_cut_at(c, stop) <= e->over_ns)
		return false;
	e->again = stop;
	return true;
}

/* No lock: the time of c's stop is over, or a signal asks again later.  The
   first line is out before the report calls a function of the program, which may
   hang. */
static void
report_late(evc_coord *c, struct ending *e, uint32_t stop, bool again)
{
	char buf[576], names[160];
	struct text t = evc__lines_in(buf, sizeof buf);
	uint64_t w, from, now;
	bool late, first;

	evc__log_errors(c);
	sync_lock(&c->lock);
	/* Members that have ended but were not joined yet do not count as
	   alive. */
	evc__members_refresh(c);
	w = sync_load_sc(&c->word);
	from = evc__stop_time(c, w);
	now = evc__now(c);
	late = (w & WORD_FLAG) && WORD_STOP_NUMBER(w) == stop && is_late(c) &&
	       (c->log.fn != NULL || evc__escalation(c)->at_end != 0);
	first = c->log.timed_out != stop;
	e->over_ns = first ? now : e->over_ns;
	c->log.timed_out = stop;
	evc__text_fmt(&t, "%s: the time of the stop is over after %.3f s",
		      c->name, now > from ? (double)(now - from) / 1e9 : 0.);
	if (late && evc__names(c, NULL, true, 0, names, sizeof names) > 0)
		evc__text_fmt(&t, "; still running: %s", names);
	if (late) {
		evc__text_silent_loops(&t, c);
		add_join(c, stop, &t);
	}
	sync_unlock(&c->lock);
	if (late && (first || again) && c->log.fn != NULL) {
		evc__log_put(c, EVC_LOG_ERROR, 0, NULL, buf);
		evc__log_drain(c->tree);
	}
	if (late && !again)
		write_report(c, e, stop);
}

/* Lock held, the time is over: are joins still to answer, or to write their
   lines?  The report has the count and the steps of these answers.  A join on a
   loop that hangs answers never, so the wait is short. */
static bool
await_answers(evc_coord *c, struct ending *e, uint32_t stop)
{
	bool due = c->log.fn != NULL && c->join.decided == stop &&
		   c->log.late != stop;
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &c->join.all) {
		const struct evc__join *j = LIST_OF(n, struct evc__join, node);

		due |= !j->internal && !j->answered;
	}
	if (due && e->awaited != stop) {
		e->awaited = stop;
		e->answer_ns = evc__deadline_in_ns(ANSWER_NS);
	}
	return due && evc__deadline_left_ns(e->answer_ns) > 0;
}

/* ---- the job ---- */

static uint64_t
until_next_look(const evc_coord *c, uint64_t ns)
{
	return evc__real_ns(c, ns < LOOK_NS ? ns : LOOK_NS);
}

static uint64_t
write_when_due(evc_coord *c, struct evc__helper_job *k)
{
	struct ending *e = (struct ending *)k;
	uint64_t cap = evc__budget_end(c), w, stop, end, due, now;
	bool busy, names, answers, again;
	uint32_t n;

	sync_lock(&c->lock);
	w = sync_load_sc(&c->word);
	n = WORD_STOP_NUMBER(w);
	stop = evc__stop_time(c, w);
	end = evc__own_end(c);
	end = cap < end ? cap : end;
	if ((w & WORD_JOINED) && end < evc__returns_end(c, n))
		end = evc__returns_end(c, n);
	due = evc__step_due(c, STEP_ENDING, stop, end);
	now = evc__now(c);
	names = stop != 0 && !(w & WORD_JOINED) && e->named != n && now >= due;
	if (names)
		e->named = n;
	/* Another thread of the helper takes the report, and hangs in no
	   function. */
	busy = k->running > 1 + sync_load(&c->tree->n_describing);
	again = stop != 0 && asked_again(c, e, n);
	answers = stop != 0 && now >= end && await_answers(c, e, n);
	sync_unlock(&c->lock);
	if (stop == 0 ||
	    ((w & WORD_JOINED) &&
	     (c->parent != NULL || sync_load_sc(&c->tree->answered) == n)))
		return SYNC_FOREVER;
	if (names)
		write_names(c, n);
	else if (now < due)
		return until_next_look(c, due - now);
	if (again)
		report_late(c, e, n, true);
	if (c->parent != NULL || sync_load_sc(&c->tree->reported) == n)
		return SYNC_FOREVER;
	if (now < end)
		return until_next_look(c, end - now);
	if (answers)
		return BACKOFF_FIRST_NS;
	if (busy)
		return BACKOFF_MOST_NS;
	report_late(c, e, n, false);
	sync_store_sc(&c->tree->reported, n);
	return SYNC_FOREVER;
}

bool
evc__ending_need(evc_coord *c, bool at_end)
{
	struct ending *e;

	if (c->parent == NULL && !evc__watch_need(c, at_end))
		return false;
	if (c->wake.ending != NULL)
		return true;
	e = sync_alloc(1, sizeof *e);
	if (e == NULL)
		return false;
	e->job.run = write_when_due;
	e->job.overlaps = true;
	list_init(&e->job.node);
	if (!evc__helper_job_add(c, &e->job)) {
		sync_free(e);
		return false;
	}
	c->wake.ending = &e->job;
	return true;
}
