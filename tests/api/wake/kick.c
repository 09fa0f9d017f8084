/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who is kicked, and when: threads that are flagged and no others, from the
 * stop on, until they have ended.  Which signal that is stands in kick_signal.c,
 * what it wakes in kick_table.c.
 */
#include "../../support/rouse_util.h"

static void *
plain_sleeper(void *arg)
{
	sleeper_live(((struct sleeper *)arg)->c, arg);
	return NULL;
}

START_TEST(who_is_not_flagged_is_never_kicked)
{
	evc_member_opts kick = { .flags = EVC_KICK };
	struct sleeper flagged = { .call = call_nanosleep, .stubborn = true };
	struct sleeper other[3] = { flagged, flagged, flagged };
	evc_coord *c = new_coord(NULL);
	pthread_t t;
	int i;

	for (i = 0; i < 3; i++) {
		other[i].call = call_read;
		OK(pipe(other[i].fd));
	}
	sleeper_begin(&other[0], c, A_THREAD, NULL);
	sleeper_begin(&other[1], c, A_REGISTERED, NULL);
	other[2].c = c;
	OK(pthread_create(&t, NULL, plain_sleeper, &other[2]));
	UNTIL(atomic_load(&other[2].tid) != 0);
	sleeper_begin(&flagged, c, A_THREAD, &kick);
	OK(evc_request_stop(c, 0, NULL));
	/* Again and again, for as long as it does not end. */
	UNTIL(atomic_load(&flagged.interrupted) >= 10);
	atomic_store(&flagged.open, 1);
	for (i = 0; i < 3; i++) {
		ck_assert_int_eq(atomic_load(&other[i].interrupted), 0);
		ck_assert_int_eq(write(other[i].fd[1], "g", 1), 1);
	}
	OK(pthread_join(t, NULL));
	OK(evc_join(c, &generous, NULL));
	OK(evc_free(c));
	for (i = 0; i < 3; i++) {
		ck_assert_int_eq(other[i].err, 0);
		close(other[i].fd[0]);
		close(other[i].fd[1]);
	}
}
END_TEST

/*
 * The handle of a thread that was joined is the next thread's, as a rule.  That
 * is somebody else, though, who must be left in peace while the stop stands.
 */
START_TEST(kicks_end_with_the_thread)
{
	evc_join_opts brief = { .grace = 0.05 };
	evc_member_opts kick = { .flags = EVC_KICK };
	struct sleeper first = { .call = call_nanosleep }, next[4];
	int i, k;
	evc_coord *c = new_coord(NULL);
	pthread_t t[4];
	evc_verdict v;
	evc_id hold = 0;

	OK(evc_hold_begin(c, "hold", NULL, &hold));
	sleeper_begin(&first, c, A_REGISTERED, &kick);
	OK(evc_request_stop(c, 0, NULL));
	for (k = 0; k < 100; k++) {
		ck_assert_int_eq(evc_join(c, &brief, &v),
				 EVC_DEADLINE_EXCEEDED);
		if (v.n_stragglers == 1)
			break;
	}
	names_one(&v, "hold");
	for (i = 0; i < 4; i++) {
		next[i] = (struct sleeper){ .call = call_read, .c = c };
		OK(pipe(next[i].fd));
		OK(pthread_create(&t[i], NULL, plain_sleeper, &next[i]));
		UNTIL(atomic_load(&next[i].tid) != 0);
	}
	let_come();
	for (i = 0; i < 4; i++) {
		ck_assert_int_eq(atomic_load(&next[i].interrupted), 0);
		ck_assert_int_eq(write(next[i].fd[1], "g", 1), 1);
		OK(pthread_join(t[i], NULL));
		close(next[i].fd[0]);
		close(next[i].fd[1]);
	}
	OK(evc_hold_end(c, hold));
	OK(evc_join(c, &generous, NULL));
	OK(evc_free(c));
}
END_TEST

struct after {
	evc_coord *c;
	int fd[2];
	evc_status status;
	int inside, outside; /* errno values */
	atomic_int tid, out;
};

static evc_status
read_once(evc_coord *c, void *arg)
{
	struct after *a = arg;
	char byte;

	(void)c;
	atomic_store(&a->tid, own_tid());
	a->inside = read(a->fd[0], &byte, 1) < 0 ? errno : 0;
	return 0;
}

static void *
guard_and_go_on(void *arg)
{
	evc_member_opts kick = { .flags = EVC_KICK };
	struct after *a = arg;
	char byte;

	a->status = evc_guard(a->c, "guard", read_once, a, &kick);
	atomic_store(&a->out, 1);
	a->outside = read(a->fd[0], &byte, 1) < 0 ? errno : 0;
	return NULL;
}

START_TEST(one_that_another_thread_registers_is_kicked)
{
	struct sleeper s = { .call = call_nanosleep, .c = new_coord(NULL) };
	evc_member_opts kick = { .flags = EVC_KICK };
	pthread_t t;

	OK(pthread_create(&t, NULL, plain_sleeper, &s));
	OK(evc_register_thread(s.c, "sleeper", t, &kick, NULL));
	UNTIL(atomic_load(&s.tid) != 0);
	until_asleep(atomic_load(&s.tid));
	OK(evc_request_stop(s.c, 0, NULL));
	OK(evc_join(s.c, &generous, NULL));
	ck_assert_int_ge(atomic_load(&s.interrupted), 1);
	OK(evc_free(s.c));
}
END_TEST

/* Its own mask is as it likes: a kick gets through all the same. */
static void *
registers_deaf(void *arg)
{
	struct sleeper *s = arg;
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	s->status = evc_register_thread(s->c, "deaf", pthread_self(), &s->opts,
					&s->id);
	sleeper_live(s->c, s);
	return NULL;
}

START_TEST(one_that_registers_itself_with_all_signals_blocked_is_kicked)
{
	struct sleeper s = { .call = call_nanosleep,
			     .c = new_coord(NULL),
			     .opts.flags = EVC_KICK };
	pthread_t t;

	OK(pthread_create(&t, NULL, registers_deaf, &s));
	UNTIL(atomic_load(&s.tid) != 0);
	OK(evc_request_stop(s.c, 0, NULL));
	OK(evc_join(s.c, &generous, NULL));
	OK(s.status);
	OK(evc_free(s.c));
}
END_TEST

START_TEST(kicks_end_with_the_guard)
{
	struct after a = { .c = new_coord(NULL) };
	pthread_t t;

	OK(pipe(a.fd));
	OK(pthread_create(&t, NULL, guard_and_go_on, &a));
	UNTIL(atomic_load(&a.tid) != 0);
	until_asleep(atomic_load(&a.tid));
	OK(evc_request_stop(a.c, 0, NULL));
	UNTIL(atomic_load(&a.out));
	let_come();
	ck_assert_int_eq(write(a.fd[1], "g", 1), 1);
	OK(pthread_join(t, NULL));
	OK(a.status);
	ck_assert_int_eq(a.inside, EINTR);
	ck_assert_int_eq(a.outside, 0);
	OK(evc_free(a.c));
	close(a.fd[0]);
	close(a.fd[1]);
}
END_TEST

/* ---- not for 25 ms after progress ---- */

struct busy {
	atomic_int begun;
	int n, spared; /* progress after the stop, and kicks right after */
};

static evc_status
report_and_nap(evc_coord *c, void *arg)
{
	struct timespec ts;
	struct busy *b = arg;
	double at;

	while (b->n < 200) {
		at = t_now();
		evc_progress("one of many");
		ts = (struct timespec){ .tv_nsec = 5000000 };
		if (nanosleep(&ts, NULL) != 0 && t_now() - at < 0.01)
			b->spared++;
		b->n += evc_should_stop(c);
		atomic_store(&b->begun, 1);
	}
	return 0;
}

START_TEST(who_has_just_made_progress_is_not_kicked)
{
	evc_member_opts kick = { .flags = EVC_KICK };
	struct busy b = { 0 };
	evc_coord *c = new_coord(NULL);

	OK(evc_thread_start(c, "busy", report_and_nap, &b, &kick, NULL));
	UNTIL(atomic_load(&b.begun));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, &generous, NULL));
	/* Without the rule every fifth nap.  A kick may be under way already
	   when a thread that was held up says its progress. */
	ck_assert_int_le(b.spared, 10);
	OK(evc_free(c));
}
END_TEST

API_MAIN("kick", who_is_not_flagged_is_never_kicked,
	 one_that_another_thread_registers_is_kicked,
	 one_that_registers_itself_with_all_signals_blocked_is_kicked,
	 kicks_end_with_the_thread, kicks_end_with_the_guard,
	 who_has_just_made_progress_is_not_kicked)
