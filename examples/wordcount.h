/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wordcount.h - what the parts of wordcount know of each other.
 *
 *   wordcount.c          the program: the loop, the end
 *   wordcount_options.c  the command line
 *   wordcount_files.c    finds the files, and what is left to do of them
 *   wordcount_count.c    counts the words of one chunk: what a worker runs
 *   wordcount_words.c    the sums, taken from the cluster and printed
 */
#ifndef EXAMPLES_WORDCOUNT_H
#define EXAMPLES_WORDCOUNT_H

#include <evcoord.h>
#include <evcoord/cluster.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bar.h"

#define WORKERS_MOST 256 /* of -n */
#define PLACES_MOST 1024 /* of any cluster */
/* Bytes of a chunk.  A word belongs to the chunk that it begins in, so nobody
   has to look for borders first. */
#define CHUNK 65536
/* Letters of a word; of a longer one only these count. */
#define WORD_MOST 250
/* The name of a variable, with its 0 byte. */
#define KEY_ROOM 256

struct options {
	unsigned n_workers, n_kill, top; /* top 0: all */
	const char *checkpoint;
	double every, nap, wait;
	bool bar, is_verbose;
	const char *address;  /* of a cluster with workers of its own; NULL */
	bool is_worker;       /* be workers there */
	char **paths;
	unsigned n_paths;
};

struct file {
	char *path;
	uint64_t size;
	unsigned tree;  /* of which argument: two may have the same path */
};

struct chunk {
	uint32_t file;  /* which one */
	uint64_t at;    /* bytes from its beginning */
};

/* What there is to count. */
struct files {
	struct file *files;
	struct chunk *chunks; /* left to do */
	size_t n_files, n_chunks, n_old; /* n_old: a checkpoint has them */
	size_t n_unread; /* files and directories that could not be read */
};

struct word {
	char *text;
	uint64_t count;
};

struct words {
	struct word *words; /* in their order */
	size_t n;
};

struct wordcount {
	const struct options *o;
	evc_coord *c;
	evc_cluster *cluster;   /* NULL: it is over */
	evc_pool *pool;         /* one thread, which waits for variables */
	evc_job job;            /* what it does */
	bool is_old;            /* a checkpoint was there */
	bool is_planned;        /* files.chunks is what is left to do */
	struct files files;
	size_t next;            /* the chunk to be scheduled */
	bool is_up[PLACES_MOST]; /* its workers */
	unsigned n_lost;
	struct bar bar;
	/* at the end */
	bool is_over;
	evc_status result;      /* of the cluster */
	char why[256];          /* it is not 0 */
	char unsaved[256];      /* why the last checkpoint was not written */
	evc_cluster_info info;
	struct words words, unread;
	uint64_t n_unread;      /* chunks */
	double began, took;
};

/* A line to standard error; beside a bar, too. */
void say(struct wordcount *w, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- wordcount_options.c ---- */

/* Ends the program when they are wrong. */
void options_read(struct options *o, int argc, char **argv);

/* ---- wordcount_files.c ---- */

/* All files in these trees, and a line to standard error for what cannot be
   read; false, and one as well: no memory. */
bool files_find(struct files *f, char **paths, unsigned n_paths);
/* A checkpoint knows what it is of: of something else its sums would be wrong,
   and this is -EVC_ABORTED. */
evc_status files_compare(evc_cluster *cluster, char **paths,
			 unsigned n_paths);
/* What is left to do, as far as the cluster's variables know; NULL: all.  false:
   no memory. */
bool files_plan(struct files *f, evc_cluster *cluster);
/* The variable that says that a chunk is done. */
void files_key(char key[KEY_ROOM], const struct files *f,
	       const struct chunk *c);
void files_free(struct files *f);

/* ---- wordcount_count.c ---- */

/* The function that counts: [PATH, AT, SIZE, KEY, NAP, KILL].  With KILL the
   first attempt kills its worker in the middle of the chunk. */
#define COUNT "count"
#define COUNT_FORMAT "[s U U s d b]"
/* Be a worker, or, by these options, a node of that address, which starts workers:
   the exit status. */
int count_worker(const struct options *o);

/* ---- wordcount_words.c ---- */

/* The variable of a word is this and the word. */
#define WORD_PREFIX "w:"
/* How many chunks could not be read; with ":" and more behind it, a file of
   theirs, and why. */
#define UNREAD "unread"
/* From the cluster's variables: words, unread, n_unread. */
evc_status words_collect(struct wordcount *w);
/* Remove the variables whose names begin like this: those of a run before,
   which a server or a checkpoint has kept. */
evc_status words_forget(evc_cluster *cluster, const char *prefix);
/* The most frequent ones; top 0: all, in the order of the words.  0, or an
   errno value. */
int words_print(struct words *words, unsigned top);
void words_free(struct words *words);

#endif
