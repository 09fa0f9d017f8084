/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Questions of functions about variables.  A question goes to the server, and
 * its answer to the worker, which waits.  The questions of several workers go
 * together: one turn of the loop is one script, and under load one round trip
 * is.  A question is sent after the updates of the worker's former functions
 * are made.  After a lost connection the question is sent again with its
 * number, and the server gives the same answer.
 * Called by: sink.c, send.c, lease.c, end.c, node.c.
 * Locks: none; loop thread only.
 */
#include "redis/node/node.h"

#define ASKED_MOST 64
#define ASKED_BYTES ((size_t)1 << 20)
/* Scripts without an answer.  A second script takes the questions of workers
   that come while the first is under way. */
#define UNDER_WAY 2

struct question {
	struct session *session;
	struct local_worker *worker; /* NULL: the answer is not wanted any
					more */
	uint64_t seq;
	double us; /* operation_cost.us */
	bool sent;
	bool alone; /* the reads before it in the script were too large */
	evc_engine_update update;
	char name[];
};

static void
free_question(struct question *q)
{
	evc_value_free(&q->update.value);
	evc_value_free(&q->update.expected);
	sync_free(q);
}

void
evc__node_ask_drop(struct local_worker *w)
{
	struct question *q = w->question;

	w->question = NULL;
	if (q == NULL)
		return;
	q->worker = NULL;
	if (!q->sent)
		free_question(q);
}

/* The questions of one script. */
struct questions_sent {
	struct session *session;
	unsigned n;
	struct question *at[ASKED_MOST];
};

/* ---- answers ---- */

/* r: the answer of the script. */
static evc_status
read_answer(const struct question *q, const redisReply *r, unsigned i,
	    evc_engine_answer *ret, void **ret_memory)
{
	const redisReply *mine = evc__operation_answer(r, i);

	if (mine != NULL)
		return evc__operation_read(&q->update, mine, ret,
					   ret_memory);
	return evc_refuse(evc__reply_status(r), "%s", evc__reply_why(r));
}

static void
answer_one(struct question *q, const redisReply *r, unsigned i)
{
	struct session *s = q->session;
	struct local_worker *w = q->worker;
	evc_engine_answer a = { .status = 0 };
	void *memory = NULL;

	q->sent = false;
	/* The question is sent again: after the next `up`, when the server can
	   answer, or at once. */
	q->alone = r != NULL && evc__operation_is_late(r, i);
	if ((r == NULL || reply_is_refused_for_now(r) || q->alone) && w != NULL)
		return;
	if (w != NULL)
		w->question = NULL;
	if (r != NULL && w != NULL && s->engine != NULL && session_says(s)) {
		a.status = read_answer(q, r, i, &a, &memory);
		a.text = a.status < 0 ? evc_last_error() : NULL;
		s->node->ops->answer(s->engine, w->index, &a);
		sync_free(memory);
	}
	free_question(q);
}

static void
on_answers(const redisReply *r, void *arg)
{
	struct questions_sent *all = arg;
	struct session *s = all->session;
	unsigned i;

	s->pending--;
	s->asking--;
	/* The functions that ask get no answer, and begin again elsewhere. */
	evc__node_end_if_over(s, r);
	for (i = 0; i < all->n; i++)
		answer_one(all->at[i], r, i);
	sync_free(all);
	if (r == NULL || !session_says(s))
		return;
	if (reply_is_refused_for_now(r))
		node_again(s);
	else
		evc__node_ask_resume(s);
}

/* ---- questions ---- */

/* Take the questions that need not wait, from another worker on each time. */
static size_t
take_questions(struct session *s, struct questions_sent *ret)
{
	unsigned i, n = s->node->n_workers, from = s->ask_from;
	double left = server_most_us(session_lease_ns(s));
	size_t bytes = 0;

	for (i = 0; i < n && ret->n < ASKED_MOST && bytes < ASKED_BYTES; i++) {
		struct local_worker *w = &s->workers[(from + i) % n];
		struct question *q = w->question;

		if (q == NULL || q->sent || w->n_deals > 0)
			continue;
		if (q->alone) {
			ret->at[0] = q;
			return ret->n = 1;
		}
		if (ret->n > 0 && q->us > left)
			continue;
		left -= q->us;
		ret->at[ret->n++] = q;
		bytes += q->update.value.size + q->update.expected.size;
		s->ask_from = (w->index + 1) % n;
	}
	return ret->n;
}

static bool
send_questions(struct session *s, struct questions_sent *all)
{
	struct node *n = s->node;
	struct redis_args a = { 0 };
	unsigned i;

	evc__args_key(&a, &n->address, "gen");
	evc__args_key(&a, &n->address, "lease:%s", n->name);
	evc__args_key(&a, &n->address, "var");
	evc__args_key(&a, &n->address, "count");
	evc__node_key(s, &a, "seqs");
	evc__args_key(&a, &n->address, "pre");
	evc__args_text(&a, s->gen);
	evc__args_text(&a, s->stamp);
	for (i = 0; i < all->n; i++) {
		evc__args_fmt(&a, "%s.%llu.%u", n->name,
			      (unsigned long long)s->inc,
			      all->at[i]->worker->index);
		evc__operation_add(&a, all->at[i]->seq, &all->at[i]->update,
				   session_lease_ns(s));
	}
	return evc__node_script(s, SCRIPT_VARIABLE, 6, on_answers, all, &a);
}

static bool
ask_more(struct session *s)
{
	struct questions_sent *all = sync_alloc(1, sizeof *all);
	bool sent;
	unsigned i;

	if (all == NULL) {
		evc__node_no_memory(s);
		return false;
	}
	all->session = s;
	sent = take_questions(s, all) > 0 && send_questions(s, all);
	if (sent) {
		s->asking++;
		for (i = 0; i < all->n; i++)
			all->at[i]->sent = true;
		return true;
	}
	/* Without memory no later event would send the questions. */
	if (all->n > 0 && evc__redis_client_is_up(s->node->client))
		evc__node_no_memory(s);
	sync_free(all);
	return false;
}

void
evc__node_ask_resume(struct session *s)
{
	while (s->linked && session_says(s) &&
	       s->asking < UNDER_WAY && ask_more(s))
		;
}

static bool
fill_question(struct question *q, const evc_engine_update *u)
{
	strcpy(q->name, u->name);
	q->update = (evc_engine_update){ .op = u->op,
					 .name = q->name,
					 .by = u->by };
	return evc_value_copy(&q->update.value, &u->value) == 0 &&
	       evc_value_copy(&q->update.expected, &u->expected) == 0;
}

void
evc__node_tell_used(struct local_worker *w, const char *name)
{
	const evc_engine_update of = { .op = EVC_VARIABLE_GET, .name = name };
	struct bytes *b;

	if (w->session->outbox.used)
		return;
	b = evc__node_tell(w->session, w);
	if (b != NULL &&
	    evc__frame_put_variable(b, w->session->max_frame, &of) == 0)
		w->session->outbox.used = true;
}

evc_status
evc__node_ask(struct local_worker *w, const evc_engine_update *u)
{
	struct session *s = w->session;
	struct question *q;
	struct operation_cost cost;
	evc_status st;

	if (!session_says(s) || w->question != NULL)
		return evc_refuse(-EVC_UNAVAILABLE,
				  "this node has lost its coordinator");
	st = evc__operation_check(u, session_lease_ns(s), &cost);
	if (st < 0)
		return st;
	q = sync_alloc(1, sizeof *q + strlen(u->name) + 1);
	if (q == NULL || !fill_question(q, u)) {
		if (q != NULL)
			free_question(q);
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
				  "no memory to ask for variable %s", u->name);
	}
	q->session = s;
	q->worker = w;
	q->seq = ++w->n_asked;
	q->us = cost.us;
	w->question = q;
	evc__node_tell_used(w, u->name);
	s->ask_soon = true;
	return EVC_ENGINE_LATER;
}
