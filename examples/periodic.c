/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * periodic - three loopers: one on time, one late, one that fails.
 *
 *	periodic [INTERVAL]
 *
 * A looper is a function that is run at each multiple of its interval, on a
 * loop or on a thread of its own; what to do about the ones that pass while it
 * cannot run is its own choice.
 *
 *   steady   on main's loop.  It lets no boundary go without a run
 *            (EVC_MISSED_BURST)
 *   slow     on a thread of its own, so that it holds up nobody else.  Its
 *            third run takes four and a half intervals: the boundaries that
 *            pass meanwhile are missed, and counted
 *   watch    on main's loop.  It looks at slow's counts, and fails when more
 *            than two runs were missed; an error stops all
 *
 * The exit status is 1, as after any error.
 */
#include <evcoord.h>

#include <errno.h>
#include <ev.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct looper {
	const char *name;
	evc_id id;         /* set before the first run */
	unsigned runs;
	uint64_t boundary; /* the next one */
	evc_member_info end;
};

static double interval = 0.5;

static void
sleep_for(double seconds)
{
	struct timespec ts;

	ts.tv_sec = (time_t)seconds;
	ts.tv_nsec = (long)((seconds - (double)ts.tv_sec) * 1e9);
	while (nanosleep(&ts, &ts) < 0 && errno == EINTR)
		;
}

/* One line for each run: which boundary it is for, and what went before. */
static void
tell(evc_coord *c, struct looper *l)
{
	uint64_t missed = 0;
	double late = 0;

	evc_looper_tick(c, NULL, &missed, &late);
	l->boundary += missed;
	printf("%s: run %u for boundary %" PRIu64 ", %" PRIu64
	       " missed before it, %.3f s late\n",
	       l->name, ++l->runs, l->boundary++, missed, late);
	fflush(stdout);
}

static evc_status
run_steady(evc_coord *c, void *arg)
{
	tell(c, arg);
	return 0; /* again at the next boundary */
}

static evc_status
run_slow(evc_coord *c, void *arg)
{
	struct looper *l = arg;

	tell(c, l);
	if (l->runs == 3)
		sleep_for(4.5 * interval);
	return 0;
}

static evc_status
run_watch(evc_coord *c, void *arg)
{
	const struct looper *slow = arg;
	evc_member_info info;

	if (evc_member_get(c, slow->id, &info) < 0 || info.missed <= 2)
		return 0;
	return evc_fail(c, EVC_UNAVAILABLE, 0, "%s has missed %" PRIu64
			" runs", info.name, info.missed);
}

/* Called once at the end of a looper, whatever ended it: there where it ran,
   and while it is still a member. */
static evc_status
keep_counts(evc_coord *c, void *arg)
{
	struct looper *l = arg;

	evc_member_get(c, l->id, &l->end);
	return 0;
}

static void
start(evc_coord *c, struct looper *l)
{
	static const evc_member_opts on_loop = {
		.missed = EVC_MISSED_BURST,
		.stop = keep_counts,
	}, on_thread = {
		.flags = EVC_OWN_THREAD, /* what it misses is skipped */
		.stop = keep_counts,
	};

	/* The coordinator is strict: a refusal stops it, and says why. */
	evc_looper_start(c, l[0].name, interval, run_steady, &l[0], &on_loop,
			 &l[0].id);
	evc_looper_start(c, l[1].name, interval, run_slow, &l[1], &on_thread,
			 &l[1].id);
	evc_looper_start(c, "watch", interval / 2, run_watch, &l[1], NULL,
			 NULL);
}

int
main(int argc, char **argv)
{
	struct looper loopers[] = { { .name = "steady" }, { .name = "slow" } };
	evc_config cfg = { .flags = EVC_STRICT_SETUP };
	struct ev_loop *loop = ev_default_loop(0);
	bool help = argc == 2 && strcmp(argv[1], "--help") == 0;
	char why[1024], *end = "";
	evc_verdict v;
	evc_coord *c;
	evc_status st;
	int status;

	if (argc > 1)
		interval = strtod(argv[1], &end);
	if (argc > 2 || *end || !(interval > 0 && interval <= 3600)) {
		fputs("usage: periodic [INTERVAL]\n", help ? stdout : stderr);
		return help ? 0 : 2;
	}
	if (loop == NULL || evc_new(loop, &cfg, &c) < 0) {
		fprintf(stderr, "periodic: %s\n", evc_last_error());
		return EXIT_FAILURE;
	}
	evc_signals_start(c, NULL);
	start(c, loopers);
	st = evc_run(c, NULL, &v);

	for (int i = 0; i < 2; i++)
		printf("%s has ended: %" PRIu64 " runs, %" PRIu64 " missed\n",
		       loopers[i].name, loopers[i].end.ticks,
		       loopers[i].end.missed);
	evc_explain(c, why, sizeof(why));
	printf("%u loopers have ended, %u are late\n%s\n", v.n_ended,
	       v.n_stragglers, why);
	status = evc_finish(c, st);
	if (v.n_stragglers) {
		/* Somebody still runs: no return from main under it. */
		fflush(stdout);
		_exit(status);
	}
	return status;
}
