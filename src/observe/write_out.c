/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text to a descriptor of the caller's.
 */
#include <signal.h>

#include "core/core.h"
#include "observe/write_out.h"

/* For one that does not block and is full: a second, then it has no reader. */
#define PATIENCE_MS 1000u
#define ONCE_MS 200

/*
 * The kernel sends SIGPIPE to the thread that writes: that thread blocks it, and
 * takes it back unless one was pending before.
 */
struct pipe_guard {
	sigset_t set, old;
	bool had_one;
	int cancel;
};

static void
guard(struct pipe_guard *g)
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
unguard(const struct pipe_guard *g, bool broken)
{
	static const struct timespec at_once;

	while (broken && !g->had_one &&
	       sigtimedwait(&g->set, NULL, &at_once) < 0 && errno == EINTR)
		;
	pthread_sigmask(SIG_SETMASK, &g->old, NULL);
	pthread_setcancelstate(g->cancel, NULL);
}

/* 0 or an errno value. */
static int
put(int fd, const char *buf, size_t n)
{
	uint64_t until = 0, now;

	while (n > 0) {
		ssize_t k = sync_fd_put(fd, buf, n);
		int e = errno;

		if (k > 0) {
			buf += k;
			n -= (size_t)k;
			until = 0;
		} else if (k == 0)
			return EIO;
		else if (e == EAGAIN) {
			now = sync_mono() / 1000000;
			if (until == 0)
				until = now + PATIENCE_MS;
			if (now >= until)
				return e;
			(void)sync_fd_writable(fd, (int)(until - now));
		} else if (e != EINTR)
			return e;
	}
	return 0;
}

evc_status
evc__write_out(int fd, const char *buf, size_t n)
{
	struct pipe_guard g;
	char why[64];
	int e, saved = errno;

	guard(&g);
	e = put(fd, buf, n);
	unguard(&g, e == EPIPE);
	errno = saved;
	if (e == 0)
		return 0;
	return evc__refuse(-EVC_UNAVAILABLE,
			   "descriptor %d cannot be written: %s", fd,
			   strerror_r(e, why, sizeof why));
}

/* atomic: who speaks last -> who speaks next; a hint, and no more */
static _Atomic bool clogged;

void
evc__write_once(int fd, const char *buf, size_t n)
{
	struct pipe_guard g;
	int saved = errno;

	/* A pipe that nobody reads must not hold up who speaks: a slow reader is
	   waited for, but not again until it has read on. */
	if (!sync_fd_writable(fd, sync_load(&clogged) ? 0 : ONCE_MS)) {
		sync_store(&clogged, true);
		errno = saved;
		return;
	}
	sync_store(&clogged, false);
	guard(&g);
	unguard(&g, sync_fd_put(fd, buf, n) < 0 && errno == EPIPE);
	errno = saved;
}
