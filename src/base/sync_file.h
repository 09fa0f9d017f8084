/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part of the seam for files and their names.  Only base/sync.h includes
 * this file; the rules there hold.  Reading, writing and closing stand in
 * sync_fd.h.
 */
#ifndef EVC_BASE_SYNC_FILE_H
#define EVC_BASE_SYNC_FILE_H

#include <stdio.h>
#include <sys/stat.h>

/* Each: a descriptor, a number of bytes, or 0; or -1 and errno.  None is a
   cancellation point. */

/* A folder: to be synced, to be read, and for the calls below with a name in
   it. */
#define sync_folder_open(path) \
	(SEAM_FAILS("folder_open") ? \
		 -1 : \
		 (int)syscall(SYS_openat, AT_FDCWD, (path), \
			      O_RDONLY | O_DIRECTORY | O_CLOEXEC))
/* What the kernel says of an entry. */
struct sync_entry {
	uint64_t inode;
	int64_t next;
	uint16_t size; /* of this entry, with the name */
	uint8_t type;
	char name[];
};
/* The next entries. */
#define sync_folder_read(folder, buf, n) \
	(SEAM_FAILS("folder_read") ? \
		 -1 : \
		 syscall(SYS_getdents64, (folder), (buf), (n)))
/* A new file for writing: there is none of this name.  mode: less the umask. */
#define sync_file_create(folder, name, mode) \
	(SEAM_FAILS("file_create") ? \
		 -1 : \
		 (int)syscall(SYS_openat, (folder), (name), \
			      O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | \
				      O_CLOEXEC, \
			      (mode)))
/* For reading; does not block on a pipe or a device. */
#define sync_file_open(path) \
	(SEAM_FAILS("file_open") ? \
		 -1 : \
		 (int)syscall(SYS_openat, AT_FDCWD, (path), \
			      O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC))
/* For writing at its end; made if it is missing.  Does not block on a pipe. */
#define sync_file_append(path) \
	(SEAM_FAILS("file_append") ? \
		 -1 : \
		 (int)syscall(SYS_openat, AT_FDCWD, (path), \
			      O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | \
				      O_NOCTTY | O_CLOEXEC, \
			      0640))
#define sync_fsync(fd) \
	(SEAM_FAILS("fsync") ? -1 : (int)syscall(SYS_fsync, (fd)))
#define sync_fd_stat(fd, st) \
	(SEAM_FAILS("fd_stat") ? -1 : fstat((fd), (st)))
/* Of a symbolic link itself, not of its target. */
#define sync_entry_stat(folder, name, st) \
	(SEAM_FAILS("entry_stat") ? \
		 -1 : \
		 fstatat((folder), (name), (st), AT_SYMLINK_NOFOLLOW))
#define sync_rename(folder, from, to) \
	(SEAM_FAILS("rename") ? \
		 -1 : \
		 renameat((folder), (from), (folder), (to)))
/* For cleaning up: a failure changes nothing. */
#define sync_unlink(folder, name) \
	((void)SEAM("unlink"), (void)unlinkat((folder), (name), 0))
/* A number for file names, unique among the threads of the machine. */
#define sync_file_owner() ((long)syscall(SYS_gettid))

#endif
