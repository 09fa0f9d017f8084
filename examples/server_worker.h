/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two blocking threads: one hashes files on disk, one writes the access
 * log.
 */
#ifndef SERVER_WORKER_H
#define SERVER_WORKER_H

#include <evcoord.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NAME_SIZE 128 /* of a file, with its 0 byte */

struct loop;
struct server;

/* Hash one file; memory of whoever asks, untouched until it comes back, but for
   "unwanted". */
struct job {
	struct loop *loop;        /* where done() is to be called */
	void (*done)(void *arg);
	void *arg;
	char name[NAME_SIZE];
	atomic_bool unwanted;     /* set while it is with the hasher */
	int err;                  /* 0, ECANCELED: unwanted, or why the file
				     could not be read */
	uint64_t size;
	unsigned long crc, adler;
};

/* The pipes to and from the threads.  False: errno says why. */
bool pipes_open(struct server *s);
void pipes_close(struct server *s);

/* The threads' functions; arg is the server. */
evc_status hash_thread(evc_coord *c, void *arg);
evc_status log_thread(evc_coord *c, void *arg);

/* Ask for a hash, on the loop that wants it.  False: there are too many. */
bool hash_ask(struct job *job);

/* Let a loop hear of its hashes. */
void hash_listen(struct loop *loop);

/* Log one answer: its status, three digits, and what was asked for. */
void log_answer(struct server *s, const char *status, const char *path,
		size_t len);

#endif
