/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Everything at once, at random: workers that ask for stops, clear them, wait,
 * start and register threads, hold, join, run loops, look - on coordinators
 * that they share and that are counted, freed and made anew meanwhile - while
 * signals hit them whose handlers ask for stops, too.
 *
 * At the end nothing may be lost (what was taken in has ended, by the joins'
 * own count), nothing may hang (a watchdog says where each worker is), and no
 * thread and no descriptor may be left over.
 *
 *	stress [SECONDS]     else EVC_STRESS_SECONDS, else 30
 *	EVC_SEED=n           throws other dice
 */
#include "loops.h"

/* ---- what else a worker may do ---- */

static void
ask(evc_coord *c, uint64_t *dice)
{
	evc_status st = (evc_status)roll(dice, 4) * 5;

	st = evc_request_stop(c, st, "a worker");
	MUST(st >= 0);
	count(REQUESTS);
}

static void
clear(struct slot *s)
{
	evc_status st;

	if (s->counted)
		return;
	st = evc_clear_stop(s->c);
	MUST(st == 0 || st == -EVC_FAILED_PRECONDITION);
	count(st == 0 ? CLEARS : REFUSED_CLEARS);
}

static void
wait_or_poll(evc_coord *c, uint64_t *dice)
{
	double most = (double)roll(dice, 5) / 1e3;
	struct pollfd p = { .events = POLLIN };

	if (chance(dice, 50))
		(void)evc_wait_for_stop(c, most);
	else {
		p.fd = evc_stop_fd(c);
		MUST(p.fd >= 0);
		(void)poll(&p, 1, (int)(most * 1e3));
	}
	count(WAITS);
}

static void
join(evc_coord *c, uint64_t *dice)
{
	static const double grace[] = { EVC_NO_GRACE, 1e-10, 1e-3, 0.03 };
	evc_join_opts o = { .grace = grace[roll(dice, 4)],
			    .flags = EVC_JOIN_STOP_FIRST |
				     (unsigned)roll(dice, 2) * 2 };
	evc_verdict v;
	evc_status st = evc_join(c, &o, &v);

	MUST(st >= 0 && st == v.code);
	MUST(st != 0 || v.n_stragglers == 0 ||
	     (o.flags & EVC_JOIN_IGNORE_LIVE));
	count(JOINS);
	if (v.n_stragglers > 0)
		count(LATE);
}

static bool
each(const evc_member_info *m, void *arg)
{
	(void)arg;
	MUST(m->kind != 0 && m->state != 0 && memchr(m->name, 0, 48) != NULL);
	return true;
}

static void
look(evc_coord *c, uint64_t *dice)
{
	char buf[2000];
	evc_reason r;
	unsigned i;

	switch (roll(dice, 5)) {
	case 0:
		MUST(evc_explain(c, buf, sizeof buf) > 0);
		break;
	case 1:
		MUST(evc_report(c, buf, sizeof buf) > 0);
		break;
	case 2:
		MUST(evc_member_each(c, each, NULL) == 0);
		break;
	case 3:
		for (i = 0; evc_reason_get(c, i, &r) == 0; i++)
			MUST(r.round > 0 && r.kind > 0 && r.kind <= 6);
		break;
	default:
		MUST(evc_raise_requested(c, &r) >= 0);
		(void)evc_joined(c);
		break;
	}
	count(LOOKS);
}

static void
hook_on_helper(evc_coord *c, uint64_t *dice)
{
	evc_id id = 0;

	MUST(evc_on_stop(c, "helper's", hook, NULL, NULL, &id) == 0);
	count(HOOKS);
	nap(dice, 1000);
	if (chance(dice, 95))
		MUST(evc_member_remove(c, id) == 0);
}

/* SIGUSR2 is the library's now and then. */
static void
own_signals(evc_coord *c, uint64_t *dice)
{
	evc_signals_opts o = { .stop = { SIGUSR2 }, .short_grace = 1e-3 };
	evc_status st = evc_signals_start(c, &o);

	if (st < 0) {
		MUST(st == -EVC_ALREADY_EXISTS);
		return;
	}
	nap(dice, 3000);
	MUST(evc_signals_stop(c) == 0);
}

static void
step(struct worker *w)
{
	struct slot *s = &slots[roll(&w->dice, N_SLOTS)];
	uint64_t *d = &w->dice;

#define DO(name, call) \
	do { \
		atomic_store(&w->where, name); \
		call; \
	} while (0)

	DO("waiting for a slot", take_slot(s));
	switch (roll(d, 16)) {
	case 0: case 1:
		DO("request", ask(s->c, d));
		break;
	case 2: case 3:
		DO("clear", clear(s));
		break;
	case 4:
		DO("wait", wait_or_poll(s->c, d));
		break;
	case 5: case 6:
		DO("start", start_thread(s, d));
		break;
	case 7: case 8:
		DO("register", register_threads(s, d));
		break;
	case 9:
		DO("hold", hold_for_a_while(s->c, s, d));
		break;
	case 10:
		DO("join", join(s->c, d));
		break;
	case 11:
		DO("loop", use_loop(s, d));
		break;
	case 12:
		DO("look", look(s->c, d));
		break;
	case 13:
		DO("hook", hook_on_helper(s->c, d));
		break;
	case 14:
		DO("signals", own_signals(s->c, d));
		break;
	default:
		leave_slot(s);
		DO("life", whole_life(d));
		return;
	}
	leave_slot(s);
}

static void *
work(void *arg)
{
	struct worker *w = arg;

	while (!atomic_load(&over)) {
		step(w);
		atomic_fetch_add(&w->steps, 1);
		atomic_store(&w->where, "between");
		nap(&w->dice, 500);
	}
	atomic_store(&w->where, NULL);
	return NULL;
}

/* ---- signals ---- */

static void
on_usr1(int signo)
{
	evc_coord *c = at_hand;
	int e = errno;

	(void)signo;
	if (c != NULL) {
		errno = 4711;
		MUST(evc_request_stop(c, EVC_CANCELLED, "SIGUSR1") >= 0);
		MUST(errno == 4711);
		count(SIGNALS);
	}
	errno = e;
}

static void
on_usr2(int signo)
{
	(void)signo; /* nobody's at this moment */
}

static void *
bombard(void *arg)
{
	uint64_t *dice = arg;
	int signo;

	while (!atomic_load(&over)) {
		signo = chance(dice, 80) ? SIGUSR1 : SIGUSR2;
		MUST(pthread_kill(workers[roll(dice, N_WORKERS)].thread,
				  signo) == 0);
		nap(dice, 2000);
	}
	return NULL;
}

/* ---- the watchdog ---- */

#define HANGS_AFTER 120.0 /* seconds; no step takes one */

static void *
watch(void *arg)
{
	struct { uint64_t steps; double since; } seen[N_WORKERS] = { 0 };
	const char *where;
	int i, k;

	while (!atomic_load((atomic_bool *)arg)) {
		t_sleep(0.1);
		for (i = 0; i < N_WORKERS; i++) {
			if (atomic_load(&workers[i].steps) != seen[i].steps ||
			    atomic_load(&workers[i].where) == NULL) {
				seen[i].steps = atomic_load(&workers[i].steps);
				seen[i].since = t_now();
			}
			if (seen[i].since == 0)
				seen[i].since = t_now();
			if (t_now() - seen[i].since < HANGS_AFTER)
				continue;
			for (k = 0; k < N_WORKERS; k++) {
				where = atomic_load(&workers[k].where);
				fprintf(stderr, "worker %d: %s%s\n", k,
					where != NULL ? where : "done",
					k == i ? ", and hangs" : "");
			}
			_exit(1);
		}
	}
	return NULL;
}

/* ---- slots: made, counted, freed ---- */

static void
log_line(int level, const char *line, const evc_reason *r, void *arg)
{
	MUST((level == EVC_LOG_ERROR || level == EVC_LOG_INFO) && line[0]);
	MUST(r == NULL || r->code >= 0);
	atomic_fetch_add((_Atomic uint64_t *)arg, 1);
}

static _Atomic uint64_t log_lines;

static void
make(struct slot *s)
{
	long i = s - slots;
	evc_config k = { .grace = 0.05,
			 .name = s->counted ? "counted" : "wild",
			 .max_reasons = i == 1 ? 3 : 0,
			 .log = i == 1 ? log_line : NULL,
			 .arg = &log_lines };

	MUST(evc_new(NULL, &k, &s->c) == 0);
	atomic_store(&s->begun, 0);
	s->ended = 0;
}

static bool
none(const evc_member_info *m, void *arg)
{
	(void)arg;
	/* Hooks stay; nobody else. */
	MUST(m->kind == EVC_HOOK);
	return true;
}

/* Nobody but members uses it now: stop them, join them, count them. */
static void
audit(struct slot *s, bool last)
{
	/* Without end: an end that nobody hears of would hang here. */
	evc_join_opts o = { .grace = INFINITY };
	evc_verdict v;

	MUST(pthread_rwlock_wrlock(&s->lock) == 0);
	MUST(evc_request_stop(s->c, 0, "audit") >= 0);
	do
		MUST(evc_join(s->c, &o, &v) >= 0);
	while (v.n_stragglers > 0); /* a second signal cuts every grace */
	MUST(evc_joined(s->c) && evc_member_each(s->c, none, NULL) == 0);
	s->ended += v.n_ended;
	if (s->counted && s->ended != atomic_load(&s->begun)) {
		fprintf(stderr, "%llu were taken in, %llu have ended\n",
			(unsigned long long)s->begun,
			(unsigned long long)s->ended);
		abort();
	}
	if (last || v.n_errors % 2 == 0) {
		MUST(evc_free(s->c) == 0);
		s->c = NULL;
		count(FREES);
		if (!last)
			make(s);
	} else
		MUST(evc_clear_stop(s->c) == 0);
	MUST(pthread_rwlock_unlock(&s->lock) == 0);
}

/* ---- all of it ---- */

static void
prepare(uint64_t seed)
{
	pthread_rwlockattr_t attr;
	struct sigaction sa = { .sa_handler = on_usr1 };
	int i;

	/* No SA_RESTART: calls that are interrupted show it. */
	sigemptyset(&sa.sa_mask);
	MUST(sigaction(SIGUSR1, &sa, NULL) == 0);
	sa.sa_handler = on_usr2;
	MUST(sigaction(SIGUSR2, &sa, NULL) == 0);
	/* Or whoever counts would wait for ever behind those who use. */
	pthread_rwlockattr_init(&attr);
	pthread_rwlockattr_setkind_np(
		&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	for (i = 0; i < N_SLOTS; i++) {
		pthread_rwlock_init(&slots[i].lock, &attr);
		slots[i].counted = i == 0;
		make(&slots[i]);
	}
	for (i = 0; i < N_WORKERS; i++) {
		workers[i].dice = (seed + (uint64_t)i) *
					  UINT64_C(0x9e3779b97f4a7c15) |
				  1;
		atomic_store(&workers[i].where, "begin");
	}
}

static void
run_for(double seconds, uint64_t seed)
{
	uint64_t dice = seed | 1, bomber_dice = seed * 3 | 1;
	pthread_t bomber, dog;
	double end = t_now() + seconds;
	atomic_bool dog_off = false;
	int i;

	for (i = 0; i < N_WORKERS; i++)
		MUST(pthread_create(&workers[i].thread, NULL, work,
				    &workers[i]) == 0);
	MUST(pthread_create(&bomber, NULL, bombard, &bomber_dice) == 0);
	MUST(pthread_create(&dog, NULL, watch, &dog_off) == 0);
	while (t_now() < end) {
		nap(&dice, 100000);
		audit(&slots[roll(&dice, N_SLOTS)], false);
	}
	atomic_store(&over, true);
	pthread_join(bomber, NULL);
	for (i = 0; i < N_WORKERS; i++)
		pthread_join(workers[i].thread, NULL);
	for (i = 0; i < N_SLOTS; i++)
		audit(&slots[i], true);
	atomic_store(&dog_off, true);
	pthread_join(dog, NULL);
}

int
main(int argc, char **argv)
{
	const char *env = getenv("EVC_STRESS_SECONDS");
	double seconds = argc > 1 ? atof(argv[1]) : env ? atof(env) : 30;
	const char *seed_env = getenv("EVC_SEED");
	uint64_t seed = seed_env ? strtoull(seed_env, NULL, 0) : 20260102;
	int threads = t_count_threads(), fds = t_count_fds(), i, missing = 0;

	printf("stress: %g s, EVC_SEED=%llu\n", seconds,
	       (unsigned long long)seed);
	fflush(stdout);
	prepare(seed);
	run_for(seconds, seed);
	MUST(t_settle_threads(threads) == threads);
	MUST(t_settle_fds(fds) == fds);
	printf("stress:");
	for (i = 0; i < N_TALLY; i++) {
		printf(" %s %llu%s", tally_name[i],
		       (unsigned long long)tally[i],
		       i + 1 < N_TALLY ? "," : "\n");
		missing += tally[i] == 0;
	}
	/* In some seconds all of it must have happened. */
	if (missing > 0 && seconds >= 5)
		printf("stress: %d kinds of things never happened\n", missing);
	return missing > 0 && seconds >= 5;
}
