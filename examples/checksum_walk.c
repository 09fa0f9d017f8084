/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * checksum_walk.c - walk trees on the loop, a slice in each of its turns.
 *
 * The files come in the order of the bytes of their paths, as `LC_ALL=C sort`
 * has them; paths of the command line in the order in which they were given.
 * A directory is read as a whole and sorted, and what is in it comes before
 * what is behind it.  There the name of a directory counts with the slash that
 * follows it in paths: "a-b" is before "a/c".
 *
 * The walk is a looper that is always due: what else happens on the loop,
 * completions, the bar, the stop, comes between two slices.
 */
#define _GNU_SOURCE /* qsort_r */
#include "checksum.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SLICE 0.001 /* seconds */

/* What is in a directory: its name stands in dir.names. */
struct entry {
	size_t name;
	off_t size;
	bool is_dir;
};

struct dir {
	struct dir *up;
	DIR *stream; /* while it is being read */
	size_t path; /* its length: w->path goes on with the names */
	char *names;
	size_t n_names, room_names; /* bytes */
	struct entry *entries;
	size_t n, room, next;
};

struct walk {
	struct list *l;
	evc_id id;
	char **paths;
	unsigned n_paths;
	struct dir *dir; /* the deepest one, NULL between trees */
	char *path;
	size_t room;
	bool is_paused, is_over;
};

static double
now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* The array, perhaps elsewhere, with room for n; NULL without memory, and then
   it is as it was. */
static void *
grow(void *array, size_t *room, size_t n, size_t size)
{
	size_t more = *room ? *room : 64;

	if (n <= *room)
		return array;
	while (more < n)
		more *= 2;
	array = realloc(array, more * size);
	if (array)
		*room = more;
	return array;
}

/* w->path becomes its first n bytes, and name behind them. */
static bool
set_path(struct walk *w, size_t n, const char *name)
{
	size_t length = strlen(name) + 1;
	char *path = grow(w->path, &w->room, n + length, 1);

	if (path == NULL)
		return false;
	memcpy(path + n, name, length);
	w->path = path;
	return true;
}

/* ---- a directory ---- */

/* w->path is its path.  One that cannot be read is an error of its own. */
static bool
enter(struct walk *w)
{
	struct dir *d;
	DIR *stream = opendir(w->path);
	size_t n = strlen(w->path);
	bool has_slash = n > 0 && w->path[n - 1] == '/';

	if (stream == NULL) {
		list_error(w->l, w->path, errno);
		return true;
	}
	d = calloc(1, sizeof(*d));
	if (d == NULL || !set_path(w, n, has_slash ? "" : "/")) {
		closedir(stream);
		free(d);
		return false;
	}
	d->up = w->dir;
	d->stream = stream;
	d->path = strlen(w->path);
	w->dir = d;
	return true;
}

static void
leave(struct walk *w)
{
	struct dir *d = w->dir;

	w->dir = d->up;
	if (d->stream)
		closedir(d->stream);
	free(d->names);
	free(d->entries);
	free(d);
}

static int
by_name(const void *a, const void *b, void *names)
{
	const struct entry *x = a, *y = b;
	const char *p = (const char *)names + x->name;
	const char *q = (const char *)names + y->name;
	int m, n;

	while (*p && *p == *q)
		p++, q++;
	m = *p ? (unsigned char)*p : x->is_dir ? '/' : 0;
	n = *q ? (unsigned char)*q : y->is_dir ? '/' : 0;
	return m - n;
}

static bool
add(struct dir *d, const char *name, off_t size, bool is_dir)
{
	size_t length = strlen(name) + 1;
	void *entries = grow(d->entries, &d->room, d->n + 1,
			     sizeof(struct entry));
	char *names = grow(d->names, &d->room_names, d->n_names + length, 1);

	if (entries)
		d->entries = entries;
	if (names)
		d->names = names;
	if (entries == NULL || names == NULL)
		return false;
	d->entries[d->n++] = (struct entry){ .name = d->n_names,
					     .size = size,
					     .is_dir = is_dir };
	memcpy(names + d->n_names, name, length);
	d->n_names += length;
	return true;
}

/* Links, devices and the like are none of ours.  The size costs a system call,
   which only the bar needs. */
static bool
look_at(struct walk *w, struct dir *d, const struct dirent *e)
{
	const char *name = e->d_name;
	bool is_dir = e->d_type == DT_DIR, is_file = e->d_type == DT_REG;
	struct stat st = { 0 };

	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return true;
	if (e->d_type == DT_UNKNOWN || (is_file && w->l->bar.on)) {
		if (fstatat(dirfd(d->stream), name, &st,
			    AT_SYMLINK_NOFOLLOW) == 0) {
			is_dir = S_ISDIR(st.st_mode);
			is_file = S_ISREG(st.st_mode);
		} else if (errno == ENOENT) {
			return true; /* gone again */
		} else {
			int err = errno;

			if (!set_path(w, d->path, name))
				return false;
			list_error(w->l, w->path, err);
			return true;
		}
	}
	return (!is_dir && !is_file) || add(d, name, st.st_size, is_dir);
}

/* Read a few names, or, at the end, sort them. */
static bool
read_some(struct walk *w, struct dir *d)
{
	struct dirent *e;

	for (int i = 0; i < 32; i++) {
		errno = 0;
		e = readdir(d->stream);
		if (e && !look_at(w, d, e))
			return false;
		if (e)
			continue;
		if (errno) {
			w->path[d->path] = '\0';
			list_error(w->l, w->path, errno);
		}
		closedir(d->stream);
		d->stream = NULL;
		if (d->n > 0)
			qsort_r(d->entries, d->n, sizeof(struct entry),
				by_name, d->names);
		break;
	}
	return true;
}

/* ---- the walk ---- */

/* A path of the command line.  A link that was named is followed. */
static bool
begin(struct walk *w, const char *path)
{
	struct stat st;

	if (!set_path(w, 0, path))
		return false;
	if (stat(path, &st) < 0)
		list_error(w->l, path, errno);
	else if (S_ISDIR(st.st_mode))
		return enter(w);
	else if (S_ISREG(st.st_mode))
		list_add(w->l, path, st.st_size);
	else
		list_error(w->l, path, EINVAL);
	return true;
}

/* One step; false without memory. */
static bool
step(struct walk *w)
{
	struct dir *d = w->dir;
	struct entry *e;

	if (d == NULL) {
		w->is_over = w->n_paths == 0;
		if (w->is_over)
			return true;
		w->n_paths--;
		return begin(w, *w->paths++);
	}
	if (d->stream)
		return read_some(w, d);
	if (d->next == d->n) {
		leave(w);
		return true;
	}
	e = &d->entries[d->next++];
	if (!set_path(w, d->path, d->names + e->name))
		return false;
	if (e->is_dir)
		return enter(w);
	list_add(w->l, w->path, e->size);
	return true;
}

static evc_status
slice(evc_coord *c, void *arg)
{
	struct walk *w = arg;
	double end = now() + SLICE;

	do {
		if (!step(w))
			return evc_fail(c, EVC_RESOURCE_EXHAUSTED, ENOMEM,
					"no memory for the walk");
		if (w->is_over)
			return EVC_OUT_OF_RANGE; /* this looper has ended */
		if (list_is_long(w->l)) {
			w->is_paused = true;
			evc_member_pause(c, w->id);
			return 0;
		}
	} while (now() < end);
	return 0; /* again, in the next turn of the loop */
}

struct walk *
walk_start(struct list *l, char **paths, unsigned n_paths)
{
	struct walk *w = calloc(1, sizeof(*w));

	if (w == NULL)
		return NULL;
	w->l = l;
	w->paths = paths;
	w->n_paths = n_paths;
	if (evc_looper_start(l->c, "walk", 0, slice, w, NULL, &w->id) == 0)
		return w;
	free(w); /* evc_last_error() says why */
	return NULL;
}

void
walk_resume(struct walk *w)
{
	if (w && w->is_paused) {
		w->is_paused = false;
		evc_member_resume(w->l->c, w->id);
	}
}

const char *
walk_where(const struct walk *w)
{
	if (w->is_over)
		return NULL;
	return w->path ? w->path : "the beginning";
}

void
walk_free(struct walk *w)
{
	if (w == NULL)
		return;
	while (w->dir)
		leave(w);
	free(w->path);
	free(w);
}
