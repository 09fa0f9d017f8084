/* SPDX-License-Identifier: BSD-2-Clause */
/* evcoord/glib.h on a context of its own; see cases.h. */
#define HOST_NESTS   1
#define HOST_KNOWS   1
#define HOST_GOES_ON 1
#define HOST_CASES   { "context_is_gone", context_is_gone }, \
		     { "wrong_loops", wrong_loops }, \
		     { "run_of_its_own_inside", run_of_its_own_inside }, \
		     { "loop_is_run_again_inside", loop_is_run_again_inside }, \
		     { "another_context_inside", another_context_inside },
static void another_context_inside(void);
static void run_of_its_own_inside(void);
static void loop_is_run_again_inside(void);
static void context_is_gone(void);
static void wrong_loops(void);
#include "cases.h"

#include <evcoord/glib.h>

static GMainContext *context;
static GMainLoop *loop;
static evc_glib *host;

static void
host_new(void)
{
	context = g_main_context_new();
	loop = g_main_loop_new(context, FALSE);
}

static void
host_free(void)
{
	g_main_loop_unref(loop);
	g_main_context_unref(context);
}

static evc_status
host_attach(evc_coord *c, const char *name)
{
	return evc_glib_attach(c, name, context, &host);
}

static evc_status
host_detach(void)
{
	return evc_glib_detach(host);
}

static evc_status
host_run(const evc_join_opts *opts, evc_verdict *ret)
{
	return evc_glib_run(host, loop, opts, ret);
}

struct call {
	void (*fn)(void);
};

static gboolean
on_call(gpointer data)
{
	EVC_CAST_(struct call *, data)->fn();
	return FALSE;
}

static void
host_later(void (*fn)(void))
{
	GSource *timer = g_timeout_source_new(5);
	struct call *call = g_new(struct call, 1);

	call->fn = fn;
	g_source_set_callback(timer, on_call, call, g_free);
	g_source_attach(timer, context);
	g_source_unref(timer);
}

static void
host_quit(void)
{
	g_main_loop_quit(loop);
}

static void
host_own_run(void)
{
	g_main_loop_run(loop);
}

static struct evc_adapter *
host_adapter(void)
{
	return &host->adapter;
}

/* A main loop inside the callback. */
static void
host_inner(const int *done)
{
	(void)done;
	g_main_context_iteration(context, TRUE);
}

/* The program gives its context back before the detach. */
static void
context_is_gone(void)
{
	g_main_loop_unref(loop);
	g_main_context_unref(context);
	OK(evc_glib_detach(host));
	host_new();
	OK(host_attach(coord, "again"));
}

static void *
attach_there(void *arg)
{
	evc_glib *g;

	CHECK(evc_glib_attach(coord, "there", context, &g) ==
	      -EVC_FAILED_PRECONDITION);
	return arg;
}

/* A context that another thread runs, a loop of another context. */
static void
wrong_loops(void)
{
	GMainLoop *other = g_main_loop_new(NULL, FALSE);
	pthread_t t;

	CHECK(g_main_context_acquire(context));
	CHECK(pthread_create(&t, NULL, attach_there, NULL) == 0);
	CHECK(pthread_join(t, NULL) == 0);
	g_main_context_release(context);
	CHECK(evc_glib_run(host, other, NULL, NULL) == -EVC_INVALID_ARGUMENT);
	g_main_loop_unref(other);
	/* without a loop of the program */
	host_later(ask);
	OK(evc_glib_run(host, NULL, NULL, &v));
}

static void
run_its_own(void)
{
	CHECK(evc_glib_run(host, NULL, NULL, &v) == -EVC_FAILED_PRECONDITION);
	HAS(evc_last_error(), "inside a callback");
	g_main_loop_quit(loop);
	called++;
}

/* Without a loop, too, a run inside a run of the program's is refused. */
static void
run_of_its_own_inside(void)
{
	host_later(run_its_own);
	g_main_loop_run(loop);
	CHECK(called == 1);
}

/* A dialog on the loop of the run takes the end for its own, and another one
   comes. */
static void
two_dialogs(void)
{
	ask();
	g_main_loop_run(loop);
	CHECK(host_adapter()->answered);
	g_main_loop_run(loop);
	called++;
}

static void
loop_is_run_again_inside(void)
{
	host_later(two_dialogs);
	OK(host_run(NULL, &v));
	CHECK(called == 2);
}

static void
run_another(void)
{
	GMainContext *other = g_main_context_new();
	evc_coord *c;
	evc_glib *g;

	OK(evc_new(NULL, NULL, &c));
	OK(evc_glib_attach(c, "other", other, &g));
	evc_request_stop(c, 0, NULL);
	OK(evc_glib_run(g, NULL, NULL, NULL));
	OK(evc_glib_detach(g));
	OK(evc_free(c));
	g_main_context_unref(other);
	ask();
}

static void
another_context_inside(void)
{
	host_later(run_another);
	OK(host_run(NULL, &v));
	CHECK(called == 1);
}
