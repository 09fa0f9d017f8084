/* SPDX-License-Identifier: BSD-2-Clause */
/* evcoord/asio.hpp on a context of its own; see cases.h. */
#define HOST_NESTS   1
#define HOST_KNOWS   1
#define HOST_GOES_ON 1
#define HOST_CASES   { "context_is_gone", context_is_gone }, \
		     { "stopped_before_the_run", stopped_before_the_run }, \
		     { "handler_throws", handler_throws }, \
		     { "thread_ends_in_a_handler", thread_ends_in_a_handler }, \
		     { "another_thread_runs_it", another_thread_runs_it },
#ifdef __SANITIZE_ADDRESS__
#define SKIPS_THREAD_END 1
#else
#define SKIPS_THREAD_END 0
#endif
static void context_is_gone();
static void stopped_before_the_run();
static void handler_throws();
static void thread_ends_in_a_handler();
static void another_thread_runs_it();
#include "cases.h"

#include <asio/steady_timer.hpp>
#include <evcoord/asio.hpp>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>

static std::unique_ptr<asio::io_context> context;
static evc_asio *host;

static void
host_new()
{
	context.reset(new asio::io_context);
}

static void
host_free()
{
	context.reset();
}

static evc_status
host_attach(evc_coord *c, const char *name)
{
	return evc_asio_attach(c, name, *context, &host);
}

static evc_status
host_detach()
{
	return evc_asio_detach(host);
}

static evc_status
host_run(const evc_join_opts *opts, evc_verdict *ret)
{
	return evc_asio_run(host, opts, ret);
}

static void
host_later(void (*fn)())
{
	auto timer = std::make_shared<asio::steady_timer>(
		*context, std::chrono::milliseconds(5));

	timer->async_wait([timer, fn](const asio::error_code &error) {
		if (!error)
			fn();
	});
}

static void
host_quit()
{
	context->stop();
}

static void
host_own_run()
{
	context->restart();
	context->run();
}

static struct evc_adapter *
host_adapter()
{
	return &host->adapter;
}

static void
host_inner(const int *)
{
	context->run_one();
}

static void
context_is_gone()
{
	host_free();
	host_new();
	OK(host_detach());
	OK(host_attach(coord, "again"));
}

static void
stopped_before_the_run()
{
	context->stop();
	OK(host_run(NULL, &v));
	HAS(v.stop.text, "by the application");
	OK(evc_clear_stop(coord));
	host_later(ask);
	OK(host_run(NULL, &v));
	CHECK(called == 1);
}

static void
throws()
{
	throw std::runtime_error("thrown here");
}

static void
throws_a_number()
{
	throw 7;
}

/* An exception of a handler is an error; the run goes on. */
static void
handler_throws()
{
	evc_status st;

	told.on_stop = end_task_later;
	st = evc_task_begin(host_reactor(), &task, &told);
	OK(st);
	host_later(throws);
	host_later(throws_a_number);
	CHECK(host_run(NULL, &v) == EVC_ABORTED);
	HAS(v.error.text, "thrown here");
	CHECK(called == 1 && v.n_errors == 2);
}

static void
leave()
{
	pthread_exit(NULL);
}

static void *
thread_leaves(void *)
{
	begin();
	host_later(leave);
	host_run(NULL, &v);
	CHECK(!"reached");
	return NULL;
}

/* pthread_exit passes; the rest is the program's. */
static void
thread_ends_in_a_handler()
{
	evc_coord *c = coord;
	evc_asio *h = host;
	std::unique_ptr<asio::io_context> mine(std::move(context));
	pthread_t t;

	if (SKIPS_THREAD_END) {
		context = std::move(mine);
		return;
	}
	CHECK(pthread_create(&t, NULL, thread_leaves, NULL) == 0);
	CHECK(pthread_join(t, NULL) == 0);
	CHECK(!host->adapter.running);
	evc_abandon(coord);
	context.reset();
	context = std::move(mine);
	host = h;
	coord = c;
}

static void
run_there()
{
	std::thread([] { context->run(); }).join();
}

static void
run_it_elsewhere()
{
	post(set_called);
	run_there();
	CHECK(called == 0);
}

/* The reactor belongs to one thread: another one that runs the context is an
   error, and the join ends without the context. */
static void
another_thread_runs_it()
{
	host_later(run_it_elsewhere);
	CHECK(host_run(NULL, &v) == EVC_FAILED_PRECONDITION);
	HAS(v.error.text, "another thread");
	CHECK(called == 1);
}
