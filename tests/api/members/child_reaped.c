/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Child processes that somebody else reaps: the program itself, the kernel
 * because SIGCHLD is ignored, libev's default loop, which reaps whatever it
 * finds.  And the other way round: children that are not the library's are
 * never reaped and never signalled by it.
 */
#include "../../support/child_util.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>

/* Nobody can reap what the kernel throws away at once. */
static void
ignore_SIGCHLD(bool yes)
{
	signal(SIGCHLD, yes ? SIG_IGN : SIG_DFL);
}

/* One that the kernel throws away before the stop. */
static void
reaped_before(enum drive d, int status, evc_status verdict)
{
	struct setting s;
	struct joiner j;
	evc_id hold = 0;
	struct kid k;

	begin_setting(&s, d, NULL);
	k = kid_born(TERM_DEFAULT, status, 0);
	ignore_SIGCHLD(true);
	OK(evc_hold_begin(s.c, "hold", NULL, &hold));
	kid_add(&s, "lost", &k, 0, 0);
	join_begin(&j, s.c, 0, 0);
	kid_let_go(&k);
	TURN_UNTIL(&s, is_gone(s.c, k.id));
	ck_assert_int_eq(evc_should_stop(s.c), verdict != 0);
	OK(evc_hold_end(s.c, hold));
	TURN_UNTIL(&s, atomic_load(&j.returned));
	ck_assert_int_eq(join_end(&j), verdict);
	ck_assert_uint_eq(j.v.n_stragglers, 0);
	if (verdict != 0) {
		ck_assert_str_eq(j.v.error.who, "lost");
		ck_assert_str_ne(j.v.error.text, "");
	}
	if (verdict == EVC_ABORTED)
		HAS_NUMBER(j.v.error.text, status);
	kid_was_reaped(&k);
	ignore_SIGCHLD(false);
	end_setting(&s);
}

START_TEST(with_its_status_lost_before_the_stop_it_is_UNKNOWN)
{
	bool kept = kernel_keeps_status();
	int d;

	for (d = 0; d <= BY_FAR_LOOP; d++) {
		reaped_before(d, 0, kept ? 0 : EVC_UNKNOWN);
		reaped_before(d, 3, kept ? EVC_ABORTED : EVC_UNKNOWN);
	}
}
END_TEST

START_TEST(with_its_status_lost_after_the_stop_it_has_obeyed)
{
	static const int term[] = { TERM_DEFAULT, 0, 5 };
	bool kept = kernel_keeps_status();
	struct setting s;
	evc_status want;
	evc_verdict v;
	struct kid k;
	int d, i;

	for (d = 0; d <= BY_FAR_LOOP; d++)
		for (i = 0; i < 3; i++) {
			begin_setting(&s, d, NULL);
			k = kid_born(term[i], 0, 0);
			ignore_SIGCHLD(true);
			kid_add(&s, "lost", &k, 0, 0);
			OK(evc_request_stop(s.c, 0, NULL));
			want = kept && i == 2 ? EVC_ABORTED : 0;
			ck_assert_int_eq(evc_join(s.c, NULL, &v), want);
			ck_assert_uint_eq(v.n_ended, 1 + own_members(&s));
			ck_assert_uint_eq(v.n_errors, want != 0);
			ck_assert_uint_eq(v.n_stragglers, 0);
			kid_was_reaped(&k);
			ignore_SIGCHLD(false);
			end_setting(&s);
		}
}
END_TEST

/* The program's own waitpid, of which one cannot know whether it is first. */
struct rival {
	pthread_t thread;
	pid_t pid;
	atomic_int tid;
	int status;
	bool first;
};

static void *
rival_main(void *arg)
{
	struct rival *r = arg;

	atomic_store(&r->tid, own_tid());
	r->first = waitpid(r->pid, &r->status, 0) == r->pid;
	return NULL;
}

static void
rival_begin(struct rival *r, pid_t pid)
{
	memset(r, 0, sizeof(*r));
	r->pid = pid;
	OK(pthread_create(&r->thread, NULL, rival_main, r));
	UNTIL(atomic_load(&r->tid) != 0);
	until_asleep(atomic_load(&r->tid));
}

START_TEST(beside_a_waitpid_of_the_program_one_of_both_has_it)
{
	bool kept = kernel_keeps_status();
	struct setting s;
	struct rival r;
	evc_verdict v;
	struct kid k;
	evc_status st;
	int d, i;

	for (d = 0; d <= BY_FAR_LOOP; d++)
		for (i = 0; i < 10; i++) {
			begin_setting(&s, d, NULL);
			k = kid_born(TERM_DEFAULT, 3, 0);
			kid_add(&s, "contested", &k, 0, 0);
			rival_begin(&r, k.pid);
			if (i % 2)
				kid_let_go(&k);
			else
				OK(evc_request_stop(s.c, 0, NULL));
			st = evc_join(s.c, NULL, &v);
			OK(pthread_join(r.thread, NULL));
			ck_assert_uint_eq(v.n_stragglers, 0);
			if (i % 2)
				ck_assert_int_eq(st, r.first && !kept
							     ? EVC_UNKNOWN
							     : EVC_ABORTED);
			else
				ck_assert_int_eq(st, 0);
			if (r.first && i % 2)
				ck_assert_int_eq(WEXITSTATUS(r.status), 3);
			kid_was_reaped(&k);
			end_setting(&s);
		}
}
END_TEST

START_TEST(other_children_keep_their_status)
{
	enum { N = 3 };
	struct setting s;
	struct kid ours[N], own[N];
	int d, i, status;

	for (d = 0; d <= BY_FAR_LOOP; d++) {
		begin_setting(&s, d, NULL);
		for (i = 0; i < N; i++) {
			own[i] = kid_born(TERM_DEFAULT, 30 + i, 0);
			ours[i] = kid_born(TERM_DEFAULT, 0, 0);
			kid_add(&s, "ours", &ours[i], 0, 0);
		}
		/* one before the library is at work, one meanwhile, one that
		   lives until after it */
		kid_let_go(&own[0]);
		UNTIL(kid_has_ended(&own[0]));
		kid_let_go(&ours[0]);
		kid_let_go(&own[1]);
		TURN_UNTIL(&s, kid_has_ended(&ours[0]));
		OK(evc_request_stop(s.c, 0, NULL));
		OK(evc_join(s.c, NULL, NULL));
		for (i = 0; i < N; i++)
			kid_was_reaped(&ours[i]);
		ck_assert(!kid_has_ended(&own[2]));
		kid_let_go(&own[2]);
		for (i = 0; i < N; i++) {
			ck_assert_int_eq(waitpid(own[i].pid, &status, 0),
					 own[i].pid);
			ck_assert(WIFEXITED(status));
			ck_assert_int_eq(WEXITSTATUS(status), 30 + i);
			close(own[i].go);
		}
		end_setting(&s);
	}
}
END_TEST

/* Make the next child of this namespace get that pid; false where this may not be
   asked for. */
static bool
pid_next(pid_t pid)
{
	FILE *f = fopen("/proc/sys/kernel/ns_last_pid", "w");
	bool ok;

	if (f == NULL)
		return false;
	ok = fprintf(f, "%d", (int)pid - 1) > 0;
	return fclose(f) == 0 && ok;
}

/* Run the function as the first process of a new namespace of pids; else other
   tests would get pids of processes just killed, too.  The status of its end; 77:
   there is no such namespace to be had. */
static int
run_with_own_pids(void (*fn)(void))
{
	int status = -1;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid > 0) {
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	}
	if (unshare(CLONE_NEWPID | CLONE_NEWNS) < 0 ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		_exit(77);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (mount("proc", "/proc", "proc", 0, NULL) < 0)
			_exit(77);
		fn();
		_exit(0);
	}
	CHILD(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	_exit(WEXITSTATUS(status));
}

/* Keeps the helper thread from looking at anything. */
static void
stay_ended(evc_coord *scope, const evc_verdict *v, void *arg)
{
	(void)v;
	stay(scope, arg);
}

/* A scope's ended function holds the helper thread up while the pid goes to somebody
   else, so the library cannot know yet. */
static void
use_pid_again(void)
{
	struct guest g = { 0 };
	evc_scope_opts opts = { .ended = stay_ended, .arg = &g };
	evc_coord *scope = NULL;
	struct setting s;
	struct kid k, other = { .pid = 0 };
	int i, status;
	evc_verdict v;
	evc_status st;

	begin_setting(&s, BY_JOINER, NULL);
	k = kid_born(TERM_DEFAULT, 3, 0);
	if (!pid_next(k.pid))
		_exit(77);
	OK(evc_scope_new(s.c, "scope", &opts, &scope));
	OK(evc_scope_ready(scope));
	ignore_SIGCHLD(true);
	kid_add(&s, "old", &k, 0, 0);
	OK(evc_request_stop(scope, 0, NULL));
	UNTIL(atomic_load(&g.in));
	kid_let_go(&k);
	UNTIL(kid_is_reaped(&k));
	ignore_SIGCHLD(false);
	for (i = 0; i < 1000 && other.pid != k.pid; i++) {
		if (i > 0)
			kid_put_down(&other);
		ck_assert(pid_next(k.pid));
		other = kid_born(TERM_DEFAULT, 9, 0);
	}
	ck_assert_int_eq(other.pid, k.pid);
	OK(evc_request_stop(s.c, 0, NULL));
	atomic_store(&g.open, 1);
	st = evc_join(s.c, NULL, &v);
	ck_assert_int_eq(st, kernel_keeps_status() ? EVC_ABORTED : 0);
	/* A signal would have come before what lets it go. */
	kid_let_go(&other);
	ck_assert_int_eq(waitpid(other.pid, &status, 0), other.pid);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 9);
	close(other.go);
	close(k.go);
	OK(evc_free(scope));
	end_setting(&s);
}

/* The child is gone, and a new one has got the same pid: a stop that went by
   the number would end and reap the wrong one. */
START_TEST(a_pid_that_is_used_again_is_somebody_elses)
{
	int status;

	if (!can_wait_by_pidfd())
		T_SKIP("without pidfds to wait for the number has to do");
	status = run_with_own_pids(use_pid_again);
	if (status == 77)
		T_SKIP("there is no namespace in which a pid may be chosen "
		       "(/proc/sys/kernel/ns_last_pid)");
	ck_assert_int_eq(status, 0);
}
END_TEST

/* ---- libev's default loop, which reaps all children ---- */

static void
on_child(struct ev_loop *loop, ev_child *w, int revents)
{
	(void)revents;
	ev_child_stop(loop, w);
	*(int *)w->data = w->rstatus;
}

/* A home on the default loop; as a setting, but for the loop's own watchers. */
static void
begin_default(struct setting *s, bool far)
{
	memset(s, 0, sizeof(*s));
	s->loop = ev_default_loop(0);
	ck_assert_ptr_nonnull(s->loop);
	s->threads = t_count_threads();
	s->c = new_coord(s->loop);
	if (far) {
		s->drive = BY_FAR_LOOP;
		far_start(s);
	}
}

static void
end_default(struct setting *s)
{
	OK(evc_free(s->c));
	ck_assert_int_eq(t_settle_threads(s->threads), s->threads);
}

START_TEST(on_the_default_loop_the_stop_is_clean)
{
	static const int term[] = { TERM_DEFAULT, 143, 0 };
	struct setting s;
	struct kid k[3];
	evc_verdict v;
	int far, i;

	for (far = 0; far < 2; far++) {
		begin_default(&s, far);
		for (i = 0; i < 3; i++) {
			k[i] = kid_born(term[i], 0, 0);
			kid_add(&s, "child", &k[i], 0, 0);
		}
		OK(evc_request_stop(s.c, 0, NULL));
		OK(evc_run(s.c, NULL, &v));
		ck_assert_uint_eq(v.n_errors, 0);
		ck_assert_uint_eq(v.n_stragglers, 0);
		for (i = 0; i < 3; i++)
			kid_was_reaped(&k[i]);
		end_default(&s);
	}
	ev_loop_destroy(EV_DEFAULT_UC);
}
END_TEST

/* libev may be first; a kernel that keeps no status leaves this to libev's
   watchers. */
START_TEST(on_the_default_loop_no_end_is_missed)
{
	struct kid k, deaf;
	evc_status st;
	struct setting s;
	evc_verdict v;
	int far, i;

	for (i = 0; i < 20; i++) {
		far = i % 2;
		begin_default(&s, far);
		k = kid_born(TERM_DEFAULT, 3, 0);
		deaf = kid_born(TERM_IGNORED, 0, 0);
		kid_add(&s, "fails", &k, 0, 0);
		kid_add(&s, "deaf", &deaf, 0.05, 0);
		kid_let_go(&k);
		/* a run probes nothing before its stop: no pidfd, no news */
		st = has_pidfd() ? evc_run(s.c, NULL, &v)
				 : evc_join(s.c, NULL, &v);
		ev_run(s.loop, EVRUN_NOWAIT);
		ck_assert_int_eq(st, EVC_ABORTED);
		ck_assert_str_eq(v.error.who, "fails");
		HAS_NUMBER(v.error.text, 3);
		ck_assert_int_eq(evc_join(s.c, NULL, &v), st);
		ck_assert_uint_eq(v.n_stragglers, 0);
		kid_was_reaped(&k);
		kid_was_reaped(&deaf);
		end_default(&s);
	}
	ev_loop_destroy(EV_DEFAULT_UC);
}
END_TEST

/* Two coordinators on the loop, so that either of its watchers may be told. */
START_TEST(on_the_default_loop_no_end_of_many_is_an_error)
{
	enum { N = 30 };
	struct kid k[N];
	struct setting s;
	struct joiner j;
	evc_coord *other;
	evc_id hold = 0;
	int far, i;

	for (far = 0; far < 2; far++) {
		begin_default(&s, far);
		other = new_coord(s.loop);
		OK(evc_hold_begin(s.c, "hold", NULL, &hold));
		for (i = 0; i < N; i++) {
			k[i] = kid_born(TERM_DEFAULT, 0, 0);
			kid_add(&s, "good", &k[i], 0, 0);
		}
		join_begin(&j, s.c, 0, 0);
		for (i = 0; i < N; i++)
			kid_let_go(&k[i]);
		for (i = 0; i < N; i++)
			TURN_UNTIL(&s, is_gone(s.c, k[i].id));
		ck_assert(!evc_should_stop(s.c));
		OK(evc_free(other));
		OK(evc_hold_end(s.c, hold));
		TURN_UNTIL(&s, atomic_load(&j.returned));
		OK(join_end(&j));
		for (i = 0; i < N; i++)
			kid_was_reaped(&k[i]);
		end_default(&s);
	}
	ev_loop_destroy(EV_DEFAULT_UC);
}
END_TEST

START_TEST(on_the_default_loop_its_own_child_watchers_work)
{
	struct setting s;
	struct kid own, ours;
	int status = -1;
	ev_child w;

	begin_default(&s, false);
	own = kid_born(TERM_DEFAULT, 11, 0);
	ours = kid_born(TERM_DEFAULT, 0, 0);
	kid_add(&s, "ours", &ours, 0, 0);
	ev_child_init(&w, on_child, own.pid, 0);
	w.data = &status;
	ev_child_start(s.loop, &w);
	kid_let_go(&own);
	TURN_UNTIL(&s, status != -1);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 11);
	ck_assert(!kid_has_ended(&ours));
	close(own.go);
	OK(evc_request_stop(s.c, 0, NULL));
	OK(evc_join(s.c, NULL, NULL));
	kid_was_reaped(&ours);
	end_default(&s);
	ev_loop_destroy(EV_DEFAULT_UC);
}
END_TEST

KERNELS_MAIN("child_reaped", with_its_status_lost_before_the_stop_it_is_UNKNOWN,
	     with_its_status_lost_after_the_stop_it_has_obeyed,
	     beside_a_waitpid_of_the_program_one_of_both_has_it,
	     other_children_keep_their_status,
	     a_pid_that_is_used_again_is_somebody_elses,
	     on_the_default_loop_the_stop_is_clean,
	     on_the_default_loop_no_end_is_missed,
	     on_the_default_loop_no_end_of_many_is_an_error,
	     on_the_default_loop_its_own_child_watchers_work)
