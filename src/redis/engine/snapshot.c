/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Snapshots: all variables at one moment, the moment of the mark, while they
 * change.  See protocol.h for the mark.
 *
 * Called by: variables.c, turn.c, restart.c.
 * Locks: none; loop thread only.
 */
#include "redis/engine/engine.h"

#include <inttypes.h>

/*
 *     BEGIN --mark--> SCAN var --> PRE, the changes --> END --ok--> over
 *       ^  \--few variables: over                        |
 *       +------------ the mark is gone ------------------+
 *
 * The pieces of SCAN and PRE are plain reads.  No mark is set twice, so a mark
 * standing at the end has stood all the time, and pre has each variable changed
 * before SCAN came to its name.  After a lost connection the same piece is read
 * again, which does no harm.  In a new generation, or after a restart of the
 * server, the snapshot begins anew.
 */

/* The server needs about a millisecond for a piece of these limits. */
#define COUNT_FIRST 32
#define COUNT_MOST 500
#define PIECE_BYTES ((size_t)256 << 10)

static evc_engine_question *
take_first(struct snapshots *s)
{
	evc_engine_question *q = s->first;

	s->first = q->next;
	if (s->first == NULL)
		s->end = &s->first;
	s->step = SNAPSHOT_BEGIN;
	s->tries = 0;
	evc__vectors_free(&s->vectors);
	return q;
}

/* ---- the script ---- */

bool
evc__snapshot_script(struct redis_engine *e, const char *what,
		     redis_reply_fn *fn)
{
	struct redis_args a = { 0 };

	evc__args_key(&a, &e->address, "gen");
	evc__args_key(&a, &e->address, "coord");
	evc__args_key(&a, &e->address, "var");
	evc__args_key(&a, &e->address, "count");
	evc__args_key(&a, &e->address, "pre");
	evc__redis_own_key(e, &a, "seqs");
	evc__args_text(&a, e->lock.g_text);
	evc__args_text(&a, e->id);
	evc__args_text(&a, what);
	evc__args_fmt(&a, "%" PRIu64, e->snapshots.number);
	evc__args_fmt(&a, "%d", COUNT_FIRST);
	return evc__redis_script(e->client, SCRIPT_ALL, 6, fn, e, &a);
}

static void
on_dropped(const redisReply *r, void *arg)
{
	struct redis_engine *e = arg;

	e->snapshots.dropping = false;
	if (r != NULL)
		e->snapshots.left = false;
}

/* A mark left over by a lost connection is dropped on the next one, unless the
   next snapshot or generation has removed the mark before. */
static void
drop_left(struct redis_engine *e)
{
	struct snapshots *s = &e->snapshots;

	if (s->left && !s->dropping && e->up && e->client != NULL)
		s->dropping = evc__snapshot_script(e, "drop", on_dropped);
}

static void
drop_mark(struct redis_engine *e)
{
	e->snapshots.left |= e->snapshots.step != SNAPSHOT_BEGIN;
	drop_left(e);
}

/* ---- ends ---- */

static void
fail_first(struct redis_engine *e, evc_status st, const char *why)
{
	drop_mark(e);
	evc__question_answer(take_first(&e->snapshots), st, why);
	evc__snapshot_go_on(e);
}

static void
fail_with_error(struct redis_engine *e, const redisReply *r)
{
	drop_mark(e);
	evc__question_error(take_first(&e->snapshots), r);
	evc__snapshot_go_on(e);
}

static void
complete(struct redis_engine *e)
{
	const evc_engine_answer a = { .finished = e->snapshots.finished,
				      .changes = e->snapshots.changes,
				      .generation = e->lock.g };
	struct snapshots *s = &e->snapshots;
	evc_status st = evc__vectors_give(&s->vectors, s->first, &a);
	evc_engine_question *q;

	if (st < 0) {
		fail_first(e, st, evc_last_error());
		return;
	}
	q = take_first(s);
	q->done(q, &a);
	evc__snapshot_go_on(e);
}

static void
lose_mark(struct redis_engine *e)
{
	e->snapshots.step = SNAPSHOT_BEGIN;
	if (++e->snapshots.tries >= PIECES_TRIES)
		fail_first(e, -EVC_UNAVAILABLE,
			   "redis: the mark of the snapshot was removed, again "
			   "and again");
	else
		evc__snapshot_go_on(e);
}

/* ---- pieces ---- */

/* The variable at word i of a list. 1: there is one; 0: the mark, or a part of a
   vector, which was taken; < 0: refused, garbage. */
static int
read_entry(struct snapshots *s, const redisReply *r, size_t i,
	   evc_engine_entry *ret)
{
	bool pre = s->step == SNAPSHOT_PRE;
	size_t n = 0, n_value = 0;
	const char *bytes = evc__reply_bytes(r, i + 1, &n_value);
	evc_status st;
	int is;

	ret->name = evc__reply_bytes(r, i, &n);
	if (ret->name == NULL || bytes == NULL)
		return evc_refuse(-EVC_DATA_LOSS,
				  "redis: a variable without a name or bytes");
	if (n == 0)
		return 0;
	if (strlen(ret->name) != n || (n > 255 && ret->name[0] != '\1'))
		return evc_refuse(-EVC_DATA_LOSS,
				  "redis: a variable with a wrong name");
	ret->value = (evc_value){ bytes, n_value };
	is = evc__vectors_take(&s->vectors, ret->name, &ret->value);
	if (is != 0)
		return is < 0 ? is : 0;
	if (pre && n_value == 0)
		return 1;
	st = evc__operation_check_value(ret->name, &ret->value);
	return st < 0 ? st : 1;
}

/* Give the variables in a list of names and values, from word `from` on. */
static evc_status
give_part(struct redis_engine *e, const redisReply *list, size_t from)
{
	struct snapshots *s = &e->snapshots;
	evc_engine_question *q = s->first;
	evc_engine_answer a = { .finished = s->finished,
				.changes = s->changes,
				.anew = s->step == SNAPSHOT_BEGIN };
	size_t i, most = (list->elements - from) / 2 + 1;
	evc_engine_entry *entries = sync_alloc(most, sizeof *entries);
	int is = 1;

	if (entries == NULL)
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
				  "no memory for the variables");
	if (a.anew)
		evc__vectors_free(&s->vectors);
	for (i = from; i + 1 < list->elements && is >= 0; i += 2) {
		is = read_entry(s, list, i, &entries[a.n_entries]);
		a.n_entries += is > 0;
	}
	a.entries = entries;
	e->lock.variables_used |= list->elements > from;
	if (is >= 0 && !q->part(q, &a))
		is = evc_refuse(-EVC_CANCELLED, "a part was refused");
	sync_free(entries);
	return is < 0 ? is : 0;
}

/* The next pieces have as many variables as fit the limits. */
static void
note_size(struct snapshots *s, const redisReply *list)
{
	size_t bytes = 1, i;
	unsigned most;

	for (i = 0; i < list->elements; i++)
		bytes += list->element[i]->len;
	most = s->count < COUNT_MOST / 2 ? s->count * 2 : COUNT_MOST;
	if (bytes > PIECE_BYTES)
		most = (unsigned)(s->count * PIECE_BYTES / bytes);
	s->count = most > 0 ? most : 1;
}

static bool
read_cursor(struct snapshots *s, const redisReply *r, size_t i)
{
	size_t n;
	const char *cursor = evc__reply_bytes(r, i, &n);

	if (cursor == NULL || n == 0 || n >= sizeof s->cursor ||
	    strspn(cursor, "0123456789") != n)
		return false;
	evc__copy(s->cursor, sizeof s->cursor, cursor);
	return true;
}

static bool
is_at_end(const struct snapshots *s)
{
	return strcmp(s->cursor, "0") == 0;
}

static void
rest(struct redis_engine *e)
{
	evc__pace_rest(e, &e->snapshots.pace);
}

/* ---- answers ---- */

/* false: the answer is not for a snapshot, or none came. */
static bool
is_answer(struct redis_engine *e, const redisReply *r)
{
	bool sent = e->snapshots.sent;

	e->snapshots.sent = false;
	if (!sent || r == NULL || e->snapshots.first == NULL)
		return false;
	if (evc__pace_refused(e, &e->snapshots.pace, r))
		return false;
	if (!evc__reply_is_doubt(r))
		return true;
	redis_doubt_lock(e);
	return false;
}

static void
on_begin(const redisReply *r, void *arg)
{
	struct redis_engine *e = arg;
	struct snapshots *s = &e->snapshots;
	int64_t finished, changes;
	evc_status st;

	if (!is_answer(e, r))
		return;
	if (!evc__reply_is(r, "ok") || !evc__reply_number(r, 1, &finished) ||
	    !evc__reply_number(r, 2, &changes) || !read_cursor(s, r, 3)) {
		fail_with_error(e, r);
		return;
	}
	s->left = false;
	s->finished = (uint64_t)finished;
	s->changes = (uint64_t)changes;
	s->count = COUNT_FIRST;
	st = give_part(e, r, 4);
	s->step = is_at_end(s) ? SNAPSHOT_BEGIN : SNAPSHOT_SCAN;
	if (st < 0)
		fail_first(e, st, evc_last_error());
	else if (s->step == SNAPSHOT_BEGIN)
		complete(e);
	else
		rest(e);
}

static void
on_piece(const redisReply *r, void *arg)
{
	struct redis_engine *e = arg;
	struct snapshots *s = &e->snapshots;
	evc_status st;

	if (!is_answer(e, r))
		return;
	if (r->type != REDIS_REPLY_ARRAY || r->elements != 2 ||
	    r->element[1]->type != REDIS_REPLY_ARRAY || !read_cursor(s, r, 0)) {
		fail_with_error(e, r);
		return;
	}
	note_size(s, r->element[1]);
	st = give_part(e, r->element[1], 0);
	if (st < 0) {
		fail_first(e, st, evc_last_error());
		return;
	}
	if (is_at_end(s))
		s->step++;
	rest(e);
}

static void
on_end(const redisReply *r, void *arg)
{
	struct redis_engine *e = arg;

	if (!is_answer(e, r))
		return;
	if (evc__reply_is(r, "none")) {
		lose_mark(e);
	} else if (evc__reply_is(r, "ok")) {
		e->snapshots.step = SNAPSHOT_BEGIN;
		complete(e);
	} else
		fail_with_error(e, r);
}

/* ---- questions ---- */

static bool
send_piece(struct redis_engine *e, const char *key)
{
	struct redis_args a = { 0 };

	evc__args_text(&a, "HSCAN");
	evc__args_key(&a, &e->address, "%s", key);
	evc__args_text(&a, e->snapshots.cursor);
	evc__args_text(&a, "COUNT");
	evc__args_fmt(&a, "%u", e->snapshots.count);
	return evc__redis_send(e->client, REDIS_SAY, on_piece, e, &a);
}

static bool
send_step(struct redis_engine *e)
{
	switch (e->snapshots.step) {
	case SNAPSHOT_BEGIN:
		/* A late script finds a greater number. */
		e->snapshots.number++;
		return evc__snapshot_script(e, "begin", on_begin);
	case SNAPSHOT_SCAN:
		return send_piece(e, "var");
	case SNAPSHOT_PRE:
		return send_piece(e, "pre");
	default:
		return evc__snapshot_script(e, "end", on_end);
	}
}

void
evc__snapshot_go_on(struct redis_engine *e)
{
	struct snapshots *s = &e->snapshots;

	if (s->first == NULL && e->lock.phase == PHASE_LIVE)
		drop_left(e);
	if (s->first == NULL || s->sent || pace_rests(&s->pace) ||
	    e->lock.phase != PHASE_LIVE || !e->up)
		return;
	evc__pace_asked(&s->pace);
	s->sent = send_step(e);
}

void
evc__snapshot_on_rest(struct ev_loop *ev, struct ev_timer *timer, int events)
{
	struct redis_engine *e = timer->data;

	(void)ev;
	(void)events;
	if (!on_loop_inherited(&e->turn.on))
		evc__snapshot_go_on(e);
}

void
evc__snapshot_ask(struct redis_engine *e, evc_engine_question *q)
{
	q->next = NULL;
	*e->snapshots.end = q;
	e->snapshots.end = &q->next;
}

void
evc__snapshot_anew(struct redis_engine *e)
{
	e->snapshots.step = SNAPSHOT_BEGIN;
}

void
evc__snapshot_end(struct redis_engine *e, const char *why)
{
	e->snapshots.sent = false;
	if (e->snapshots.first == NULL)
		return;
	drop_mark(e);
	while (e->snapshots.first != NULL)
		evc__question_answer(take_first(&e->snapshots),
				     -EVC_UNAVAILABLE, why);
}
