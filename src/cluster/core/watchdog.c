/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The watchdog: when no function has ended for config.watchdog seconds while
 * some run, or are held up by a build, a report says where the coordinator's
 * threads and the busy workers stand; once for each such silence.
 * It is a looper on a thread of its own, so that it neither blocks the
 * cluster's loop nor waits for it: a loop that hangs is a silence, too.
 * Called by: cluster/open/open.c (evc__watchdog_begin); the looper (watch).
 * Locks: the cluster's, taken.
 */
#include "cluster/core/cluster.h"

#include <math.h>
#include <time.h>

/* Looks in the time of a silence: it is noticed late by this part of its time,
   at most. */
#define LOOKS 4
/* Bytes for a report at first; memory that is not written costs nothing. */
#define REPORT_SIZE ((size_t)1 << 20)
/* The log gets so many lines at once, and then a moment to print them. */
#define LINES_AT_ONCE 200
#define LOG_PATIENCE 1.0

/* ---- the report ---- */

/* Allocated; NULL: no memory.  A report that does not fit is made again. */
static char *
take_report(evc_cluster *cl)
{
	const unsigned format = EVC_REPORT_TEXT | EVC_REPORT_STACKS;
	size_t room = REPORT_SIZE, n;
	char *report = sync_alloc(1, room);

	n = report != NULL ?
		    evc_report(cl->life.parent, format, report, room) : 0;
	if (n < room)
		return report;
	sync_free(report);
	room = n + n / 4 + 1;
	report = sync_alloc(1, room);
	if (report != NULL)
		(void)evc_report(cl->life.parent, format, report, room);
	return report;
}

/* false: errno says why. */
static bool
put_all(int fd, const char *s)
{
	size_t n = strlen(s);
	ssize_t put;

	while (n > 0) {
		put = sync_fd_put(fd, s, n);
		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return false;
		s += put;
		n -= (size_t)put;
	}
	return true;
}

static void
note_unwritten(evc_cluster *cl)
{
	evc_log(cl->scope, EVC_LOG_ERROR, NULL,
		"the report cannot be written to %s: %s",
		cl->config.watchdog_file, strerror(errno));
}

static void
write_file(evc_cluster *cl, const char *first, const char *report)
{
	char head[DESCRIBE_SIZE + 64], time_now[32];
	struct text t = evc__lines_in(head, sizeof head);
	time_t now = (time_t)(sync_real() / 1000000000u);
	struct tm tm;
	int fd;

	if (cl->config.watchdog_file == NULL)
		return;
	strftime(time_now, sizeof time_now, "%Y-%m-%dT%H:%M:%SZ",
		 gmtime_r(&now, &tm));
	evc__text_fmt(&t, "%s %s: %s\n", time_now, cl->name, first);
	fd = sync_file_append(cl->config.watchdog_file);
	if (fd < 0 || !put_all(fd, head) || !put_all(fd, report) ||
	    !put_all(fd, "\n"))
		note_unwritten(cl);
	if (fd >= 0)
		sync_fd_close(fd);
}

/* A wrong name or right is noticed now, not with the first report. */
static void
try_file(evc_cluster *cl)
{
	int fd;

	if (cl->config.watchdog_file == NULL)
		return;
	fd = sync_file_append(cl->config.watchdog_file);
	if (fd < 0)
		note_unwritten(cl);
	else
		sync_fd_close(fd);
}

/* The report is cut into its lines. */
static void
write_log(evc_cluster *cl, char *report)
{
	bool waits = true;
	unsigned n = 0;
	char *line;

	while ((line = evc__stack_line(&report)) != NULL) {
		evc_log(cl->scope, EVC_LOG_WARNING, NULL, "%s", line);
		/* A hanging hook is not waited for twice. */
		if (++n % LINES_AT_ONCE == 0 && waits)
			waits = evc_log_flush(cl->scope, LOG_PATIENCE);
	}
}

static void
tell_silence(evc_cluster *cl, const char *first)
{
	char *report;

	/* Before the report calls functions of the program, which may hang. */
	evc_log(cl->scope, EVC_LOG_WARNING, NULL, "%s", first);
	report = take_report(cl);
	if (report == NULL) {
		evc_log(cl->scope, EVC_LOG_ERROR, NULL,
			"no memory for the report");
		return;
	}
	write_file(cl, first, report);
	write_log(cl, report);
	sync_free(report);
}

/* ---- the silence ---- */

/* Lock held: since when nothing has ended although something runs; 0: nothing
   runs. */
static uint64_t
silent_since(const evc_cluster *cl)
{
	const struct cluster_worker *w;
	uint64_t since = SYNC_FOREVER;
	unsigned i;

	if (cl->q.n_taken > 0)
		return cl->watchdog.moved_ns;
	for (i = 0; i < cl->workers.n; i++) {
		w = cl->workers.all[i];
		if (evc__building_is_it(w) && w->moved_ns < since)
			since = w->moved_ns;
	}
	if (since == SYNC_FOREVER)
		return 0;
	return since > cl->watchdog.moved_ns ? since : cl->watchdog.moved_ns;
}

/* Lock held.  Each look has the loop turn until the next one: a loop that does
   not turn keeps ends of functions from being heard, and retries from their
   begin. */
static void
look_at_loop(evc_cluster *cl, uint64_t now)
{
	struct watchdog *d = &cl->watchdog;
	uint32_t turns = sync_load(&cl->turn.n_turns);
	uint64_t late, every = evc__ns(cl->config.watchdog / LOOKS);

	/* A pause of the whole process is nobody's silence. */
	late = now - d->looked_ns;
	if (late > 2 * every) {
		late -= every;
		if (d->told_ns != 0 && (d->told_ns == d->moved_ns ||
					d->told_ns == d->turned_ns))
			d->told_ns += late;
		d->moved_ns += late;
		d->turned_ns += late;
	}
	if (turns != d->turns || d->turned_ns == 0) {
		d->turns = turns;
		d->turned_ns = now;
	}
	(void)evc__turn_ask(cl);
}

/* Lock held: since when the loop has not turned although functions wait or run;
   0: the loop turns, or there are none. */
static uint64_t
loop_silent_since(const evc_cluster *cl, uint64_t now)
{
	uint64_t since = cl->watchdog.turned_ns;

	if (cl->q.n_held + cl->q.n_queued + cl->q.n_taken == 0 ||
	    now < evc__after(since, evc__ns(cl->config.watchdog / 2)))
		return 0;
	return since;
}

static evc_status
watch(evc_coord *c, void *arg)
{
	evc_cluster *cl = arg;
	char first[DESCRIBE_SIZE];
	struct text t = evc__text_in(first, sizeof first);
	uint64_t now, since, loop;
	bool due;

	(void)c;
	sync_lock(&cl->q.lock);
	now = sync_mono();
	look_at_loop(cl, now);
	since = silent_since(cl);
	loop = loop_silent_since(cl, now);
	if (since == 0)
		since = loop;
	due = since != 0 && since != cl->watchdog.told_ns &&
	      now >= evc__after(since, evc__ns(cl->config.watchdog));
	if (due) {
		cl->watchdog.told_ns = since;
		evc__text_fmt(&t, "no function has ended for %.1f s: ",
			      (double)(now - since) / 1e9);
		if (loop != 0)
			evc__text_fmt(&t, "the cluster's loop has not turned "
					  "for %.1f s: ",
				      (double)(now - loop) / 1e9);
		evc__cluster_describe(cl, now, &t);
	}
	sync_unlock(&cl->q.lock);
	if (due)
		tell_silence(cl, first);
	/* A report may take its time. */
	cl->watchdog.looked_ns = due ? sync_mono() : now;
	return 0;
}

static bool
is_on(const evc_cluster *cl)
{
	return cl->config.watchdog > 0 && !isinf(cl->config.watchdog);
}

void
evc__watchdog_prepare(const evc_cluster *cl)
{
	/* After a refusal the report says what stacks it has. */
	if (is_on(cl))
		(void)evc_stack_signal(0);
}

evc_status
evc__watchdog_begin(evc_cluster *cl)
{
	const evc_member_opts opts = {
		.flags = EVC_OWN_THREAD | EVC_BACKGROUND,
	};
	evc_id id;

	if (!is_on(cl))
		return 0;
	try_file(cl);
	/* There may be a pause before the first look. */
	cl->watchdog.looked_ns = sync_mono();
	return evc_looper_start(cl->scope, "watchdog",
				cl->config.watchdog / LOOKS, watch, cl, &opts,
				&id);
}
