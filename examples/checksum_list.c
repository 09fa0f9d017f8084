/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * checksum_list.c - all files in their order, from the walk to the output.
 *
 * Files are submitted to the pool in the order of the list, and completed in
 * any order; a line is written when all before it are settled.  Everything here
 * runs on the loop, so there is no lock.
 *
 * At a stop the pool completes every file: those that nobody had begun to hash
 * with EVC_CANCELLED, the others when they are hashed, or given up because they
 * are long.  So in the end the list has holes, and what is done behind them is
 * written as well: nothing that was hashed has to be hashed again.
 */
#include "checksum.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- lines ---- */

void
list_error(struct list *l, const char *path, int err)
{
	bar_clear(&l->bar);
	l->n_failed++;
	fprintf(stderr, "checksum: %s: %s\n", path,
		err == EINVAL ? "Not a regular file or directory" :
				strerror(err));
}

static void
write_line(struct list *l, const struct file *f)
{
	int err = out_line(l->out, f->digest, f->path);

	/* While it stops, out_close says so. */
	if (err && !evc_should_stop(l->c))
		evc_fail(l->c, EVC_DATA_LOSS, err, "cannot write the list: %s",
			 strerror(err));
}

/* The first file is settled, or given up: it leaves the list. */
static void
settle_first(struct list *l)
{
	struct file *f = l->first;

	l->first = f->next;
	if (l->first == NULL)
		l->end = &l->first;
	l->n_ahead--;
	l->n_over++;
	switch (f->state) {
	case FILE_HASHED:
		l->n_hashed++;
		write_line(l, f);
		break;
	case FILE_OLD:
		l->n_old++;
		write_line(l, f);
		break;
	case FILE_FAILED:
		list_error(l, f->path, f->err);
		l->bytes_found -= (double)f->size;
		break;
	case FILE_OURS:
		l->bytes_found -= (double)f->size;
		break;
	case FILE_WAITING: /* its thread is late, see list_finish */
	case FILE_GIVEN_UP:
		l->n_over--;
		if (l->missing == NULL)
			l->missing = strdup(f->path);
		break;
	}
	/* A thread that is late uses it still. */
	if (f->state != FILE_WAITING)
		free(f);
}

/* Write what has come to be its turn. */
static void
advance(struct list *l)
{
	while (l->first && l->first->state != FILE_WAITING &&
	       l->first->state != FILE_GIVEN_UP)
		settle_first(l);
	if (l->n_ahead <= MOST_AHEAD / 2)
		walk_resume(l->walk);
}

void
list_finish(struct list *l)
{
	while (l->first)
		settle_first(l);
}

/* ---- jobs ---- */

/* On the loop: what hash_file has returned; or EVC_CANCELLED, because of the
   stop, when no thread had begun. */
static void
on_done(evc_job *job, evc_status result)
{
	struct file *f = (struct file *)job;

	switch (result) {
	case 0:
		f->state = FILE_HASHED;
		break;
	case EVC_CANCELLED:
		f->state = FILE_GIVEN_UP;
		break;
	case HASH_OURS:
		f->state = FILE_OURS;
		break;
	default:
		f->state = FILE_FAILED;
	}
	advance(f->list);
}

void
list_add(struct list *l, const char *path, off_t size)
{
	size_t n = strlen(path) + 1;
	struct file *f = calloc(1, sizeof(*f) + n);

	if (f == NULL) {
		evc_fail(l->c, EVC_RESOURCE_EXHAUSTED, ENOMEM,
			 "no memory for the list");
		return;
	}
	memcpy(f->path, path, n);
	f->list = l;
	f->size = size;
	f->job.work = hash_file;
	f->job.done = on_done;
	*l->end = f;
	l->end = &f->next;
	l->n_ahead++;
	l->n_found++;
	if (l->old && old_take(l->old, path, f->digest)) {
		f->state = FILE_OLD;
		advance(l);
		return;
	}
	l->bytes_found += (double)size;
	if (evc_pool_submit(l->pool, evc_home(l->c), &f->job) < 0) {
		f->state = FILE_GIVEN_UP;
		if (!evc_should_stop(l->c))
			evc_fail(l->c, EVC_RESOURCE_EXHAUSTED, 0,
				 "cannot hash %s: %s", path, evc_last_error());
	}
}

bool
list_is_long(const struct list *l)
{
	return l->n_ahead >= MOST_AHEAD;
}

/* ---- how far it is ---- */

/* The one thing that all threads write to: the bar is to move inside of long
   files, too. */
void
list_read(struct list *l, size_t n)
{
	atomic_fetch_add_explicit(&l->bytes_read, n, memory_order_relaxed);
}

double
list_bytes(const struct list *l)
{
	return (double)atomic_load_explicit(&l->bytes_read,
					    memory_order_relaxed);
}
