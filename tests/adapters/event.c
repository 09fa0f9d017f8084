/* SPDX-License-Identifier: BSD-2-Clause */
/* evcoord/event.h on a base of its own; see cases.h. */
#define HOST_NESTS   0
#define HOST_KNOWS   0
#define HOST_GOES_ON 1
#define HOST_CASES   { "base_runs_already", base_runs_already },
static void base_runs_already(void);
#include "cases.h"

#include <evcoord/event.h>

static struct event_base *base;
static evc_event *host;

static void
host_new(void)
{
	base = event_base_new();
}

static void
host_free(void)
{
	event_base_free(base);
}

static evc_status
host_attach(evc_coord *c, const char *name)
{
	return evc_event_attach(c, name, base, &host);
}

static evc_status
host_detach(void)
{
	return evc_event_detach(host);
}

static evc_status
host_run(const evc_join_opts *opts, evc_verdict *ret)
{
	return evc_event_run(host, opts, ret);
}

struct call {
	void (*fn)(void);
};

static void
on_call(evutil_socket_t fd, short what, void *arg)
{
	struct call call = *EVC_CAST_(struct call *, arg);

	(void)fd;
	(void)what;
	free(arg);
	call.fn();
}

static void
host_later(void (*fn)(void))
{
	const struct timeval soon = { 0, 5000 };
	struct call *call =
		EVC_CAST_(struct call *, calloc(1, sizeof(*call)));

	call->fn = fn;
	OK(event_base_once(base, -1, EV_TIMEOUT, on_call, call, &soon));
}

static void
host_quit(void)
{
	event_base_loopbreak(base);
}

static void
host_own_run(void)
{
	event_base_dispatch(base);
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
run_inside(void)
{
	CHECK(host_run(NULL, &v) == EVC_INTERNAL);
	HAS(v.error.text, "cannot run");
	host_quit();
}

/* libevent alone knows that the base runs: the run is an error, and no hang. */
static void
base_runs_already(void)
{
	host_later(run_inside);
	event_base_dispatch(base);
	CHECK(v.code == EVC_INTERNAL);
	CHECK(evc_adapter_goes_on(&host->adapter) == false);
}
