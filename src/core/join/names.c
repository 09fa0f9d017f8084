/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The names of the members that keep a join waiting.  A text that is too short
 * for all names ends with the number of the others.  The thread of a loop that
 * only waits for its tasks is not named: its tasks are.
 *
 * Called by: verdict.c; free, clear and reports.
 * Locks: the coordinator's is held, the scopes' are taken below.
 */
#include <stdlib.h>

#include "base/text.h"
#include "core/core.h"
#include "core/join/scope_join.h"
#include "core/loop/post.h"
#include "core/join/join.h"

struct names {
	struct text t;
	size_t room;
	unsigned n, cut;
	const struct evc__look *l;
	char path[96]; /* "scope/" of the scopes around */
	uint64_t word;
};

/* How many bytes may still be added, with space kept for the note of how many
   were cut. */
static size_t
room_left(const struct names *a)
{
	size_t used = a->t.len + sizeof " and 4294967295 more";

	return a->room > used ? a->room - used : 0;
}

/* The first name does not fit: the names of scopes give way, then the end of
   the name. */
static bool
add_cut(struct names *a, const char *one_name)
{
	size_t path = strlen(a->path);
	char short_name[256], cut[256];
	struct text t = evc__text_in(short_name, sizeof short_name);

	if (room_left(a) < 8)
		return false;
	evc__text_add(&t, path > 0 ? ".../" : "");
	evc__text_add(&t, one_name + path);
	evc__copy_dots(cut, room_left(a) + 1 < sizeof cut ? room_left(a) + 1
							  : sizeof cut,
		       short_name);
	evc__text_add(&a->t, cut);
	return true;
}

/* true: the name was added. */
static bool
add_alive(struct names *a, const char *prefix, const char *name,
	  const char *suffix, unsigned many)
{
	char one_name[288];
	struct text o = evc__lines_in(one_name, sizeof one_name);
	bool first = a->t.len == 0 && a->cut == 0, fits;

	evc__text_add(&o, a->t.len > 0 ? ", " : "");
	evc__text_add(&o, a->path);
	evc__text_add(&o, prefix);
	evc__text_add(&o, name);
	evc__text_add(&o, suffix);
	a->n += many;
	fits = a->cut == 0 && o.len <= room_left(a);
	if (fits)
		evc__text_add(&a->t, one_name);
	else if (!first || !add_cut(a, one_name))
		a->cut += many;
	return fits;
}

/* A note for members of a loop that has not turned since the stop: the loop is
   the reason for their lateness. */
static const char *
silent_note(const struct names *a, const evc_reactor *r)
{
	return (a->word & WORD_FLAG) &&
			       sync_load(&r->heard) != WORD_STOP_NUMBER(a->word)
		       ? " (loop silent)"
		       : "";
}

static void
add_posts(struct names *a, const evc_reactor *r)
{
	uint32_t n = sync_load_sc(&r->inbox->n);
	char what[64];
	struct text t = evc__text_in(what, sizeof what);

	if (n == 0)
		return;
	evc__text_int(&t, n);
	evc__text_add(&t, n == 1 ? " post on " : " posts on ");
	add_alive(a, what, r->name, silent_note(a, r), n);
}

/* An end of a task since the loop made the texts may have been the end of one of
   these. */
const struct evc__task_text *
evc__task_text_next(const evc_reactor *r, unsigned *i,
		    const struct evc__task_count *k, uint32_t n,
		    double *ret_age)
{
	const struct evc__task_texts *x = &r->texts;
	uint64_t w = sync_load_sc(&r->c->word), now;

	if (!(w & WORD_FLAG) || x->stop != WORD_STOP_NUMBER(w) ||
	    x->n_after != sync_load_relaxed(&r->n_after))
		return NULL;
	while (*i < x->n) {
		const struct evc__task_text *y = &x->of[(*i)++];

		if (y->count != k || y->n != n)
			continue;
		now = evc__now(r->c);
		*ret_age = y->age +
			   (now > x->ns ? (double)(now - x->ns) / 1e9 : 0);
		return y;
	}
	return NULL;
}

/* " (192.0.2.1:4711, 6.2 s; 192.0.2.2:80, 5.9 s)": the oldest of the n tasks of
   a class. */
static void
add_texts(struct names *a, const evc_reactor *r,
	  const struct evc__task_count *k, uint32_t n)
{
	const struct evc__task_text *y;
	const char *mark = " (";
	unsigned i = 0;
	double age;

	while ((y = evc__task_text_next(r, &i, k, n, &age)) != NULL) {
		char one_text[96];
		struct text o = evc__lines_in(one_text, sizeof one_text);

		evc__text_fmt(&o, "%s%s%s%.1f s", mark, y->text,
			      y->text[0] != '\0' ? ", " : "", age);
		if (o.len >= sizeof one_text || o.len + 1 > room_left(a))
			break;
		evc__text_add(&a->t, one_text);
		mark = "; ";
	}
	if (mark[0] == ';')
		evc__text_add(&a->t, ")");
}

static void
add_tasks(struct names *a, const evc_reactor *r)
{
	const char *wrong = evc__tasks_wrong(r);
	char what[64];
	unsigned i;

	for (i = 0; i <= TASK_CLASSES; i++) {
		const evc_task_class *k = sync_load(&r->count[i].cls);
		uint32_t n = sync_load(&r->count[i].n);
		struct text t = evc__text_in(what, sizeof what);
		const char *note =
			wrong[0] != '\0' ? wrong : silent_note(a, r);

		if (n == 0)
			continue;
		evc__text_int(&t, n);
		evc__text_add(&t, n == 1 ? " task " : " tasks ");
		evc__text_add(&t, k != NULL && k->name != NULL ? k->name
							       : "of others");
		evc__text_add(&t, " on ");
		if (add_alive(a, what, r->name, note, n) && note[0] == '\0')
			add_texts(a, r, &r->count[i], n);
	}
}

struct looper_names {
	struct names *a;
	const evc_reactor *r;
};

static void
add_alive_looper(const struct evc__looper_view *v, void *arg)
{
	struct looper_names *n = arg;

	if (v->alive)
		add_alive(n->a, "", v->name, silent_note(n->a, n->r), 1);
}

/* Does a loop of this thread have tasks, and turn?  A loop that does not turn
   when a join asks is itself late. */
static bool
waits_for_tasks(evc_coord *c, int tid)
{
	uint64_t w = sync_load_sc(&c->word);
	struct list *n, *tmp;
	bool yes = false;

	LIST_EACH(n, tmp, &c->loop.reactors)
	{
		const evc_reactor *r = LIST_OF(n, evc_reactor, node);

		yes |= r->tid == tid && sync_load(&r->n_tasks) > 0 &&
		       (w & WORD_FLAG) &&
		       r->texts.stop == WORD_STOP_NUMBER(w) &&
		       r->texts.ns >= r->asked_ns &&
		       sync_load_relaxed(&r->busy_kind) == BUSY_APPLICATION;
	}
	LIST_EACH(n, tmp, &c->scopes)
	{
		if (yes)
			break;
		if (!evc__lock_tree(SCOPE_OF(n)))
			continue;
		yes = waits_for_tasks(SCOPE_OF(n), tid);
		sync_unlock(&SCOPE_OF(n)->lock);
	}
	return yes;
}

/* A thread, with the text of its progress; a hold; a runner. */
static void
add_member(struct names *a, evc_coord *c, const struct evc__member *m)
{
	const char *said = sync_load_relaxed(&m->mark.text);
	char what[112];
	struct text t = evc__text_in(what, sizeof what);

	if (m->n_waits > 0 && m->tid != 0 && waits_for_tasks(c, m->tid)) {
		a->n++;
		return;
	}
	if (said != NULL && said[0] != '\0') {
		evc__text_add(&t, " (");
		evc__text_add(&t, said);
		evc__text_add(&t, ")");
	}
	add_alive(a, "", m->name, what, 1);
}

static void
add_own(struct names *a, evc_coord *c)
{
	struct list *n, *tmp;

	a->word = sync_load_sc(&c->word);
	LIST_EACH(n, tmp, &c->member.all)
	{
		struct evc__member *m = LIST_OF(n, struct evc__member, node);

		if (a->l->live && sync_load(&m->state) != EVC_LIVE)
			continue;
		if (evc__keeps_waiting(a->l->top, m, a->l->self))
			add_member(a, c, m);
	}
	if (c->life.held)
		add_alive(a, "", "set-up not finished", "", 1);
	if (c->wake.n_echoes > 0)
		add_alive(a, "", "unblock of a member that has ended", "",
			  c->wake.n_echoes);
	if (c->member.n_awaited > 0)
		add_alive(a, "", "release of a member that has ended", "",
			  c->member.n_awaited);
	LIST_EACH(n, tmp, &c->loop.reactors)
	{
		evc_reactor *r = LIST_OF(n, evc_reactor, node);
		struct looper_names l = { a, r };

		add_tasks(a, r);
		add_posts(a, r);
		if (r->n_loopers > 0)
			r->looper_ops->each(r, add_alive_looper, &l);
	}
	if (a->l->hooks)
		LIST_EACH(n, tmp, &c->loop.hooks)
		{
			const struct evc__hook *h = HOOK_OF(n);

			if (evc__hook_keeps_waiting(c, h, a->l->not_of))
				add_alive(a, "hook ", h->m.name,
					  h->reactor != NULL
						  ? silent_note(a, h->reactor)
						  : "",
					  1);
		}
}

static void
add_below(struct names *a, evc_coord *c)
{
	size_t len = strlen(a->path);
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &c->scopes)
	{
		evc_coord *s = SCOPE_OF(n);
		struct text t;

		if (sync_load_sc(&s->stop.alive) == 0 && evc__nothing_to_call(s))
			continue;
		if (!evc__lock_tree(s)) {
			add_alive(a, "", s->name, " (its lock is held)", 1);
			continue;
		}
		t = evc__text_in(a->path + len, sizeof a->path - len);
		evc__text_add(&t, s->name);
		if (c->join.n_phased > 0) {
			evc__text_add(&t, " (phase ");
			evc__text_int(&t, s->join.phase);
			evc__text_add(&t, ")");
		}
		evc__text_add(&t, "/");
		add_own(a, s);
		/* While members run, the callback only waits for them. */
		if (a->l->hooks && sync_load_sc(&s->stop.alive) == 0 &&
		    evc__scope_join_due(s, abs(a->l->not_of)))
			add_alive(a, "callback ", "ended", "", 1);
		add_below(a, s);
		a->path[len] = '\0';
		sync_unlock(&s->lock);
	}
}

static unsigned
list_names(evc_coord *c, const struct evc__look *l, bool below, char *buf,
	   size_t room)
{
	struct names a = { .t = evc__text_in(buf, room),
			   .room = room,
			   .l = l };

	add_own(&a, c);
	if (below)
		add_below(&a, c);
	if (a.cut > 0) {
		evc__text_add(&a.t, a.t.len > 0 ? " and " : "");
		evc__text_int(&a.t, a.cut);
		evc__text_add(&a.t, " more");
	}
	return a.n;
}

unsigned
evc__names(evc_coord *c, const struct evc__member *self, bool hooks,
	   int hooks_not_of, char *buf, size_t room)
{
	struct evc__look l = { c, self, hooks, hooks_not_of, false };

	return list_names(c, &l, true, buf, room);
}

unsigned
evc__names_of(evc_coord *c, bool below, char *buf, size_t room)
{
	struct evc__look l = { c, NULL, false, 0, false };

	return list_names(c, &l, below, buf, room);
}

unsigned
evc__names_live(evc_coord *c, bool all, char *buf, size_t room)
{
	struct evc__look l = { c, NULL, all, 0, true };

	return list_names(c, &l, all, buf, room);
}
