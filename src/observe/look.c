/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A report's look at threads: the kernel's view, and stacks.  Nothing of any
 * coordinator is held or touched here.  A thread may have ended meanwhile: then
 * the report says less about the thread.
 * Called by: facts.c.
 * Locks: none; the facts belong to the caller.
 */
#include "observe/facts.h"

/* A report may not take for ever either. */
#define STACKS_MOST 64
#define ALL_STACKS_NS UINT64_C(1000000000)

struct looking {
	struct evc__facts *first;
	bool all;          /* also threads where no stop stands */
	uint64_t end; /* end of the time for stacks; 0: none was taken yet */
	unsigned n_stacks;
};

static void
take_stack(struct looking *k, struct evc__facts_thread *t)
{
	uint64_t now, most = EVC__STACK_NS;

	if (evc__stack_signal() == 0) {
		k->first->no_signal = true;
		return;
	}
	now = sync_mono();
	if (k->end == 0)
		k->end = now + ALL_STACKS_NS;
	if (k->n_stacks == STACKS_MOST || now >= k->end) {
		k->first->stacks_left++;
		t->left = true;
		t->no_stack = "others were taken first";
		return;
	}
	k->n_stacks++;
	most = k->end - now < most ? k->end - now : most;
	t->n_frames = evc__stack_take(t->tid, t->frame, FACTS_FRAMES, most,
				      &t->no_stack);
	if (t->n_frames > 0)
		t->no_stack = NULL;
}

static struct evc__facts_thread *
look_at(struct looking *k, int tid, const struct evc__facts *in,
	const void *owner, evc_id id)
{
	struct evc__facts_thread *t = sync_alloc(1, sizeof *t);
	int signo = evc__stack_signal();

	if (t == NULL) {
		k->first->lost_threads = true;
		return NULL;
	}
	t->next = k->first->threads;
	k->first->threads = t;
	t->tid = tid;
	t->owner = owner;
	t->in = in;
	t->id = id;
	t->known = evc__proc_read(tid, &t->proc);
	take_stack(k, t);
	/* A thread that has just answered may still be in the handler, where
	   all signals are blocked. */
	t->deaf = signo != 0 && t->n_frames == 0 &&
		  (t->proc.blocked >> (signo - 1) & 1);
	return t;
}

/* A loop's thread is often a member as well, perhaps of a coordinator above. */
static struct evc__facts_thread *
find_thread(const struct evc__facts *f, int tid)
{
	unsigned i;

	for (; f != NULL; f = f->up) {
		for (i = 0; i < f->n_members; i++)
			if (f->members[i].thread != NULL &&
			    f->members[i].tid == tid)
				return f->members[i].thread;
		for (i = 0; i < f->n_loops; i++)
			if (f->loops[i].thread != NULL &&
			    f->loops[i].tid == tid)
				return f->loops[i].thread;
	}
	return NULL;
}

static void
look_at_loop(struct looking *k, struct evc__facts *f, struct evc__facts_loop *l)
{
	bool late = l->state == LOOP_SILENT || l->state == LOOP_BUSY ||
		    (l->state == LOOP_HELD && l->awaited &&
		     (f->word & WORD_FLAG));

	if (l->state == LOOP_DESTROYED || (!late && !k->all))
		return;
	l->thread = find_thread(f, l->tid);
	if (l->thread == NULL)
		l->thread = look_at(k, l->tid, f, l, 0);
}

static void
look_at_member(struct looking *k, struct evc__facts *f, struct evc__seen *m,
	       bool hooks)
{
	if (m->tid == 0 || m->info.state != EVC_LIVE ||
	    (m->info.kind == EVC_HOOK) != hooks)
		return;
	if (hooks)
		m->thread = find_thread(f, m->tid);
	if (m->thread == NULL)
		m->thread = look_at(k, m->tid, f, m, m->info.id);
}

/* Members first: a running hook is on the thread of a member or of a loop. */
static void
look_at_members(struct looking *k, struct evc__facts *f, bool hooks)
{
	unsigned i;

	for (i = 0; i < f->n_members; i++)
		look_at_member(k, f, &f->members[i], hooks);
	look_at_member(k, f, &f->ended, hooks);
}

static void
look_at_all(struct looking *k, struct evc__facts *f)
{
	bool members = k->all || (f->word & WORD_FLAG);
	struct evc__facts *s;
	unsigned i;

	if (members)
		look_at_members(k, f, false);
	for (i = 0; i < f->n_loops; i++)
		look_at_loop(k, f, &f->loops[i]);
	if (members)
		look_at_members(k, f, true);
	for (s = f->below; s != NULL; s = s->next)
		look_at_all(k, s);
}

void
evc__facts_look(struct evc__facts *f, bool all)
{
	struct looking k = { .first = f, .all = all };

	look_at_all(&k, f);
}
