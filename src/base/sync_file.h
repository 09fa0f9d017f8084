/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part of the seam for files and their names.  Only base/sync.h includes
 * this file; the rules there hold.  Reading, writing and closing stand in
 * sync_fd.h.
 */
#ifndef EVC_BASE_SYNC_FILE_H
#define EVC_BASE_SYNC_FILE_H

#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

/* Each: a descriptor, or 0, or -1 and errno; none is a cancellation point. */

/* A new file for writing; the name is not in use.  mode: less the umask. */
#define sync_file_create(path, mode) \
	(SEAM_FAILS("file_create") ? \
		 -1 : \
		 (int)syscall(SYS_openat, AT_FDCWD, (path), \
			      O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | \
				      O_CLOEXEC, \
			      (mode)))
/* A file to be locked; a missing file is made, a present one left as it is. */
#define sync_lock_open(path) \
	(SEAM_FAILS("lock_open") ? \
		 -1 : \
		 (int)syscall(SYS_openat, AT_FDCWD, (path), \
			      O_RDWR | O_CREAT | O_NONBLOCK | O_NOCTTY | \
				      O_NOFOLLOW | O_CLOEXEC, \
			      0666))
/* Lock the file until it is closed or the process ends in any way.  Does not
   wait: EWOULDBLOCK if another descriptor has the lock. */
#define sync_file_lock(fd) \
	(SEAM_FAILS("file_lock") ? \
		 -1 : \
		 (int)syscall(SYS_flock, (fd), LOCK_EX | LOCK_NB))
/* For reading; does not block on a pipe or a device. */
#define sync_file_open(path) \
	(SEAM_FAILS("file_open") ? \
		 -1 : \
		 (int)syscall(SYS_openat, AT_FDCWD, (path), \
			      O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC))
/* A folder, to be synced. */
#define sync_folder_open(path) \
	(SEAM_FAILS("folder_open") ? \
		 -1 : \
		 (int)syscall(SYS_openat, AT_FDCWD, (path), \
			      O_RDONLY | O_DIRECTORY | O_CLOEXEC))
#define sync_fsync(fd) \
	(SEAM_FAILS("fsync") ? -1 : (int)syscall(SYS_fsync, (fd)))
#define sync_fd_stat(fd, st) \
	(SEAM_FAILS("fd_stat") ? -1 : fstat((fd), (st)))
/* Of a symbolic link itself, not of its target. */
#define sync_path_stat(path, st) \
	(SEAM_FAILS("path_stat") ? -1 : lstat((path), (st)))
#define sync_link(from, to) (SEAM_FAILS("link") ? -1 : link((from), (to)))
#define sync_rename(from, to) \
	(SEAM_FAILS("rename") ? -1 : rename((from), (to)))
/* For cleaning up: a failure changes nothing. */
#define sync_unlink(path) ((void)SEAM("unlink"), (void)unlink(path))
/* A number for file names, unique among the threads of the machine. */
#define sync_file_owner() ((long)syscall(SYS_gettid))

#endif
