/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * checksum_hash.c - hash one file, on a thread of the pool.
 *
 * Most files are small, and most of their time goes to open, read and close:
 * so nothing here is allocated, and nothing is shared but one counter.
 */
#include "checksum.h"

#include <errno.h>
#include <fcntl.h>
#include <nettle/sha2.h>
#include <unistd.h>

#define READ_SIZE 131072

/* Read it to its end; 0, or an errno value, ECANCELED at a stop. */
static int
hash_all(struct file *f, int fd)
{
	unsigned char buf[READ_SIZE]; /* pool threads get a stack for it */
	struct sha256_ctx ctx;
	bool is_large = false;
	ssize_t n;

	sha256_init(&ctx);
	while ((n = read(fd, buf, sizeof(buf))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno;
		sha256_update(&ctx, (size_t)n, buf);
		list_read(f->list, (size_t)n);
		if (n < READ_SIZE)
			continue;
		/* Only what is long is given up half way. */
		if (evc_job_should_stop(&f->job))
			return ECANCELED;
		if (!is_large)
			posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
		is_large = true;
	}
	sha256_digest(&ctx, DIGEST_SIZE, f->digest);
	return 0;
}

evc_status
hash_file(evc_job *job)
{
	struct file *f = (struct file *)job;
	evc_status result = EVC_NOT_FOUND;
	struct stat st;
	int fd;

	/* It was a regular file when the walk saw it.  Should it be a fifo by
	   now, this does not wait for a writer. */
	fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st) < 0) {
		f->err = errno;
	} else if (!S_ISREG(st.st_mode)) {
		f->err = EINVAL;
	} else if (out_is(f->list->out, &st)) {
		result = HASH_OURS;
	} else {
		f->err = hash_all(f, fd);
		if (f->err == 0)
			result = 0;
		else if (f->err == ECANCELED)
			result = EVC_CANCELLED;
	}
	if (fd >= 0)
		close(fd);
	return result;
}
