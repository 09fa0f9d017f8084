/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * EVC_STRICT_SETUP, as a table: each call that makes or starts something is
 * refused once, and that is one error of its coordinator, with the name of the
 * call and what it said.  Without the flag it is none.
 */
#include "../../../support/api_util.h"

#include <ev.h>
#include <signal.h>

static struct {
	struct ev_loop *loop;
	evc_coord *c;
	evc_queue *queue;
	evc_loop_ref *handle;
	evc_registry *reg;
	evc_group *group;
	evc_status init_says;
} w;

/* ---- what is never called, or does nothing ---- */

static evc_status
worker(evc_group *group, unsigned id, void *arg)
{
	(void)id;
	(void)arg;
	evc_wait_for_stop(evc_group_scope(group), INFINITY);
	return EVC_CANCELLED;
}

static evc_status
init(evc_group *group, evc_registry *reg, void *arg)
{
	(void)group;
	(void)reg;
	(void)arg;
	return w.init_says;
}

static evc_status
feed(evc_queue *queue, unsigned number, void **ret_item, void *arg)
{
	(void)queue;
	(void)number;
	(void)ret_item;
	(void)arg;
	return 0;
}

/* ---- the calls, each wrong in its way ---- */

static evc_member_opts wrong = { .jitter = 0.5 };
static evc_member_opts huge = { .stack = T_HUGE_STACK };
/* NULL, or options with a flag that changes nothing else. */
static const evc_member_opts *none;

static evc_status
thread_start(void)
{
	return evc_thread_start(w.c, "t", NULL, NULL, none, NULL);
}

static evc_status
thread_stack(void)
{
	return evc_thread_start(w.c, "t", obey, NULL, &huge, NULL);
}

static evc_status
register_thread(void)
{
	return evc_register_thread(w.c, "t", pthread_self(), &wrong, NULL);
}

static evc_status
hold_begin(void)
{
	return evc_hold_begin(w.c, "h", &wrong, NULL);
}

static evc_status
on_stop(void)
{
	return evc_on_stop(w.c, "h", NULL, NULL, none, NULL);
}

static evc_status
scope_new(void)
{
	return evc_scope_new(w.c, "s", NULL, NULL);
}

static evc_status
reactor_attach(void)
{
	return evc_reactor_attach(w.c, "r", NULL, NULL);
}

static evc_status
reactor_start(void)
{
	return evc_reactor_start(w.c, "r", NULL, NULL, &wrong, NULL);
}

static evc_status
looper_start(void)
{
	return evc_looper_start(w.c, "l", -1, obey, NULL, none, NULL);
}

static evc_status
runner_add(void)
{
	return evc_runner_add(w.c, "r", NULL, NULL, none, NULL);
}

static evc_status
child_add(void)
{
	return evc_child_add(w.c, "c", getppid(), none, NULL);
}

static evc_status
foreign_add(void)
{
	return evc_foreign_add(w.c, "f", NULL, NULL, NULL, none, NULL);
}

static evc_status
ladder_set(void)
{
	evc_escalation_opts o = { .budget = -1 };

	return evc_escalation_set(w.c, &o);
}

static evc_status
signals_start(void)
{
	evc_signals_opts o = { .stop = { SIGKILL } };

	return evc_signals_start(w.c, &o);
}

static evc_status
dump_signal(void)
{
	return evc_dump_signal(w.c, SIGKILL, 2, EVC_REPORT_TEXT);
}

static evc_status
systemd_start(void)
{
	evc_systemd_opts o = { .reserved_ = { 1 } };

	return evc_systemd_start(w.c, &o);
}

static evc_status
trace_start(void)
{
	return evc_trace_start(w.c, (size_t)1 << 25);
}

static evc_status
cond_new(void)
{
	return evc_cond_new(w.c, NULL);
}

static evc_status
join_start(void)
{
	return evc_join_start(w.c, NULL, NULL, NULL);
}

static evc_status
queue_new(void)
{
	evc_queue *q;

	return evc_queue_new(w.c, "q", 0, NULL, &q);
}

static evc_status
queue_watch(void)
{
	return evc_queue_watch(w.queue, NULL, NULL, NULL, 0, NULL);
}

static evc_status
queue_watch_on(void)
{
	return evc_queue_watch_on(w.queue, NULL, NULL, NULL, 0, NULL);
}

static evc_status
queue_watch_on_a_loop(void)
{
	return evc_queue_watch_on(w.queue, w.handle, NULL, NULL, 0, NULL);
}

static evc_status
queue_feed(void)
{
	evc_feed_opts o = { 0 };

	if (none != NULL)
		o.member = *none;
	return evc_queue_feed(w.queue, "f", 0, feed, NULL, &o);
}

/* The refusal of a call below: it is told once. */
static evc_status
queue_feed_stack(void)
{
	evc_feed_opts o = { .member = huge };

	return evc_queue_feed(w.queue, "f", 1, feed, NULL, &o);
}

static evc_status
pool_new(void)
{
	return evc_pool_new(w.c, "p", NULL, NULL);
}

static evc_status
workers_init(void)
{
	evc_group_opts o = { .coord = w.c };

	return evc_group_init(w.reg, "w", NULL, NULL, &o, NULL, NULL);
}

static evc_status
workers_start(void)
{
	w.init_says = EVC_DATA_LOSS;
	return evc_group_start(w.group);
}

static evc_status
registry_start(void)
{
	w.init_says = EVC_UNAVAILABLE;
	return evc_registry_start(w.reg);
}

static const struct row {
	evc_status (*call)(void);
	const char *name; /* what the error names: the call, or one below */
	evc_status code;  /* as it is returned */
	bool member;	  /* evc_member_opts are among its arguments */
} rows[] = {
	{ thread_start, "evc_thread_start", -EVC_INVALID_ARGUMENT, true },
	{ thread_stack, "evc_thread_start", -EVC_RESOURCE_EXHAUSTED, true },
	{ register_thread, "evc_register_thread", -EVC_INVALID_ARGUMENT, true },
	{ hold_begin, "evc_hold_begin", -EVC_INVALID_ARGUMENT, true },
	{ on_stop, "evc_on_stop", -EVC_INVALID_ARGUMENT, true },
	{ scope_new, "evc_scope_new", -EVC_INVALID_ARGUMENT, false },
	{ reactor_attach, "evc_reactor_attach", -EVC_INVALID_ARGUMENT, false },
	{ reactor_start, "evc_reactor_start", -EVC_INVALID_ARGUMENT, true },
	{ looper_start, "evc_looper_start", -EVC_INVALID_ARGUMENT, true },
	{ runner_add, "evc_runner_add", -EVC_INVALID_ARGUMENT, true },
	{ child_add, "evc_child_add", -EVC_NOT_FOUND, true },
	{ foreign_add, "evc_foreign_add", -EVC_INVALID_ARGUMENT, true },
	{ ladder_set, "evc_escalation_set", -EVC_INVALID_ARGUMENT, false },
	{ signals_start, "evc_signals_start", -EVC_INVALID_ARGUMENT, false },
	{ dump_signal, "evc_dump_signal", -EVC_INVALID_ARGUMENT, false },
	{ systemd_start, "evc_systemd_start", -EVC_INVALID_ARGUMENT, false },
	{ trace_start, "evc_trace_start", -EVC_INVALID_ARGUMENT, false },
	{ cond_new, "evc_cond_new", -EVC_INVALID_ARGUMENT, false },
	{ join_start, "evc_join_start", -EVC_INVALID_ARGUMENT, false },
	{ queue_new, "evc_queue_new", -EVC_INVALID_ARGUMENT, false },
	{ queue_watch, "evc_queue_watch", -EVC_INVALID_ARGUMENT, false },
	{ queue_watch_on, "evc_queue_watch_on", -EVC_INVALID_ARGUMENT, false },
	{ queue_watch_on_a_loop, "evc_queue_watch", -EVC_INVALID_ARGUMENT,
	  false },
	{ queue_feed, "evc_queue_feed", -EVC_INVALID_ARGUMENT, true },
	{ queue_feed_stack, "evc_thread_start", -EVC_RESOURCE_EXHAUSTED, true },
	{ pool_new, "evc_pool_new", -EVC_INVALID_ARGUMENT, false },
	{ workers_init, "evc_group_init", -EVC_INVALID_ARGUMENT, false },
	{ workers_start, "evc_group_start", EVC_DATA_LOSS, false },
	{ registry_start, "evc_registry_start", EVC_UNAVAILABLE, false },
};

#define N_ROWS ((int)(sizeof(rows) / sizeof(rows[0])))

static void
world_begin(unsigned flags)
{
	evc_config k = { .flags = flags };
	evc_group_opts o = { .n_threads = 1, .init = init };

	memset(&w, 0, sizeof(w));
	w.loop = ev_loop_new(0);
	w.c = new_coord_with(w.loop, &k);
	w.handle = evc_loop_of(evc_home(w.c));
	ck_assert_ptr_nonnull(w.handle);
	OK(evc_queue_new(w.c, "things", 1, NULL, &w.queue));
	OK(evc_registry_new(NULL, &w.reg));
	o.coord = w.c;
	OK(evc_group_init(w.reg, "w", worker, NULL, &o, &w.group, NULL));
	ck_assert(!evc_should_stop(w.c));
}

static void
world_end(void)
{
	evc_loop_release(w.handle);
	OK(evc_registry_free(w.reg));
	OK(evc_queue_free(w.queue));
	OK(evc_free(w.c));
	ev_loop_destroy(w.loop);
}

START_TEST(each_refusal_is_one_error)
{
	const struct row *row = &rows[_i];
	evc_status code = row->code < 0 ? -row->code : row->code, st;
	evc_reason r;
	evc_verdict v;
	char said[256];

	world_begin(EVC_STRICT_SETUP);
	st = row->call();
	snprintf(said, sizeof(said), "%s", evc_last_error());
	ck_assert_msg(st == row->code, "%s: %d, %s", row->name, st, said);
	ck_assert_msg(evc_should_stop(w.c), "%s: no stop", row->name);
	ck_assert_int_eq(evc_raise_requested(w.c, &r), code);
	ck_assert_str_eq(r.func, row->name);
	ck_assert_str_eq(r.text, said);
	ck_assert_int_eq(evc_join(w.c, NULL, &v), code);
	ck_assert_msg(v.n_errors == 1, "%s: %u errors", row->name, v.n_errors);
	OK(evc_clear_stop(w.c));
	world_end();

	/* Without the flag it is the caller's own. */
	world_begin(0);
	ck_assert_int_eq(row->call(), row->code);
	ck_assert(!evc_should_stop(w.c));
	world_end();
}
END_TEST

/* With EVC_MAY_BE_REFUSED the refusal of a member is the caller's own. */
START_TEST(a_member_may_be_refused)
{
	static const evc_member_opts may = { .flags = EVC_MAY_BE_REFUSED };
	const struct row *row = &rows[_i];

	if (!row->member)
		return;
	none = &may;
	wrong.flags = huge.flags = EVC_MAY_BE_REFUSED;
	world_begin(EVC_STRICT_SETUP);
	ck_assert_int_eq(row->call(), row->code);
	ck_assert_msg(!evc_should_stop(w.c), "%s: a stop", row->name);
	none = NULL;
	wrong.flags = huge.flags = 0;
	world_end();
}
END_TEST

/* What is refused because of a stop is no error. */
START_TEST(a_stop_is_no_error)
{
	evc_status (*const call[])(void) = { workers_start, registry_start };
	evc_pool *pool;
	unsigned i;

	world_begin(EVC_STRICT_SETUP);
	OK(evc_request_stop(w.c, 0, NULL));
	for (i = 0; i < sizeof(call) / sizeof(call[0]); i++)
		ck_assert_int_eq(call[i](), -EVC_CANCELLED);
	REFUSED(EVC_CANCELLED, evc_pool_new(w.c, "p", NULL, &pool));
	REFUSED(EVC_CANCELLED,
		evc_queue_feed(w.queue, "f", 1, feed, NULL, NULL));
	OK(evc_raise_requested(w.c, NULL));
	OK(evc_join(w.c, NULL, NULL));
	OK(evc_clear_stop(w.c));
	world_end();
}
END_TEST

/* The same refusal twice is two errors. */
START_TEST(each_call_counts)
{
	evc_verdict v;

	world_begin(EVC_STRICT_SETUP);
	REFUSED(EVC_INVALID_ARGUMENT, queue_new());
	REFUSED(EVC_INVALID_ARGUMENT, queue_new());
	ck_assert_int_eq(evc_join(w.c, NULL, &v), EVC_INVALID_ARGUMENT);
	ck_assert_uint_eq(v.n_errors, 2);
	OK(evc_clear_stop(w.c));
	world_end();
}
END_TEST

/* As the library's own calls. */
START_TEST(a_layer_can_say_so)
{
	evc_reason r;

	world_begin(EVC_STRICT_SETUP);
	OK(evc_refuse_setup(w.c, "mine", 0));
	OK(evc_refuse_setup(NULL, "mine", 0));
	REFUSED(EVC_NOT_FOUND,
		evc_refuse_setup(NULL, "mine",
				 evc_refuse(-EVC_NOT_FOUND, "no one")));
	REFUSED(EVC_CANCELLED,
		evc_refuse_setup(w.c, "mine",
				 evc_refuse(-EVC_CANCELLED, "it stops")));
	ck_assert(!evc_should_stop(w.c));
	REFUSED(EVC_NOT_FOUND,
		evc_refuse_setup(w.c, "mine",
				 evc_refuse(-EVC_NOT_FOUND, "no slots")));
	ck_assert_int_eq(evc_raise_requested(w.c, &r), EVC_NOT_FOUND);
	ck_assert_str_eq(r.func, "mine");
	ck_assert_str_eq(r.text, "no slots");
	ck_assert_int_eq(evc_join(w.c, NULL, NULL), EVC_NOT_FOUND);
	OK(evc_clear_stop(w.c));
	world_end();
}
END_TEST

T_MAIN("strict", NULL, NULL,
       T_TIMES(each_refusal_is_one_error, N_ROWS),
       T_TIMES(a_member_may_be_refused, N_ROWS),
       T_ONCE(a_stop_is_no_error),
       T_ONCE(each_call_counts),
       T_ONCE(a_layer_can_say_so))
