/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * checksum.h - what the parts of checksum know of each other.
 *
 *   checksum.c       the program: options, the stop, what is said at the end
 *   checksum_walk.c  walks the trees, on the loop
 *   checksum_hash.c  hashes one file, on a thread of the pool
 *   checksum_list.c  all files in their order: to be hashed, hashed, written
 *   checksum_out.c   writes whole lines to standard output or a file
 *   checksum_old.c   the list of an interrupted run
 */
#ifndef EXAMPLES_CHECKSUM_H
#define EXAMPLES_CHECKSUM_H

#include <evcoord.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "bar.h"

#define DIGEST_SIZE 32

/* The walk runs ahead of the hashing, so that the bar knows how much there is;
   so many files and no more, for the sake of memory (50 MB or so). */
#define MOST_AHEAD (1u << 18)

struct list;
struct old;
struct out;
struct walk;

/* A file of the list, and the job that hashes it: one allocation. */
struct file {
	evc_job job; /* first, so that a job can be turned into its file */
	struct file *next;
	struct list *list;
	off_t size; /* as the walk saw it, for the bar */
	enum {
		FILE_WAITING,
		FILE_HASHED,
		FILE_OLD,      /* its line was there already */
		FILE_OURS,     /* it is what we write ourselves: left out */
		FILE_FAILED,   /* err says why */
		FILE_GIVEN_UP, /* because of the stop */
	} state; /* the loop's */
	int err; /* these two the job's, until it is completed */
	uint8_t digest[DIGEST_SIZE];
	char path[];
};

/* Files in the order of the walk, from the first that is not written yet. */
struct list {
	evc_coord *c;
	evc_pool *pool;
	struct out *out;
	struct old *old;      /* NULL: nothing to resume */
	struct walk *walk;
	struct bar bar;
	struct file *first, **end;
	unsigned n_ahead;     /* in it */
	unsigned long n_found, n_over; /* files: seen, and settled */
	unsigned long n_hashed, n_old, n_failed;
	double bytes_found;   /* of what is to be hashed */
	atomic_ullong bytes_read; /* by all threads */
	double began;
	char *missing;        /* path of the first that is not in the list */
};

/* ---- checksum_list.c ---- */

/* Take in the next file; is it long enough for now?  Both on the loop. */
void list_add(struct list *l, const char *path, off_t size);
bool list_is_long(const struct list *l);
/* After the join: write what is done behind what was given up. */
void list_finish(struct list *l);
/* A thread has read n bytes; how many all have. */
void list_read(struct list *l, size_t n);
double list_bytes(const struct list *l);
/* One line to standard error about a path, as sha256sum says it. */
void list_error(struct list *l, const char *path, int err);

/* ---- checksum_hash.c ---- */

/* The work of a job.  Returns: 0 and f->digest; EVC_CANCELLED at a stop;
   HASH_OURS; any other code, and f->err says why. */
evc_status hash_file(evc_job *job);
#define HASH_OURS 17 /* the list itself: a code of the application's own */

/* ---- checksum_walk.c ---- */

/* Begin to walk these trees, on the home loop of l->c. */
struct walk *walk_start(struct list *l, char **paths, unsigned n_paths);
/* The list is short again: go on, if it was too long. */
void walk_resume(struct walk *w);
/* The path that it has come to; NULL: it has seen all. */
const char *walk_where(const struct walk *w);
void walk_free(struct walk *w);

/* ---- checksum_out.c ---- */

/* name NULL: standard output.  NULL and a line to standard error. */
struct out *out_open(const char *name, struct bar *bar);
/* 0, or an errno value, also of a write before. */
int out_line(struct out *o, const uint8_t *digest, const char *path);
int out_flush(struct out *o);
/* Is this a file that we write, or are about to replace? */
bool out_is(const struct out *o, const struct stat *st);
/* Flush, and put it in the place of NAME.  o is gone.  An errno value, and lines
   to standard error. */
int out_close(struct out *o);

/* ---- checksum_old.c ---- */

/* Read a list into memory.  NULL and a line to standard error. */
struct old *old_read(const char *name);
/* Its sum of this file, at most once; false: it has none. */
bool old_take(struct old *o, const char *path, uint8_t *ret_digest);
/* Write what nobody has taken. */
int old_write_rest(struct old *o, struct out *out);
void old_free(struct old *o);

#endif
