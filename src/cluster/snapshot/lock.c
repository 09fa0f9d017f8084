/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who writes a snapshot: one process, and one thread of it, at a time.
 *
 * So the names that a writer needs beside the file are the same for all of
 * them, and what stands there when the lock was taken was left by one that was
 * killed.  The lock is one of a file of its own, which is there for as long as
 * it is held.  A lock of a file that has no name any more is none: whoever has
 * one looks for the name.
 */
#include <evcoord.h>

#include "base/until.h"
#include "cluster/snapshot/snapshot.h"

#define NAP_NS UINT64_C(2000000)

char *
evc__snapshot_lock_name(const char *path)
{
	return evc__snapshot_joined(path, strlen(path), ".tmp-lock");
}

/* The file system knows no locks. */
static bool
is_no_lock(int e)
{
	return e == ENOSYS || e == EOPNOTSUPP || e == ENOLCK;
}

static bool
has_name(int fd, const char *path)
{
	struct stat is, named;

	return sync_fd_stat(fd, &is) == 0 && sync_path_stat(path, &named) == 0 &&
	       is.st_dev == named.st_dev && is.st_ino == named.st_ino;
}

/* 0; EAGAIN: somebody else has it, or had it; another errno value. */
static int
try_to_lock(struct snapshot_lock *l)
{
	int fd = sync_lock_open(l->path), e;

	if (fd < 0)
		return errno;
	e = sync_file_lock(fd) < 0 ? errno : 0;
	if (e == 0 && has_name(fd, l->path)) {
		l->fd = fd;
		return 0;
	}
	if (is_no_lock(e))
		sync_unlink(l->path);
	sync_fd_close(fd);
	return e == 0 || e == EINTR ? EAGAIN : e;
}

evc_status
evc__snapshot_lock(struct snapshot_lock *l, const char *path,
		   uint64_t patience_ns)
{
	uint64_t until = evc__until_ns(patience_ns);
	_Atomic uint32_t nobody = 0; /* wakes us */
	evc_status st = 0;
	int e;

	*l = (struct snapshot_lock){ .fd = -1 };
	l->path = evc__snapshot_lock_name(path);
	if (l->path == NULL)
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
				  "no memory for a name");
	while ((e = try_to_lock(l)) == EAGAIN && evc__left_ns(until) > 0)
		sync_futex_wait(&nobody, 0, NAP_NS);
	if (e == 0)
		return 0;
	if (is_no_lock(e)) {
		l->owner = sync_file_owner();
		return 0;
	}
	if (e == EAGAIN)
		st = evc_refuse(-EVC_UNAVAILABLE,
				"%s: another one is writing it", path);
	else
		st = evc__snapshot_refuse(l->path, "cannot be locked", e);
	sync_free(l->path);
	return st;
}

void
evc__snapshot_unlock(struct snapshot_lock *l)
{
	/* The name first: who opens it from here on makes a new one. */
	if (l->fd >= 0) {
		sync_unlink(l->path);
		sync_fd_close(l->fd);
	}
	sync_free(l->path);
}
