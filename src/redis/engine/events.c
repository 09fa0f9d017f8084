/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads the stream of events, entry by entry.
 * Called by: turn.c, lock.c; the connection's replies.
 * Locks: none; loop thread only.
 */
#include "redis/engine/engine.h"

#include <inttypes.h>

/* An answer has about so many bytes at most: the server and the client keep it
   whole.  So the count of entries that are asked for follows their size. */
#define ANSWER_BYTES ((size_t)16 << 20)
#define COUNT_FIRST  32
#define COUNT_MOST   1000
#define ID_LAST "18446744073709551615-18446744073709551615"
#define FENCE UINT64_MAX /* number of a mark */
#define TRIM_EACH 1000
#define TRIM_BYTES ((size_t)1 << 20)

/* ---- an entry ---- */

/* true: the field is a number, with digits alone. */
static bool
field_number(const redisReply *fields, const char *name, uint64_t *ret)
{
	char text[24];
	size_t n;
	const char *s = evc__reply_field(fields, name, &n);
	char *end;

	if (s == NULL || n == 0 || n >= sizeof text || *s < '0' || *s > '9')
		return false;
	memcpy(text, s, n);
	text[n] = '\0';
	errno = 0;
	*ret = strtoull(text, &end, 10);
	return *end == '\0' && end == text + n && errno == 0;
}

/* Read the fields of an entry.  NULL: all fields are right; else the error. */
static const char *
parse_entry(const redisReply *entry, struct event *ret)
{
	const char *s;
	size_t n;

	*ret = (struct event){ .seq = 0 };
	s = evc__reply_field(entry, "w", &n);
	if (s == NULL || n == 0 || n >= sizeof ret->node ||
	    !evc__reply_is_plain(s, n, false))
		return "an entry that names no node";
	memcpy(ret->node, s, n);
	if (!field_number(entry, "i", &ret->inc))
		return "an entry without the number of a session";
	s = evc__reply_field(entry, "s", &n);
	if (s != NULL && n == 5 && memcmp(s, "fence", 5) == 0)
		ret->seq = FENCE;
	else if (!field_number(entry, "s", &ret->seq) || ret->seq == FENCE)
		return "an entry without a number";
	ret->fence = ret->seq == FENCE;
	s = evc__reply_field(entry, "d", &ret->n);
	if (s == NULL || (ret->n == 0 && !ret->fence))
		return "an entry without frames";
	ret->frames = (const unsigned char *)s;
	return NULL;
}

/* true: the node cannot have reached this number.  If the entry counted, the
   node's own entries would be dropped as old.  A session that ends may have
   gaps, because a server may have lost entries. */
static bool
is_out_of_order(const struct node_session *s, uint64_t seq)
{
	return seq > s->seen && seq - s->seen > UNANSWERED && !s->ending;
}

static struct node_session *
session_of(struct redis_engine *e, const struct event *ev)
{
	struct node_session *s = evc__session_find(e, ev->node);

	if (s != NULL && s->inc == ev->inc)
		return s->marked ? NULL : s;
	if (s == NULL && !ev->fence && e->lock.phase == PHASE_LIVE &&
	    !evc__session_is_former(e, ev->node, ev->inc))
		evc__redis_garbage(e, ev->node,
				   "the node is not registered, or not any "
				   "more");
	return NULL;
}

static void
serve_event(struct redis_engine *e, const struct event *ev)
{
	struct node_session *s;

	if (ev->seq == 0 && !ev->fence) {
		evc__redis_tell(e);
		evc__session_begin(e, ev->node, ev->inc, ev->frames, ev->n);
		return;
	}
	s = session_of(e, ev);
	if (s == NULL)
		return;
	if (ev->fence) {
		/* An own mark counts when its script has answered. */
		if (!s->ending)
			evc__session_fence(s, "another program has fenced it");
		return;
	}
	if (is_out_of_order(s, ev->seq)) {
		evc__redis_garbage(e, ev->node, "an entry with a wrong number");
		evc__session_fence(s, "it sent garbage: an entry with a "
				      "wrong number");
		return;
	}
	if (!evc__session_sees(s, ev->seq))
		return;
	evc__redis_hear(s, ev->frames, ev->n);
	s = evc__session_find(e, ev->node);
	if (s != NULL && s->inc == ev->inc)
		evc__session_gaps(s);
}

/* Look for sessions whose mark was read. */
static void
look_at_marks(struct redis_engine *e)
{
	struct node_session *s, *tmp;

	EACH_ENDING(s, tmp, e) {
		if (s->fenced && !s->marked && s->g == e->lock.g &&
		    evc__id_is_upto(s->mark, e->reader.last))
			evc__session_marked(s);
	}
}

/* ---- reading ---- */

static void
take_entry(struct redis_engine *e, const redisReply *entry)
{
	struct event ev;
	const char *wrong;
	size_t n;

	evc__copy(e->reader.last, sizeof e->reader.last,
		  entry->element[0]->str);
	e->reader.n_untrimmed++;
	if (e->lock.phase == PHASE_LIVE && strcmp(e->reader.last, ID_LAST) == 0)
		evc__redis_restart(e, NO_ID_LEFT);
	if (evc__reply_field(entry, EVENT_BEGUN, &n) != NULL)
		return;
	wrong = parse_entry(entry, &ev);
	if (wrong != NULL) {
		evc__redis_garbage(e, ev.node[0] != '\0' ? ev.node : "somebody",
				   wrong);
		return;
	}
	e->reader.n_untrimmed_bytes += ev.n;
	serve_event(e, &ev);
}

/* The server may have ended the connection for a large answer. */
static void
ask_for_less(struct event_reader *r)
{
	r->count = r->count > COUNT_FIRST ? COUNT_FIRST : (r->count + 1) / 2;
}

static void
adapt_count(struct event_reader *r, size_t n, size_t n_bytes)
{
	if (n_bytes > ANSWER_BYTES)
		r->count = (unsigned)(n * ANSWER_BYTES / n_bytes) + 1;
	else if (n >= r->count && n_bytes < ANSWER_BYTES / 2)
		r->count = r->count < COUNT_MOST / 2 ? r->count * 2 : COUNT_MOST;
}

/* The entries in an answer of XREAD, each behind `last`.  NULL: it is no such
   answer. */
static const redisReply *
entries_of(const redisReply *r, const char *last)
{
	const redisReply *list;
	size_t i, n;

	if (r->type != REDIS_REPLY_ARRAY || r->elements != 1 ||
	    r->element[0]->type != REDIS_REPLY_ARRAY ||
	    r->element[0]->elements != 2 ||
	    r->element[0]->element[1]->type != REDIS_REPLY_ARRAY)
		return NULL;
	list = r->element[0]->element[1];
	for (i = 0; i < list->elements; i++) {
		const char *id = evc__reply_bytes(list->element[i], 0, &n);

		if (id == NULL || n >= ID_SIZE || !evc__id_is(id) ||
		    evc__id_is_upto(id, last))
			return NULL;
		last = id;
	}
	return list;
}

static void
on_events(const redisReply *r, void *arg)
{
	struct redis_engine *e = arg;
	const redisReply *list = NULL;
	size_t i, before = e->reader.n_untrimmed_bytes;

	e->reader.reading = false;
	if (r == NULL)
		ask_for_less(&e->reader);
	if (r == NULL || e->turn.ended)
		return;
	if (e->reader.reading_g == e->lock.g && r->type != REDIS_REPLY_NIL) {
		list = entries_of(r, e->reader.last);
		e->reader.rests = list == NULL;
	}
	if (e->reader.rests) {
		evc__redis_trouble(e, TROUBLE_EVENTS,
				   "entries of nodes cannot be read: %s",
				   evc__reply_why(r));
		/* The others are read again at the next tick. */
		if (e->lock.phase == PHASE_LIVE &&
		    evc__reply_is_error(r, "WRONGTYPE"))
			evc__redis_restart(e, "the stream of events was "
					      "replaced by another key");
		return;
	}
	evc__trouble_over(&e->trouble.told, TROUBLE_EVENTS);
	for (i = 0; list != NULL && i < list->elements; i++)
		take_entry(e, list->element[i]);
	if (list != NULL) {
		adapt_count(&e->reader, list->elements,
			    e->reader.n_untrimmed_bytes - before);
		evc__redis_tell(e);
		look_at_marks(e);
		evc__redis_look_at_end(e);
		if (e->reader.n_untrimmed >= TRIM_EACH ||
		    e->reader.n_untrimmed_bytes >= TRIM_BYTES)
			evc__redis_trim(e);
		redis_feed_soon(e);
	}
	evc__redis_read(e);
}

void
evc__redis_read(struct redis_engine *e)
{
	struct redis_args a = { 0 };
	uint64_t block = redis_ms(e->lease_ns / 4);

	if (e->reader.reading || e->reader.rests || !e->up || e->lock.taking ||
	    (e->lock.phase != PHASE_LIVE && e->lock.phase != PHASE_RESTART))
		return;
	if (e->reader.count == 0)
		e->reader.count = COUNT_FIRST;
	evc__args_text(&a, "XREAD");
	evc__args_text(&a, "COUNT");
	evc__args_fmt(&a, "%u", e->reader.count);
	evc__args_text(&a, "BLOCK");
	/* A limit, so that this connection is not silent for too long. */
	evc__args_fmt(&a, "%llu",
		      (unsigned long long)(block < 50 ? 50 : block));
	evc__args_text(&a, "STREAMS");
	evc__redis_own_key(e, &a, "ev");
	evc__args_text(&a, e->reader.last);
	e->reader.reading_g = e->lock.g;
	e->reader.reading =
		evc__redis_send(e->client, REDIS_LISTEN, on_events, e, &a);
}

void
evc__redis_trim(struct redis_engine *e)
{
	struct redis_args a = { 0 };

	if (e->reader.n_untrimmed == 0 || !e->up)
		return;
	e->reader.n_untrimmed = 0;
	e->reader.n_untrimmed_bytes = 0;
	evc__args_text(&a, "XTRIM");
	evc__redis_own_key(e, &a, "ev");
	evc__args_text(&a, "MINID");
	evc__args_text(&a, e->reader.last);
	evc__redis_send(e->client, REDIS_SAY, NULL, NULL, &a);
}
