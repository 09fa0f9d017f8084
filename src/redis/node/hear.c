/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hears entries of the node's stream.  Their frames go to the queues of
 * workers, or to the engine.  Frames are not trusted: a wrong frame ends the
 * session, with the reason in the log.
 * Called by: lease.c; the connection's replies.
 * Locks: none; loop thread only.
 */
#include "redis/node/node.h"

#define COUNT_MOST "256" /* entries in an answer */
#define TRIM_ENTRIES 256
#define TRIM_BYTES ((size_t)1 << 20)

static void
end_for_garbage(struct session *s, const char *what)
{
	evc__node_end(s, "was sent garbage by the coordinator (%s)", what);
}

/* The state of an entry that is heard. */
struct hearing {
	struct session *session;
	struct entry *entry;
	struct local_worker *worker; /* of the last FRAME_SLOT; NULL: there was
					none */
	bool is_current;             /* the start in the last FRAME_SLOT is the
					worker's last one */
};

/* ---- functions ---- */

static struct job *
new_job(struct hearing *h)
{
	struct job *job = sync_alloc(1, sizeof *job);

	if (job == NULL) {
		evc__node_no_memory(h->session);
		return NULL;
	}
	job->entry = h->entry;
	job->entry->refs++;
	return job;
}

/* Get the inputs that have keys.  false: no memory. */
static bool
get_job_values(struct session *s, struct job *job)
{
	evc_engine_task *t = &job->task;
	unsigned i;

	for (i = 0; i < t->n_inputs; i++) {
		if (t->inputs[i].value.size > 0)
			continue;
		if (job->values == NULL)
			job->values =
				sync_alloc(t->n_inputs, sizeof *job->values);
		if (job->values == NULL)
			return false;
		job->values[i] = evc__node_value_get(s, t->inputs[i].id);
		if (job->values[i] == NULL)
			return false;
	}
	return true;
}

static void
hear_task(struct hearing *h, const struct frame *f)
{
	struct session *s = h->session;
	struct job *job = new_job(h);
	bool late;

	if (job == NULL)
		return;
	if (evc__frame_get_task(f, &job->task) < 0) {
		job->task.inputs = NULL;
		job->task.n_inputs = 0;
		evc__node_job_free(job);
		end_for_garbage(s, evc_last_error());
		return;
	}
	if (!get_job_values(s, job)) {
		evc__node_job_free(job);
		evc__node_no_memory(s);
		return;
	}
	/* The server may have refused this function first.  Then it comes
	   behind later functions, which the worker has perhaps begun, or behind
	   its own cancel.  The coordinator sends the function again, with a new
	   number. */
	late = job->task.n <= h->worker->newest ||
	       job->task.n <= s->inbox.cancelled;
	if (!late)
		h->worker->newest = job->task.n;
	evc__node_worker_add(h->worker, job);
	if (late || s->state == SESSION_LEAVING)
		evc__node_give_back_one(h->worker, job->task.n);
}

static void
hear_def(struct hearing *h, const struct frame *f)
{
	struct job *job = new_job(h);

	if (job == NULL)
		return;
	job->is_def = true;
	if (evc__frame_get_def(f, &job->def) < 0) {
		evc__node_job_free(job);
		end_for_garbage(h->session, evc_last_error());
		return;
	}
	evc__node_worker_add(h->worker, job);
}

/* ---- orders ---- */

static void
cancel_upto(struct session *s, uint64_t upto)
{
	unsigned i;

	if (upto > s->inbox.cancelled)
		s->inbox.cancelled = upto;
	for (i = 0; i < s->node->n_workers; i++)
		evc__node_give_back(&s->workers[i], upto);
	s->node->ops->cancel(s->engine, upto);
}

static void
cancel_one(struct local_worker *w, uint64_t n)
{
	struct session *s = w->session;

	evc__node_give_back_one(w, n);
	s->node->ops->cancel_one(s->engine, w->index, n);
}

static void
forget_value(struct session *s, uint64_t id)
{
	evc__node_value_forget(s, id);
	if (s->node->ops->forget != NULL)
		s->node->ops->forget(s->engine, id);
}

static void
leave_coordinator(struct session *s)
{
	struct node *n = s->node;

	/* The node does not come back to this generation. */
	evc__copy(n->search.left, sizeof n->search.left, s->gen);
	evc__node_leave(s);
	if (n->address.once)
		evc__node_over(n, 0);
}

/* ---- frames ---- */

static bool
hear_about(struct hearing *h, const struct frame *f)
{
	uint64_t at;

	if (evc__frame_get_number(f, &at) < 0 ||
	    at >> 32 >= h->session->node->n_workers)
		return false;
	h->worker = &h->session->workers[at >> 32];
	h->is_current = h->worker->state == WORKER_UP &&
			h->worker->number == (uint32_t)at;
	return true;
}

/* Take the rank of a worker, which comes once. */
static bool
hear_rank(struct session *s, const struct frame *f)
{
	struct local_worker *w;
	uint64_t at;

	if (evc__frame_get_number(f, &at) < 0 || at >> 32 >= s->node->n_workers)
		return false;
	w = &s->workers[at >> 32];
	if (w->ranked)
		return false;
	w->ranked = true;
	w->rank = (uint32_t)at;
	if (s->node->ops->rank != NULL)
		s->node->ops->rank(s->engine, w->index, w->rank);
	return true;
}

/* Hear a frame about the whole node.  false: no such frame, or garbage. */
static bool
hear_node(struct hearing *h, const struct frame *f)
{
	uint64_t number;

	switch (f->type) {
	case FRAME_SLOT:
		return hear_about(h, f);
	case FRAME_RANK:
		return hear_rank(h->session, f);
	case FRAME_CANCEL:
		if (evc__frame_get_number(f, &number) < 0)
			return false;
		cancel_upto(h->session, number);
		return true;
	case FRAME_FORGET:
		if (evc__frame_get_number(f, &number) < 0)
			return false;
		forget_value(h->session, number);
		return true;
	case FRAME_LEAVE:
		if (evc__frame_get_bare(f) < 0)
			return false;
		leave_coordinator(h->session);
		return true;
	default:
		return false;
	}
}

/* Hear a frame about a worker. */
static void
hear_worker(struct hearing *h, const struct frame *f)
{
	struct session *s = h->session;
	uint64_t number;

	if (f->type == FRAME_TASK)
		hear_task(h, f);
	else if (f->type == FRAME_DEF)
		hear_def(h, f);
	else if (f->type == FRAME_KILL && evc__frame_get_bare(f) == 0)
		s->node->ops->kill(s->engine, h->worker->index);
	else if (f->type == FRAME_LOOK && evc__frame_get_bare(f) == 0)
		evc__node_look(h->worker);
	else if (f->type == FRAME_CANCEL_ONE &&
		 evc__frame_get_number(f, &number) == 0)
		cancel_one(h->worker, number);
	else
		end_for_garbage(s, "a wrong frame for a worker");
}

static void
hear_frame(struct hearing *h, const struct frame *f)
{
	unsigned of = f->type;

	if (of != FRAME_TASK && of != FRAME_DEF && of != FRAME_KILL &&
	    of != FRAME_LOOK && of != FRAME_CANCEL_ONE) {
		if (!hear_node(h, f))
			end_for_garbage(h->session, "a wrong frame for a node");
	} else if (h->worker == NULL)
		end_for_garbage(h->session, "a frame for no worker");
	else if (h->is_current)
		hear_worker(h, f);
	/* That start of the worker is over, and the coordinator will hear of
	   its end. */
}

static bool
session_is_open(const struct session *s)
{
	return s->state == SESSION_LIVE || s->state == SESSION_LEAVING;
}

static void
hear_frames(struct session *s, struct entry *e)
{
	struct hearing h = { .session = s, .entry = e };
	struct frame f;
	size_t at = 0;

	while (at < e->n && session_is_open(s)) {
		int got = evc__frame_next(e->bytes + at, e->n - at,
					  s->max_frame, &f);

		if (got <= 0) {
			end_for_garbage(s, got < 0 ? evc_last_error()
						   : "an incomplete frame");
			return;
		}
		hear_frame(&h, &f);
		at += f.whole;
	}
}

/* ---- entries ---- */

/* Read an id: "SEQ-1". */
static bool
read_id(const redisReply *r, uint64_t *ret)
{
	char *end;

	if (r->type != REDIS_REPLY_STRING || r->len > 24 || r->str[0] < '0' ||
	    r->str[0] > '9')
		return false;
	errno = 0;
	*ret = strtoull(r->str, &end, 10);
	return errno == 0 && strcmp(end, "-1") == 0;
}

/* true: the entry has not come before, with another number. */
static bool
is_new_entry(struct session *s, const redisReply *r)
{
	char text[24];
	size_t n;
	const char *o = evc__reply_field(r, "o", &n);
	int is;

	if (o == NULL)
		return true;
	memcpy(text, o, n < sizeof text ? n : sizeof text - 1);
	text[n < sizeof text ? n : sizeof text - 1] = '\0';
	is = evc__node_gaps_fill(&s->inbox.gaps, strtoull(text, NULL, 10));
	if (is < 0)
		evc__node_end(s, "cannot tell whether an entry is new");
	return is > 0;
}

static void
hear_entry(struct session *s, const redisReply *r)
{
	struct entry *e;
	const char *d;
	uint64_t id;
	size_t n;

	if (r->type != REDIS_REPLY_ARRAY || r->elements != 2 ||
	    !read_id(r->element[0], &id) || id <= s->inbox.heard) {
		end_for_garbage(s, "an entry without a number");
		return;
	}
	evc__node_gaps_add(&s->inbox.gaps, s->inbox.heard + 1, id - 1);
	s->inbox.heard = id;
	if (!is_new_entry(s, r))
		return;
	d = evc__reply_field(r, "d", &n);
	if (d == NULL) {
		end_for_garbage(s, "an entry without frames");
		return;
	}
	e = sync_alloc_bytes(sizeof *e + n);
	if (e == NULL) {
		evc__node_no_memory(s);
		return;
	}
	memcpy(e->bytes, d, n);
	e->n = n;
	e->refs = 1;
	s->inbox.heard_bytes += n;
	hear_frames(s, e);
	if (--e->refs == 0)
		sync_free(e);
}

/* Hear the answer of XREAD: an array of the stream and its entries. */
static void
hear_answer(struct session *s, const redisReply *r)
{
	const redisReply *entries;
	size_t i;

	if (r->elements != 1 || r->element[0]->type != REDIS_REPLY_ARRAY ||
	    r->element[0]->elements != 2 ||
	    r->element[0]->element[1]->type != REDIS_REPLY_ARRAY) {
		end_for_garbage(s, "an unexpected answer");
		return;
	}
	entries = r->element[0]->element[1];
	for (i = 0; i < entries->elements && session_is_open(s); i++)
		hear_entry(s, entries->element[i]);
	if (!session_is_open(s))
		return;
	s->node->ops->wake(s->engine, EVC_ENGINE_ANY);
	if (s->inbox.heard - s->inbox.trimmed >= TRIM_ENTRIES ||
	    s->inbox.heard_bytes >= TRIM_BYTES)
		evc__node_hear_trim(s);
}

static void
on_entries(const redisReply *r, void *arg)
{
	struct session *s = arg;

	s->pending--;
	s->inbox.reading = false;
	if (r == NULL || !session_is_open(s))
		return;
	if (r->type != REDIS_REPLY_ERROR)
		evc__trouble_over(&s->node->told, TROUBLE_STREAM);
	if (r->type == REDIS_REPLY_ARRAY)
		hear_answer(s, r);
	else if (r->type == REDIS_REPLY_ERROR) {
		/* The next renewal reads again. */
		evc__node_trouble(s->node, TROUBLE_STREAM,
				  "cannot read its stream", r);
		return;
	} else if (r->type != REDIS_REPLY_NIL)
		end_for_garbage(s, "an unexpected answer");
	else if (evc__node_is_unknown(s))
		evc__node_end(s, "was registered, and heard nothing since");
	evc__node_hear(s);
}

void
evc__node_hear(struct session *s)
{
	struct redis_args a = { 0 };

	if (s->inbox.reading || !s->linked || !session_is_open(s))
		return;
	evc__args_text(&a, "XREAD");
	evc__args_text(&a, "COUNT");
	evc__args_text(&a, COUNT_MOST);
	evc__args_text(&a, "BLOCK");
	evc__args_fmt(&a, "%ld", BLOCK_MS(s->lease_ms));
	evc__args_text(&a, "STREAMS");
	evc__args_key(&a, &s->node->address, "%s:to:%s.%llu", s->gen,
		      s->node->name, (unsigned long long)s->inc);
	evc__args_fmt(&a, "%llu-1", (unsigned long long)s->inbox.heard);
	s->inbox.reading =
		evc__node_command(s, REDIS_LISTEN, on_entries, s, &a);
}

void
evc__node_hear_trim(struct session *s)
{
	struct redis_args a = { 0 };

	if (s->inbox.heard == s->inbox.trimmed || !s->linked)
		return;
	evc__args_text(&a, "XTRIM");
	evc__args_key(&a, &s->node->address, "%s:to:%s.%llu", s->gen,
		      s->node->name, (unsigned long long)s->inc);
	evc__args_text(&a, "MINID");
	evc__args_fmt(&a, "%llu-2", (unsigned long long)s->inbox.heard);
	if (evc__redis_send(s->node->client, REDIS_SAY, NULL, NULL, &a)) {
		s->inbox.trimmed = s->inbox.heard;
		s->inbox.heard_bytes = 0;
	}
}
