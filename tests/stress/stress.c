/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Everything at once, at random: workers that ask for stops and drains, clear
 * them, wait, begin members of every kind, join, run loops, look - on any
 * level of trees of coordinators that they share and that are counted, freed
 * and made anew meanwhile, in parts or wholly - while signals hit them whose
 * handlers ask for stops, too.  Beside those, scopes that come and go: used
 * round after round by one, or left alone until they are told that they have
 * ended.
 *
 * At the end nothing may be lost (what was taken in has ended, by the joins'
 * own count), nothing may hang (a watchdog says where each worker is), and no
 * thread, no descriptor and no child process may be left over.  It lasts as
 * long as it is told to, and until each kind of thing has happened.
 *
 *	stress [SECONDS]     else EVC_STRESS_SECONDS, else 10
 *	EVC_SEED=n           throws other dice
 */
#include <sys/wait.h>

#include "steps.h"

static void
step(struct worker *w)
{
	struct slot *s = &slots[roll(&w->dice, N_SLOTS)];
	uint64_t *d = &w->dice;
	struct spot p;

#define DO(name, call) \
	do { \
		atomic_store(&w->where, name); \
		call; \
	} while (0)

	DO("waiting for a slot", p = take_slot(s, d));
	switch (roll(d, 28)) {
	case 0: case 1:
		DO("request", ask(&p, d));
		break;
	case 2: case 3:
		DO("clear", clear(&p));
		break;
	case 4:
		DO("wait", wait_or_poll(p.c, d));
		break;
	case 5: case 6:
		DO("start", start_thread(&p, d));
		break;
	case 7:
		DO("register", register_threads(&p, d));
		break;
	case 8:
		DO("hold", hold_for_a_while(&p, d));
		break;
	case 9:
		DO("join", join(p.c, d));
		break;
	case 10:
		DO("loop", use_loop(&p, d));
		break;
	case 11:
		DO("look", look(p.c, d));
		break;
	case 12:
		DO("hook", hook_on_helper(p.c, d));
		break;
	case 13:
		DO("signals", own_signals(s->c, d));
		break;
	case 14:
		DO("join in steps", join_in_steps(p.c, d));
		break;
	case 15: case 16: case 17:
		DO("another member", add_some(&p, d));
		break;
	case 18: case 19: case 20:
		DO("scope", use_part(&p, d));
		break;
	case 21:
		DO("scope given up", give_up_part(&p, d));
		break;
	case 22: case 23:
		DO("scope left alone", leave_alone(&p, NULL, false, d));
		break;
	case 25: case 26:
		DO("stretch", stretch_for_a_while(p.c, d, 0));
		break;
	case 24:
		DO("loop thread", start_loop_thread(&p, d));
		break;
	default:
		leave_slot(s);
		if (chance(d, 50))
			DO("life", whole_life(d));
		else
			DO("tree", whole_tree(d));
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
		if (chance(dice, 80))
			MUST(pthread_kill(
				     workers[roll(dice, N_WORKERS)].thread,
				     signo) == 0);
		else
			MUST(kill(getpid(), signo) == 0);
		nap(dice, 2000);
	}
	return NULL;
}

/* ---- the watchdog ---- */

#ifndef HANGS_AFTER
#define HANGS_AFTER 120.0 /* seconds; no step takes one */
#endif

/* Where all are; then what the trees say, if they can still. */
static void
tell_hang(int who)
{
	static char text[16000];
	const char *where;
	int i;

	for (i = 0; i < N_WATCHED; i++) {
		where = atomic_load(&workers[i].where);
		fprintf(stderr, "worker %d: %s%s\n", i,
			where != NULL ? where : "done",
			i == who ? ", and hangs" : "");
	}
	for (i = 0; i < N_SLOTS; i++) {
		evc_report(slots[i].c, EVC_REPORT_TEXT, text, sizeof text);
		fprintf(stderr, "%s\n", text);
	}
}

static void *
watch(void *arg)
{
	struct { uint64_t steps; double since; } seen[N_WATCHED] = { 0 };
	int i;

	while (!atomic_load((atomic_bool *)arg)) {
		t_sleep(0.1);
		for (i = 0; i < N_WATCHED; i++) {
			if (atomic_load(&workers[i].steps) != seen[i].steps ||
			    atomic_load(&workers[i].where) == NULL) {
				seen[i].steps = atomic_load(&workers[i].steps);
				seen[i].since = t_now();
			}
			if (seen[i].since == 0)
				seen[i].since = t_now();
			if (t_now() - seen[i].since < HANGS_AFTER)
				continue;
			tell_hang(i);
			_exit(1);
		}
	}
	return NULL;
}

/* ---- a reader ---- */

/* Looks at all that there is, all the time. */
static void *
read_all(void *arg)
{
	uint64_t *dice = arg;
	struct slot *s;

	while (!atomic_load(&over)) {
		s = &slots[roll(dice, N_SLOTS)];
		look(take_slot(s, dice).c, dice);
		leave_slot(s);
		nap(dice, 500);
	}
	return NULL;
}

/* ---- all of it ---- */

static void
prepare(struct ev_loop *loop, uint64_t seed)
{
	uint64_t dice = seed * 5 | 1;
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
		slots[i].counted = i % 2 == 0;
		slots[i].home = i < 2 ? loop : NULL;
		make(&slots[i], &dice);
	}
	for (i = 0; i < N_WORKERS; i++) {
		workers[i].dice = (seed + (uint64_t)i) *
					  UINT64_C(0x9e3779b97f4a7c15) |
				  1;
		atomic_store(&workers[i].where, "begin");
	}
}

/* The main thread's part, one step. */
static void
count_some(struct ev_loop *loop, uint64_t *dice)
{
	struct slot *s = &slots[roll(dice, N_SLOTS)];

	atomic_store(&main_thread->where, "main: its loop");
	turn_home(loop, (double)roll(dice, 50) / 1e3);
	if (chance(dice, 40))
		join_at_home(dice);
	atomic_store(&main_thread->where, "main: a leaf");
	if (chance(dice, 40))
		remake_leaf(s, loop, dice);
	atomic_store(&main_thread->where, "main: a tree");
	audit(s, loop, dice, false);
	atomic_fetch_add(&main_thread->steps, 1);
}

static void
run_for(double seconds, struct ev_loop *loop, uint64_t seed)
{
	uint64_t dice = seed | 1, bomber_dice = seed * 3 | 1,
		 reader_dice = seed * 7 | 1;
	pthread_t bomber, reader, dog;
	double begin = t_now();
	atomic_bool dog_off = false;
	int i;

	for (i = 0; i < N_WORKERS; i++)
		MUST(pthread_create(&workers[i].thread, NULL, work,
				    &workers[i]) == 0);
	MUST(pthread_create(&bomber, NULL, bombard, &bomber_dice) == 0);
	MUST(pthread_create(&reader, NULL, read_all, &reader_dice) == 0);
	MUST(pthread_create(&dog, NULL, watch, &dog_off) == 0);
	while (go_on(begin, seconds, n_missing()))
		count_some(loop, &dice);
	atomic_store(&over, true);
	/* They may be waiting for something on our loop. */
	atomic_store(&main_thread->where, "main: the end");
	for (i = 0; i < N_WORKERS; i++)
		while (atomic_load(&workers[i].where) != NULL)
			turn_home(loop, 0);
	pthread_join(bomber, NULL);
	pthread_join(reader, NULL);
	for (i = 0; i < N_WORKERS; i++)
		pthread_join(workers[i].thread, NULL);
	for (i = 0; i < N_SLOTS; i++)
		audit(&slots[i], loop, &dice, true);
	atomic_store(&dog_off, true);
	pthread_join(dog, NULL);
}

static void
nothing(struct ev_loop *loop, ev_timer *w, int revents)
{
	(void)loop;
	(void)w;
	(void)revents;
}

int
main(int argc, char **argv)
{
	double seconds = stress_seconds(argc, argv);
	const char *seed_env = getenv("EVC_SEED");
	uint64_t seed = seed_env ? strtoull(seed_env, NULL, 0) : 20260102;
	struct ev_loop *loop;
	ev_timer turns;
	int threads = t_count_threads(), fds = t_count_fds(), i;

	printf("stress: %g s, EVC_SEED=%llu\n", seconds,
	       (unsigned long long)seed);
	fflush(stdout);
	loop = ev_loop_new(EVFLAG_AUTO);
	MUST(loop != NULL);
	ev_timer_init(&turns, nothing, 0, 1e-3);
	ev_timer_start(loop, &turns);
	prepare(loop, seed);
	run_for(seconds, loop, seed);
	ev_timer_stop(loop, &turns);
	ev_loop_destroy(loop);
	MUST(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
	MUST(t_settle_threads(threads) == threads);
	MUST(t_settle_fds(fds) == fds);
	printf("stress:");
	for (i = 0; i < N_TALLY; i++)
		printf(" %s %llu%s", tally_name[i],
		       (unsigned long long)tally[i],
		       i + 1 < N_TALLY ? "," : "\n");
	if (n_missing() > 0)
		printf("stress: %d kinds of things never happened\n",
		       n_missing());
	return n_missing() > 0;
}
