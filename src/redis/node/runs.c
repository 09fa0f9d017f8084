/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions that the workers run, for people: the lines that node.h
 * describes.
 * Called by: lease.c, end.c.
 * Locks: none; loop thread only.
 */
#include "redis/node/node.h"

#define LINE_SIZE 288

static const char *
worker_state_text(const struct local_worker *w, const struct job *job)
{
	if (w->state == WORKER_UP && job != NULL)
		return job->is_def ? "builds" : "runs";
	if (w->state == WORKER_UP)
		return "idle";
	return w->state == WORKER_STARTING ? "starting" : "gone";
}

/* Add a word: bytes that would end a word or a line, or control a terminal, as
   "\xNN".  "-" means no function. */
static void
add_word(struct text *t, const char *p)
{
	bool is_dash = strcmp(p, "-") == 0;

	for (; *p != '\0'; p++) {
		char c[2] = { *p, '\0' };

		if ((unsigned char)*p <= ' ' || *p == 0x7f || *p == '\\' ||
		    is_dash)
			evc__text_fmt(t, "\\x%02x", (unsigned char)*p);
		else
			evc__text_add(t, c);
	}
}

static void
add_line(struct text *t, const struct local_worker *w)
{
	const struct job *job = evc__node_worker_job(w);
	const char *name = job == NULL ? NULL :
			   job->is_def ? job->def.name : job->task.function;

	evc__text_fmt(t, "%u %ld %s ", w->rank, w->pid,
		      worker_state_text(w, job));
	if (name != NULL)
		add_word(t, name);
	evc__text_fmt(t, "%s %u %lld\n", job == NULL ? "-" : "",
		      w->has.n + w->waits.n, (long long)(w->since * 1000));
}

/* NULL: no memory. */
static char *
make_text(const struct session *s)
{
	size_t room = (size_t)s->node->n_workers * LINE_SIZE + 1;
	char *buf = sync_alloc(1, room);
	struct text t;
	unsigned i;

	if (buf == NULL)
		return NULL;
	t = evc__text_in(buf, room);
	for (i = 0; i < s->node->n_workers; i++)
		if (s->workers[i].ranked)
			add_line(&t, &s->workers[i]);
	return buf;
}

const char *
evc__node_runs_new(struct session *s)
{
	char *now = make_text(s);

	if (now == NULL ||
	    (s->lease.runs != NULL && strcmp(s->lease.runs, now) == 0)) {
		sync_free(now);
		return "";
	}
	sync_free(s->lease.runs);
	s->lease.runs = now;
	return now;
}

void
evc__node_runs_lost(struct session *s)
{
	sync_free(s->lease.runs);
	s->lease.runs = NULL;
}
