/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wordcount_files.c - which files there are, and which chunks of them are left
 * to do.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "wordcount.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool
add(struct files *found, const char *path, uint64_t size, unsigned tree)
{
	struct file *f;

	/* A power of two has no room left. */
	if ((found->n_files & (found->n_files - 1)) == 0) {
		f = realloc(found->files, (found->n_files ? 2 * found->n_files :
					   1) * sizeof(*f));
		if (f == NULL)
			return false;
		found->files = f;
	}
	f = &found->files[found->n_files];
	f->path = strdup(path);
	f->size = size;
	f->tree = tree;
	if (f->path == NULL)
		return false;
	found->n_files++;
	return true;
}

static bool
unread(struct files *found, const char *path, const char *why)
{
	fprintf(stderr, "wordcount: %s: %s\n", path, why);
	found->n_unread++;
	return true;
}

/* It has no bytes: but has it none, and may it be read?  Files of the kernel have
   some all the same. */
static bool
empty(struct files *found, const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC), err;
	char byte;
	ssize_t n = fd < 0 ? -1 : read(fd, &byte, 1);

	err = errno;
	if (fd >= 0)
		close(fd);
	return n == 0 || unread(found, path, n < 0 ? strerror(err) :
				"its size is not known");
}

/* What cannot be looked at costs a line, a path that is too long as well;
   false: no memory. */
static bool
visit(struct files *found, const FTSENT *e, unsigned tree)
{
	switch (e->fts_info) {
	case FTS_DNR:
	case FTS_ERR:
	case FTS_NS:
		return unread(found, e->fts_path, strerror(e->fts_errno));
	case FTS_DEFAULT:
		/* In a tree such things are passed over; here it was named. */
		return e->fts_level > 0 ||
		       unread(found, e->fts_path, "neither a file nor a "
			      "directory");
	case FTS_F:
		return e->fts_statp->st_size == 0 ?
		       empty(found, e->fts_path) :
		       add(found, e->fts_path,
			   (uint64_t)e->fts_statp->st_size, tree);
	default:
		return true;
	}
}

/* false: no memory. */
static bool
walk(struct files *found, char *path, unsigned tree)
{
	char *paths[] = { path, NULL };
	FTS *fts = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	const FTSENT *e;
	bool ok = fts != NULL;

	while (ok && (errno = 0, e = fts_read(fts)) != NULL)
		ok = visit(found, e, tree);
	ok = ok && errno == 0;
	if (fts)
		fts_close(fts);
	return ok;
}

bool
files_find(struct files *f, char **paths, unsigned n_paths)
{
	bool ok = true;
	unsigned tree;
	char *real;

	for (tree = 0; tree < n_paths && ok; tree++) {
		/* Links in a tree are passed over; one that was named stands
		   for what it leads to. */
		real = realpath(paths[tree], NULL);
		ok = real ? walk(f, real, tree) :
			    unread(f, paths[tree], strerror(errno));
		if (!ok)
			fprintf(stderr, "wordcount: %s: %s\n", paths[tree],
				strerror(errno ? errno : ENOMEM));
		free(real);
	}
	return ok;
}

/* A path may be longer than a name: then its end and a sum of it stand there,
   FNV-1a of 64 bits. */
void
files_key(char key[KEY_ROOM], const struct files *f, const struct chunk *c)
{
	const struct file *file = &f->files[c->file];
	const char *path = file->path, *p;
	size_t n = strlen(path);
	uint64_t sum = 14695981039346656037u;

	if (n <= 200) {
		snprintf(key, KEY_ROOM, "done:%u:%s:%" PRIu64, file->tree, path,
			 c->at);
		return;
	}
	for (p = path; *p; p++)
		sum = (sum ^ (unsigned char)*p) * 1099511628211u;
	snprintf(key, KEY_ROOM, "done:%u:%016" PRIx64 "...%s:%" PRIu64,
		 file->tree, sum, path + n - 180, c->at);
}

evc_status
files_compare(evc_cluster *cluster, char **paths, unsigned n_paths)
{
	static const char name[] = "directories";
	char *all = NULL;
	size_t size;
	FILE *f = open_memstream(&all, &size);
	evc_value v = { 0 };
	evc_status st = -EVC_RESOURCE_EXHAUSTED;
	unsigned i;
	char *real;

	for (i = 0; f && i < n_paths; i++) {
		real = realpath(paths[i], NULL);
		fprintf(f, "%s\n", real ? real : paths[i]);
		free(real);
	}
	if (f && fclose(f) == 0)
		st = evc_pack(&v, "S", all, size);
	if (st == 0)
		st = evc_variable_compare_set(cluster, name, NULL, &v);
	/* It has been there: is it the same? */
	if (st == -EVC_ABORTED)
		st = evc_variable_compare_set(cluster, name, &v, &v);
	evc_value_free(&v);
	free(all);
	return st;
}

bool
files_plan(struct files *f, evc_cluster *cluster)
{
	size_t i, n = 0;
	struct chunk *c;
	char key[KEY_ROOM];
	evc_value done;

	for (i = 0; i < f->n_files; i++)
		n += (f->files[i].size + CHUNK - 1) / CHUNK;
	/* One more, as the place for the next. */
	f->chunks = c = calloc(n + 1, sizeof(*c));
	if (c == NULL)
		return false;
	for (i = 0; i < f->n_files; i++) {
		c->file = (uint32_t)i;
		for (c->at = 0; c->at < f->files[i].size; c->at += CHUNK) {
			files_key(key, f, c);
			if (cluster &&
			    evc_variable_get(cluster, key, &done) == 0) {
				evc_value_free(&done);
				f->n_old++;
				continue;
			}
			c[1] = c[0];
			c++;
		}
	}
	f->n_chunks = (size_t)(c - f->chunks);
	return true;
}

void
files_free(struct files *f)
{
	size_t i;

	for (i = 0; i < f->n_files; i++)
		free(f->files[i].path);
	free(f->files);
	free(f->chunks);
}
