/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine "threads" when there is not enough of something: what is refused
 * leaves nothing behind, and the next one is as good as new.  And how its
 * workers go to sleep.
 */
#include "../support/api_util.h"

#include "../support/seam.h"

#include <evcoord/cluster.h>

#include <limits.h>

static atomic_int n_ran;

static evc_status
tiny(evc_exec *x, void *arg)
{
	(void)x;
	(void)arg;
	atomic_fetch_add(&n_ran, 1);
	return 0;
}

static const evc_function table[] = { { .name = "tiny", .fn = tiny } };
static const evc_cluster_config config = { .functions = table,
					   .n_functions = 1 };

static void
close_all(evc_coord *c, evc_cluster *cl)
{
	struct joiner j;

	evc_cluster_close(cl);
	join_begin(&j, c, T_LIMIT, EVC_JOIN_STOP_FIRST);
	OK(join_end(&j));
	OK(evc_free(c));
}

static void
works(evc_coord *c)
{
	evc_cluster *cl;
	int i;

	atomic_store(&n_ran, 0);
	OK(evc_cluster_open(c, "threads://3", &config, &cl));
	for (i = 0; i < 100; i++)
		OK(evc_schedule(cl, "tiny", NULL, NULL, NULL, NULL));
	OK(evc_cluster_join(cl, T_LIMIT));
	ck_assert_int_eq(atomic_load(&n_ran), 100);
	close_all(c, cl);
}

/* Each of the threads in turn, the batch watch included. */
START_TEST(a_thread_that_cannot_be_had_refuses_the_open)
{
	int threads = t_count_threads(), fds = t_count_fds(), nth, h;
	evc_cluster *cl = NULL;
	bool refused = true;
	evc_coord *c;

	for (nth = 1; refused; nth++) {
		ck_assert_int_lt(nth, 20);
		c = new_coord(NULL);
		h = seam_fail("thread_create", NULL, nth, EAGAIN);
		refused = evc_cluster_open(c, "threads://3", &config, &cl) ==
			  -EVC_RESOURCE_EXHAUSTED;
		if (refused)
			ck_assert_str_ne(evc_last_error(), "");
		ck_assert(refused || seam_arrivals(h) < nth);
		seam_reset();
		if (refused) {
			works(c);
		} else {
			close_all(c, cl);
		}
	}
	/* A loop, three workers, the batch watch: more than four in any case. */
	ck_assert_int_gt(nth, 5);
	ck_assert_int_eq(t_settle_threads(threads), threads);
	ck_assert_int_eq(t_settle_fds(fds), fds);
}
END_TEST

START_TEST(memory_that_cannot_be_had_refuses_the_open)
{
	static const char *const at[] = { "threads_new",
					  "evc__threads_add_seat",
					  "evc__worker_new",
					  "evc__functions_init",
					  "announce_seats" };
	int threads = t_count_threads(), nth;
	evc_cluster *cl = NULL;
	evc_coord *c;
	size_t i;

	for (i = 0; i < sizeof at / sizeof at[0]; i++)
		for (nth = 1; nth <= 2; nth++) {
			c = new_coord(NULL);
			if (strcmp(at[i], "announce_seats") == 0 && nth > 1) {
				works(c);
				continue;
			}
			(void)seam_fail("alloc", at[i], nth, ENOMEM);
			REFUSED(EVC_RESOURCE_EXHAUSTED,
				evc_cluster_open(c, "threads://3", &config,
						 &cl));
			seam_reset();
			works(c);
		}
	ck_assert_int_eq(t_settle_threads(threads), threads);
}
END_TEST

/* A function is queued between a worker's last look and its sleep. */
START_TEST(what_comes_on_the_way_to_sleep_is_seen)
{
	evc_coord *c = new_coord(NULL);
	evc_remote *r, *next;
	evc_cluster *cl;
	int h;

	h = seam_hold("futex_wait", "evc__seat_sleep", 1);
	OK(evc_cluster_open(c, "threads://1", &config, &cl));
	ck_assert(seam_await(h));
	OK(evc_schedule(cl, "tiny", NULL, NULL, NULL, &r));
	seam_release(h);
	OK(evc_remote_fetch(r, T_LIMIT, NULL));
	evc_remote_free(r);
	seam_reset();

	/* And before that look, when it is not counted yet: it is on its way there
	   still, or this one wakes it and it comes there after. */
	h = seam_hold("lock", "evc__seat_lie_down", 1);
	OK(evc_schedule(cl, "tiny", NULL, NULL, NULL, &r));
	ck_assert(seam_await(h));
	OK(evc_schedule(cl, "tiny", NULL, NULL, NULL, &next));
	seam_release(h);
	OK(evc_remote_fetch(r, T_LIMIT, NULL));
	OK(evc_remote_fetch(next, T_LIMIT, NULL));
	evc_remote_free(r);
	evc_remote_free(next);
	seam_reset();
	close_all(c, cl);
}
END_TEST

/* One is on its way and is held up there; what comes meanwhile relies on it, and
   when it comes it wakes the next. */
START_TEST(one_on_its_way_wakes_the_next)
{
	evc_coord *c = new_coord(NULL);
	evc_cluster *cl;
	evc_remote *r[4];
	int h, i, down;

	down = seam_hold("futex_wait", "evc__seat_sleep", INT_MAX);
	OK(evc_cluster_open(c, "threads://4", &config, &cl));
	UNTIL(seam_arrivals(down) >= 4);
	h = seam_hold("lock", "evc__seat_get_up", 1);
	for (i = 0; i < 4; i++)
		OK(evc_schedule(cl, "tiny", NULL, NULL, NULL, &r[i]));
	ck_assert(seam_await(h));
	seam_release(h);
	for (i = 0; i < 4; i++) {
		OK(evc_remote_fetch(r[i], T_LIMIT, NULL));
		evc_remote_free(r[i]);
	}
	seam_reset();
	close_all(c, cl);
}
END_TEST

API_MAIN("threads_open", a_thread_that_cannot_be_had_refuses_the_open,
	 memory_that_cannot_be_had_refuses_the_open,
	 what_comes_on_the_way_to_sleep_is_seen, one_on_its_way_wakes_the_next)
