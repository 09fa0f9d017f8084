/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * checksum_out.c - write a list, in the format of sha256sum.
 *
 * Each write(2) is of whole lines: whatever ends the program, no line of the
 * list is cut by a buffer.  A file is written beside the one it is to replace,
 * as NAME.part: the list that was there, from which perhaps this very run goes
 * on, stays until the new one is finished, or its first part is.  NAME.part is
 * locked, so that one that was left by a kill -9 is known.
 *
 * It is the loop that writes.  A reader of a pipe that does not read holds it
 * up; so does a disk, for as long.
 */
#include "checksum.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define BUFFER_SIZE 65536

struct out {
	int fd;
	struct bar *bar;   /* on the same terminal; NULL: elsewhere, or none */
	int err;           /* of the first write that failed */
	char *part, *name; /* NULL: standard output */
	struct stat ours[2];
	unsigned n_ours;
	char *buf;
	size_t n, size;
};

static void
out_free(struct out *o)
{
	free(o->part);
	free(o->name);
	free(o->buf);
	free(o);
}

/* What stands there is replaced by rename(2), so a device must not. */
static int
look_at_old(struct out *o)
{
	struct stat *st = &o->ours[o->n_ours];

	if (lstat(o->name, st) < 0)
		return errno == ENOENT ? 0 : errno;
	o->n_ours++;
	return S_ISREG(st->st_mode) ? 0 : EINVAL;
}

static int
open_part(struct out *o, const char *name)
{
	size_t n = strlen(name) + sizeof(".part");
	int err;

	o->name = strdup(name);
	o->part = malloc(n);
	if (o->name == NULL || o->part == NULL)
		return ENOMEM;
	snprintf(o->part, n, "%s.part", name);
	err = look_at_old(o);
	if (err)
		return err;
	o->fd = open(o->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (o->fd < 0)
		return errno;
	(void)flock(o->fd, LOCK_EX | LOCK_NB);
	return 0;
}

static void
say_left(const char *part, const char *why)
{
	fprintf(stderr, "checksum: %s: %s\n"
		"checksum: it is not complete: remove it; or rename it, and go "
		"on from it with --resume\n", part, why);
}

/* NAME.part is there: who has made it? */
static void
say_there(const char *part)
{
	int fd = open(part, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 &&
	    errno == EWOULDBLOCK)
		fprintf(stderr, "checksum: %s: another run is writing it\n",
			part);
	else
		say_left(part, "left by a run that was killed, or by an error");
	if (fd >= 0)
		close(fd);
}

struct out *
out_open(const char *name, struct bar *bar)
{
	struct out *o = calloc(1, sizeof(*o));
	int err = 0;

	if (o == NULL)
		return NULL;
	o->fd = STDOUT_FILENO;
	o->size = BUFFER_SIZE;
	o->buf = malloc(o->size);
	if (o->buf == NULL)
		err = ENOMEM;
	else if (name)
		err = open_part(o, name);
	if (err == 0 && fstat(o->fd, &o->ours[o->n_ours++]) < 0)
		err = errno;
	if (err == 0 && isatty(o->fd))
		o->bar = bar;
	if (err == 0)
		return o;
	if (err == EEXIST)
		say_there(o->part);
	else
		fprintf(stderr, "checksum: %s: %s\n", name ? name : "-",
			err == EINVAL ? "not a regular file" : strerror(err));
	out_free(o);
	return NULL;
}

bool
out_is(const struct out *o, const struct stat *st)
{
	for (unsigned i = 0; i < o->n_ours; i++)
		if (st->st_ino == o->ours[i].st_ino &&
		    st->st_dev == o->ours[i].st_dev)
			return true;
	return false;
}

int
out_flush(struct out *o)
{
	size_t done = 0;
	ssize_t n;

	if (o->bar != NULL && o->n > 0)
		bar_clear(o->bar);
	while (o->err == 0 && done < o->n) {
		n = write(o->fd, o->buf + done, o->n - done);
		if (n >= 0)
			done += (size_t)n;
		else if (errno != EINTR)
			o->err = errno;
	}
	o->n = 0;
	return o->err;
}

/* Room for a line; false without memory. */
static bool
make_room(struct out *o, size_t n)
{
	char *more;

	if (o->n + n > o->size)
		out_flush(o);
	if (n <= o->size)
		return true;
	more = realloc(o->buf, n);
	if (more == NULL)
		return false;
	o->buf = more;
	o->size = n;
	return true;
}

/* A name with a newline in it has to stay on one line: such names are escaped,
   and their lines begin with a backslash. */
static char *
add_escaped(char *to, const char *path)
{
	for (; *path; path++) {
		switch (*path) {
		case '\\':
			*to++ = '\\';
			*to++ = '\\';
			break;
		case '\n':
			*to++ = '\\';
			*to++ = 'n';
			break;
		case '\r':
			*to++ = '\\';
			*to++ = 'r';
			break;
		default:
			*to++ = *path;
		}
	}
	return to;
}

int
out_line(struct out *o, const uint8_t *digest, const char *path)
{
	static const char hex[] = "0123456789abcdef";
	char *to;

	if (o->err == 0 &&
	    !make_room(o, 2 * strlen(path) + 2 * DIGEST_SIZE + 4))
		o->err = ENOMEM;
	if (o->err)
		return o->err;
	to = o->buf + o->n;
	if (strpbrk(path, "\\\n\r"))
		*to++ = '\\';
	for (int i = 0; i < DIGEST_SIZE; i++) {
		*to++ = hex[digest[i] >> 4];
		*to++ = hex[digest[i] & 15];
	}
	*to++ = ' ';
	*to++ = ' ';
	to = add_escaped(to, path);
	*to++ = '\n';
	o->n = (size_t)(to - o->buf);
	return 0;
}

/* After an error NAME is left alone, and NAME.part is what there is. */
int
out_close(struct out *o)
{
	int err = out_flush(o);
	bool is_whole;

	if (close(o->fd) < 0 && err == 0)
		err = errno;
	is_whole = err == 0;
	if (err == 0 && o->part && rename(o->part, o->name) < 0)
		err = errno;
	if (err)
		fprintf(stderr, "checksum: %s: %s\n", o->name ? o->name : "-",
			strerror(err));
	if (err && o->part && is_whole)
		fprintf(stderr, "checksum: the list is %s\n", o->part);
	else if (err && o->part)
		say_left(o->part, "as far as the list could be written");
	out_free(o);
	return err;
}
