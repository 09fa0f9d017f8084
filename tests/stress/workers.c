/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Twenty worker groups that eight threads start, stop, resize, pause, look at,
 * free and make anew at random, while their workers fail, end and meddle.  Now
 * and then one of the eight has all for itself, and compares: who runs, how many,
 * with which ids, and that every run, error and count is there.  It goes on until
 * each kind of thing has happened.
 *
 *	workers [SECONDS]    else EVC_STRESS_SECONDS, else 10
 *	EVC_SEED=n           throws other dice
 */
#include "teams.h"

/* Shared by all who use the registry, held alone by who counts. */
static pthread_rwlock_t counting;
static atomic_bool over;

static struct worker {
	pthread_t thread;
	uint64_t dice;
	atomic_ulong steps;
	_Atomic(const char *) where;
} workers[N_THREADS];

/* ---- steps ---- */

/* Another group in its place, unless it runs. */
static void
team_renew(struct team *t, uint64_t *dice)
{
	evc_status st;

	pthread_rwlock_wrlock(&t->lock);
	st = evc_group_free(t->group);
	MUST(st == 0 || st == -EVC_FAILED_PRECONDITION);
	if (st == 0) {
		MUST(atomic_load(&t->live) == 0);
		atomic_fetch_add(&counts.frees, 1);
		team_make(t, dice);
	}
	pthread_rwlock_unlock(&t->lock);
}

static const evc_join_opts generous = { .grace = 60 },
			   none = { .grace = EVC_NO_GRACE };

static void
was_started(evc_status st)
{
	/* CANCELLED: somebody has asked one of them to stop meanwhile. */
	MUST(st == 0 || st == 201 || st == 202 || st == -EVC_CANCELLED ||
	     st == -EVC_FAILED_PRECONDITION);
	atomic_fetch_add(&counts.starts, 1);
	atomic_fetch_add(&counts.failed_starts, st != 0);
}

static void
was_stopped(evc_status st, bool waited)
{
	/* Some fail, which is an answer, too. */
	MUST(st == 0 || (st == EVC_DEADLINE_EXCEEDED ? !waited : st > 0));
	atomic_fetch_add(&counts.stops, 1);
}

static bool
look_at(evc_group *group, void *arg)
{
	evc_group_info info;
	evc_worker_error error;
	evc_worker_info w;
	unsigned ids[64], i;
	size_t n;

	(void)arg;
	MUST(evc_group_get(group, &info) == 0);
	MUST(info.state >= EVC_GROUP_NEW && info.state <= EVC_GROUP_STOPPED);
	MUST(info.n_threads >= 1 && info.n_threads <= MOST);
	n = evc_group_ids(group, ids, 64);
	for (i = 1; i < n && i < 64; i++)
		MUST(ids[i] > ids[i - 1]);
	for (i = 0; evc_group_worker_get(group, i, &w) == 0; i++)
		MUST(w.n_errors <= w.n_runs);
	for (i = 0; evc_group_error_get(group, i, &error) == 0; i++)
		MUST(error.reason.code != 0 && error.run > 0);
	MUST(evc_group_metric(group, "ones") >= 0);
	return true;
}

static void
look(uint64_t *dice)
{
	char buf[256];
	unsigned which = roll(dice, 4);

	switch (which) {
	case 0:
	case 1:
	case 2:
		MUST(evc_report(evc_registry_coord(reg),
				EVC_REPORT_TEXT + which, buf, sizeof(buf)) > 0);
		break;
	default:
		MUST(evc_registry_each(reg, look_at, NULL) == 0);
		break;
	}
}

static void
use(struct worker *w, struct team *t)
{
	uint64_t *dice = &w->dice;
	evc_status st = 0;

	pthread_rwlock_rdlock(&t->lock);
	switch (roll(dice, 10)) {
	case 0: case 1: case 2:
		atomic_store(&w->where, "start");
		was_started(evc_group_start(t->group));
		break;
	case 3:
		atomic_store(&w->where, "stop");
		was_stopped(evc_group_stop(t->group, &generous), true);
		break;
	case 4:
		atomic_store(&w->where, "stop, no wait");
		was_stopped(evc_group_stop(t->group, &none), false);
		break;
	case 5:
		atomic_store(&w->where, "request");
		st = evc_request_stop(evc_group_scope(t->group), 0, "a die");
		MUST(st == 0);
		break;
	case 6:
		atomic_store(&w->where, "pause");
		st = evc_group_pause(t->group);
		MUST(st == 0 || st == -EVC_FAILED_PRECONDITION);
		st = evc_group_resume(t->group);
		MUST(st == 0 || st == -EVC_FAILED_PRECONDITION);
		break;
	case 7:
		atomic_store(&w->where, "wait_finish");
		(void)evc_group_wait_finish(t->group, roll(dice, 1000) / 1e6);
		break;
	default:
		atomic_store(&w->where, "resize");
		st = evc_group_resize(t->group, 1 + roll(dice, MOST));
		MUST(st == 0 || st == -EVC_FAILED_PRECONDITION);
		atomic_fetch_add(&counts.resizes, 1);
		break;
	}
	pthread_rwlock_unlock(&t->lock);
}

static void
step(struct worker *w)
{
	struct team *t = &teams[roll(&w->dice, N_TEAMS)];
	const char *name = roll(&w->dice, 2) ? "a" : "b";

	pthread_rwlock_rdlock(&counting);
	switch (roll(&w->dice, 20)) {
	case 0:
		atomic_store(&w->where, "start all");
		was_started(evc_registry_start(reg));
		break;
	case 1:
		atomic_store(&w->where, "stop all");
		was_stopped(evc_registry_stop(reg, &generous), true);
		break;
	case 2:
		atomic_store(&w->where, "stop by name");
		was_stopped(evc_registry_stop_name(reg, name, &generous), true);
		break;
	case 3: case 4:
		atomic_store(&w->where, "free");
		team_renew(t, &w->dice);
		break;
	case 5: case 6:
		atomic_store(&w->where, "look");
		look(&w->dice);
		break;
	default:
		use(w, t);
		break;
	}
	pthread_rwlock_unlock(&counting);
}

/* ---- the model, compared ---- */

/* In time: who was told last may still be at it. */
#define COMES(cond) \
	do { \
		double until_ = t_now() + 60; \
		while (!(cond)) { \
			MUST(t_now() < until_ || (cond)); \
			t_sleep(0.0005); \
		} \
	} while (0)

static evc_group_info
info_of(struct team *t)
{
	evc_group_info info;

	MUST(evc_group_get(t->group, &info) == 0);
	return info;
}

/* All has ended, everything that was called has its counterpart, and nothing
   that workers did is missing. */
static void
all_is_still(struct team *t)
{
	evc_group_info info;

	COMES(info_of(t).state == EVC_GROUP_STOPPED ||
	      info_of(t).state == EVC_GROUP_NEW);
	COMES(atomic_load(&t->phase) == IDLE && atomic_load(&t->inside) == 0);
	info = info_of(t);
	MUST(!evc_group_is_active(t->group));
	MUST(info.n_live == 0);
	MUST(atomic_load(&t->live) == 0);
	MUST(info.n_runs == atomic_load(&t->runs));
	MUST(info.n_errors == atomic_load(&t->errors));
	MUST(evc_group_metric(t->group, "ones") ==
	     (double)atomic_load(&t->puts));
	MUST(evc_group_metric(t->group, "ones_count") ==
	     (double)atomic_load(&t->puts));
	MUST(evc_group_metric(t->group, "worker_time_count") ==
	     (double)atomic_load(&t->runs));
}

/* It runs with so many, and each of them works. */
static void
all_run(struct team *t, unsigned n)
{
	unsigned ids[MOST], i;
	unsigned long runs;

	MUST(evc_group_is_active(t->group));
	MUST(info_of(t).state == EVC_GROUP_RUNNING);
	MUST(info_of(t).n_threads == n);
	COMES(info_of(t).n_live == n);
	COMES(evc_group_ids(t->group, ids, MOST) == n);
	for (i = 0; i < n; i++) {
		uint32_t whose = atomic_load(&owner[ids[i]]);

		MUST(whose == 0 || whose == t->number);
	}
	runs = atomic_load(&t->runs);
	COMES(atomic_load(&t->runs) >= runs + n);
}

static void
audit(uint64_t *dice)
{
	const char *name = roll(dice, 2) ? "a" : "b";
	unsigned size[N_TEAMS], i;

	pthread_rwlock_wrlock(&counting);
	atomic_store(&calm, true);
	was_stopped(evc_registry_stop(reg, &generous), true);
	for (i = 0; i < N_TEAMS; i++) {
		all_is_still(&teams[i]);
		size[i] = 1 + roll(dice, MOST);
		atomic_fetch_add(&counts.restarts,
				 info_of(&teams[i]).n_restarts);
		MUST(evc_group_resize(teams[i].group, size[i]) == 0);
	}
	MUST(evc_registry_start(reg) == 0);
	for (i = 0; i < N_TEAMS; i++)
		all_run(&teams[i], size[i]);
	for (i = 0; i < N_TEAMS; i++) {
		size[i] = 1 + roll(dice, MOST);
		MUST(evc_group_resize(teams[i].group, size[i]) == 0);
	}
	was_stopped(evc_registry_stop_name(reg, name, &generous), true);
	for (i = 0; i < N_TEAMS; i++)
		if (strcmp(teams[i].name, name) == 0)
			all_is_still(&teams[i]);
		else
			all_run(&teams[i], size[i]);
	was_stopped(evc_registry_stop(reg, &generous), true);
	for (i = 0; i < N_TEAMS; i++)
		all_is_still(&teams[i]);
	atomic_fetch_add(&counts.audits, 1);
	atomic_store(&calm, false);
	pthread_rwlock_unlock(&counting);
}

static void *
work(void *arg)
{
	struct worker *w = arg;

	while (!atomic_load(&over)) {
		if (roll(&w->dice, 400) == 0) {
			atomic_store(&w->where, "audit");
			audit(&w->dice);
		} else {
			step(w);
		}
		atomic_fetch_add(&w->steps, 1);
		atomic_store(&w->where, "between");
		if (roll(&w->dice, 4) == 0)
			t_sleep(roll(&w->dice, 2000) / 1e6);
	}
	atomic_store(&w->where, NULL);
	return NULL;
}

/* ---- the watchdog ---- */

#ifndef HANGS_AFTER
#define HANGS_AFTER 120.0 /* seconds; no step takes one */
#endif

static void *
watch(void *arg)
{
	struct { unsigned long steps; double since; } seen[N_THREADS] = { 0 };
	static char text[65536];
	int i, j;

	while (!atomic_load((atomic_bool *)arg)) {
		t_sleep(0.1);
		for (i = 0; i < N_THREADS; i++) {
			if (atomic_load(&workers[i].steps) != seen[i].steps ||
			    atomic_load(&workers[i].where) == NULL ||
			    seen[i].since == 0) {
				seen[i].steps = atomic_load(&workers[i].steps);
				seen[i].since = t_now();
			}
			if (t_now() - seen[i].since < HANGS_AFTER)
				continue;
			for (j = 0; j < N_THREADS; j++) {
				const char *at = atomic_load(&workers[j].where);

				fprintf(stderr, "thread %d: %s%s\n", j,
					at != NULL ? at : "done",
					i == j ? ", and hangs" : "");
			}
			evc_report(evc_registry_coord(reg), EVC_REPORT_TEXT,
				   text, sizeof(text));
			fprintf(stderr, "%s\n", text);
			_exit(1);
		}
	}
	return NULL;
}

/* ---- all of it ---- */

static void
prepare(evc_coord *c, uint64_t seed)
{
	uint64_t dice = seed * 5 | 1;
	evc_registry_opts o = { .grace = 60 };
	pthread_rwlockattr_t attr;
	int i;

	/* Or who counts would wait for ever behind those who use. */
	pthread_rwlockattr_init(&attr);
	pthread_rwlockattr_setkind_np(
		&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&counting, &attr);
	MUST(evc_registry_new(&o, &reg) == 0);
	for (i = 0; i < N_TEAMS; i++) {
		pthread_rwlock_init(&teams[i].lock, &attr);
		teams[i].name = i % 3 == 0 ? "a" : "b";
		teams[i].coord = i >= N_TEAMS - 4 ? c : NULL;
		teams[i].on_error = i == 0       ? EVC_GROUP_STOP_ALL
				    : i % 4 == 1 ? EVC_GROUP_RESTART
						 : EVC_GROUP_STOP_GROUP;
		team_make(&teams[i], &dice);
	}
	for (i = 0; i < N_THREADS; i++) {
		workers[i].dice = (seed + (uint64_t)i) *
					  UINT64_C(0x9e3779b97f4a7c15) | 1;
		atomic_store(&workers[i].where, "begin");
	}
}

/* How many kinds of things have never happened. */
static int
n_missing(void)
{
	return (counts.starts == 0) + (counts.failed_starts == 0) +
	       (counts.stops == 0) + (counts.resizes == 0) +
	       (counts.failures == 0) + (counts.restarts == 0) +
	       (counts.ends == 0) + (counts.by_workers == 0) +
	       (counts.frees == 0) + (counts.audits == 0);
}

static void
tell(double seconds)
{
	printf("%.0f s: starts %lu (%lu failed), stops %lu, resizes %lu, "
	       "failures %lu, restarts %lu, clean ends %lu, by workers %lu, "
	       "frees %lu, audits %lu\n",
	       seconds, counts.starts, counts.failed_starts, counts.stops,
	       counts.resizes, counts.failures, counts.restarts, counts.ends,
	       counts.by_workers, counts.frees, counts.audits);
}

int
main(int argc, char **argv)
{
	double seconds = stress_seconds(argc, argv), begin;
	const char *seed_env = getenv("EVC_SEED");
	uint64_t seed = seed_env ? strtoull(seed_env, NULL, 0) : 20260103;
	int threads = t_count_threads(), fds = t_count_fds(), i;
	atomic_bool dog_off = false;
	evc_coord *c = NULL;
	evc_verdict v;
	pthread_t dog;

	MUST(evc_new(NULL, NULL, &c) == 0);
	prepare(c, seed);
	begin = t_now();
	for (i = 0; i < N_THREADS; i++)
		MUST(pthread_create(&workers[i].thread, NULL, work,
				    &workers[i]) == 0);
	MUST(pthread_create(&dog, NULL, watch, &dog_off) == 0);
	while (go_on(begin, seconds, n_missing()))
		t_sleep(0.05);
	atomic_store(&over, true);
	for (i = 0; i < N_THREADS; i++)
		MUST(pthread_join(workers[i].thread, NULL) == 0);
	audit(&(uint64_t){ seed | 1 });
	MUST(evc_registry_free(reg) == 0);
	MUST(evc_request_stop(c, 0, "the end") == 0);
	/* Errors of the groups below it are told to it, and stop it not. */
	MUST(evc_join(c, &generous, &v) >= 0 && v.n_stragglers == 0);
	MUST(v.stop.kind == EVC_BY_REQUEST);
	MUST(evc_free(c) == 0);
	atomic_store(&dog_off, true);
	pthread_join(dog, NULL);
	tell(seconds);
	MUST(n_missing() == 0);
	MUST(t_settle_threads(threads) == threads);
	MUST(t_settle_fds(fds) == fds);
	return 0;
}
