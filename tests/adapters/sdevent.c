/* SPDX-License-Identifier: BSD-2-Clause */
/* evcoord/sdevent.h on an event loop of its own; see cases.h. */
#define HOST_NESTS   0
#define HOST_KNOWS   1
#define HOST_GOES_ON 0
#define HOST_CASES   { "exit_with_a_code", exit_with_a_code },
static void exit_with_a_code(void);
#include "cases.h"

#include <evcoord/sdevent.h>
#include <time.h>

static sd_event *event;
static evc_sdevent *host;

static void
host_new(void)
{
	CHECK(sd_event_new(&event) >= 0);
}

static void
host_free(void)
{
	CHECK(sd_event_unref(event) == NULL);
}

static evc_status
host_attach(evc_coord *c, const char *name)
{
	return evc_sdevent_attach(c, name, event, &host);
}

static evc_status
host_detach(void)
{
	return evc_sdevent_detach(host);
}

static evc_status
host_run(const evc_join_opts *opts, evc_verdict *ret)
{
	return evc_sdevent_run(host, opts, ret);
}

struct call {
	void (*fn)(void);
};

static int
on_call(sd_event_source *source, uint64_t usec, void *arg)
{
	struct call call = *EVC_CAST_(struct call *, arg);

	(void)usec;
	(void)source;
	free(arg);
	call.fn();
	return 0;
}

static void
host_later(void (*fn)(void))
{
	struct call *call =
		EVC_CAST_(struct call *, calloc(1, sizeof(*call)));

	call->fn = fn;
	CHECK(sd_event_add_time_relative(event, NULL, CLOCK_MONOTONIC, 5000, 1,
					 on_call, call) >= 0);
}

static void
host_quit(void)
{
	sd_event_exit(event, 0);
}

static void
host_own_run(void)
{
	OK(sd_event_loop(event));
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
exit_3(void)
{
	sd_event_exit(event, 3);
}

/* An exit with a code is an error; the looper ends although sd-event does not
   run any more. */
static void
exit_with_a_code(void)
{
	int calls = 0;

	OK(evc_looper_start(coord, "looper", 0.001, count_run, &calls, NULL,
			    NULL));
	host_later(exit_3);
	CHECK(host_run(NULL, &v) == EVC_ABORTED);
	HAS(v.error.text, "sd_event_exit");
	CHECK(calls > 0);
}
