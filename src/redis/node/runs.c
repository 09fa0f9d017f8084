/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the node's workers run, for people: the lines that node.h describes.
 */
#include "redis/node/node.h"

#define LINE_ROOM 288

static const char *
state_of(const struct slot *s)
{
	if (s->state == SLOT_UP)
		return s->has.n > 0 ? "runs" : "idle";
	return s->state == SLOT_STARTING ? "starting" : "gone";
}

/* One word, whatever it is: what would end a word or a line, or do something to a
   terminal, as "\xNN"; and "-" means none. */
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
add_line(struct text *t, const struct slot *s)
{
	const struct work *w = s->has.first;

	evc__text_fmt(t, "%u %ld %s ", s->rank, s->pid, state_of(s));
	if (w != NULL && w->task.function != NULL)
		add_word(t, w->task.function);
	evc__text_fmt(t, "%s %u %lld\n", w == NULL ? "-" : "",
		      s->has.n + s->waits.n, (long long)(s->since * 1000));
}

/* NULL: no memory. */
static char *
make(const struct life *l)
{
	size_t room = (size_t)l->node->n_workers * LINE_ROOM + 1;
	char *buf = sync_alloc(1, room);
	struct text t;
	unsigned i;

	if (buf == NULL)
		return NULL;
	t = evc__text_in(buf, room);
	for (i = 0; i < l->node->n_workers; i++)
		if (l->slots[i].ranked)
			add_line(&t, &l->slots[i]);
	return buf;
}

const char *
evc__node_runs_new(struct life *l)
{
	char *now = make(l);

	if (now == NULL || (l->runs != NULL && strcmp(l->runs, now) == 0)) {
		sync_free(now);
		return "";
	}
	sync_free(l->runs);
	l->runs = now;
	return now;
}

void
evc__node_runs_lost(struct life *l)
{
	sync_free(l->runs);
	l->runs = NULL;
}
