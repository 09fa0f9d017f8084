/* SPDX-License-Identifier: BSD-2-Clause */
/* evcoord/qt.hpp on a QCoreApplication; see cases.h. */
#define HOST_NESTS   1
#define HOST_KNOWS   1
#define HOST_GOES_ON 1
#define HOST_CASES   { "exit_with_a_code", exit_with_a_code }, \
		     { "handler_throws", handler_throws }, \
		     { "on_a_thread", on_a_thread }, \
		     { "on_a_thread_of_ours", on_a_thread_of_ours }, \
		     { "application_is_gone", application_is_gone },
static void application_is_gone();
#ifdef __SANITIZE_THREAD__
#define SKIPS_THREADS 1
#else
#define SKIPS_THREADS 0
#endif
static void exit_with_a_code();
static void handler_throws();
static void on_a_thread();
static void on_a_thread_of_ours();
#include "cases.h"

#include <QTimer>
#include <evcoord/qt.hpp>

#include <stdexcept>

static int n_args = 1;
static char *args[] = { const_cast<char *>("qt"), nullptr };
static std::unique_ptr<QCoreApplication> app;
static evc_qt *host;

static void
host_new()
{
	app.reset(new QCoreApplication(n_args, args));
}

static void
host_free()
{
	app.reset();
}

static evc_status
host_attach(evc_coord *c, const char *name)
{
	return evc_qt_attach(c, name, &host);
}

static evc_status
host_detach()
{
	return evc_qt_detach(host);
}

static evc_status
host_run(const evc_join_opts *opts, evc_verdict *ret)
{
	return evc_qt_exec(host, opts, ret);
}

static void
host_later(void (*fn)())
{
	QTimer::singleShot(5, fn);
}

static void
host_quit()
{
	QCoreApplication::quit();
}

static void
host_own_run()
{
	QCoreApplication::exec();
}

static struct evc_adapter *
host_adapter()
{
	return &host->adapter;
}

/* A loop inside the callback, as a dialog has one. */
static void
host_inner(const int *)
{
	QEventLoop().processEvents(QEventLoop::WaitForMoreEvents);
}

static void
exit_3()
{
	QCoreApplication::exit(3);
}

static void
exit_less_than_0()
{
	QCoreApplication::exit(-3);
}

static void
exit_with_a_code()
{
	host_later(exit_3);
	CHECK(host_run(NULL, &v) == EVC_ABORTED);
	HAS(v.error.text, "by the application");
	OK(evc_clear_stop(coord));
	host_later(exit_less_than_0);
	CHECK(host_run(NULL, &v) == EVC_ABORTED);
}

static void
throws()
{
	throw std::runtime_error("thrown here");
}

static void
handler_throws()
{
	host_later(throws);
	CHECK(host_run(NULL, &v) == EVC_ABORTED);
	HAS(v.error.text, "thrown here");
}

static void
quit_thread()
{
	QThread::currentThread()->quit();
}

/* The loop of a QThread: its quit is a request, too. */
static void
on_a_thread()
{
	if (SKIPS_THREADS)
		return;

	evc_status st = 77;
	evc_verdict there;
	QThread *t = QThread::create([&] {
		evc_qt *q;

		OK(evc_qt_attach(coord, "there", &q));
		host_later(quit_thread);
		st = evc_qt_exec(q, NULL, &there);
		OK(evc_qt_detach(q));
	});

	t->start();
	OK(host_run(NULL, &v));
	t->wait();
	delete t;
	OK(st);
	HAS(there.stop.text, "by the application");
}

static evc_status
run_of_its_own(evc_coord *c, void *)
{
	evc_qt *q;

	OK(evc_qt_attach(c, "there", &q));
	OK(evc_qt_exec(q, NULL, NULL));
	OK(evc_qt_detach(q));
	called++;
	return EVC_OK;
}

/* A thread that Qt has not started has a loop as well. */
static void
on_a_thread_of_ours()
{
	if (SKIPS_THREADS)
		return;
	OK(evc_thread_start(coord, "ours", run_of_its_own, NULL, NULL, NULL));
	host_later(ask);
	OK(host_run(NULL, &v));
	CHECK(called == 2);
}

/* The application is destroyed before the detach, and another one comes. */
static void
application_is_gone()
{
	evc_qt *q;

	host_free();
	OK(host_detach());
	CHECK(evc_qt_attach(coord, "none", &q) == -EVC_FAILED_PRECONDITION);
	CHECK(q == nullptr);
	host_new();
	OK(host_attach(coord, "again"));
	host_later(ask);
	OK(host_run(NULL, &v));
}
