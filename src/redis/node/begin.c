/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Begins a session: opens the engine of the workers, and registers the node.
 * No worker gets a function before the answer, so the first lease counts from
 * the time at which the registration was sent.
 * Called by: link.c, when a coordinator was found.
 * Locks: none; loop thread only.
 */
#include "redis/node/node.h"

/* ---- to register ---- */

static void
on_registered(const redisReply *r, void *arg)
{
	struct session *s = arg;

	s->pending--;
	/* A missing answer means that `down` follows, which ends the
	   session. */
	if (s->state != SESSION_JOINING || r == NULL)
		return;
	if (!evc__reply_is(r, "ok")) {
		evc__node_end(s, "was not registered: %s",
			      evc__reply_word(r) != NULL
				      ? "the coordinator has gone"
				      : evc__reply_why(r));
		return;
	}
	evc__node_say(s->node, EVC_LOG_INFO,
		      "works for generation %s of %s (session %llu, workers: "
		      "%u)",
		      s->gen, s->node->address.ns, (unsigned long long)s->inc,
		      s->node->n_workers);
	s->state = SESSION_LIVE;
	s->node->no_memory = false;
	evc__copy(s->node->search.served, sizeof s->node->search.served,
		  s->node->search.id);
	s->node->search.served_lease_ns = s->lease_ns;
	s->node->search.alone_ns = 0;
	s->linked = true;
	evc__node_lease_until(s, s->lease.sent_ns);
	s->lease.sent_ns = 0;
	evc__node_resume(s);
	if (s->node->over)
		evc__node_leave(s);
}

static bool
add_registration(struct session *s, struct bytes *b)
{
	const struct frame_note note = {
		.number = s->node->n_workers |
			  (s->node->no_memory ? NODE_NO_MEMORY : 0),
		.text = s->node->where,
	};

	return evc__frame_put_note(b, FRAME_NODE, &note) == 0 &&
	       evc__frame_put_hello(b, UINT32_MAX, s->node->functions,
				    s->node->n_functions) == 0;
}

static bool
register_session(struct session *s)
{
	struct node *n = s->node;
	struct redis_args a = { 0 };
	struct bytes frames = { 0 };
	bool sent;

	if (!add_registration(s, &frames)) {
		bytes_free(&frames);
		return false;
	}
	evc__args_key(&a, &n->address, "coord");
	evc__args_key(&a, &n->address, "gen");
	evc__args_key(&a, &n->address, "lease:%s", n->name);
	evc__node_key(s, &a, "ev");
	evc__args_text(&a, s->gen);
	evc__args_text(&a, s->stamp);
	evc__args_fmt(&a, "%ld", s->lease_ms);
	evc__args_text(&a, n->name);
	evc__node_add_inc(s, &a);
	evc__args_add(&a, bytes_at(&frames), frames.n);
	s->lease.sent_ns = sync_mono();
	sent = evc__node_script(s, SCRIPT_REGISTER, 4, on_registered, s, &a);
	bytes_free(&frames);
	return sent;
}

/* ---- in memory ---- */

static struct session *
new_session(struct node *n, long lease_ms, size_t max_frame)
{
	struct session *s = sync_alloc(1, sizeof *s);
	struct text t;
	unsigned i;

	if (s == NULL)
		return NULL;
	s->workers = sync_alloc(n->n_workers, sizeof *s->workers);
	if (s->workers == NULL) {
		sync_free(s);
		return NULL;
	}
	for (i = 0; i < n->n_workers; i++) {
		s->workers[i].session = s;
		s->workers[i].index = i;
	}
	s->node = n;
	s->inc = ++n->inc;
	evc__copy(s->gen, sizeof s->gen, n->search.gen);
	t = evc__text_in(s->stamp, sizeof s->stamp);
	evc__text_fmt(&t, "%s %llu", s->gen, (unsigned long long)s->inc);
	s->lease_ms = lease_ms;
	s->lease_ns = (uint64_t)lease_ms * 1000000;
	s->max_frame = max_frame;
	s->begun = ev_now(n->ev);
	list_init(&s->values.ages);
	evc__node_lease_init(s);
	evc__node_send_init(s);
	evc__node_give_back_init(s);
	return s;
}

static evc_status
open_engine(struct session *s)
{
	struct node *n = s->node;
	const evc_engine_env env = {
		.scope = n->scope,
		.reactor = n->reactor,
		.loop = n->loop,
		.uri = n->uri,
		.place = n->place,
		.options = (const char *const *)n->options,
		.functions = n->functions,
		.n_functions = n->n_functions,
		.lease = (double)s->lease_ms / 1000,
		.grace = n->grace,
		.max_frame = s->max_frame,
		.sink = &evc__node_sink,
		.core = s,
		/* The clocks of two nodes would put attempts in no order. */
		.generation = strtoull(s->gen, NULL, 10),
		.ranks = n->ops->rank != NULL,
	};

	return (*n->ops->open)(&env, &s->engine);
}

bool
evc__node_session_begin(struct node *n, long lease_ms, size_t max_frame)
{
	struct session *s = new_session(n, lease_ms, max_frame);
	evc_status st;

	if (s == NULL) {
		evc__node_say(n, EVC_LOG_ERROR, "waits: no memory");
		return false;
	}
	st = open_engine(s);
	if (st < 0) {
		evc__node_say(n, EVC_LOG_ERROR,
			      "ends: its workers cannot be started: %s",
			      evc_last_error());
		evc__node_session_free(s);
		evc__node_over(n, -st);
		return false;
	}
	n->session = s;
	if (!register_session(s))
		evc__node_end(s, "could not be registered");
	return true;
}
