/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that register themselves and that somebody else joins: their end is
 * noticed, with and without a pidfd, however they end.
 */
#include "../../../support/old_kernel.h"

enum end { RETURNS, EXITS, IS_CANCELLED, RAW_EXIT };

struct own {
	evc_coord *c, *other;
	unsigned flags;
	enum end end;
	evc_status st;
	evc_id id;
	struct guest g;
	pthread_t thread;
	atomic_int tid, late, in_round;
};

static void *
own_main(void *arg)
{
	struct own *o = arg;
	evc_member_opts opts = { .flags = EVC_NOT_JOINED | o->flags };

	o->st = evc_register_thread(o->c, "own", pthread_self(), &opts, &o->id);
	atomic_store(&o->tid, own_tid());
	if (o->end == IS_CANCELLED) {
		atomic_store(&o->g.in, 1);
		stay_until_cancelled();
	}
	stay(NULL, &o->g);
	if (o->end == EXITS)
		pthread_exit(NULL);
	if (o->end == RAW_EXIT)
		syscall(SYS_exit, 0);
	return NULL;
}

static void
own_begin(struct own *o, evc_coord *c, unsigned flags, enum end end)
{
	memset(o, 0, sizeof(*o));
	o->c = c;
	o->flags = flags;
	o->end = end;
	OK(pthread_create(&o->thread, NULL, own_main, o));
	UNTIL(atomic_load(&o->g.in));
	OK(o->st);
}

static void
own_let_go(struct own *o)
{
	atomic_store(&o->g.open, 1);
	if (o->end == IS_CANCELLED)
		pthread_cancel(o->thread);
}

/* A join that is in progress sees the end. */
struct join_call {
	evc_coord *c;
	evc_status st;
	evc_verdict v;
	atomic_int tid, done;
	pthread_t thread;
};

static void *
join_main(void *arg)
{
	struct join_call *j = arg;

	atomic_store(&j->tid, own_tid());
	j->st = evc_join(j->c, NULL, &j->v);
	atomic_store(&j->done, 1);
	return NULL;
}

static void
ends_while_a_join_waits(enum end end)
{
	evc_coord *c = new_coord(NULL);
	struct join_call j = { .c = c };
	struct own o;

	own_begin(&o, c, 0, end);
	OK(pthread_create(&j.thread, NULL, join_main, &j));
	UNTIL(atomic_load(&j.tid));
	until_asleep(j.tid);
	ck_assert(!atomic_load(&j.done));
	own_let_go(&o);
	OK(pthread_join(j.thread, NULL));
	OK(j.st);
	ck_assert_uint_eq(j.v.n_ended, 1);
	ck_assert(!evc_should_stop(c));
	/* Not joined, not detached: the owner's join succeeds. */
	OK(pthread_join(o.thread, NULL));
	OK(evc_free(c));
}

START_TEST(a_join_waits_for_it_and_its_owner_joins_it)
{
	ends_while_a_join_waits(RETURNS);
	ends_while_a_join_waits(EXITS);
	ends_while_a_join_waits(IS_CANCELLED);
}
END_TEST

START_TEST(a_pidfd_notices_a_raw_exit)
{
	if (t_under_asan() || t_under_tsan())
		T_SKIP("the sanitizer cannot follow SYS_exit");
	/* Without one nothing tells of such an end. */
	if (has_thread_pidfd())
		ends_while_a_join_waits(RAW_EXIT);
}
END_TEST

START_TEST(a_raw_exit_is_seen_after_the_stop)
{
	struct own o;
	evc_coord *c;

	if (t_under_asan() || t_under_tsan())
		T_SKIP("the sanitizer cannot follow SYS_exit");
	c = new_coord(NULL);
	own_begin(&o, c, 0, RAW_EXIT);
	own_let_go(&o);
	OK(pthread_join(o.thread, NULL));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}
END_TEST

START_TEST(a_thread_that_its_owner_has_joined_first_is_gone)
{
	evc_coord *c = new_coord(NULL);
	struct own o;

	own_begin(&o, c, 0, RETURNS);
	own_let_go(&o);
	OK(pthread_join(o.thread, NULL));
	/* Even without any join the free finds nothing alive. */
	OK(evc_free(c));
}
END_TEST

START_TEST(it_may_end_while_the_coordinator_is_freed)
{
	struct own o;
	evc_coord *c;
	int i;

	for (i = 0; i < 300; i++) {
		c = new_coord(NULL);
		own_begin(&o, c, 0, i % 2 ? RETURNS : EXITS);
		own_let_go(&o);
		UNTIL(evc_free(c) == 0); /* refused as long as it lives */
		OK(pthread_join(o.thread, NULL));
	}
}
END_TEST

static void *
detached_main(void *arg)
{
	pthread_detach(pthread_self());
	return own_main(arg);
}

START_TEST(a_detached_thread_may_be_a_member)
{
	struct own o = { .c = new_coord(NULL) };

	OK(pthread_create(&o.thread, NULL, detached_main, &o));
	UNTIL(atomic_load(&o.g.in));
	OK(o.st);
	own_let_go(&o);
	OK(evc_join(o.c, NULL, NULL));
	OK(evc_free(o.c));
}
END_TEST

START_TEST(with_END_STOPS_its_end_is_a_stop)
{
	evc_coord *c = new_coord(NULL);
	struct own o;
	evc_verdict v;

	own_begin(&o, c, EVC_END_STOPS, RETURNS);
	OK(evc_hold_begin(c, "hold", NULL, &o.id));
	own_let_go(&o);
	UNTIL(evc_should_stop(c));
	OK(evc_hold_end(c, o.id));
	OK(evc_join(c, NULL, &v));
	ck_assert_str_eq(v.stop.who, "own");
	OK(pthread_join(o.thread, NULL));
	OK(evc_free(c));
}
END_TEST

/* Its own tsd_destructor, which runs in each round and uses the library. */
static pthread_key_t tsd_key;
static atomic_int rounds, members_seen;

static void
tsd_destructor(void *arg)
{
	struct own *o = arg;
	evc_member_info info;

	if (evc_member_get(o->c, o->id, &info) == 0 && info.state == EVC_LIVE)
		atomic_fetch_add(&members_seen, 1);
	evc_progress("late");
	if (atomic_fetch_add(&rounds, 1) < 1)
		pthread_setspecific(tsd_key, arg);
}

static void *
tsd_main(void *arg)
{
	pthread_setspecific(tsd_key, arg);
	return own_main(arg);
}

START_TEST(destructors_of_the_first_rounds_run_before_its_end)
{
	struct own o = { .c = new_coord(NULL) };

	OK(pthread_key_create(&tsd_key, tsd_destructor));
	OK(pthread_create(&o.thread, NULL, tsd_main, &o));
	UNTIL(atomic_load(&o.g.in));
	OK(o.st);
	own_let_go(&o);
	OK(evc_join(o.c, NULL, NULL));
	OK(pthread_join(o.thread, NULL));
	ck_assert_int_eq(rounds, 2);
	ck_assert_int_eq(members_seen, 2);
	OK(evc_free(o.c));
	pthread_key_delete(tsd_key);
}
END_TEST

/* The child looks for no leaks. */
static void
leave_at_once(void)
{
	_exit(0);
}

static void *
fork_main(void *arg)
{
	struct own *o = arg;

	own_main(o);
	o->late = fork();
	if (o->late != 0)
		return NULL;
	/* The child's thread is no member, and may be one of the child's. */
	CHILD_REFUSED(evc_register_thread(o->c, "own", pthread_self(), NULL,
					  NULL));
	CHILD(evc_new(NULL, NULL, &o->other) == 0);
	o->st = evc_register_thread(o->other, "own", pthread_self(),
				    &(evc_member_opts){
					    .flags = EVC_NOT_JOINED },
				    NULL);
	CHILD(o->st == 0);
	/* The last thread: its end is that of the process, with status 0. */
	CHILD(atexit(leave_at_once) == 0);
	pthread_exit(NULL);
}

START_TEST(a_fork_in_such_a_thread_leaves_the_parent_alone)
{
	struct own o = { .c = new_coord(NULL) };
	int status;

	OK(pthread_create(&o.thread, NULL, fork_main, &o));
	UNTIL(atomic_load(&o.g.in));
	atomic_store(&o.g.open, 1);
	OK(evc_join(o.c, NULL, NULL));
	OK(pthread_join(o.thread, NULL));
	ck_assert_int_gt(o.late, 0);
	ck_assert_int_eq(waitpid(o.late, &status, 0), o.late);
	ck_assert_int_eq(status, 0);
	OK(evc_free(o.c));
}
END_TEST

static void *
read_main(void *arg)
{
	struct own *o = arg;
	evc_member_opts opts = { .flags = EVC_NOT_JOINED | EVC_KICK };
	int fds[2];
	char b;

	OK(pipe(fds));
	o->st = evc_register_thread(o->c, NULL, pthread_self(), &opts, &o->id);
	atomic_store(&o->g.in, 1);
	while (!evc_should_stop(o->c))
		(void)!read(fds[0], &b, 1);
	close(fds[0]);
	close(fds[1]);
	return NULL;
}

START_TEST(it_is_kicked_at_a_stop)
{
	struct own o = { .c = new_coord(NULL) };

	OK(pthread_create(&o.thread, NULL, read_main, &o));
	UNTIL(atomic_load(&o.g.in));
	OK(o.st);
	OK(evc_request_stop(o.c, 0, NULL));
	OK(evc_join(o.c, NULL, NULL));
	OK(pthread_join(o.thread, NULL));
	OK(evc_free(o.c));
}
END_TEST

/* A member of two coordinators, which joins one of them. */
static void *
two_main(void *arg)
{
	struct own *o = arg;
	evc_member_opts opts = { .flags = EVC_NOT_JOINED };
	evc_id id = 0, again = 0;

	OK(evc_register_thread(o->c, "one", pthread_self(), &opts, &id));
	OK(evc_register_thread(o->c, "one", pthread_self(), &opts, &again));
	ck_assert_uint_eq(id, again);
	OK(evc_register_thread(o->other, "two", pthread_self(), &opts, NULL));
	/* It is no other's now; nor does a join wait for itself. */
	REFUSED(EVC_ALREADY_EXISTS,
		evc_register_thread(o->c, "one", pthread_self(), NULL, NULL));
	OK(evc_join(o->c, NULL, NULL));
	OK(evc_join(o->other, NULL, NULL));
	return NULL;
}

START_TEST(a_thread_may_be_a_member_of_two_coordinators)
{
	struct own o = { .c = new_coord(NULL), .other = new_coord(NULL) };
	evc_verdict v;

	OK(pthread_create(&o.thread, NULL, two_main, &o));
	OK(pthread_join(o.thread, NULL));
	OK(evc_join(o.c, NULL, &v));
	ck_assert_uint_eq(v.n_ended, 1);
	OK(evc_join(o.other, NULL, &v));
	ck_assert_uint_eq(v.n_ended, 1);
	FREE_ALL(o.c, o.other);
}
END_TEST

#define MANY 1000

static evc_coord *many[MANY];

static void *
own_many(void *arg)
{
	struct own *o = arg;
	evc_member_opts opts = { .flags = EVC_NOT_JOINED };
	int i;

	for (i = 0; i < MANY; i++) {
		OK(evc_scope_new(o->c, "scope", NULL, &many[i]));
		OK(evc_scope_ready(many[i]));
		OK(evc_register_thread(many[i], "own", pthread_self(), &opts,
				       NULL));
	}
	return NULL;
}

START_TEST(a_thread_may_be_a_thousand_members)
{
	struct own o = { .c = new_coord(NULL) };
	evc_verdict v;
	int i;

	OK(pthread_create(&o.thread, NULL, own_many, &o));
	OK(evc_hold_begin(o.c, "hold", NULL, &o.id));
	OK(pthread_join(o.thread, NULL));
	OK(evc_hold_end(o.c, o.id));
	OK(evc_join(o.c, NULL, &v));
	ck_assert_uint_eq(v.n_stragglers, 0);
	for (i = 0; i < MANY; i++)
		OK(evc_free(many[i]));
	OK(evc_free(o.c));
}
END_TEST

START_TEST(wrong_uses_are_refused)
{
	evc_member_opts opts = { .flags = EVC_NOT_JOINED };
	evc_coord *c = new_coord(NULL);
	struct own o = { 0 };
	pthread_t t;

	OK(pthread_create(&t, NULL, stay_thread, &o.g));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_register_thread(c, "other", t, &opts, NULL));
	HAS(evc_last_error(), "the calling thread alone");
	/* The flag is no other call's. */
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_thread_start(c, "own", obey, NULL, &opts, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_hold_begin(c, "own", &opts, NULL));
	/* Who is to be joined cannot say that it is not. */
	OK(evc_register_thread(c, "self", pthread_self(),
			       &(evc_member_opts){ .flags = EVC_BACKGROUND },
			       NULL));
	REFUSED(EVC_ALREADY_EXISTS,
		evc_register_thread(c, "self", pthread_self(), &opts, NULL));
	atomic_store(&o.g.open, 1);
	OK(pthread_join(t, NULL));
}
END_TEST

KERNELS_MAIN("not_joined", a_join_waits_for_it_and_its_owner_joins_it,
	     a_pidfd_notices_a_raw_exit, a_raw_exit_is_seen_after_the_stop,
	     a_thread_that_its_owner_has_joined_first_is_gone,
	     it_may_end_while_the_coordinator_is_freed,
	     a_detached_thread_may_be_a_member,
	     with_END_STOPS_its_end_is_a_stop,
	     destructors_of_the_first_rounds_run_before_its_end,
	     a_fork_in_such_a_thread_leaves_the_parent_alone,
	     it_is_kicked_at_a_stop,
	     a_thread_may_be_a_member_of_two_coordinators,
	     a_thread_may_be_a_thousand_members, wrong_uses_are_refused)
