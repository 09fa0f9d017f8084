/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A name that is too long is cut, and ends with "..."; nobody is refused for
 * it.
 */
#include "../../../support/api_util.h"

#include <ev.h>
#include <sys/wait.h>

/* 60 bytes; the 44 that are kept; a byte of a character is never kept alone. */
#define TEN "0123456789"
#define LONG TEN TEN TEN TEN "0123\xc3\xa4" TEN "0123"
#define CUT TEN TEN TEN TEN "0123..."
#define SHORT TEN TEN TEN TEN "0123456"

static bool
never(void *arg)
{
	(void)arg;
	return false;
}

static void
is_cut(evc_coord *c, evc_id id, const char *should)
{
	evc_member_info info;

	OK(evc_member_get(c, id, &info));
	ck_assert_str_eq(info.name, should);
}

static void
of_members(evc_coord *c, const char *name, const char *should)
{
	static const evc_runner_ops ops = { .is_running = never };
	evc_member_opts own = { .flags = EVC_OWN_THREAD };
	static struct guest g;
	evc_id id;
	pid_t pid;

	atomic_store(&g.open, 0);
	OK(evc_thread_start(c, name, stay, &g, NULL, &id));
	is_cut(c, id, should);
	OK(evc_hold_begin(c, name, NULL, &id));
	is_cut(c, id, should);
	OK(evc_hold_end(c, id));
	OK(evc_on_stop(c, name, obey, NULL, NULL, &id));
	is_cut(c, id, should);
	OK(evc_member_remove(c, id));
	OK(evc_looper_start(c, name, 1000, obey, NULL, NULL, &id));
	is_cut(c, id, should);
	OK(evc_member_remove(c, id));
	OK(evc_looper_start(c, name, 1000, return_at_once, NULL, &own, &id));
	is_cut(c, id, should);
	OK(evc_member_remove(c, id));
	OK(evc_runner_add(c, name, &ops, NULL, NULL, &id));
	is_cut(c, id, should);
	OK(evc_member_remove(c, id));
	pid = fork();
	if (pid == 0)
		for (;;)
			pause();
	OK(evc_child_add(c, name, pid, NULL, &id));
	is_cut(c, id, should);
	OK(evc_member_remove(c, id));
	kill(pid, SIGKILL);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	atomic_store(&g.open, 1);
}

START_TEST(of_a_member)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);

	of_members(c, LONG, CUT);
	/* 47 bytes are not too long. */
	of_members(c, SHORT, SHORT);
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

static evc_status
fails(evc_coord *c, void *arg)
{
	(void)c;
	(void)arg;
	return EVC_DATA_LOSS;
}

START_TEST(of_a_guard)
{
	evc_coord *c = new_coord(NULL);
	evc_reason r;

	OK(evc_guard(c, LONG, fails, NULL, NULL));
	OK(evc_reason_get(c, 0, &r));
	ck_assert_str_eq(r.who, CUT);
	ck_assert_int_eq(evc_join(c, NULL, NULL), EVC_DATA_LOSS);
	OK(evc_free(c));
}
END_TEST

START_TEST(of_coordinators_scopes_loops_queues_and_pools)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_config cfg = { .name = LONG };
	evc_reactor *r;
	evc_coord *c, *s;
	evc_queue *q;
	evc_pool *p;
	static char text[1 << 16];
	void *item;

	OK(evc_new(NULL, &cfg, &c));
	evc_explain(c, text, sizeof(text));
	HAS(text, "\"" CUT "\"");
	OK(evc_scope_new(c, LONG, NULL, &s));
	evc_scope_ready(s);
	evc_explain(s, text, sizeof(text));
	HAS(text, "\"" CUT "\"");
	OK(evc_reactor_attach(c, LONG, loop, &r));
	REFUSED(EVC_ALREADY_EXISTS, evc_reactor_attach(c, "x", loop, &r));
	HAS(evc_last_error(), CUT);
	OK(evc_queue_new(c, LONG, 1, NULL, &q));
	REFUSED(EVC_DEADLINE_EXCEEDED, evc_queue_pop(q, &item, 0));
	HAS(evc_last_error(), CUT);
	OK(evc_queue_free(q));
	OK(evc_pool_new(c, LONG, NULL, &p));
	evc_explain(evc_pool_scope(p), text, sizeof(text));
	HAS(text, CUT);
	OK(evc_pool_free(p));
	OK(evc_free(s));
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

API_MAIN("names", of_a_member, of_a_guard,
	 of_coordinators_scopes_loops_queues_and_pools)
