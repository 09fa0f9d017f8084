/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life of a coordinator.
 */
#include "base/self.h"
#include "base/text.h"
#include "core/join.h"

#define REASONS_DEFAULT 32
#define REASONS_MOST 254

_Static_assert(offsetof(struct evc_coord, word) == 0,
	       "evcoord/coord.h reads the word at offset 0");
_Static_assert(sizeof(evc_task) <= 64, "a task is 64 bytes for ever");

uint64_t
evc__now(const evc_coord *c)
{
	return c->clock != NULL ? c->clock(c->arg) : sync_mono();
}

static evc_status
check_config(const evc_config *k)
{
	unsigned i;

	if (evc__check_room(k->reserved_, "evc_new") < 0 ||
	    evc__check_grace(k->grace, "evc_new") < 0)
		return -EVC_INVALID_ARGUMENT;
	if (k->flags & ~(unsigned)(EVC_STRICT_SETUP | EVC_NO_CLEAN_CODES))
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "evc_new: unknown flags %#x", k->flags);
	if (k->max_reasons > REASONS_MOST)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "evc_new: max_reasons is %d at most",
				   REASONS_MOST);
	if (k->n_clean > 0 && k->clean == NULL)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "evc_new: n_clean without clean");
	if (k->n_clean > 0 && (k->flags & EVC_NO_CLEAN_CODES))
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "evc_new: a list of clean codes, and "
				   "EVC_NO_CLEAN_CODES");
	for (i = 0; i < k->n_clean; i++)
		if (k->clean[i] < 0 || k->clean[i] > 255)
			return evc__refuse(-EVC_INVALID_ARGUMENT,
					   "evc_new: clean code %d is none",
					   k->clean[i]);
	return evc__check_name(k->name, "evc_new");
}

static void
set_clean(evc_coord *c, evc_status code)
{
	c->clean[code / 64] |= UINT64_C(1) << (code % 64);
}

static void
configure(evc_coord *c, const evc_config *k)
{
	evc_status code;
	unsigned i;

	evc__copy(c->name, sizeof c->name,
		  k->name != NULL && k->name[0] != '\0' ? k->name : "coord");
	c->grace = k->grace;
	c->flags = k->flags;
	c->log = k->log;
	c->clock = k->clock;
	c->arg = k->arg;
	c->n_slots = k->max_reasons != 0 ? k->max_reasons : REASONS_DEFAULT;
	if (c->n_slots < 2)
		c->n_slots = 2;
	set_clean(c, EVC_OK);
	for (i = 0; i < k->n_clean; i++)
		set_clean(c, k->clean[i]);
	if (k->n_clean == 0 && !(k->flags & EVC_NO_CLEAN_CODES))
		set_clean(c, EVC_OUT_OF_RANGE);
	/* Asked once, here: a request may come in a signal handler. */
	for (code = 1; k->is_clean != NULL && code <= 255; code++)
		if (k->is_clean(code, k->arg))
			set_clean(c, code);
}

/* What is left when nobody else can reach it. */
static void
destroy(evc_coord *c)
{
	struct evc__chunk *k = sync_load(&c->chunk.next), *next;

	for (; k != NULL; k = next) {
		next = sync_load(&k->next);
		sync_free(k);
	}
	evc__stop_fd_close(c);
	sync_lock_destroy(&c->lock);
	sync_free(c->id_table);
	sync_free(c->slot);
	sync_free((void *)c->slot_word);
	sync_free(c);
}

static evc_status
build(evc_coord *c, const evc_config *k, struct ev_loop *home)
{
	configure(c, k);
	c->fork_generation = sync_load(&evc__fork_generation);
	sync_store(&c->stop_fd, -1);
	sync_lock_init(&c->lock);
	list_init(&c->members);
	list_init(&c->hooks);
	list_init(&c->reactors);
	list_init(&c->joins);
	c->slot_word = sync_alloc(c->n_slots, sizeof *c->slot_word);
	c->slot = sync_alloc(c->n_slots, sizeof *c->slot);
	if (c->slot_word == NULL || c->slot == NULL)
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				   "evc_new: no memory");
	return home != NULL ?
		       evc__reactor_attach(c, "home", home, &c->home) :
		       0;
}

evc_status
evc_new(struct ev_loop *home, const evc_config *cfg, evc_coord **ret_c)
{
	static const evc_config none;
	const evc_config *k = cfg != NULL ? cfg : &none;
	evc_status st;
	evc_coord *c;

	if (ret_c == NULL)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "evc_new: no place for the coordinator");
	st = check_config(k);
	if (st < 0)
		return st;
	c = sync_alloc_aligned(_Alignof(struct evc_coord), sizeof *c);
	if (c == NULL || !evc__fork_watch()) {
		sync_free(c);
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				   "evc_new: no memory");
	}
	st = build(c, k, home);
	if (st < 0) {
		destroy(c);
		return st;
	}
	*ret_c = c;
	return 0;
}

/* Lock held: why c may not be freed now, in buf perhaps; NULL: it may. */
static const char *
why_not(evc_coord *c, char *buf, size_t room)
{
	char names[96];
	struct text t = evc__text_in(buf, room);
	struct list *n, *tmp;

	if (evc__names(c, NULL, false, 0, names, sizeof names) > 0) {
		evc__text_add(&t, "still alive: ");
		evc__text_add(&t, names);
		return buf;
	}
	/* Blocking joins that are answered only have to leave the gate. */
	LIST_EACH(n, tmp, &c->joins) {
		struct evc__join *j = LIST_OF(n, struct evc__join, node);

		if (!j->answered || j->reactor != NULL)
			return "a join waits";
	}
	if (sync_load_sc(&c->n_waiters) > 0 && !evc_should_stop(c))
		return "a thread waits for the stop, and none was asked for";
	if (evc__helper_is_self(c))
		return "inside a stop hook";
	LIST_EACH(n, tmp, &c->hooks) {
		struct evc__hook *h = HOOK_OF(n);

		if (h->running == evc__tid())
			return "inside a stop hook";
	}
	LIST_EACH(n, tmp, &c->reactors) {
		evc_reactor *r = LIST_OF(n, evc_reactor, node);

		if (r->tid != evc__tid() && (r->loop != NULL || r->leaving)) {
			evc__text_add(&t, "another thread's loop is attached: ");
			evc__text_add(&t, r->name);
			return buf;
		}
		if (r->driver != NULL)
			return "its loop is being run";
	}
	return NULL;
}

/* Nobody but those inside the gate, and the helper, can reach c. */
static void
take_down(evc_coord *c)
{
	/* Handlers first: they could ask for a stop. */
	if (c->release_signals != NULL)
		c->release_signals(c);
	/* Ends, joins and waits that are just returning on other threads - or
	   that were about to sleep: those see that the word has changed, and
	   then that the gate is shut. */
	evc__gate_shut(&c->gate);
	sync_or(&c->word, WORD_CLOSING);
	evc__wake_waiters(c);
	evc__gate_close(&c->gate);
	/* The helper before the hooks: it may be running one. */
	evc__helper_end(c);
	while (!list_empty(&c->reactors))
		evc__reactor_release(
			LIST_OF(c->reactors.next, evc_reactor, node));
	sync_lock(&c->lock);
	evc__hooks_drop(c, NULL);
	/* Threads that rang between the two looks of evc_free: joined by the
	   second one, and still in the chain. */
	evc__members_reap(c, 0);
	sync_unlock(&c->lock);
	destroy(c);
}

evc_status
evc_free(evc_coord *c)
{
	evc_status st;
	const char *why;
	char buf[128];

	if (c == NULL)
		return 0;
	st = evc__check(c, __func__);
	if (st < 0)
		return st;
	evc__log_errors(c);
	sync_lock(&c->lock);
	evc__members_refresh(c);
	why = why_not(c, buf, sizeof buf);
	sync_unlock(&c->lock);
	if (why != NULL)
		return evc__refuse(-EVC_FAILED_PRECONDITION, "evc_free: %s",
				   why);
	take_down(c);
	return 0;
}

#define EXIT_LATE 124 /* what timeout(1) says */

int
evc_finish(evc_coord *c, evc_status result)
{
	/* An error may carry that code as well; it is not lateness. */
	bool error = c != NULL && WORD_ERR_CODE(sync_load(&c->word)) != 0;

	evc_free(c);
	if (result == 0)
		return 0;
	return result == EVC_DEADLINE_EXCEEDED && !error ? EXIT_LATE : 1;
}

/* One word, so that no handler that was held up can mix its time with another's:
   microseconds, and the low bits of the number of the stop they belong to. */
#define HURRY_BITS 12
#define HURRY_STOP(stop) ((uint64_t)(stop) & ((1u << HURRY_BITS) - 1))

void
evc__hurry(evc_coord *c, uint32_t stop)
{
	uint64_t now = (evc__now(c) + 999) / 1000 << HURRY_BITS |
		       HURRY_STOP(stop);
	uint64_t old = sync_load(&c->hurry), newer;

	do {
		newer = HURRY_STOP(HURRY_STOP(old) - stop);
		/* The first one of a stop counts, and a later stop's. */
		if (old != 0 && newer < 1u << (HURRY_BITS - 1))
			return;
	} while (!sync_cas(&c->hurry, &old, now));
	evc__ring(c);
}

void
evc__hurry_forget(evc_coord *c, uint32_t stop)
{
	uint64_t h = sync_load(&c->hurry);

	/* That one's, or an older one's that came late. */
	if (h != 0 && HURRY_STOP(stop - HURRY_STOP(h)) < 1u << (HURRY_BITS - 1))
		(void)sync_cas(&c->hurry, &h, 0);
}

uint64_t
evc__hurried(const evc_coord *c, uint32_t stop)
{
	uint64_t h = sync_load_sc(&c->hurry);

	if (h == 0 || HURRY_STOP(h) != HURRY_STOP(stop))
		return 0;
	h = (h >> HURRY_BITS) * 1000;
	return h != 0 ? h : 1;
}
