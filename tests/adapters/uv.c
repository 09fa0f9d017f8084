/* SPDX-License-Identifier: BSD-2-Clause */
/* evcoord/uv.h on a loop of its own; see cases.h. */
#define HOST_NESTS   0
#define HOST_KNOWS   0
#define HOST_GOES_ON 1
#define HOST_CASES   { "keeps_no_loop_running", keeps_no_loop_running }, \
		     { "closes_all_handles", closes_all_handles }, \
		     { "nested_runs_end", nested_runs_end },
static void nested_runs_end(void);
static void closes_all_handles(void);
static void keeps_no_loop_running(void);
#include "cases.h"

#include <evcoord/uv.h>

static uv_loop_t loop;
static evc_uv *host;

static void
host_new(void)
{
	OK(uv_loop_init(&loop));
}

static void
host_free(void)
{
	uv_run(&loop, UV_RUN_DEFAULT);
	OK(uv_loop_close(&loop));
}

static evc_status
host_attach(evc_coord *c, const char *name)
{
	return evc_uv_attach(c, name, &loop, &host);
}

static evc_status
host_detach(void)
{
	return evc_uv_detach(host);
}

static evc_status
host_run(const evc_join_opts *opts, evc_verdict *ret)
{
	return evc_uv_run(host, opts, ret);
}

struct call {
	uv_timer_t timer;
	void (*fn)(void);
};

static void
on_closed(uv_handle_t *timer)
{
	free(timer->data);
}

static void
on_call(uv_timer_t *timer)
{
	struct call *call = EVC_CAST_(struct call *, timer->data);
	void (*fn)(void) = call->fn;

	uv_close(EVC_CAST_(uv_handle_t *, EVC_CAST_(void *, timer)), on_closed);
	fn();
}

static void
host_later(void (*fn)(void))
{
	struct call *call =
		EVC_CAST_(struct call *, calloc(1, sizeof(*call)));

	call->fn = fn;
	uv_timer_init(&loop, &call->timer);
	call->timer.data = call;
	uv_timer_start(&call->timer, on_call, 5, 0);
}

static void
host_quit(void)
{
	uv_stop(&loop);
}

static void
host_own_run(void)
{
	uv_handle_t *watch = evc_uv_handle(host);
	bool attached = host_reactor() == evc_home(coord);

	if (attached)
		uv_ref(watch); /* the join alone does not keep it running */
	uv_run(&loop, UV_RUN_DEFAULT);
	if (attached)
		uv_unref(watch);
}

static struct evc_adapter *
host_adapter(void)
{
	return &host->adapter;
}

static void
host_inner(const int *done)
{
	(void)done;
}

static void
keeps_no_loop_running(void)
{
	CHECK(uv_run(&loop, UV_RUN_DEFAULT) == 0);
	CHECK(uv_loop_close(&loop) == UV_EBUSY); /* the detach is missing */
	ask();
	OK(host_run(NULL, NULL));
	CHECK(uv_run(&loop, UV_RUN_DEFAULT) == 0);
}

static void
close_handle(uv_handle_t *handle, void *arg)
{
	(void)arg;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

static void
close_all(void)
{
	uv_walk(&loop, close_handle, NULL);
}

/* A program that closes what it has not made: the join ends without libuv. */
static void
closes_all_handles(void)
{
	host_later(close_all);
	OK(host_run(NULL, &v));
	HAS(v.stop.text, "has closed");
	OK(evc_clear_stop(coord));
	OK(host_run(NULL, &v));
	HAS(v.stop.text, "cannot run");
}

static int depth;

static void
run_inside(void)
{
	if (++depth < 3)
		host_later(run_inside);
	else
		host_later(ask);
	uv_run(&loop, UV_RUN_DEFAULT);
}

/* A uv_stop ends the innermost run alone: the adapter asks again. */
static void
nested_runs_end(void)
{
	host_later(run_inside);
	OK(host_run(NULL, &v));
	CHECK(called == 1 && depth == 3);
}
