/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A cancel hook: when it is called and how often, what a pop promises, what is
 * refused.  Several of them, and members that forget theirs, stand in
 * cancel_many.c.
 */
#include "../../support/rouse_util.h"

#include <semaphore.h>
#include <sys/socket.h>

/* A hook that counts, and may be kept inside. */
struct hook {
	atomic_int calls, tid, in, over;
	atomic_int wrong; /* calls after the pop, and two at once */
	struct guest *inside;
};

static void
call_hook(void *arg)
{
	struct hook *h = arg;

	if (atomic_load(&h->over) || atomic_fetch_add(&h->in, 1) > 0)
		atomic_fetch_add(&h->wrong, 1);
	atomic_store(&h->tid, own_tid());
	if (h->inside != NULL)
		stay(NULL, h->inside);
	atomic_fetch_sub(&h->in, 1);
	atomic_fetch_add(&h->calls, 1);
}

static evc_id
push(evc_coord *c, struct hook *h, unsigned flags)
{
	evc_id id = 0;

	OK(evc_cancel_push(c, call_hook, h, flags, &id));
	ck_assert_uint_ne(id, 0);
	return id;
}

START_TEST(it_is_called_once_at_the_stop)
{
	struct hook h = { 0 };
	evc_coord *c = new_coord(NULL);
	evc_id id = push(c, &h, 0);

	NOT_YET(atomic_load(&h.calls) > 0);
	OK(evc_request_stop(c, 0, NULL));
	UNTIL(atomic_load(&h.calls) > 0);
	NOT_YET(atomic_load(&h.calls) > 1);
	OK(evc_cancel_pop(c, id));
	ck_assert_int_eq(atomic_load(&h.calls), 1);
	ck_assert_int_ne(atomic_load(&h.tid), own_tid());
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}
END_TEST

START_TEST(with_REPEAT_it_is_called_until_the_pop)
{
	struct hook h = { 0 };
	evc_coord *c = new_coord(NULL);
	evc_id id = push(c, &h, EVC_CANCEL_REPEAT);
	int calls;

	NOT_YET(atomic_load(&h.calls) > 0);
	OK(evc_request_stop(c, 0, NULL));
	UNTIL(atomic_load(&h.calls) >= 10);
	OK(evc_cancel_pop(c, id));
	calls = atomic_load(&h.calls);
	atomic_store(&h.over, 1);
	NOT_YET(atomic_load(&h.calls) > calls);
	ck_assert_int_eq(atomic_load(&h.wrong), 0);
	OK(evc_free(c));
}
END_TEST

START_TEST(popped_before_the_stop_it_is_never_called)
{
	struct hook h = { 0 };
	evc_coord *c = new_coord(NULL);
	int i;

	for (i = 0; i < 100; i++)
		OK(evc_cancel_pop(c, push(c, &h, i % 2 ? EVC_CANCEL_REPEAT :
							 0)));
	OK(evc_request_stop(c, 0, NULL));
	NOT_YET(atomic_load(&h.calls) > 0);
	OK(evc_free(c));
}
END_TEST

START_TEST(it_is_called_once_in_each_stop)
{
	struct hook h = { 0 };
	evc_coord *c = new_coord(NULL);
	evc_id id = push(c, &h, 0);
	int i;

	for (i = 1; i <= 20; i++) {
		OK(evc_request_stop(c, 0, NULL));
		UNTIL(atomic_load(&h.calls) == i);
		OK(evc_clear_stop(c));
	}
	NOT_YET(atomic_load(&h.calls) > 20);
	OK(evc_cancel_pop(c, id));
	OK(evc_free(c));
}
END_TEST

/* ---- what a pop promises ---- */

static void *
ask_for_the_stop(void *arg)
{
	evc_request_stop(arg, 0, "beside a pop");
	return NULL;
}

/* Stop and pop at the same time: what the hook is called with is given back
   right after the pop, so that a call after it is seen by the tools. */
START_TEST(after_the_pop_it_is_not_called)
{
	evc_coord *c = new_coord(NULL);
	int called = 0, i, k;
	struct hook *h;
	pthread_t t;
	evc_id id;

	for (i = 0; i < 300; i++) {
		h = calloc(1, sizeof(*h));
		ck_assert_ptr_nonnull(h);
		id = push(c, h, i % 2 ? EVC_CANCEL_REPEAT : 0);
		OK(pthread_create(&t, NULL, ask_for_the_stop, c));
		for (k = 0; k < (i % 50) * 200; k++)
			atomic_signal_fence(memory_order_seq_cst);
		if (i % 10 == 0)
			UNTIL(atomic_load(&h->in) > 0 ||
			      atomic_load(&h->calls) > 0);
		OK(evc_cancel_pop(c, id));
		ck_assert_int_eq(atomic_load(&h->in), 0);
		ck_assert_int_eq(atomic_load(&h->wrong), 0);
		called += atomic_load(&h->calls) > 0;
		memset(h, 0xff, sizeof(*h));
		free(h);
		OK(pthread_join(t, NULL));
		OK(evc_clear_stop(c));
	}
	ck_assert_int_ge(called, 30);
	OK(evc_free(c));
}
END_TEST

struct popper {
	evc_coord *c;
	struct hook *h;
	atomic_int tid, go, popped;
	evc_status pushed, status;
};

static void *
push_and_pop(void *arg)
{
	struct popper *p = arg;
	evc_id id = 0;

	p->pushed = evc_cancel_push(p->c, call_hook, p->h, 0, &id);
	atomic_store(&p->tid, own_tid());
	while (!atomic_load(&p->go))
		t_sleep(0.001);
	p->status = evc_cancel_pop(p->c, id);
	atomic_store(&p->popped, 1);
	return NULL;
}

START_TEST(a_pop_waits_while_the_hook_runs)
{
	struct guest inside = { 0 };
	struct hook h = { .inside = &inside };
	struct popper p = { .c = new_coord(NULL), .h = &h };
	pthread_t t;

	OK(pthread_create(&t, NULL, push_and_pop, &p));
	UNTIL(atomic_load(&p.tid) != 0);
	OK(evc_request_stop(p.c, 0, NULL));
	UNTIL(atomic_load(&inside.in));
	atomic_store(&p.go, 1);
	NOT_YET(atomic_load(&p.popped));
	atomic_store(&inside.open, 1);
	OK(pthread_join(t, NULL));
	OK(p.pushed);
	OK(p.status);
	ck_assert_int_eq(atomic_load(&h.calls), 1);
	OK(evc_free(p.c));
}
END_TEST

/* ---- what is refused ---- */

START_TEST(while_a_stop_stands_nothing_is_pushed)
{
	struct hook h = { 0 };
	evc_coord *c = new_coord(NULL);
	evc_id id = 77;
	int i;

	OK(evc_request_stop(c, 0, NULL));
	for (i = 0; i < 2; i++)
		ck_assert_int_eq(evc_cancel_push(c, call_hook, &h,
						 i ? EVC_CANCEL_REPEAT : 0,
						 &id),
				 -EVC_CANCELLED);
	ck_assert_uint_eq(id, 77);
	NOT_YET(atomic_load(&h.calls) > 0);
	OK(evc_clear_stop(c));
	id = push(c, &h, 0);
	OK(evc_cancel_pop(c, id));
	ck_assert_int_eq(atomic_load(&h.calls), 0);
	OK(evc_free(c));
}
END_TEST

static void *
pop_anothers(void *arg)
{
	struct popper *p = arg;

	p->status = evc_cancel_pop(p->c, (evc_id)atomic_load(&p->go));
	return NULL;
}

START_TEST(only_what_this_thread_has_pushed_can_be_popped)
{
	struct hook h = { 0 };
	struct popper p = { .c = new_coord(NULL) };
	evc_coord *other = new_coord(NULL);
	pthread_t t;
	evc_id id;

	REFUSED(EVC_NOT_FOUND, evc_cancel_pop(p.c, 4711));
	id = push(p.c, &h, 0);
	atomic_store(&p.go, (int)id);
	OK(pthread_create(&t, NULL, pop_anothers, &p));
	OK(pthread_join(t, NULL));
	ck_assert_int_eq(p.status, -EVC_NOT_FOUND);
	REFUSED(EVC_NOT_FOUND, evc_cancel_pop(other, id));
	OK(evc_cancel_pop(p.c, id));
	REFUSED(EVC_NOT_FOUND, evc_cancel_pop(p.c, id));
	FREE_ALL(other, p.c);
}
END_TEST

struct inner {
	evc_coord *c;
	evc_id id;
	atomic_int done;
	evc_status pop, push, free;
};

static void
pop_inside(void *arg)
{
	struct inner *n = arg;
	evc_id id = 0;

	n->pop = evc_cancel_pop(n->c, n->id);
	n->push = evc_cancel_push(n->c, pop_inside, n, 0, &id);
	n->free = evc_free(n->c);
	atomic_store(&n->done, 1);
}

START_TEST(inside_the_hook_a_pop_is_refused)
{
	struct inner n = { .c = new_coord(NULL) };

	OK(evc_cancel_push(n.c, pop_inside, &n, 0, &n.id));
	OK(evc_request_stop(n.c, 0, NULL));
	UNTIL(atomic_load(&n.done));
	ck_assert_int_lt(n.pop, 0);
	ck_assert_int_eq(n.push, -EVC_CANCELLED);
	ck_assert_int_eq(n.free, -EVC_FAILED_PRECONDITION);
	OK(evc_cancel_pop(n.c, n.id));
	OK(evc_free(n.c));
}
END_TEST

START_TEST(what_makes_no_sense_is_refused)
{
	struct hook h = { 0 };
	evc_coord *c = new_coord(NULL);
	evc_id id = 77;

	REFUSED(EVC_INVALID_ARGUMENT,
		evc_cancel_push(NULL, call_hook, &h, 0, &id));
	REFUSED(EVC_INVALID_ARGUMENT, evc_cancel_push(c, NULL, &h, 0, &id));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_cancel_push(c, call_hook, &h, 0, NULL));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_cancel_push(c, call_hook, &h, 1u << 1, &id));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_cancel_push(c, call_hook, &h, 1u << 31, &id));
	REFUSED(EVC_INVALID_ARGUMENT, evc_cancel_pop(NULL, 1));
	ck_assert_uint_eq(id, 77);
	OK(evc_request_stop(c, 0, NULL));
	/* What is wrong is looked for first. */
	REFUSED(EVC_INVALID_ARGUMENT, evc_cancel_push(c, NULL, &h, 0, &id));
	NOT_YET(atomic_load(&h.calls) > 0);
	OK(evc_free(c));
}
END_TEST

START_TEST(free_is_refused_while_one_stands)
{
	struct hook h = { 0 };
	evc_coord *c = new_coord(NULL);
	evc_id id = push(c, &h, 0);

	REFUSED(EVC_FAILED_PRECONDITION, evc_free(c));
	OK(evc_request_stop(c, 0, NULL));
	UNTIL(atomic_load(&h.calls) == 1);
	REFUSED(EVC_FAILED_PRECONDITION, evc_free(c));
	OK(evc_cancel_pop(c, id));
	OK(evc_free(c));
}
END_TEST

START_TEST(L5_a_fork_child_is_refused)
{
	struct hook h = { 0 };
	evc_coord *volatile c = new_coord(NULL);
	volatile evc_id id = push(c, &h, 0);
	evc_id again = 0;
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		CHILD_REFUSED(evc_cancel_push(c, call_hook, &h, 0, &again));
		CHILD_REFUSED(evc_cancel_pop(c, id));
		CHILD_REFUSED(evc_extend_stop(c, 0, 1, "no", NULL));
		CHILD_REFUSED(evc_escalation_set(c, NULL));
		CHILD_REFUSED(evc_abandon(c));
		evc_progress("in a child");
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0,
		      "the child ended with %#x", (unsigned)status);
	OK(evc_cancel_pop(c, id));
	OK(evc_free(c));
}
END_TEST

/* ---- ways out that it is for ---- */

static void
shut(void *arg)
{
	shutdown(*(int *)arg, SHUT_RDWR);
}

static evc_status
receive(evc_coord *c, void *arg)
{
	struct sleeper *s = arg;
	evc_id id = 0;
	char byte;

	s->status = evc_cancel_push(c, shut, &s->fd[0], 0, &id);
	atomic_store(&s->tid, own_tid());
	s->err = (int)recv(s->fd[0], &byte, 1, 0);
	return evc_cancel_pop(c, id);
}

START_TEST(it_shuts_a_socket)
{
	struct sleeper s = { .err = 77 };
	evc_coord *c = new_coord(NULL);

	OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s.fd));
	OK(evc_thread_start(c, "receives", receive, &s, NULL, NULL));
	UNTIL(atomic_load(&s.tid) != 0);
	until_asleep(atomic_load(&s.tid));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, &generous, NULL));
	OK(s.status);
	ck_assert_int_eq(s.err, 0); /* the end of the stream */
	OK(evc_free(c));
	close(s.fd[0]);
	close(s.fd[1]);
}
END_TEST

static void
post(void *arg)
{
	sem_post(arg);
}

START_TEST(it_posts_a_semaphore_by_a_thread_that_is_no_member)
{
	evc_coord *c = new_coord(NULL);
	pthread_t t;
	evc_id id = 0;
	sem_t sem;

	OK(sem_init(&sem, 0, 0));
	OK(evc_cancel_push(c, post, &sem, 0, &id));
	OK(pthread_create(&t, NULL, ask_for_the_stop, c));
	while (sem_wait(&sem) != 0)
		ck_assert_int_eq(errno, EINTR);
	OK(evc_cancel_pop(c, id));
	OK(pthread_join(t, NULL));
	OK(evc_free(c));
	OK(sem_destroy(&sem));
}
END_TEST

API_MAIN("cancel_hooks", it_is_called_once_at_the_stop,
	 with_REPEAT_it_is_called_until_the_pop,
	 popped_before_the_stop_it_is_never_called,
	 it_is_called_once_in_each_stop, after_the_pop_it_is_not_called,
	 a_pop_waits_while_the_hook_runs,
	 while_a_stop_stands_nothing_is_pushed,
	 only_what_this_thread_has_pushed_can_be_popped,
	 inside_the_hook_a_pop_is_refused, what_makes_no_sense_is_refused,
	 free_is_refused_while_one_stands, L5_a_fork_child_is_refused,
	 it_shuts_a_socket, it_posts_a_semaphore_by_a_thread_that_is_no_member)
