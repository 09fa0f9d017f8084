/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The node, from its first call to its last.  The changes of one turn of the
 * loop are looked at once, before the loop sleeps: then the outbox is sent and
 * a session that is over is freed, never within a call of the client or of the
 * engine.
 * Called by: the program's node, by the table of redis.c; libev and the client.
 * Locks: none; loop thread only.
 */
#include "redis/node/node.h"

#define PATIENCE 3. /* seconds without any answer of the server */
#define STAYED 5. /* seconds; the end of a longer session is followed by a look
		     at once */

/* ---- the end ---- */

static void
stop_watchers(struct node *n)
{
	if (!n->running)
		return;
	n->running = false;
	ev_timer_stop(n->ev, &n->search.look);
	ev_prepare_stop(n->ev, &n->turn);
	ev_cleanup_stop(n->ev, &n->cleanup);
}

static void
finish_node(struct node *n)
{
	stop_watchers(n);
	evc__redis_client_free(n->client);
	n->client = NULL;
	if (!n->stopping && !n->lost)
		(void)(evc_request_stop)(n->scope, 0, "the node has ended");
	/* The loop may end within this call. */
	evc_task_end(&n->task);
}

static void
on_node_stop(evc_task *t, void *arg)
{
	struct node *n = LIST_OF(t, struct node, task);

	(void)arg;
	n->stopping = true;
	evc__node_over(n, 0);
}

/* The engine's own watcher ends the workers. */
static void
on_node_cleanup(struct ev_loop *ev, struct ev_cleanup *cleanup, int events)
{
	struct node *n = cleanup->data;

	(void)ev;
	(void)events;
	n->lost = n->over = true;
	if (n->status == 0)
		n->status = EVC_CANCELLED;
	if (n->session != NULL)
		evc__node_end(n->session, "has lost its loop");
	finish_node(n);
	/* A session with an engine is freed by the engine's last call. */
	if (n->session != NULL && n->session->engine == NULL) {
		evc__node_session_free(n->session);
		n->session = NULL;
	}
}

/* ---- turns of the loop ---- */

static void
turn_session(struct node *n, struct session *s)
{
	if (session_says(s) && evc__node_lease_is_over(s))
		evc__node_end(s, "has lost its lease");
	if (session_says(s))
		evc__node_send(s);
	if (s->ask_soon)
		evc__node_ask_resume(s);
	s->ask_soon = false;
	if (s->state == SESSION_SAYING)
		evc__node_last_word(s);
	if (s->state != SESSION_OVER)
		return;
	/* The next session begins with new connections: answers for this
	   session may still come on the old ones. */
	if (n->over) {
		evc__redis_client_free(n->client);
		n->client = NULL;
	} else if (!s->reset && s->pending > 0)
		evc__redis_client_reset(n->client, "a session of the node "
						   "ended");
	s->reset = true;
	if (s->pending > 0)
		return;
	/* Sessions that end at once follow each other with a delay. */
	if (ev_now(n->ev) - s->begun > STAYED)
		n->search.wait_ns = 0;
	evc__node_session_free(s);
	n->session = NULL;
	if (!n->over)
		evc__node_look_later(n);
}

static void
on_turn(struct ev_loop *ev, struct ev_prepare *prepare, int events)
{
	struct node *n = prepare->data;

	(void)ev;
	(void)events;
	if (n->session != NULL)
		turn_session(n, n->session);
	if (n->session == NULL && n->over)
		finish_node(n);
}

/* ---- from outside ---- */

static void
free_node(struct node *n)
{
	evc__node_identity_free(n);
	evc__redis_address_free(&n->address);
	sync_free(n);
}

static evc_status
fill_node(struct node *n, const evc_engine_node_env *env)
{
	struct text place = evc__text_in(n->place, sizeof n->place);
	struct text uri = evc__text_in(n->uri, sizeof n->uri);

	n->scope = env->scope;
	n->reactor = env->reactor;
	n->loop = env->loop;
	n->ops = env->workers;
	n->functions = env->functions;
	n->n_functions = env->n_functions;
	n->n_workers = env->n_workers;
	n->grace = env->grace;
	evc__text_fmt(&place, "%u", n->n_workers);
	evc__text_fmt(&uri, "%s://%u", n->ops->scheme, n->n_workers);
	return evc__node_identify(n);
}

/* Hide the password from workers and from programs that they start. */
static void
hide_password(const char *const *options)
{
	static const char name[] = "password-env=";

	for (; options != NULL && *options != NULL; options++)
		if (strncmp(*options, name, sizeof name - 1) == 0)
			unsetenv(*options + sizeof name - 1);
}

static evc_status
begin_node(struct node *n)
{
	static const evc_task_class task_class = { .name = "redis node",
						   .on_stop = on_node_stop };
	const struct redis_client_env env = {
		.scope = n->scope,
		.reactor = n->reactor,
		.loop = n->loop,
		.address = &n->address,
		.patience = PATIENCE,
		.who = "evcoord-node",
		.up = evc__node_up,
		.down = evc__node_down,
		.arg = n,
	};
	evc_status st;

	n->ev = evc_reactor_loop(n->reactor);
	if (n->ev == NULL)
		return evc_refuse(-EVC_FAILED_PRECONDITION,
				  "redis: there is no loop for the node");
	st = evc_task_begin(n->reactor, &n->task, &task_class);
	if (st < 0)
		return st;
	n->client = evc__redis_client_new(&env);
	if (n->client == NULL) {
		evc_task_end(&n->task);
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
				  "redis: no memory for a node");
	}
	evc__node_look_init(n);
	ev_prepare_init(&n->turn, on_turn);
	n->turn.data = n;
	ev_prepare_start(n->ev, &n->turn);
	ev_cleanup_init(&n->cleanup, on_node_cleanup);
	n->cleanup.data = n;
	ev_cleanup_start(n->ev, &n->cleanup);
	n->running = true;
	return 0;
}

evc_status
evc__redis_serve(const evc_engine_node_env *env, evc_engine_node **ret_node)
{
	struct node *n = sync_alloc(1, sizeof *n);
	evc_status st;

	if (n == NULL)
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
				  "redis: no memory for a node");
	st = evc__redis_address(env->uri, env->place, env->options,
				&n->address);
	if (st < 0) {
		sync_free(n);
		return st;
	}
	st = n->address.fresh
		     ? evc_refuse(-EVC_INVALID_ARGUMENT,
				  "option fresh is for a coordinator, which "
				  "removes the variables, and not for a node")
		     : fill_node(n, env);
	if (st == 0)
		st = begin_node(n);
	if (st < 0) {
		free_node(n);
		return st;
	}
	hide_password(env->options);
	*ret_node = (evc_engine_node *)(void *)n;
	return 0;
}

evc_status
evc__redis_served(evc_engine_node *node)
{
	struct node *n = (struct node *)(void *)node;
	evc_status st;

	if (n == NULL)
		return 0;
	st = n->status;
	free_node(n);
	return st;
}
