/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wordcount_count.c - the worker's side of wordcount: one chunk of one file.
 *
 * Its counts become additions to the cluster's variables.  The function is
 * scheduled as a transactional one, so they are made when it has succeeded, all
 * of them and once, together with the mark that this chunk is done.  Where it
 * is killed on the way, nothing of it has happened.
 */
#include "wordcount.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Twice the words that can begin in a chunk. */
#define SLOTS CHUNK

/* A word that was seen, in the text. */
struct seen {
	const char *text;
	unsigned length;
	uint32_t count; /* 0: the slot is free */
};

struct counting {
	/* A byte before the chunk, the chunk, and the rest of a word that
	   begins in it. */
	char text[1 + CHUNK + WORD_MOST];
	size_t n;       /* in text */
	struct seen seen[SLOTS];
};

/* Of the C locale, as tr(1) would say. */
static bool
is_letter(char ch)
{
	return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z');
}

static void
see(struct counting *k, const char *text, unsigned length)
{
	struct seen *s;
	uint32_t hash = 2166136261u;
	unsigned i;

	for (i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)text[i]) * 16777619u;
	for (;; hash++) {
		s = &k->seen[hash % SLOTS];
		if (s->count == 0) {
			s->text = text;
			s->length = length;
			break;
		}
		if (s->length == length &&
		    memcmp(s->text, text, length) == 0)
			break;
	}
	s->count++;
}

/* All words that begin in text[first .. end). */
static void
see_all(struct counting *k, size_t first, size_t end)
{
	size_t at = first, word;

	/* The one before has the rest of a word. */
	if (first > 0 && is_letter(k->text[first - 1]))
		while (at < end && is_letter(k->text[at]))
			at++;
	while (at < end) {
		if (!is_letter(k->text[at])) {
			at++;
			continue;
		}
		for (word = at; at < k->n && is_letter(k->text[at]); at++)
			k->text[at] |= 'a' ^ 'A';
		see(k, k->text + word, at - word < WORD_MOST ?
		    (unsigned)(at - word) : WORD_MOST);
	}
}

/* 0, or an errno value. */
static int
read_text(struct counting *k, const char *path, uint64_t at, size_t n)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err = 0;
	ssize_t got;

	if (fd < 0)
		return errno;
	while (k->n < n) {
		got = pread(fd, k->text + k->n, n - k->n,
			    (off_t)(at + k->n));
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			err = errno;
		if (got <= 0)
			break;
		k->n += (size_t)got;
	}
	close(fd);
	return err;
}

/* The additions. */
static evc_status
put_all(evc_exec *x, const struct counting *k)
{
	char name[KEY_ROOM] = WORD_PREFIX;
	const struct seen *s;
	evc_status st = 0;

	for (s = k->seen; s < k->seen + SLOTS && st == 0; s++) {
		if (s->count == 0)
			continue;
		memcpy(name + strlen(WORD_PREFIX), s->text, s->length);
		name[strlen(WORD_PREFIX) + s->length] = '\0';
		st = evc_exec_variable_add(x, name, s->count, NULL);
	}
	return st;
}

static evc_status
put_done(evc_exec *x, const char *key)
{
	evc_value yes;
	evc_status st = evc_pack(&yes, "b", 1);

	if (st == 0)
		st = evc_exec_variable_set(x, key, &yes);
	evc_value_free(&yes);
	return st;
}

/* A file that cannot be read is no error of the function's, or the rest would
   be cancelled: its name is a variable, once for all of its chunks. */
static evc_status
put_unread(evc_exec *x, const char *path, int err)
{
	uint64_t sum = 14695981039346656037u;
	char name[KEY_ROOM], text[PATH_MAX + 100];
	const char *p;
	evc_value v;
	evc_status st;

	for (p = path; *p; p++)
		sum = (sum ^ (unsigned char)*p) * 1099511628211u;
	snprintf(name, sizeof(name), UNREAD ":%016" PRIx64, sum);
	snprintf(text, sizeof(text), "%s: %s", path, strerror(err));
	st = evc_pack(&v, "s", text);
	if (st == 0)
		st = evc_exec_variable_set(x, name, &v);
	evc_value_free(&v);
	return st ? st : evc_exec_variable_add(x, UNREAD, 1, NULL);
}

/* The first attempt ends here, and the worker with it, as by kill -9. */
static void
kill_worker(evc_exec *x)
{
	evc_exec_info i;

	if (evc_exec_get(x, &i) < 0 || i.attempt > 1)
		return;
	fprintf(stderr, "wordcount: kill -9 %d, which is %s\n", (int)getpid(),
		i.worker);
	raise(SIGKILL);
}

static evc_status
count_in(evc_exec *x, struct counting *k)
{
	char path[PATH_MAX], key[KEY_ROOM];
	uint64_t at, size;
	evc_status st;
	size_t before;
	double nap;
	int err, kill;

	if (evc_exec_unpack(x, COUNT_FORMAT, path, sizeof(path), &at, &size,
			    key, sizeof(key), &nap, &kill) < 0 || size > CHUNK)
		return evc_exec_fail(x, EVC_INVALID_ARGUMENT,
				     "no chunk of a file: %s",
				     evc_last_error());
	before = at > 0;
	err = read_text(k, path, at - before, before + size + WORD_MOST);
	if (err == 0)
		see_all(k, before, before + size < k->n ? before + size : k->n);
	st = err ? put_unread(x, path, err) : put_all(x, k);
	if (st == 0 && kill)
		kill_worker(x);
	if (st == 0 && err == 0 && *key)
		st = put_done(x, key);
	if (st < 0)
		return evc_exec_fail(x, -st, "%s", evc_last_error());
	/* At a stop this does not take long, and what was counted counts. */
	if (nap > 0)
		(void)evc_exec_wait_for_stop(x, nap);
	return 0;
}

static evc_status
count(evc_exec *x, void *arg)
{
	struct counting *k = calloc(1, sizeof(*k));
	evc_status st;

	(void)arg;
	if (k == NULL)
		return evc_exec_fail(x, EVC_RESOURCE_EXHAUSTED, "no memory");
	st = count_in(x, k);
	free(k);
	return st;
}

int
count_worker(const struct options *o)
{
	static const evc_function functions[] = {
		{ .name = COUNT, .fn = count },
	};
	const evc_worker_opts opts = {
		.uri = o ? o->address : NULL,
		.n_workers = o ? o->n_workers : 0,
	};
	evc_status st = evc_worker_main(functions, 1, &opts);

	if (st < 0)
		fprintf(stderr, "wordcount: %s\n", evc_last_error());
	return st == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
