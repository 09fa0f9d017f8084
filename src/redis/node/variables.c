/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Questions of functions about variables.  A question goes to the server, and
 * its answer to the worker, which waits.  The question is sent after the
 * updates of the worker's former functions are made.  After a lost connection
 * the question is sent again with its number, and the server gives the same
 * answer.
 * Called by: sink.c, send.c, lease.c, end.c.
 * Locks: none; loop thread only.
 */
#include "redis/node/node.h"

#include <math.h>

struct question {
	struct session *session;
	struct local_worker *worker; /* NULL: the answer is not wanted any
					more */
	uint64_t seq;
	bool sent;
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

/* ---- answers ---- */

static evc_status
read_answer(const struct question *q, const redisReply *r,
	    evc_engine_answer *ret)
{
	if (evc__reply_word(r) == NULL)
		return evc_refuse(evc__reply_is_error(r, "OOM")
					  ? -EVC_RESOURCE_EXHAUSTED
					  : -EVC_UNAVAILABLE,
				  "%s", evc__reply_why(r));
	if (evc__reply_is(r, "fenced"))
		return evc_refuse(-EVC_UNAVAILABLE,
				  "the lease of this node is over");
	if (evc__reply_is(r, "gone"))
		return evc_refuse(-EVC_UNAVAILABLE,
				  "the server has lost variables");
	return evc__operation_read(&q->update, r, ret);
}

static void
on_answer(const redisReply *r, void *arg)
{
	struct question *q = arg;
	struct session *s = q->session;
	struct local_worker *w = q->worker;
	evc_engine_answer a = { .status = 0 };

	s->pending--;
	q->sent = false;
	/* The question is sent again after the next `up`. */
	if (r == NULL && w != NULL)
		return;
	if (w != NULL)
		w->question = NULL;
	if (r != NULL && w != NULL && s->engine != NULL && session_says(s)) {
		a.status = read_answer(q, r, &a);
		a.text = a.status < 0 ? evc_last_error() : NULL;
		s->node->ops->answer(s->engine, w->index, &a);
	}
	free_question(q);
}

/* ---- questions ---- */

static void
send_question(struct question *q)
{
	struct session *s = q->session;
	struct node *n = s->node;
	struct redis_args a = { 0 };

	evc__args_key(&a, &n->address, "gen");
	evc__args_key(&a, &n->address, "lease:%s", n->name);
	evc__args_key(&a, &n->address, "var");
	evc__args_key(&a, &n->address, "count");
	evc__node_key(s, &a, "seqs");
	evc__args_key(&a, &n->address, "pre");
	evc__args_text(&a, s->gen);
	evc__args_text(&a, s->stamp);
	evc__args_fmt(&a, "%s.%llu.%u", n->name, (unsigned long long)s->inc,
		      q->worker->index);
	evc__operation_add(&a, q->seq, &q->update);
	q->sent = evc__node_script(s, SCRIPT_VARIABLE, 6, on_answer, q, &a);
	/* Without memory no later event would send the question. */
	if (!q->sent && evc__redis_client_is_up(n->client))
		evc__node_no_memory(s);
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

/* Tell the coordinator once in a session that a variable is used, before the
   result of the function: a restart of the server may then be a loss. */
static void
tell_variables_used(struct local_worker *w, const evc_engine_update *u)
{
	const evc_engine_update of = { .op = EVC_VARIABLE_GET,
				       .name = u->name };
	struct bytes *b = evc__node_tell(w->session, w);

	if (b != NULL &&
	    evc__frame_put_variable(b, w->session->max_frame, &of) == 0)
		w->session->outbox.used = true;
}

evc_status
evc__node_ask(struct local_worker *w, const evc_engine_update *u)
{
	struct session *s = w->session;
	struct question *q;

	if (!session_says(s) || w->question != NULL)
		return evc_refuse(-EVC_UNAVAILABLE,
				  "this node has lost its coordinator");
	if (u->name == NULL || u->name[0] == '\0')
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "a variable has to have a name");
	if (u->op == EVC_VARIABLE_ADD && !isfinite(u->by))
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "variable %s: %g is nothing to add", u->name,
				  u->by);
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
	w->question = q;
	if (!s->outbox.used)
		tell_variables_used(w, u);
	if (s->linked && w->n_deals == 0)
		send_question(q);
	return EVC_ENGINE_LATER;
}

void
evc__node_ask_resume(struct session *s)
{
	unsigned i;

	for (i = 0; s->linked && i < s->node->n_workers; i++) {
		struct local_worker *w = &s->workers[i];

		if (w->question != NULL && !w->question->sent &&
		    w->n_deals == 0)
			send_question(w->question);
	}
}
