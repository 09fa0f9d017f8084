/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What people are told: troubles, lines of the log, and the key {NS}:G:state
 * for people and evc-cluster.
 * Called by: all files of the engine.
 * Locks: none; loop thread only.
 */
#include "redis/engine/engine.h"

#include <inttypes.h>

#include "base/json_write.h"

/*
 * {NS}:G:state has a line for each name, its words separated by spaces; new
 * names may be added.
 *
 *     coordinator ID       value of {NS}:coord
 *     host HOST
 *     pid PID
 *     generation G
 *     lease SECONDS
 *     max_frame BYTES
 *     workers N            workers that are up
 *     queued N             functions that wait at the coordinator
 *     running N            functions that workers have
 *     done N               functions that have ended
 *     nodes N              sessions, of which at most NODES_TOLD follow
 *     node NAME INC HOST PID WORKERS UP GIVEN BYTES STATE
 *                          for each node: UP of its WORKERS are up and have
 *                          GIVEN functions of BYTES; STATE live, leaving or
 *                          fenced
 */

#define HEAD_SIZE 1024
#define LINE_SIZE 512
#define NODES_TOLD 1000 /* lines of nodes, at most */
#define ALONE_NS UINT64_C(2000000000) /* nodes look for a coordinator every
					 second */

/* ---- trouble ---- */

void
evc__redis_away(struct redis_engine *e, uint64_t since_ns)
{
	e->away_ns = since_ns;
	if (e->sink->away != NULL)
		e->sink->away(e->core, since_ns);
}

void
evc__redis_trouble_is(struct redis_engine *e, const char *why)
{
	if (strcmp(why, e->trouble.now) == 0)
		return;
	evc__copy(e->trouble.now, sizeof e->trouble.now, why);
	e->trouble.alone_told = false;
	if (e->sink->trouble != NULL)
		e->sink->trouble(e->core, why);
}

void
evc__redis_trouble(struct redis_engine *e, enum trouble_of of, const char *fmt,
		   ...)
{
	char why[REDIS_WHY_SIZE];
	struct text t = evc__text_in(why, sizeof why);
	va_list ap;

	va_start(ap, fmt);
	evc__text_vfmt(&t, fmt, ap);
	va_end(ap);
	if (!evc__trouble_is_told(&e->trouble.told, of, why))
		evc_log(e->scope, EVC_LOG_WARNING, NULL, "redis: %s", why);
	evc__redis_trouble_is(e, why);
}

void
evc__redis_garbage(struct redis_engine *e, const char *node, const char *what)
{
	const unsigned most =
		sizeof e->trouble.garbage_of / sizeof e->trouble.garbage_of[0];
	unsigned i;

	for (i = 0; i < most && i < e->trouble.n_garbage; i++)
		if (strcmp(e->trouble.garbage_of[i], node) == 0)
			return;
	evc__copy(e->trouble.garbage_of[e->trouble.n_garbage++ % most],
		  sizeof e->trouble.garbage_of[0], node);
	evc_log(e->scope, EVC_LOG_WARNING, NULL,
		"redis: an entry of %s is dropped: %s", node, what);
}

/* ---- the state ---- */

static const char *
session_state_text(const struct node_session *s)
{
	if (s->ending)
		return "fenced";
	return s->left_told ? "leaving" : "live";
}

static void
add_node_line(struct text *t, const struct node_session *s)
{
	unsigned i, up = 0, calls = 0;

	for (i = 0; i < s->n_workers; i++)
		if (s->workers[i] != NULL && s->workers[i]->up) {
			up++;
			calls += s->workers[i]->n;
		}
	evc__text_fmt(t, "node %s %" PRIu64 " %s %d %u %u %u %zu %s\n", s->name,
		      s->inc, s->host[0] != '\0' ? s->host : "-",
		      (int)s->process.pid, s->n_workers, up, calls, s->bytes,
		      session_state_text(s));
}

static void
add_first_lines(struct text *t, struct redis_engine *e)
{
	uint64_t queued = 0, running = 0, done = 0;

	if (e->sink->counts != NULL)
		e->sink->counts(e->core, &queued, &running, &done);
	evc__text_fmt(t, "coordinator %s\nhost %s\npid %d\ngeneration %s\n",
		      e->id, e->host, (int)getpid(), e->lock.g_text);
	evc__text_add(t, "lease ");
	evc__text_double(t, (double)e->lease_ns / 1e9);
	evc__text_fmt(t, "\nmax_frame %zu\nworkers %u\n", e->max_frame,
		      e->sessions.n_up);
	evc__text_fmt(t,
		      "queued %" PRIu64 "\nrunning %" PRIu64 "\ndone %" PRIu64
		      "\nnodes %zu\n",
		      queued, running, done, e->sessions.by_name.n);
}

/* A server without memory refuses the text: none is better than the last. */
static void
on_state(const redisReply *r, void *arg)
{
	struct redis_engine *e = arg;
	struct redis_args a = { 0 };

	if (r != NULL && r->type != REDIS_REPLY_ERROR)
		return;
	/* The whole text is written next time. */
	sync_free(e->trouble.state);
	e->trouble.state = NULL;
	if (r == NULL)
		return;
	evc__args_text(&a, "DEL");
	evc__redis_own_key(e, &a, "state");
	evc__redis_send(e->client, REDIS_SAY, NULL, NULL, &a);
}

void
evc__redis_state_write(struct redis_engine *e)
{
	struct redis_args a = { 0 };
	struct node_session *s, *tmp;
	size_t n = e->sessions.by_name.n, room;
	struct text t;
	char *now;

	n = n < NODES_TOLD ? n : NODES_TOLD;
	room = HEAD_SIZE + n * LINE_SIZE;
	now = sync_alloc(1, room);
	if (now == NULL)
		return;
	t = evc__text_in(now, room);
	add_first_lines(&t, e);
	EACH_SESSION(s, tmp, e) {
		if (n-- == 0)
			break;
		add_node_line(&t, s);
	}
	evc__args_text(&a, e->trouble.state != NULL &&
					   strcmp(e->trouble.state, now) == 0
				   ? "PEXPIRE"
				   : "SET");
	evc__redis_own_key(e, &a, "state");
	if (e->trouble.state == NULL || strcmp(e->trouble.state, now) != 0) {
		evc__args_text(&a, now);
		evc__args_text(&a, "PX");
	}
	evc__args_fmt(&a, "%llu",
		      (unsigned long long)KEYS_PX(redis_ms(e->lease_ns)));
	evc__redis_send(e->client, REDIS_SAY, on_state, e, &a);
	sync_free(e->trouble.state);
	e->trouble.state = now;
}

/* ---- is a node there? ---- */

static bool
any_untold(struct redis_engine *e)
{
	struct node_session *s, *tmp;

	if (!e->sessions.any_untold)
		return false;
	EACH_SESSION(s, tmp, e)
		if (s->untold)
			return true;
	e->sessions.any_untold = false;
	return false;
}

void
evc__redis_well(struct redis_engine *e)
{
	uint64_t now = sync_mono();
	char full[REDIS_WHY_SIZE];
	struct text t = evc__text_in(full, sizeof full);

	/* An order that was refused is tried again, and is the trouble until
	   then. */
	if (any_untold(e))
		return;
	if (e->lock.no_memory) {
		evc__text_fmt(&t, "the server at %s has no memory left",
			      e->where);
		evc__redis_trouble_is(e, full);
		return;
	}
	if (!list_empty(&e->sessions.all) || e->turn.left)
		e->trouble.alone_ns = 0;
	else if (e->trouble.alone_ns == 0)
		e->trouble.alone_ns = now;
	if (e->trouble.alone_ns == 0 || now - e->trouble.alone_ns < ALONE_NS) {
		evc__trouble_over(&e->trouble.told, TROUBLE_ALONE);
		evc__redis_trouble_is(e, "");
		return;
	}
	evc__redis_trouble(e, TROUBLE_ALONE,
			   "no node is registered: start evc-worker(1), "
			   "or a program that calls evc_worker_main(3), "
			   "for the namespace %s at %s",
			   e->address.ns, e->where);
	e->trouble.alone_told = true;
}

void
evc__redis_look_alone(struct redis_engine *e)
{
	if (e->lock.phase == PHASE_LIVE && e->up &&
	    (e->trouble.now[0] == '\0' || e->trouble.alone_told))
		evc__redis_well(e);
}
