/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A value from a file: a file with one wrong bit is refused.
 * Called by: cluster/core/checkpoint.c.
 * Locks: none.
 */
#include <evcoord.h>

#include "wire/head.h"
#include "cluster/snapshot/snapshot.h"

static evc_status
refuse_damaged(const char *path, const char *how)
{
	return evc_refuse(-EVC_DATA_LOSS, "%s is damaged: %s", path, how);
}

/* The number of bytes read, or -1 and errno. */
static ssize_t
get_all(int fd, void *bytes, size_t n)
{
	char *at = bytes;
	size_t got = 0;
	ssize_t k;

	while (got < n) {
		k = sync_fd_read(fd, at + got, n - got);
		if (k == 0)
			break;
		if (k > 0)
			got += (size_t)k;
		else if (errno != EINTR)
			return -1;
	}
	return (ssize_t)got;
}

static evc_status
cannot_read(const char *path)
{
	if (errno == EIO)
		return refuse_damaged(path, "the disk cannot read it");
	return evc__snapshot_refuse(path, "cannot be read", errno);
}

/* n: the bytes behind the head.  The body becomes the value. */
static evc_status
read_body(int fd, const char *path, const unsigned char *head, uint64_t n,
	  evc_value *ret)
{
	char more, *bytes;
	evc_value body;
	ssize_t got;
	evc_status st;

	if (memcmp(head, SNAPSHOT_MAGIC, VERSION_AT) != 0)
		return refuse_damaged(path,
				      "its first bytes are not those of one");
	if (head_number(head + VERSION_AT, LENGTH_AT - VERSION_AT) !=
	    SNAPSHOT_VERSION)
		return refuse_damaged(path, "its version is unknown");
	if (head_number(head + LENGTH_AT, CRC_AT - LENGTH_AT) != n ||
	    n >= SIZE_MAX / 2)
		return refuse_damaged(path, "it is not as long as it says");
	bytes = sync_alloc(1, n > 0 ? (size_t)n : 1);
	if (bytes == NULL)
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED, "no memory for %s",
				  path);
	body = (evc_value){ bytes, (size_t)n };
	got = get_all(fd, bytes, body.size);
	if (got < 0 || (uint64_t)got < n)
		st = got < 0 ? cannot_read(path)
			     : refuse_damaged(path, "it became shorter");
	else if (get_all(fd, &more, 1) != 0)
		st = refuse_damaged(path, "it became longer");
	else if (evc__snapshot_crc(head, &body, 1) !=
		 head_number(head + CRC_AT, HEAD_SIZE - CRC_AT))
		st = refuse_damaged(path, "its checksum is another one");
	else {
		*ret = body;
		return 0;
	}
	sync_free(bytes);
	return st;
}

static evc_status
read_open(int fd, const char *path, evc_value *ret)
{
	unsigned char head[HEAD_SIZE];
	struct stat st;
	ssize_t got;

	if (sync_fd_stat(fd, &st) < 0)
		return cannot_read(path);
	if (!S_ISREG(st.st_mode))
		return evc__snapshot_no_file(path);
	got = get_all(fd, head, sizeof head);
	if (got < 0)
		return cannot_read(path);
	if ((size_t)got < sizeof head || st.st_size < HEAD_SIZE)
		return refuse_damaged(path, "it is too short");
	return read_body(fd, path, head, (uint64_t)st.st_size - HEAD_SIZE, ret);
}

evc_status
evc__snapshot_read(const char *path, evc_value *ret_value)
{
	evc_status st = evc__snapshot_check_path(path);
	int fd;

	*ret_value = (evc_value){ NULL, 0 };
	if (st < 0)
		return st;
	fd = sync_file_open(path);
	if (fd < 0)
		return cannot_read(path);
	st = read_open(fd, path, ret_value);
	sync_fd_close(fd);
	return st;
}

struct snapshot_file
evc__snapshot_file(const char *path)
{
	struct snapshot_file f = { .is = true };
	int fd = sync_file_open(path);
	struct stat st;

	if (fd < 0) {
		f.is = errno != ENOENT && errno != ENOTDIR;
		return f;
	}
	if (sync_fd_stat(fd, &st) == 0)
		f = snapshot_file_of(&st);
	sync_fd_close(fd);
	return f;
}
