/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * No descriptor: each place that makes one fails - by the seam one by one, and
 * by a real limit with 0, 1, 2 ... left.  What needs one is refused and works
 * later; what has another way takes it: a registered thread that cannot be
 * watched is probed, a hook without a loop runs on a helper that sleeps on a
 * futex.
 */
#include "faults.h"

#include <sys/resource.h>

/* Nothing may be left over from a test before. */
static void
anew(void)
{
	seam_reset();
}

/* ---- one place at a time ---- */

START_TEST(attach_and_new_are_refused_and_work_later)
{
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	evc_reactor *r = (evc_reactor *)loop;
	evc_coord *c = NULL;
	int fds;

	anew();
	fds = t_count_fds();
	seam_fail("eventfd", NULL, 1, EMFILE);
	REFUSED(EVC_RESOURCE_EXHAUSTED, evc_new(loop, NULL, &c));
	ck_assert_ptr_null(c);
	ck_assert_int_eq(t_count_fds(), fds);
	ev_run(loop, 0);

	c = new_coord(NULL);
	seam_fail("eventfd", NULL, 1, ENFILE);
	REFUSED(EVC_RESOURCE_EXHAUSTED,
		evc_reactor_attach(c, "loop", loop, &r));
	ck_assert_ptr_eq(r, (evc_reactor *)loop);
	ck_assert_int_eq(t_count_fds(), fds);
	ev_run(loop, 0);
	OK(evc_reactor_attach(c, "loop", loop, &r));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_reactor_run(r));
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
	ev_loop_destroy(loop);
	seam_reset();
}
END_TEST

START_TEST(stop_fd_is_refused_and_right_when_it_comes_after_the_stop)
{
	evc_coord *c;
	int fds, fd;

	anew();
	fds = t_count_fds();
	c = new_coord(NULL);
	seam_fail("eventfd", "evc_stop_fd", 1, EMFILE);
	REFUSED(EVC_RESOURCE_EXHAUSTED, evc_stop_fd(c));
	ck_assert_int_eq(t_count_fds(), fds);
	OK(evc_request_stop(c, 0, NULL));
	fd = evc_stop_fd(c);
	ck_assert_int_ge(fd, 0);
	ck_assert(readable(fd));
	OK(evc_clear_stop(c));
	ck_assert(!readable(fd));
	ck_assert_int_eq(evc_stop_fd(c), fd);
	OK(evc_free(c));
	ck_assert_int_eq(t_count_fds(), fds);
	seam_reset();
}
END_TEST

/* Register while op fails; the thread is joined all the same, before a stop
   and after one. */
static void
registered_without(const char *op, bool stop)
{
	struct guest g = { 0 };
	evc_verdict v;
	struct joiner j;
	evc_coord *c;
	int fds, h;
	pthread_t t;
	evc_id id;

	anew();
	fds = t_count_fds();
	c = new_coord(NULL);
	t = spawn(stay_thread, &g);
	h = seam_fail_all(op, NULL, 1, EMFILE);
	OK(evc_register_thread(c, "registered", t, NULL, &id));
	if (has_thread_pidfd())
		ck_assert_int_eq(seam_arrivals(h), 1);
	OK(evc_member_get(c, id, NULL));
	ck_assert_int_eq(t_count_fds(), fds); /* nothing half made */
	join_begin(&j, c, INFINITY, 0);
	ck_assert(!atomic_load(&j.returned));
	if (stop)
		OK(evc_request_stop(c, 0, NULL));
	atomic_store(&g.open, 1);
	OK(join_end(&j));
	v = j.v;
	ck_assert_uint_eq(v.n_ended, 1);
	ck_assert_uint_eq(v.n_stragglers, 0);
	seam_reset();
	OK(evc_free(c));
	ck_assert_int_eq(t_settle_fds(fds), fds);
}

START_TEST(J1_a_registered_thread_is_joined_without_descriptors)
{
	static const char *const op[] = { "pidfd", "epoll", "eventfd",
					  "epoll_add" };
	unsigned i;

	for (i = 0; i < 4; i++) {
		registered_without(op[i], false);
		registered_without(op[i], true);
	}
}
END_TEST

/* One is watched, one cannot be: both are waited for, on a loop too. */
START_TEST(watched_and_probed_threads_side_by_side)
{
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	struct guest a = { 0 }, b = { 0 };
	evc_coord *c;
	evc_verdict v;
	evc_id id[2];

	anew();
	c = new_coord(loop);
	OK(evc_register_thread(c, "a", spawn(stay_thread, &a), NULL, &id[0]));
	seam_fail_all("pidfd", NULL, 1, EMFILE);
	OK(evc_register_thread(c, "b", spawn(stay_thread, &b), NULL, &id[1]));
	atomic_store(&a.open, 1);
	atomic_store(&b.open, 1);
	OK(evc_join(c, NULL, &v));
	ck_assert_uint_eq(v.n_ended, 2);
	seam_reset();
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(a_watched_start_needs_no_descriptor)
{
	evc_member_opts o = { .flags = EVC_WATCHED };
	evc_coord *c;
	evc_verdict v;

	anew();
	c = new_coord(NULL);
	seam_fail_all("pidfd", NULL, 1, EMFILE);
	OK(evc_thread_start(c, "watched", return_at_once, NULL, &o, NULL));
	OK(evc_join(c, NULL, &v)); /* nobody asked for a stop */
	ck_assert_uint_eq(v.n_ended, 1);
	seam_reset();
	OK(evc_free(c));
}
END_TEST

/* ---- the helper without descriptors ---- */

static evc_coord *
helper_on_futex(atomic_int *calls, evc_id *ret_id)
{
	evc_coord *c = new_coord(NULL);
	struct guest g = { .open = 1 };

	seam_fail_all("epoll", NULL, 1, EMFILE);
	OK(evc_on_stop(c, "hook", count_hook, calls, NULL, ret_id));
	/* It would like to have them now, and does not get them. */
	OK(evc_register_thread(c, "gone", spawn(stay_thread, &g), NULL, NULL));
	OK(evc_join(c, NULL, NULL));
	OK(evc_clear_stop(c)); /* a new round: joins wait again */
	return c;
}

START_TEST(hooks_run_on_a_helper_without_descriptors)
{
	atomic_int calls = 0;
	evc_coord *c;
	int i;

	anew();
	c = helper_on_futex(&calls, NULL);
	for (i = 1; i <= 20; i++) {
		OK(evc_request_stop(c, 0, NULL));
		OK(evc_join(c, NULL, NULL)); /* waits for the hook */
		ck_assert_int_eq(calls, i);
		OK(evc_clear_stop(c));
	}
	seam_reset();
	OK(evc_free(c));
}
END_TEST

/* It sleeps on its futex - or is just about to - when descriptors come. */
static void
descriptors_come_later(bool asleep)
{
	struct guest g = { 0 };
	atomic_int calls = 0;
	int held = -1;
	evc_coord *c;
	evc_verdict v;

	anew();
	c = new_coord(NULL);
	if (!asleep)
		held = seam_hold("futex_wait", "sleep_once", 1);
	OK(evc_on_stop(c, "hook", count_hook, &calls, NULL, NULL));
	if (!asleep)
		ck_assert(seam_await(held));
	else
		t_sleep(0.05);
	OK(evc_register_thread(c, "watched", spawn(stay_thread, &g), NULL, NULL));
	if (!asleep)
		seam_release(held);
	atomic_store(&g.open, 1);
	OK(evc_join(c, NULL, &v));
	ck_assert_uint_eq(v.n_ended, 1);
	ck_assert_int_eq(calls, 0);
	OK(evc_request_stop(c, 0, NULL));
	UNTIL(atomic_load(&calls) == 1);
	OK(evc_clear_stop(c));
	OK(evc_request_stop(c, 0, NULL));
	UNTIL(atomic_load(&calls) == 2);
	OK(evc_free(c));
}

START_TEST(a_helper_gets_its_descriptors_later)
{
	descriptors_come_later(true);
	descriptors_come_later(false);
}
END_TEST

/* ---- a real limit ---- */

static struct rlimit usual;

/* From here on there are n descriptors left. */
static void
leave_descriptors(int n)
{
	int fd[64], i, highest = 2;
	struct rlimit few;

	getrlimit(RLIMIT_NOFILE, &usual);
	/* The limit is one of numbers: fill the holes below it. */
	for (i = 0; i < n; i++) {
		fd[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		ck_assert_int_ge(fd[i], 0);
		if (fd[i] > highest)
			highest = fd[i];
	}
	few = usual;
	few.rlim_cur = n > 0 ? (rlim_t)highest + 1 : 0;
	for (i = 0; i < n; i++)
		close(fd[i]);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
}

static void
give_descriptors(void)
{
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &usual), 0);
}

struct tried {
	evc_status attach, stop_fd, reg, hook, watched, start;
};

/* Everything that may want a descriptor, then the stop; returns the verdict. */
static evc_verdict
try_all(evc_coord *c, struct ev_loop *loop, evc_reactor **r, struct guest *g,
	atomic_int *calls, struct tried *t)
{
	evc_member_opts watched = { .flags = EVC_WATCHED };
	pthread_t own;
	evc_verdict v;

	memset(&v, 0, sizeof v);
	if (pthread_create(&own, NULL, stay_thread, g) != 0)
		return v;
	t->attach = evc_reactor_attach(c, "loop", loop, r);
	t->stop_fd = evc_stop_fd(c);
	t->reg = evc_register_thread(c, "own", own, NULL, NULL);
	t->hook = evc_on_stop(c, "hook", count_hook, calls, NULL, NULL);
	t->watched = evc_thread_start(c, "watched", obey, NULL, &watched,
				      NULL);
	t->start = evc_thread_start(c, "started", obey, NULL, NULL, NULL);
	atomic_store(&g->open, 1);
	if (evc_request_stop(c, 0, NULL) < 0 || evc_join(c, NULL, &v) < 0)
		memset(&v, 0, sizeof v);
	return v;
}

START_TEST(L3_any_number_of_descriptors_left)
{
	int left, refused_attach = 0, refused_fd = 0;

	anew();
	for (left = 0; left < 9; left++) {
		struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
		evc_coord *c = new_coord(NULL);
		evc_reactor *r = NULL;
		struct guest g = { 0 };
		struct tried t = { 0 };
		atomic_int calls = 0;
		evc_verdict v;
		int fds = t_count_fds();

		leave_descriptors(left);
		v = try_all(c, loop, &r, &g, &calls, &t);
		give_descriptors();
		OK(t.reg);
		OK(t.hook);
		OK(t.watched);
		OK(t.start);
		ck_assert(t.attach == 0 || t.attach == -EVC_RESOURCE_EXHAUSTED);
		ck_assert((t.attach == 0) == (r != NULL));
		ck_assert(t.stop_fd >= 0 ||
			  t.stop_fd == -EVC_RESOURCE_EXHAUSTED);
		refused_attach += t.attach < 0;
		refused_fd += t.stop_fd < 0;
		ck_assert_uint_eq(v.n_ended, 3);
		ck_assert_uint_eq(v.n_stragglers, 0);
		ck_assert_int_eq(calls, 1);
		if (t.stop_fd >= 0)
			ck_assert(readable(t.stop_fd));
		ck_assert(readable(evc_stop_fd(c)));
		if (r != NULL)
			OK(evc_reactor_run(r));
		OK(evc_free(c));
		ev_loop_destroy(loop);
		ck_assert_int_eq(t_settle_fds(fds - 1), fds - 1);
	}
	ck_assert_int_gt(refused_attach, 0);
	ck_assert_int_gt(refused_fd, 0);
	ck_assert_int_lt(refused_attach, 9);
	ck_assert_int_lt(refused_fd, 9);
}
END_TEST

API_MAIN("descriptors", attach_and_new_are_refused_and_work_later,
	 stop_fd_is_refused_and_right_when_it_comes_after_the_stop,
	 J1_a_registered_thread_is_joined_without_descriptors,
	 watched_and_probed_threads_side_by_side,
	 a_watched_start_needs_no_descriptor,
	 hooks_run_on_a_helper_without_descriptors,
	 a_helper_gets_its_descriptors_later, L3_any_number_of_descriptors_left)
