/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text to a descriptor of the caller's.
 * Called by: dump.c, trace_out.c and log_ready.c.
 * Locks: none; `clogged` is atomic.
 */
#include <limits.h>

#include "base/mute.h"
#include "core/core.h"
#include "observe/write_out.h"

/* A pipe with room takes so much at once without blocking. */
#define PIECE ((size_t)PIPE_BUF)
/* How long to wait for a full pipe: later, the pipe counts as having no
   reader. */
#define PATIENCE_NS UINT64_C(1000000000)
#define ONCE_MS 200

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
	struct mute m;
	int e, saved = errno;

	evc__mute(&m, SIGPIPE);
	e = put_pieces(fd, buf, n, in_all);
	evc__mute_end(&m, e == EPIPE);
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
	struct mute m;
	int saved = errno;

	/* A pipe that nobody reads must not delay writers: a slow reader is
	   waited for, but only once until it has read on. */
	if (!sync_fd_writable(fd, sync_load(&clogged) ? 0 : ONCE_MS)) {
		sync_store(&clogged, true);
		errno = saved;
		return;
	}
	sync_store(&clogged, false);
	evc__mute(&m, SIGPIPE);
	evc__mute_end(&m, sync_fd_put(fd, buf, n) < 0 && errno == EPIPE);
	errno = saved;
}
