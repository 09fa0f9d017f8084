/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The adapter for Qt (5 and 6): a coordinator in a program whose loop is that
 * of QCoreApplication or of a QThread.  C++11, without moc.  See
 * evcoord/adapter.h and evcoord-loops(7).
 */
#ifndef EVCOORD_QT_HPP
#define EVCOORD_QT_HPP

#include <evcoord/adapter.h>

#include <QCoreApplication>
#include <QEvent>
#include <QEventLoop>
#include <QSocketNotifier>
#include <QThread>

#include <exception>
#include <memory>
#if defined(__GLIBCXX__)
#include <cxxabi.h>
#endif

struct evc_qt {
	evc_adapter adapter; /* adapter.reactor is for the program */
	std::unique_ptr<QSocketNotifier> notifier;
	QEventLoop *loop; /* of a run on a thread other than the main one */
};

/* A notifier by its event: the signal has another type in each Qt. */
class evc_qt_notifier : public QSocketNotifier {
	evc_qt *q;

protected:
	bool
	event(QEvent *e) override
	{
		if (e->type() != QEvent::SockAct)
			return QSocketNotifier::event(e);
		if (evc_adapter_turn(&q->adapter)) {
			if (q->loop != nullptr)
				q->loop->exit();
			else
				QCoreApplication::exit();
		}
		if (!q->adapter.watched)
			setEnabled(false);
		return true;
	}

public:
	evc_qt_notifier(evc_qt *owner, int fd)
		: QSocketNotifier(fd, QSocketNotifier::Read), q(owner)
	{
	}
};

/*
 * Attach the loop of the calling thread to c.  The notifier keeps no loop
 * running.
 *
 * Thread:    the one that runs the loop, with a QCoreApplication made before.
 * Ownership: *ret is the caller's, until evc_qt_detach, which comes before the
 *            end of the QCoreApplication or QThread.  name is copied.
 * Returns:   as evc_reactor_foreign; without 0, *ret is nullptr.
 * Since:     0.2
 */
inline evc_status
evc_qt_attach(evc_coord *c, const char *name, evc_qt **ret)
{
	if (ret == nullptr)
		return evc_adapter_refuse(c, "evc_qt_attach",
					  -EVC_INVALID_ARGUMENT, "no result");
	*ret = nullptr;
	if (QCoreApplication::instance() == nullptr)
		return evc_adapter_refuse(c, "evc_qt_attach",
					  -EVC_FAILED_PRECONDITION,
					  "no QCoreApplication yet");

	/* It makes the dispatcher of a thread that has none. */
	QEventLoop dispatcher;
	std::unique_ptr<evc_qt> q(new evc_qt);
	evc_status st = evc_adapter_open(&q->adapter, c, name);

	if (st < 0)
		return st;
	q->loop = nullptr;
	q->notifier.reset(new evc_qt_notifier(q.get(), q->adapter.fd));
	*ret = q.release();
	return 0;
}

/*
 * Detach the loop.  A call that is refused changes nothing.
 *
 * Thread:    that of the attach; not inside evc_qt_exec.
 * Ownership: q is gone after 0.  nullptr is fine.
 * Returns:   as evc_reactor_detach.
 * Since:     0.2
 */
inline evc_status
evc_qt_detach(evc_qt *q)
{
	evc_status st;

	if (q == nullptr)
		return 0;
	st = evc_adapter_leaving(&q->adapter, "evc_qt_detach");
	if (st < 0)
		return st;
	q->notifier->setEnabled(false);
	st = evc_adapter_detach(&q->adapter);
	if (st < 0)
		q->notifier->setEnabled(q->adapter.watched);
	else
		delete q;
	return st;
}

/* Run the loop once.  An exception that has left a handler is an error of the
   coordinator.  A forced unwind has no object, which its handler refers to, and
   the sanitizer would say so. */
inline __attribute__((no_sanitize("undefined"))) void
evc_qt_exec_once(evc_qt *q)
{
	const char *text = "the loop was quit by the application";
	int code = 0;

#ifdef __cpp_exceptions
	try {
#endif
		if (q->loop == nullptr)
			code = QCoreApplication::exec();
		else if (evc_should_stop(q->adapter.c))
			/* After a QThread::quit no loop of the thread runs. */
			q->loop->processEvents(QEventLoop::WaitForMoreEvents);
		else
			code = q->loop->exec();
		evc_adapter_ended(&q->adapter, code != 0 ? EVC_ABORTED : 0, 0,
				  text);
#ifdef __cpp_exceptions
#if defined(__GLIBCXX__)
	} catch (abi::__forced_unwind &) {
		evc_adapter_leave(&q->adapter);
		q->loop = nullptr;
		throw;
#endif
	} catch (const std::exception &e) {
		evc_fail_at(q->adapter.c, EVC_ABORTED, 0, nullptr, 0, nullptr,
			    "exception: %s", e.what());
	} catch (...) {
		evc_fail_at(q->adapter.c, EVC_ABORTED, 0, nullptr, 0, nullptr,
			    "exception that is no std::exception");
	}
#endif
}

/*
 * Run the loop until the members have ended after a stop: in place of
 * QCoreApplication::exec, on another thread in place of QThread::exec.  A
 * QCoreApplication::quit by the program (or the last window that is closed)
 * requests the stop; an exit with another code than 0 is an error.  The signal
 * aboutToQuit comes each time that a loop of Qt ends: at the program's quit,
 * and at the end of the run.
 *
 * Thread:    that of the attach, outside of every loop of Qt.
 * Ownership: *ret_verdict as for evc_run.
 * Returns:   as evc_run.
 * Since:     0.2
 */
inline evc_status
evc_qt_exec(evc_qt *q, const evc_join_opts *opts, evc_verdict *ret_verdict)
{
	evc_status st = evc_adapter_begin(
		q != nullptr ? &q->adapter : nullptr, "evc_qt_exec",
		QThread::currentThread()->loopLevel() > 0, opts);

	if (st < 0)
		return st;

	std::unique_ptr<QEventLoop> loop;

	if (QThread::currentThread() != QCoreApplication::instance()->thread())
		loop.reset(new QEventLoop);
	q->loop = loop.get();
	while (evc_adapter_goes_on(&q->adapter))
		evc_qt_exec_once(q);
	q->loop = nullptr;
	return evc_adapter_end(&q->adapter, ret_verdict);
}

#endif
