/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * checksum_old.c - the list of an interrupted run, from which this one goes on.
 *
 * Any list in the format of sha256sum will do, in any order.  It is read into
 * memory as a whole before a byte is written, so that the list that it becomes
 * may have the same name.  What stands in it is taken on trust.
 */
#include "checksum.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct entry {
	const char *path; /* in text, without escapes */
	uint8_t digest[DIGEST_SIZE];
	bool taken;
};

struct old {
	char *text;
	size_t size;
	struct entry *entries; /* by path */
	size_t n;
};

static int
read_text(struct old *o, const char *name)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	size_t room = 0;
	ssize_t n;
	char *more;

	if (fd < 0)
		return errno;
	do {
		if (o->size == room) {
			room = room ? 2 * room : 65536;
			more = realloc(o->text, room);
			if (more == NULL) {
				close(fd);
				return ENOMEM;
			}
			o->text = more;
		}
		n = read(fd, o->text + o->size, room - o->size);
		if (n > 0)
			o->size += (size_t)n;
	} while (n > 0 || (n < 0 && errno == EINTR));
	room = n < 0 ? (size_t)errno : 0;
	close(fd);
	return (int)room;
}

static int
hex_digit(char ch)
{
	if (ch >= '0' && ch <= '9')
		return ch - '0';
	return ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : -1;
}

/* In place, for it can only become shorter; false: nothing that we write. */
static bool
unescape(char *path)
{
	char *to = path;

	for (; *path; path++) {
		if (*path != '\\') {
			*to++ = *path;
			continue;
		}
		switch (*++path) {
		case '\\':
			*to++ = '\\';
			break;
		case 'n':
			*to++ = '\n';
			break;
		case 'r':
			*to++ = '\r';
			break;
		default:
			return false;
		}
	}
	*to = '\0';
	return true;
}

/* A line without its newline. */
static bool
parse(struct entry *e, char *line)
{
	bool escaped = *line == '\\';

	line += escaped;
	for (int i = 0; i < DIGEST_SIZE; i++, line += 2) {
		int high = hex_digit(line[0]);
		int low = high < 0 ? -1 : hex_digit(line[1]);

		if (low < 0)
			return false;
		e->digest[i] = (uint8_t)(high << 4 | low);
	}
	if (line[0] != ' ' || (line[1] != ' ' && line[1] != '*') || !line[2])
		return false;
	e->path = line + 2;
	e->taken = false;
	return !escaped || unescape(line + 2);
}

static int
by_path(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return strcmp(x->path, y->path);
}

/* What stands behind the last newline was cut: it is left out.  -1: line by
   line it is no such list. */
static int
parse_all(struct old *o)
{
	char *line = o->text, *end = o->text + o->size, *newline;
	size_t room = 0;

	for (char *p = line; p < end; p++)
		room += *p == '\n';
	o->entries = calloc(room + 1, sizeof(struct entry));
	if (o->entries == NULL)
		return ENOMEM;
	while ((newline = memchr(line, '\n', (size_t)(end - line))) != NULL) {
		*newline = '\0';
		if (!parse(&o->entries[o->n++], line))
			return -1;
		line = newline + 1;
	}
	qsort(o->entries, o->n, sizeof(struct entry), by_path);
	return 0;
}

struct old *
old_read(const char *name)
{
	struct old *o = calloc(1, sizeof(*o));
	int err = o ? read_text(o, name) : ENOMEM;

	if (err == 0)
		err = parse_all(o);
	if (err == 0)
		return o;
	if (err > 0)
		fprintf(stderr, "checksum: %s: %s\n", name, strerror(err));
	else
		fprintf(stderr, "checksum: %s: line %zu is not of a list of "
			"SHA-256 sums\n", name, o->n);
	old_free(o);
	return NULL;
}

bool
old_take(struct old *o, const char *path, uint8_t *ret_digest)
{
	const struct entry key = { .path = path };
	struct entry *e = bsearch(&key, o->entries, o->n, sizeof(key),
				  by_path);

	if (e == NULL || e->taken)
		return false;
	e->taken = true;
	memcpy(ret_digest, e->digest, DIGEST_SIZE);
	return true;
}

int
old_write_rest(struct old *o, struct out *out)
{
	int err = 0;

	for (size_t i = 0; i < o->n && err == 0; i++)
		if (!o->entries[i].taken)
			err = out_line(out, o->entries[i].digest,
				       o->entries[i].path);
	return err;
}

void
old_free(struct old *o)
{
	if (o == NULL)
		return;
	free(o->entries);
	free(o->text);
	free(o);
}
