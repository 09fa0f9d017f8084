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
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DIRECTORIES_OPEN 32

/* nftw(3) has no argument of ours; it is called before the loop. */
static struct files *found;
static unsigned tree;

static bool
add(const char *path, uint64_t size)
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

/* An errno value ends the walk. */
static int
visit(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	if (type == FTW_DNR || type == FTW_NS) {
		fprintf(stderr, "wordcount: %s: cannot be read\n", path);
		return EACCES;
	}
	/* In a tree such things are passed over; here it was named. */
	if (type == FTW_F && !S_ISREG(st->st_mode) && ftw->level == 0) {
		fprintf(stderr, "wordcount: %s: neither a file nor a "
			"directory\n", path);
		return EINVAL;
	}
	if (type != FTW_F || !S_ISREG(st->st_mode) || st->st_size == 0)
		return 0;
	if (add(path, (uint64_t)st->st_size))
		return 0;
	fprintf(stderr, "wordcount: %s: %s\n", path, strerror(ENOMEM));
	return ENOMEM;
}

bool
files_find(struct files *f, char **paths, unsigned n_paths)
{
	char *real;
	int r = 0;

	found = f;
	for (tree = 0; tree < n_paths && r == 0; tree++) {
		/* Links in a tree are passed over; one that was named stands
		   for what it leads to. */
		real = realpath(paths[tree], NULL);
		r = real ? nftw(real, visit, DIRECTORIES_OPEN, FTW_PHYS) : -1;
		if (r == -1)
			fprintf(stderr, "wordcount: %s: %s\n", paths[tree],
				strerror(errno));
		free(real);
	}
	return r == 0; /* else it was said why */
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
