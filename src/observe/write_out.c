/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text to a descriptor of the caller's.
 * Called by: dump.c, trace_out.c and log_ready.c.
 * Locks: none; `clogged` is atomic.
 */
#include <limits.h>
#include <signal.h>

#include "core/core.h"
#include "observe/write_out.h"

/* A pipe with room takes so much at once without blocking. */
#define PIECE ((size_t)PIPE_BUF)
/* How long to wait for a full pipe: later, the pipe counts as having no
   reader. */
#define PATIENCE_NS UINT64_C(1000000000)
#define ONCE_MS 200

/*
 * The kernel sends SIGPIPE to the writing thread: this thread blocks SIGPIPE,
 * and takes the signal back unless it was pending before.
 */
struct pipe_guard {
	sigset_t set, old;
	bool had_one;
	int cancel;
};

static void
guard_pipe(struct pipe_guard *g)
{
	sigset_t pending;

	/* sigtimedwait is a cancellation point. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &g->cancel);
	sigemptyset(&g->set);
	sigaddset(&g->set, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &g->set, &g->old);
	sigemptyset(&pending);
	sigpending(&pending);
	g->had_one = sigismember(&pending, SIGPIPE) == 1;
}

static void
unguard_pipe(const struct pipe_guard *g, bool broken)
{
	static const struct timespec at_once;

	while (broken && !g->had_one &&
	       sigtimedwait(&g->set, NULL, &at_once) < 0 && errno == EINTR)
		;
	pthread_sigmask(SIG_SETMASK, &g->old, NULL);
	pthread_setcancelstate(g->cancel, NULL);
}

/*
 * In pieces, each when there is room: a blocking descriptor must not block us
 * for ever.  0, or an errno value, EAGAIN when the time is over.
 */
static int
put_pieces(int fd, const char *buf, size_t n, bool in_all)
{
	uint64_t now = sync_mono(), end = now + PATIENCE_NS;
	ssize_t k;

	while (n > 0) {
		errno = 0;
		if (!sync_fd_writable(fd, (int)((end - now) / 1000000) + 1) &&
		    (now = sync_mono()) >= end)
			return EAGAIN;
		if (errno == EINTR)
			continue;
		/* A failed descriptor does not block, and the write says
		   why. */
		k = sync_fd_put(fd, buf, n < PIECE ? n : PIECE);
		if (k == 0)
			return EIO;
		if (k < 0 && errno != EAGAIN && errno != EINTR)
			return errno;
		now = sync_mono();
		if (k < 0 && now >= end)
			return EAGAIN;
		if (k < 0)
			continue;
		buf += k;
		n -= (size_t)k;
		if (!in_all)
			end = now + PATIENCE_NS;
		else if (n > 0 && now >= end)
			return EAGAIN;
	}
	return 0;
}

evc_status
evc__write_out(int fd, const char *buf, size_t n, bool in_all)
{
	struct pipe_guard g;
	int e, saved = errno;

	guard_pipe(&g);
	e = put_pieces(fd, buf, n, in_all);
	unguard_pipe(&g, e == EPIPE);
	errno = saved;
	if (e == 0)
		return 0;
	if (e == EAGAIN)
		return evc__refuse(-EVC_UNAVAILABLE,
				   "descriptor %d takes nothing", fd);
	return evc__refuse(-EVC_UNAVAILABLE,
			   "descriptor %d cannot be written: %s", fd,
			   strerror(e));
}

/* atomic: the last writer -> the next writer; only a hint */
static _Atomic bool clogged;

void
evc__write_once(int fd, const char *buf, size_t n)
{
	struct pipe_guard g;
	int saved = errno;

	/* A pipe that nobody reads must not delay writers: a slow reader is
	   waited for, but only once until it has read on. */
	if (!sync_fd_writable(fd, sync_load(&clogged) ? 0 : ONCE_MS)) {
		sync_store(&clogged, true);
		errno = saved;
		return;
	}
	sync_store(&clogged, false);
	guard_pipe(&g);
	unguard_pipe(&g, sync_fd_put(fd, buf, n) < 0 && errno == EPIPE);
	errno = saved;
}
