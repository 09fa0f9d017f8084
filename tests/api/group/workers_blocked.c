/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Workers that block when the stop comes: woken by kicks, unblock, waits that
 * know the stop, queues and the shutdown function; and those that stay, which
 * are named with what they said last.
 */
#include "../../support/workers_util.h"

#include <semaphore.h>

struct blocked {
	int pipe[2];
	sem_t sem;
	evc_queue *queue;
	atomic_int woken;
};

/* ---- what they block in ---- */

static evc_status
block_in_read(evc_group *group, unsigned id, void *arg)
{
	struct crew *k = arg;
	struct blocked *b = k->more;
	char byte;
	ssize_t n;

	crew_enter(group, id, k);
	n = read(b->pipe[0], &byte, 1);
	atomic_fetch_add(&b->woken, n < 0 && errno == EINTR);
	return crew_leave(k, n < 0 ? EVC_CANCELLED : 0);
}

static evc_status
block_in_sem(evc_group *group, unsigned id, void *arg)
{
	struct crew *k = arg;
	struct blocked *b = k->more;

	crew_enter(group, id, k);
	while (sem_wait(&b->sem) != 0)
		;
	atomic_fetch_add(&b->woken, 1);
	return crew_leave(k, 0);
}

static void
post_sem(void *arg)
{
	struct blocked *b = ((struct crew *)arg)->more;

	sem_post(&b->sem);
}

static evc_status
block_in_sleep(evc_group *group, unsigned id, void *arg)
{
	struct crew *k = arg;
	struct blocked *b = k->more;

	crew_enter(group, id, k);
	atomic_fetch_add(&b->woken, evc_sleep(evc_group_scope(group),
					      INFINITY) == -EVC_CANCELLED);
	/* Their code may be returned as it came. */
	return crew_leave(k, -EVC_CANCELLED);
}

static evc_status
block_in_wait_fd(evc_group *group, unsigned id, void *arg)
{
	struct crew *k = arg;
	struct blocked *b = k->more;
	evc_status st;

	crew_enter(group, id, k);
	st = evc_wait_fd(evc_group_scope(group), b->pipe[0], EVC_READ, INFINITY,
			 NULL);
	atomic_fetch_add(&b->woken, st == -EVC_CANCELLED);
	return crew_leave(k, st);
}

static evc_status
block_in_pop(evc_group *group, unsigned id, void *arg)
{
	struct crew *k = arg;
	struct blocked *b = k->more;
	evc_status st;
	void *item;

	crew_enter(group, id, k);
	st = evc_queue_pop(b->queue, &item, INFINITY);
	atomic_fetch_add(&b->woken, st < 0);
	return crew_leave(k, st);
}

/* Full after the first. */
static evc_status
block_in_push(evc_group *group, unsigned id, void *arg)
{
	struct crew *k = arg;
	struct blocked *b = k->more;
	evc_status st;

	crew_enter(group, id, k);
	st = evc_queue_push(b->queue, b, INFINITY);
	atomic_fetch_add(&b->woken, st < 0);
	return crew_leave(k, st);
}

static void
close_the_queue(evc_group *group, void *arg)
{
	struct crew *k = arg;

	crew_shutdown(group, arg);
	evc_queue_close(((struct blocked *)k->more)->queue);
}

static const struct {
	const char *name;
	evc_worker_fn *run;
	unsigned flags;
	void (*unblock)(void *arg);
	int queue; /* 1 of the group's scope, 2 of somebody else's */
} blocks[] = {
	{ "read, kicked", block_in_read, EVC_KICK, NULL, 0 },
	{ "sem_wait, unblocked", block_in_sem, 0, post_sem, 0 },
	{ "evc_sleep", block_in_sleep, 0, NULL, 0 },
	{ "evc_wait_fd", block_in_wait_fd, 0, NULL, 0 },
	{ "pop", block_in_pop, 0, NULL, 1 },
	{ "push", block_in_push, 0, NULL, 1 },
	{ "pop, closed", block_in_pop, 0, NULL, 2 },
	{ "push, closed", block_in_push, 0, NULL, 2 },
};

#define N_BLOCKS ((int)(sizeof(blocks) / sizeof(blocks[0])))

/* Each is woken by the stop, long before the budget is over; twice. */
START_TEST(what_blocks_is_woken_by_the_stop)
{
	evc_join_opts generous = { .grace = T_LIMIT };
	evc_group_opts o = { .member = { .flags = blocks[_i].flags,
					 .unblock = blocks[_i].unblock } };
	evc_coord *apart = new_coord(NULL);
	evc_registry *reg = new_registry(0);
	struct blocked b = { .pipe = { -1, -1 } };
	struct crew k = { .run = blocks[_i].run, .more = &b };
	evc_queue_info info;
	int round, tid[3], i;
	void *item;

	OK(pipe(b.pipe));
	OK(sem_init(&b.sem, 0, 0));
	if (blocks[_i].queue == 2)
		o.shutdown = close_the_queue;
	crew_add(reg, "train", &k, 3, &o);
	if (blocks[_i].queue != 0)
		OK(evc_queue_new(blocks[_i].queue == 1
					 ? evc_group_scope(k.group)
					 : apart,
				 "queue", 1, NULL, &b.queue));
	for (round = 1; round <= 2; round++) {
		atomic_store(&b.woken, 0);
		for (i = 0; i < 3; i++)
			atomic_store(&k.tid[i], 0);
		if (b.queue != NULL) {
			while (evc_queue_try_pop(b.queue, &item) == 0)
				;
			OK(evc_queue_reopen(b.queue));
		}
		OK(evc_registry_start(reg));
		for (i = 0; i < 3; i++) {
			UNTIL(atomic_load(&k.tid[i]) != 0);
			tid[i] = atomic_load(&k.tid[i]);
		}
		if (b.queue != NULL)
			do {
				t_sleep(0.001);
				OK(evc_queue_get(b.queue, &info));
			} while (info.n_pushing + info.n_popping < 3);
		for (i = 0; i < 3; i++)
			until_asleep(tid[i]);
		ck_assert_int_eq(b.woken, 0);
		ck_assert_int_eq(evc_registry_stop(reg, &generous), 0);
		ck_assert_int_ge(b.woken, 3);
		CALLED(&k, round, round, round, round, round);
		ck_assert_uint_eq(info_of(k.group).n_errors, 0);
		while (sem_trywait(&b.sem) == 0)
			;
	}
	while (b.queue != NULL && evc_queue_try_pop(b.queue, &item) == 0)
		;
	OK(evc_queue_free(b.queue));
	end_registry(reg);
	OK(evc_free(apart));
	close(b.pipe[0]);
	close(b.pipe[1]);
	sem_destroy(&b.sem);
}
END_TEST

static evc_status
read_and_fail(evc_group *group, unsigned id, void *arg)
{
	struct crew *k = arg;
	struct blocked *b = k->more;
	evc_status st = 0;
	char byte;

	crew_enter(group, id, k);
	if (read(b->pipe[0], &byte, 1) < 0)
		st = evc_fail(evc_group_scope(group), EVC_UNAVAILABLE, errno,
			      "cannot read");
	return crew_leave(k, st);
}

/* The error that a kick makes is the stop's, not the worker's. */
START_TEST(an_EINTR_of_one_that_was_kicked_is_no_reason)
{
	evc_group_opts o = { .member = { .flags = EVC_KICK } };
	evc_registry *reg = new_registry(T_LIMIT);
	struct blocked b = { .pipe = { -1, -1 } };
	struct crew k = { .run = read_and_fail, .more = &b };

	OK(pipe(b.pipe));
	crew_add(reg, "train", &k, 1, &o);
	OK(evc_registry_start(reg));
	UNTIL(atomic_load(&k.in) == 1);
	until_asleep(atomic_load(&k.tid[0]));
	OK(evc_registry_stop(reg, NULL));
	OK(evc_raise_requested(evc_group_scope(k.group), NULL));
	OK(info_of(k.group).stop.code);
	end_registry(reg);
	close(b.pipe[0]);
	close(b.pipe[1]);
}
END_TEST

/* ---- those that stay ---- */

static evc_status
stay_at(evc_group *group, unsigned id, void *arg)
{
	evc_progress(id == 1 ? "reading shard 7" : "writing block 12");
	return crew_stay(group, id, arg);
}

/* false: the budget was so short that even the one who obeys was late. */
static bool
who_stays_is_named(double grace)
{
	evc_join_opts some = { .grace = grace };
	evc_registry *reg = new_registry(0);
	struct crew other = { 0 }, k = { .run = stay_at };
	char text[65536];
	evc_worker_info w;
	bool in_time;

	forget_said();
	crew_add(reg, "good", &other, 1, NULL);
	crew_add(reg, "train", &k, 2, NULL);
	OK(evc_registry_start(reg));
	UNTIL(atomic_load(&k.in) == 2);
	LATE(evc_registry_stop(reg, &some));
	HAS(evc_last_error(), "train/1");
	HAS(evc_last_error(), "train/2");
	SAYS("train/1", "late: in run 1", "\"reading shard 7\"");
	SAYS("train/2", "late: in run 1", "\"writing block 12\"");
	in_time = strstr(evc_last_error(), "good/0") == NULL;
	/* A report says what they said last. */
	report_text(evc_group_scope(k.group), text, sizeof(text));
	HAS(text, "train/1");
	HAS(text, "reading shard 7");
	HAS(text, "train/2");
	HAS(text, "writing block 12");
	w = worker_of(k.group, 0);
	ck_assert(w.live && w.running && w.run_time > 0.04);
	atomic_store(&k.open, 1);
	end_registry(reg);
	return in_time;
}

START_TEST(who_stays_is_named_with_its_last_checkpoint)
{
	double grace = 0.05;

	/* And nobody else; on a loaded machine they need more. */
	while (!who_stays_is_named(grace)) {
		grace *= 4;
		ck_assert_double_lt(grace, T_LIMIT);
	}
}
END_TEST

/* ---- shutdown functions that block ---- */

static void
block_in_shutdown(evc_group *group, void *arg)
{
	struct crew *k = arg;
	struct blocked *b = k->more;
	char byte;

	crew_shutdown(group, arg);
	if (read(b->pipe[0], &byte, 1) < 0 && errno == EINTR)
		atomic_fetch_add(&b->woken, 1);
}

static bool
shutdown_is_named(void)
{
	return n_said("shutdown", "train", NULL) > 0 ||
	       strstr(evc_last_error(), "shutdown") != NULL;
}

START_TEST(a_shutdown_that_blocks_is_kicked_when_the_budget_is_over)
{
	evc_group_opts o = { .shutdown = block_in_shutdown };
	evc_join_opts some = { .grace = 0.1 };
	evc_registry *reg = new_registry(0);
	struct blocked b = { .pipe = { -1, -1 } };
	struct crew k = { .more = &b };
	double start;

	OK(pipe(b.pipe));
	forget_said();
	crew_add(reg, "train", &k, 2, &o);
	OK(evc_registry_start(reg));
	start = t_now();
	ck_assert_int_ge(evc_registry_stop(reg, &some), 0);
	ck_assert(t_now() - start > 0.09);
	ck_assert_int_eq(b.woken, 1);
	ck_assert_msg(shutdown_is_named(), "not named:\n%s%s", all_said(),
		      evc_last_error());
	/* And the stop has gone on. */
	ck_assert(evc_group_wait_finish(k.group, T_LIMIT));
	CALLED(&k, 1, 1, 1, 1, 1);
	end_registry(reg);
	close(b.pipe[0]);
	close(b.pipe[1]);
}
END_TEST

START_TEST(ASIDE_a_shutdown_that_hangs_is_left_behind_and_named)
{
	evc_group_opts o = { .flags = EVC_GROUP_ASIDE,
			     .shutdown = shut_slowly };
	evc_join_opts some = { .grace = 0.1 };
	evc_registry *reg = new_registry(0.2);
	struct crew k = { 0 }, other = { 0 };

	forget_said();
	crew_add(reg, "train", &k, 2, &o);
	crew_add(reg, "other", &other, 2, NULL);
	OK(evc_registry_start(reg));
	LATE(evc_registry_stop(reg, &some));
	ck_assert_msg(shutdown_is_named(), "not named:\n%s%s", all_said(),
		      evc_last_error());
	ck_assert(!evc_group_is_active(k.group));
	/* The others are not kept from their stop, which may be late itself. */
	UNTIL(atomic_load(&other.n_cleanup) == 1);
	ck_assert_int_eq(k.n_stop, 0);
	CALLED(&other, 1, 1, 1, 1, 1);
	/* It is there still: neither free nor start. */
	REFUSED(EVC_FAILED_PRECONDITION, evc_group_free(k.group));
	REFUSED(EVC_FAILED_PRECONDITION, evc_group_start(k.group));
	atomic_store(&k.open, 1);
	UNTIL(atomic_load(&k.n_stop) == 1);
	ck_assert(evc_group_wait_finish(k.group, T_LIMIT));
	end_registry(reg);
	CALLED(&k, 1, 1, 1, 1, 1);
}
END_TEST

T_MAIN("workers_blocked", NULL, NULL,
       T_TIMES(what_blocks_is_woken_by_the_stop, N_BLOCKS),
       T_ONCE(an_EINTR_of_one_that_was_kicked_is_no_reason),
       T_ONCE(who_stays_is_named_with_its_last_checkpoint),
       T_ONCE(a_shutdown_that_blocks_is_kicked_when_the_budget_is_over),
       T_ONCE(ASIDE_a_shutdown_that_hangs_is_left_behind_and_named))
