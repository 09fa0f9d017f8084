/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A life of the node begins: the workers' engine is opened, and the coordinator
 * told of it.
 *
 * Nothing is given to a worker before that was answered, so the first lease
 * counts from when it was asked for.
 */
#include "redis/node/node.h"

/* ---- to register ---- */

static void
on_registered(struct redis_client *cl, const redisReply *r, void *arg)
{
	struct life *l = arg;
	const char *word;
	char why[REDIS_WHY_ROOM];
	struct text t = evc__text_in(why, sizeof why);

	(void)cl;
	l->pending--;
	/* Without an answer `down` follows, and ends it. */
	if (l->state != LIFE_JOINING || r == NULL)
		return;
	word = evc__reply_word(r);
	if (word == NULL || strcmp(word, "ok") != 0) {
		evc__reply_why(r, &t);
		evc__node_life_end(l, "was not registered: %s",
				   word != NULL ? "the coordinator has gone"
						: why);
		return;
	}
	evc__node_say(l->node, EVC_LOG_INFO,
		      "works for generation %s of %s (its life %llu, workers: "
		      "%u)",
		      l->gen, l->node->address.ns, (unsigned long long)l->inc,
		      l->node->n_workers);
	l->state = LIFE_LIVE;
	l->linked = true;
	evc__node_lease_until(l, l->sent_ns);
	l->sent_ns = 0;
	evc__node_life_resume(l);
	if (l->node->over)
		evc__node_life_leave(l);
}

static bool
add_frames(struct life *l, struct bytes *b)
{
	const struct frame_note note = { .number = l->node->n_workers,
					 .text = l->node->where };

	return evc__frame_put_note(b, FRAME_NODE, &note) == 0 &&
	       evc__frame_put_hello(b, UINT32_MAX, l->node->functions,
				    l->node->n_functions) == 0;
}

static bool
register_it(struct life *l)
{
	struct node *n = l->node;
	struct redis_args a = { 0 };
	struct bytes frames = { 0 };
	bool sent;

	if (!add_frames(l, &frames)) {
		bytes_free(&frames);
		return false;
	}
	evc__args_key(&a, &n->address, "coord");
	evc__args_key(&a, &n->address, "gen");
	evc__args_key(&a, &n->address, "lease:%s", n->name);
	evc__node_life_key(l, &a, "ev");
	evc__args_text(&a, l->gen);
	evc__args_text(&a, l->stamp);
	evc__args_fmt(&a, "%ld", l->lease_ms);
	evc__args_text(&a, n->name);
	evc__node_life_inc(l, &a);
	evc__args_add(&a, bytes_at(&frames), frames.n);
	l->sent_ns = sync_mono();
	sent = evc__node_life_script(l, SCRIPT_REGISTER, 4, on_registered, l,
				     &a);
	bytes_free(&frames);
	return sent;
}

/* ---- in memory ---- */

static struct life *
make(struct node *n, long lease_ms, size_t max_frame)
{
	struct life *l = sync_alloc(1, sizeof *l);
	struct text t;
	unsigned i;

	if (l == NULL)
		return NULL;
	l->slots = sync_alloc(n->n_workers, sizeof *l->slots);
	if (l->slots == NULL) {
		sync_free(l);
		return NULL;
	}
	for (i = 0; i < n->n_workers; i++) {
		l->slots[i].l = l;
		l->slots[i].index = i;
	}
	l->node = n;
	l->inc = ++n->inc;
	evc__copy(l->gen, sizeof l->gen, n->gen);
	t = evc__text_in(l->stamp, sizeof l->stamp);
	evc__text_fmt(&t, "%s %llu", l->gen, (unsigned long long)l->inc);
	l->lease_ms = lease_ms;
	l->lease_ns = (uint64_t)lease_ms * 1000000;
	l->max_frame = max_frame;
	l->begun = ev_now(n->ev);
	evc__node_values_init(l);
	evc__node_lease_init(l);
	evc__node_send_init(l);
	evc__node_slots_back_init(l);
	return l;
}

static evc_status
open_engine(struct life *l)
{
	struct node *n = l->node;
	const evc_engine_env env = {
		.scope = n->scope,
		.reactor = n->reactor,
		.loop = n->loop,
		.uri = n->uri,
		.place = n->place,
		.options = (const char *const *)n->options,
		.functions = n->functions,
		.n_functions = n->n_functions,
		.lease = (double)l->lease_ms / 1000,
		.grace = n->grace,
		.max_frame = l->max_frame,
		.sink = &evc__node_sink,
		.core = l,
		/* The clocks of two nodes would put attempts in no order. */
		.generation = strtoull(l->gen, NULL, 10),
		.ranks = n->ops->rank != NULL,
	};

	return (*n->ops->open)(&env, &l->engine);
}

bool
evc__node_life_begin(struct node *n, long lease_ms, size_t max_frame)
{
	struct life *l = make(n, lease_ms, max_frame);
	evc_status st;

	if (l == NULL) {
		evc__node_say(n, EVC_LOG_ERROR, "waits: no memory");
		return false;
	}
	st = open_engine(l);
	if (st < 0) {
		evc__node_say(n, EVC_LOG_ERROR,
			      "ends: its workers cannot be started: %s",
			      evc_last_error());
		evc__node_life_free(l);
		evc__node_over(n, -st);
		return false;
	}
	n->life = l;
	if (!register_it(l))
		evc__node_life_end(l, "could not be registered");
	return true;
}
