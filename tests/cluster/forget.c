/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An engine is told when a large result is not needed any more, so that a worker
 * which has kept it drops it; and a fork child touches nothing of it.
 */
#include "../support/hand_engine.h"

#include <sys/wait.h>

enum { LARGE = 5000 };

static evc_coord *c;
static evc_cluster *cl;

static void
open_it(void)
{
	c = new_coord(NULL);
	cl = open_with(c, "hand://1", &(evc_cluster_config){ HAND_CONFIG });
	hand_up(0);
}

/* One that is done, with a result of so many bytes. */
static evc_remote *
done_with(size_t n)
{
	static char bytes[LARGE];
	evc_remote *r = schedule(cl, "f");
	evc_engine_task t;
	evc_value v;

	ck_assert_uint_eq(hand_take(0, &t, 1), 1);
	OK(evc_pack(&v, "B", bytes, n));
	hand_finish(0, &t, 0, &v);
	evc_value_free(&v);
	return r;
}

static uint64_t
id_of(const evc_remote *r)
{
	evc_remote_info i;

	OK(evc_remote_get(r, &i));
	return i.id;
}

START_TEST(when_it_is_dropped)
{
	evc_remote *small, *large;
	uint64_t id;

	open_it();
	small = done_with(10);
	large = done_with(LARGE);
	id = id_of(large);
	evc_remote_free(small);
	ck_assert_int_eq(atomic_load(&hand.n_forgotten), 0);
	evc_remote_free(evc_remote_ref(large));
	ck_assert_int_eq(atomic_load(&hand.n_forgotten), 0);
	evc_remote_free(large);
	ck_assert_int_eq(atomic_load(&hand.n_forgotten), 1);
	ck_assert_uint_eq(atomic_load(&hand.forgotten), id);
	hand_end_cluster(cl, c);
}
END_TEST

START_TEST(when_what_has_it_is_done)
{
	evc_remote *large, *r = NULL;
	evc_engine_task t;

	open_it();
	large = done_with(LARGE);
	OK(evc_schedule_pack(cl, "f", NULL, &r, "[r]", large));
	evc_remote_free(large);
	ck_assert_uint_eq(hand_take(0, &t, 1), 1);
	ck_assert_int_eq(atomic_load(&hand.n_forgotten), 0);
	hand_finish(0, &t, 0, NULL);
	ck_assert_int_eq(atomic_load(&hand.n_forgotten), 1);
	evc_remote_free(r);
	ck_assert_int_eq(atomic_load(&hand.n_forgotten), 1);
	hand_end_cluster(cl, c);
}
END_TEST

/* The engine is not asked any more when it has left. */
START_TEST(not_after_the_end)
{
	evc_remote *large;

	open_it();
	large = done_with(LARGE);
	hand_end_cluster(cl, c);
	evc_remote_free(large);
	ck_assert_int_eq(atomic_load(&hand.n_forgotten), 0);
}
END_TEST

START_TEST(not_in_a_fork_child)
{
	/* To be found by a look for leaks: the child frees no copy. */
	static evc_remote *done, *queued;
	evc_remote_info i;
	int status;
	pid_t pid;

	open_it();
	done = done_with(LARGE);
	queued = schedule(cl, "f");
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		CHILD_REFUSED(evc_remote_get(queued, &i));
		CHILD_REFUSED(evc_remote_cancel(queued));
		CHILD_REFUSED(evc_remote_fetch(queued, 0, NULL));
		CHILD_REFUSED(evc_cluster_join(cl, 0));
		evc_remote_free(queued);
		evc_remote_free(done);
		evc_cluster_close(cl);
		CHILD(atomic_load(&hand.n_forgotten) == 0);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(atomic_load(&hand.n_forgotten), 0);
	evc_remote_free(done);
	evc_remote_free(queued);
	hand_end_cluster(cl, c);
}
END_TEST

API_MAIN("forget", when_it_is_dropped, when_what_has_it_is_done,
	 not_after_the_end, not_in_a_fork_child)
