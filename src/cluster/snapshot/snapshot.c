/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A value to a file, whole or not at all.
 *
 * One at a time writes it (snapshot_lock.c).
 *
 * The new one is written beside the old one, and takes its place when it is on
 * the disk.  The old one gets a second name first, and becomes path.old when
 * the new one's name is on the disk too: whenever the machine stops, path is
 * whole, and each error can be taken back.
 */
#include <evcoord.h>

#include "wire/head.h"
#include "cluster/snapshot/snapshot.h"

/* How long it waits for another one that writes the same file. */
#define PATIENCE_NS UINT64_C(10000000000)

static void
make_head(unsigned char *head, const evc_value *body)
{
	memcpy(head, SNAPSHOT_MAGIC, VERSION_AT);
	head_put_number(head + VERSION_AT, LENGTH_AT - VERSION_AT,
			SNAPSHOT_VERSION);
	head_put_number(head + LENGTH_AT, CRC_AT - LENGTH_AT, body->size);
	head_put_number(head + CRC_AT, HEAD_SIZE - CRC_AT,
			evc__snapshot_crc(head, body));
}

struct names {
	const char *path;
	char *tmp;  /* the new one */
	char *kept; /* the old one's second name */
	char *old;
	char *folder;
};

static void
names_free(struct names *n)
{
	sync_free(n->tmp);
	sync_free(n->kept);
	sync_free(n->old);
	sync_free(n->folder);
}

/* owner: 0, and what was left there by one that was killed is in the way of
   the next one, which clears it away. */
static bool
names_make(struct names *n, const char *path, long owner)
{
	const char *slash = strrchr(path, '/');
	size_t len = strlen(path);
	char tail[48];

	snprintf(tail, sizeof tail, ".tmp-%ld", owner);
	n->path = path;
	n->tmp = evc__snapshot_joined(path, len, tail);
	snprintf(tail, sizeof tail, ".tmp-%ld.old", owner);
	n->kept = evc__snapshot_joined(path, len, tail);
	n->old = evc__snapshot_joined(path, len, ".old");
	len = slash == NULL ? 1 : (size_t)(slash - path) + 1;
	n->folder = evc__snapshot_joined(slash == NULL ? "." : path, len, "");
	if (n->tmp != NULL && n->kept != NULL && n->old != NULL &&
	    n->folder != NULL)
		return true;
	names_free(n);
	return false;
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

static evc_status
write_new(const struct names *n, const evc_value *body, unsigned mode)
{
	unsigned char head[HEAD_SIZE];
	int fd, e;

	fd = sync_file_create(n->tmp, mode);
	if (fd < 0)
		return evc__snapshot_refuse(n->tmp, "cannot be made", errno);
	make_head(head, body);
	e = put_all(fd, head, sizeof head);
	if (e == 0)
		e = put_all(fd, body->data, body->size);
	if (e == 0 && sync_fsync(fd) < 0)
		e = errno;
	sync_fd_close(fd);
	return e == 0 ? 0
		      : evc__snapshot_refuse(n->tmp, "cannot be written", e);
}

/* There are file systems where a folder cannot be synced, and need not be. */
static int
folder_to_disk(int folder)
{
	return sync_fsync(folder) < 0 && errno != EINVAL ? errno : 0;
}

/* The file system, or this file, knows no second names. */
static bool
is_no_link(int e)
{
	return e == EPERM || e == EOPNOTSUPP || e == ENOSYS || e == EMLINK ||
	       e == EXDEV;
}

/* Another process may replace it between the look at its name and the link:
   then there is another one.  0, or an errno value. */
static int
link_old(const struct names *n)
{
	int tries = 1000;

	while (sync_link(n->path, n->kept) < 0)
		if (errno != ENOENT || --tries == 0)
			return errno;
	return 0;
}

static evc_status
take_place(const struct names *n, int folder, bool had)
{
	int e = had ? link_old(n) : 0;
	bool linked = had && e == 0, placed = false;
	const char *what = "cannot be kept as .old";

	if (e != 0 && is_no_link(e))
		e = sync_rename(n->path, n->old) < 0 ? errno : 0;
	if (e != 0)
		return evc__snapshot_refuse(n->path, what, e);
	if (sync_rename(n->tmp, n->path) < 0) {
		e = errno;
		what = "cannot be replaced";
	} else {
		placed = true;
		e = folder_to_disk(folder);
		if (e != 0)
			what = "its folder cannot be written";
		else if (linked && sync_rename(n->kept, n->old) < 0)
			e = errno;
	}
	if (e == 0)
		return 0;
	if (had)
		(void)sync_rename(linked ? n->kept : n->old, n->path);
	else if (placed)
		sync_unlink(n->path);
	return evc__snapshot_refuse(n->path, what, e);
}

/* What was left by one that was killed. */
static void
clear_away(const struct names *n)
{
	sync_unlink(n->tmp);
	sync_unlink(n->kept);
}

static evc_status
write_named(const struct names *n, const evc_value *body)
{
	struct stat st;
	evc_status status;
	bool had;
	int folder;

	had = sync_path_stat(n->path, &st) == 0;
	if (!had && errno != ENOENT)
		return evc__snapshot_refuse(n->path, "cannot be looked at",
					    errno);
	if (had && !S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
		return evc__snapshot_no_file(n->path);
	folder = sync_folder_open(n->folder);
	if (folder < 0)
		return evc__snapshot_refuse(n->folder, "cannot be opened",
					    errno);
	clear_away(n);
	/* The first is its owner's alone; then it stays as he has made it. */
	status = write_new(n, body, had && S_ISREG(st.st_mode) ?
					    st.st_mode & 0777 : 0600);
	if (status == 0)
		status = take_place(n, folder, had);
	if (status < 0)
		sync_unlink(n->tmp);
	/* Also when all went well: if another process has kept the same file,
	   the rename has done nothing. */
	sync_unlink(n->kept);
	sync_fd_close(folder);
	return status;
}

static evc_status
no_memory(void)
{
	return evc_refuse(-EVC_RESOURCE_EXHAUSTED, "no memory for a name");
}

evc_status
evc__snapshot_write(const char *path, const evc_value *value)
{
	struct snapshot_lock l;
	struct names n;
	evc_status st = evc__snapshot_check_path(path);

	if (st == 0)
		st = evc__snapshot_lock(&l, path, PATIENCE_NS);
	if (st < 0)
		return st;
	if (names_make(&n, path, l.owner)) {
		st = write_named(&n, value);
		names_free(&n);
	} else
		st = no_memory();
	evc__snapshot_unlock(&l);
	return st;
}

static bool
is_there(const char *path)
{
	struct stat st;

	return sync_path_stat(path, &st) == 0;
}

void
evc__snapshot_clean(const char *path)
{
	struct snapshot_lock l;
	struct names n;
	char *lock;
	bool some;

	if (evc__snapshot_check_path(path) < 0 || !names_make(&n, path, 0))
		return;
	lock = evc__snapshot_lock_name(path);
	some = is_there(n.tmp) || is_there(n.kept) ||
	       (lock != NULL && is_there(lock));
	sync_free(lock);
	/* Who has the lock is at work, and clears it away. */
	if (some && evc__snapshot_lock(&l, path, 0) == 0) {
		if (l.owner == 0)
			clear_away(&n);
		evc__snapshot_unlock(&l);
	}
	names_free(&n);
}
