/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The adapter for asio, as it comes alone or with Boost: a coordinator in a
 * program whose loop is an io_context.  With EVC_ASIO_BOOST defined this header
 * takes Boost's.  C++11.  See evcoord/adapter.h and evcoord-loops(7).
 */
#ifndef EVCOORD_ASIO_HPP
#define EVCOORD_ASIO_HPP

#include <evcoord/adapter.h>

#include <exception>
#include <fcntl.h>
#include <memory>
#include <new>
#include <unistd.h>
#if defined(__GLIBCXX__)
#include <cxxabi.h>
#endif

#ifdef EVC_ASIO_BOOST
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
namespace evc_asio_ns = boost::asio;
typedef boost::system::error_code evc_asio_error;
#else
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
namespace evc_asio_ns = asio;
typedef asio::error_code evc_asio_error;
#endif

/* The watch of one descriptor.  asio closes the descriptors it is given, so it
   gets a copy.  Only handlers own the watch: a context that is destroyed
   destroys its handlers, and so the watch while the context can still give it
   back. */
struct evc_asio_watch {
	evc_asio_ns::posix::stream_descriptor copy;
	struct evc_asio *owner; /* nullptr: detached */

	evc_asio_watch(evc_asio_ns::io_context &context, int fd,
		       struct evc_asio *a)
		: copy(context, fd), owner(a)
	{
	}
};

struct evc_asio {
	evc_adapter adapter; /* adapter.reactor is for the program */
	evc_asio_ns::io_context *context;
	std::weak_ptr<evc_asio_watch> watch;
};

inline void evc_asio_wait(const std::shared_ptr<evc_asio_watch> &w);

struct evc_asio_readable {
	std::shared_ptr<evc_asio_watch> watch;

	template <typename Error>
	void
	operator()(const Error &error) const
	{
		evc_asio *a = watch->owner;

		if (error || a == nullptr || !a->adapter.watched)
			return;
		/* First, for a function that runs the context. */
		evc_asio_wait(watch);
		if (evc_adapter_turn(&a->adapter))
			a->context->stop();
		if (!a->adapter.watched)
			watch->copy.close();
	}
};

inline void
evc_asio_wait(const std::shared_ptr<evc_asio_watch> &w)
{
	w->copy.async_wait(evc_asio_ns::posix::stream_descriptor::wait_read,
			   evc_asio_readable{ w });
}

/*
 * Attach a context to c.  One thread may run the context, and no other.  asio
 * knows no weak handlers: the adapter's keeps io_context::run running until
 * evc_asio_detach.
 *
 * Thread:    the one that runs the context.
 * Ownership: *ret is the caller's, until evc_asio_detach, which may come after
 *            the end of the context.  name is copied.
 * Returns:   as evc_reactor_foreign; without 0, *ret is nullptr.
 * Since:     0.2
 */
inline evc_status
evc_asio_attach(evc_coord *c, const char *name,
		evc_asio_ns::io_context &context, evc_asio **ret)
{
	if (ret == nullptr)
		return evc_adapter_refuse(c, "evc_asio_attach",
					  -EVC_INVALID_ARGUMENT, "no result");
	*ret = nullptr;

	std::unique_ptr<evc_asio> a(new (std::nothrow) evc_asio);
	evc_status st;
	int copy;

	if (!a)
		return evc_adapter_refuse(c, "evc_asio_attach",
					  -EVC_RESOURCE_EXHAUSTED, "no memory");
	st = evc_adapter_open(&a->adapter, c, name);
	if (st < 0)
		return st;
	a->context = &context;
	copy = fcntl(a->adapter.fd, F_DUPFD_CLOEXEC, 0);
	if (copy < 0)
		return evc_adapter_fail(&a->adapter, "evc_asio_attach",
					"no descriptor");
#ifdef __cpp_exceptions
	try {
#endif
		auto w = std::make_shared<evc_asio_watch>(context, copy,
							  a.get());

		copy = -1;
		a->watch = w;
		evc_asio_wait(w);
#ifdef __cpp_exceptions
	} catch (const std::exception &e) {
		if (copy >= 0)
			::close(copy);
		return evc_adapter_fail(&a->adapter, "evc_asio_attach",
					e.what());
	}
#endif
	*ret = a.release();
	return 0;
}

/*
 * Detach the context.  A call that is refused changes nothing.
 *
 * Thread:    that of the attach; not inside evc_asio_run.
 * Ownership: a is gone after 0.  nullptr is fine.
 * Returns:   as evc_reactor_detach.
 * Since:     0.2
 */
inline evc_status
evc_asio_detach(evc_asio *a)
{
	evc_asio_error ignored;
	evc_status st;

	if (a == nullptr)
		return 0;
	st = evc_adapter_leaving(&a->adapter, "evc_asio_detach");
	if (st == 0)
		st = evc_adapter_detach(&a->adapter);
	if (st < 0)
		return st;
	if (auto w = a->watch.lock()) {
		w->owner = nullptr;
		/* As evc_adapter_leaving does. */
		if (evc_adapter_is_copy(&a->adapter) && w->copy.is_open())
			::close(w->copy.native_handle());
		w->copy.close(ignored);
	}
	delete a;
	return 0;
}

/* Run the context once; false: a handler has thrown, and the exception is an
   error of the coordinator.  A forced unwind has no object, which its handler
   refers to, and the sanitizer would say so. */
inline __attribute__((no_sanitize("undefined"))) bool
evc_asio_run_once(evc_asio *a)
{
#ifdef __cpp_exceptions
	try {
		a->context->run();
		return true;
#if defined(__GLIBCXX__)
	} catch (abi::__forced_unwind &) {
		evc_adapter_leave(&a->adapter);
		throw;
#endif
	} catch (const std::exception &e) {
		evc_fail_at(a->adapter.c, EVC_ABORTED, 0, nullptr, 0, nullptr,
			    "exception: %s", e.what());
	} catch (...) {
		evc_fail_at(a->adapter.c, EVC_ABORTED, 0, nullptr, 0, nullptr,
			    "exception that is no std::exception");
	}
	return false;
#else
	a->context->run();
	return true;
#endif
}

/*
 * Run the context until the members have ended after a stop: in place of
 * io_context::run.  An io_context::stop by the program, before the run too,
 * requests the stop; after the run the context is restarted.  An exception that
 * leaves a handler is the error EVC_ABORTED and requests the stop, and the run
 * goes on.
 *
 * Thread:    that of the attach; not inside a handler of the context.
 * Ownership: *ret_verdict as for evc_run.
 * Returns:   as evc_run.
 * Since:     0.2
 */
inline evc_status
evc_asio_run(evc_asio *a, const evc_join_opts *opts, evc_verdict *ret_verdict)
{
	evc_status st = evc_adapter_begin(
		a != nullptr ? &a->adapter : nullptr, "evc_asio_run",
		a != nullptr &&
			a->context->get_executor().running_in_this_thread(),
		opts);

	if (st < 0)
		return st;
	while (evc_adapter_goes_on(&a->adapter)) {
		if (evc_asio_run_once(a))
			evc_adapter_ended(
				&a->adapter, 0, 0,
				"io_context::stop by the application");
		/* Not before the run: a stop may have come earlier. */
		if (a->context->stopped())
			a->context->restart();
		/* Lost when there was no memory for its next wait. */
		if (a->watch.expired())
			a->adapter.watched = false;
	}
	return evc_adapter_end(&a->adapter, ret_verdict);
}

#endif
