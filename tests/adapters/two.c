/* SPDX-License-Identifier: BSD-2-Clause */
/* Two hosts on two threads under one coordinator: GLib's is the home, libuv's a
   member.  The stop reaches the tasks of both, and both runs return. */
#include <evcoord.h>
#include <evcoord/glib.h>
#include <evcoord/uv.h>

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define CHECK(x)                                                    \
	((x) ? (void)0 :                                            \
	       (fprintf(stderr, "%s:%d: %s; %s\n", __FILE__, __LINE__, \
			#x, evc_last_error()),                      \
		_exit(1)))

static int told; /* of the task of each loop; one thread each */

static void
on_stop(evc_task *t, void *arg)
{
	(void)arg;
	__atomic_add_fetch(&told, 1, __ATOMIC_SEQ_CST);
	evc_task_end(t);
}

static evc_task_class connection = { "connection", on_stop, NULL,
				     0,		   0,	    NULL,
				     NULL,	   { 0 } };

static evc_status
on_uv(evc_coord *c, void *arg)
{
	evc_task task;
	uv_loop_t loop;
	evc_status st;
	evc_uv *u;

	(void)arg;
	memset(&task, 0, sizeof(task));
	CHECK(uv_loop_init(&loop) == 0);
	CHECK(evc_uv_attach(c, "uv", &loop, &u) == 0);
	st = evc_task_begin(u->adapter.reactor, &task, &connection);
	CHECK(st == 0);
	kill(getpid(), SIGTERM);
	st = evc_uv_run(u, NULL, NULL);
	CHECK(evc_uv_detach(u) == 0);
	uv_run(&loop, UV_RUN_DEFAULT);
	CHECK(uv_loop_close(&loop) == 0);
	return st;
}

int
main(void)
{
	evc_config cfg;
	evc_task task;
	evc_verdict v;
	evc_coord *c;
	evc_glib *g;
	evc_status st;

	alarm(60);
	memset(&cfg, 0, sizeof(cfg));
	memset(&task, 0, sizeof(task));
	cfg.grace = 20;
	CHECK(evc_new(NULL, &cfg, &c) == 0);
	CHECK(evc_glib_attach(c, "glib", NULL, &g) == 0);
	CHECK(evc_signals_start(c, NULL) == 0);
	st = evc_task_begin(g->adapter.reactor, &task, &connection);
	CHECK(st == 0);
	CHECK(evc_thread_start(c, "uv", on_uv, NULL, NULL, NULL) == 0);
	st = evc_glib_run(g, NULL, NULL, &v);
	CHECK(st == 0 && v.n_ended == 1 && v.n_stragglers == 0);
	CHECK(v.took < 10);
	CHECK(told == 2);
	CHECK(evc_glib_detach(g) == 0);
	return evc_finish(c, st);
}
