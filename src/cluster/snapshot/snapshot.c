/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A value to a file, whole or not at all.
 *
 * The writer makes a temporary file in the same folder, waits until the disk
 * has it, and renames it: whenever the machine stops, the old file or the new
 * one stands there, whole.
 *
 * A file should have one writer.  Several writers still leave the file whole:
 * the last rename wins.  remove_left removes what a killed writer has left.
 * Called by: core/checkpoint.c.
 * Locks: none.
 */
#include <evcoord.h>

#include <limits.h>
#include <stdalign.h>

#include "base/mute.h"
#include "wire/head.h"
#include "cluster/snapshot/snapshot.h"

#define TMP_TAIL ".tmp-"
/* A temporary file to which nothing was written for so many seconds is one of a
   writer that was killed. */
#define LEFT_S 60

/* The file to be written. */
struct target {
	const char *path;
	const char *name;         /* the last part of path */
	int folder;               /* descriptor of the folder of path */
	const evc_value *parts;   /* the body */
	size_t n_parts;
	struct snapshot_place *place;
	char tmp[NAME_MAX + 48];  /* the name of the temporary file */
};

static void
make_head(unsigned char *head, const struct target *t)
{
	uint64_t size = 0;
	size_t i;

	for (i = 0; i < t->n_parts; i++)
		size += t->parts[i].size;
	memcpy(head, SNAPSHOT_MAGIC, VERSION_AT);
	head_put_number(head + VERSION_AT, LENGTH_AT - VERSION_AT,
			SNAPSHOT_VERSION);
	head_put_number(head + LENGTH_AT, CRC_AT - LENGTH_AT, size);
	head_put_number(head + CRC_AT, HEAD_SIZE - CRC_AT,
			evc__snapshot_crc(head, t->parts, t->n_parts));
}

static int
put_all(int fd, const void *bytes, size_t n)
{
	const char *at = bytes;
	ssize_t k;

	while (n > 0) {
		k = sync_fd_put(fd, at, n);
		if (k > 0) {
			at += k;
			n -= (size_t)k;
		} else if (k == 0)
			return EIO;
		else if (errno != EINTR)
			return errno;
	}
	return 0;
}

/* ---- temporary files of killed writers ---- */

static bool
is_temporary(const struct target *t, const char *name)
{
	size_t n = strlen(t->name), tail = strlen(TMP_TAIL);

	if (strncmp(name, t->name, n) != 0 ||
	    strncmp(name + n, TMP_TAIL, tail) != 0)
		return false;
	name += n + tail;
	return name[strspn(name, "0123456789abcdef-")] == '\0';
}

static bool
is_left(const struct target *t, const char *name, time_t now)
{
	struct stat st;

	return is_temporary(t, name) &&
	       sync_entry_stat(t->folder, name, &st) == 0 &&
	       S_ISREG(st.st_mode) && st.st_mtime < now - LEFT_S;
}

/* now: the time by the clock of the file system, not of this machine. */
static void
remove_left(const struct target *t, time_t now)
{
	alignas(struct sync_entry) char buf[2048];
	const struct sync_entry *d;
	long n, at;

	while ((n = sync_folder_read(t->folder, buf, sizeof buf)) > 0)
		for (at = 0; at < n; at += d->size) {
			d = (const struct sync_entry *)(buf + at);
			if (is_left(t, d->name, now))
				sync_unlink(t->folder, d->name);
		}
}

/* ---- the new file ---- */

/* 0, or an errno value. */
static int
fill_file(const struct target *t, int fd)
{
	unsigned char head[HEAD_SIZE];
	struct stat st;
	size_t i;
	int e;

	/* Temporary files of killed writers go first: they may fill the disk. */
	if (sync_fd_stat(fd, &st) == 0)
		remove_left(t, st.st_mtime);
	make_head(head, t);
	e = put_all(fd, head, sizeof head);
	for (i = 0; e == 0 && i < t->n_parts; i++)
		e = put_all(fd, t->parts[i].data, t->parts[i].size);
	if (e == 0 && (sync_fsync(fd) < 0 || sync_fd_stat(fd, &st) < 0))
		e = errno;
	if (e == 0)
		t->place->file = snapshot_file_of(&st);
	return e;
}

/* The new name is on the disk when the folder is.  Some file systems cannot sync
   a folder, and need not. */
static evc_status
folder_to_disk(const struct target *t)
{
	if (sync_fsync(t->folder) == 0 || errno == EINVAL)
		return 0;
	return evc__snapshot_refuse(t->path, "its folder cannot be written",
				    errno);
}

static evc_status
replace_file(const struct target *t, unsigned mode)
{
	int fd = sync_file_create(t->folder, t->tmp, mode), e;
	const char *what = "the new file cannot be written";
	struct snapshot_place *p = t->place;
	evc_status st;

	if (fd < 0)
		return evc__snapshot_refuse(
			t->path, "no file can be made beside it", errno);
	e = fill_file(t, fd);
	sync_fd_close(fd);
	st = e == 0 && p->is_free != NULL ? p->is_free(p) : 0;
	if (st < 0) {
		sync_unlink(t->folder, t->tmp);
		return st;
	}
	if (e == 0 && sync_rename(t->folder, t->tmp, t->name) < 0) {
		e = errno;
		what = "the file cannot be replaced";
	}
	if (e == 0)
		return folder_to_disk(t);
	sync_unlink(t->folder, t->tmp);
	return evc__snapshot_refuse(t->path, what, e);
}

static evc_status
write_there(struct target *t)
{
	struct stat st;
	bool had = sync_entry_stat(t->folder, t->name, &st) == 0;

	if (!had && errno != ENOENT)
		return evc__snapshot_refuse(t->path, "cannot be looked at",
					    errno);
	if (had && !S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
		return evc__snapshot_no_file(t->path);
	snprintf(t->tmp, sizeof t->tmp, "%s" TMP_TAIL "%llx-%lx", t->name,
		 (unsigned long long)sync_mono(),
		 (unsigned long)sync_file_owner());
	/* The first file is its owner's alone; then its mode stays as the owner
	   has set it. */
	return replace_file(t, had && S_ISREG(st.st_mode) ?
				       st.st_mode & 0777 : 0600);
}

static int
open_folder(const char *path, size_t n)
{
	char folder[PATH_MAX] = ".";

	if (n >= sizeof folder) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(folder, path, n);
	return sync_folder_open(folder);
}

evc_status
evc__snapshot_write(const char *path, const evc_value *parts, size_t n,
		    struct snapshot_place *place)
{
	evc_status st = evc__snapshot_check_path(path);
	struct target t = { .path = path, .parts = parts, .n_parts = n,
			    .place = place };
	const char *slash;
	struct mute m;

	if (st < 0)
		return st;
	slash = strrchr(path, '/');
	t.name = slash == NULL ? path : slash + 1;
	t.folder = open_folder(path, (size_t)(t.name - path));
	if (t.folder < 0)
		return evc__snapshot_refuse(path, "its folder cannot be opened",
					    errno);
	/* A file beyond RLIMIT_FSIZE is an error of this call. */
	evc__mute(&m, SIGXFSZ);
	st = write_there(&t);
	evc__mute_end(&m, st < 0);
	sync_fd_close(t.folder);
	return st;
}
