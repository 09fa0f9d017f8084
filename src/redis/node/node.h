/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The node: one process of a machine, whose workers are processes that the
 * engine "processes" carries.  The node is the core of that engine and runs no
 * function itself, so its loop never waits.
 *
 *     {NS}:G:to:NODE.INC --> hear.c --> queues of the workers (worker.c)
 *                                            |  ^ values.c
 *                                            v  |
 *                                       sink.c <--> the engine's workers
 *                                            |
 *     {NS}:G:ev <-- send.c, outbox.c <-------+--> variables.c
 *
 * A node looks for a coordinator (link.c).  For each coordinator that the node
 * finds there is a session (begin.c): an instance of the engine, a lease that
 * is renewed (lease.c), and an end (end.c).  A registration says that nothing
 * of the node's former sessions runs.
 *
 * Everything here is for the loop's thread alone.  Each file calls the files
 * behind itself in this list alone: node, link, begin, sink, lease, hear, end,
 * send, worker, variables, outbox, values, session; runs, gaps and identity
 * call none.
 *
 * {NS}:G:runs has for each NODE a text, for people; a line for each worker, its
 * words separated by one space:
 *
 *     WORKER PID STATE FUNCTION N SINCE
 *
 * WORKER number in the cluster; PID 0 without a process; STATE idle, runs,
 * builds, starting or gone; FUNCTION name of the function that runs, or of the
 * per-worker value that is built, or "-"; N
 * functions that the worker has, those that wait included; SINCE ms since 1970,
 * begin of FUNCTION or build.  The text is written with a renewal of the lease,
 * when it has changed.
 */
#ifndef EVC_REDIS_NODE_H
#define EVC_REDIS_NODE_H

#include "base/deadline.h"
#include "redis/node/session.h"

#define NODE_TEXT_SIZE 320

/* link.c.  Loop thread only. */
struct coord_search {
	struct ev_timer look;
	bool asked;    /* an answer is on its way */
	uint64_t wait_ns; /* before the next look */
	char gen[24];  /* generation of the coordinator that was found */
	char left[24]; /* generation that the node was told to leave */
	char id[NODE_NAME_SIZE];     /* of the coordinator that was found */
	char served[NODE_NAME_SIZE]; /* the same of the last session; "": there
					was none */
	uint64_t served_lease_ns;
	uint64_t alone_ns;           /* first look since then without a
					coordinator; 0: none */
};

/* is the evc_engine_node */
struct node {
	/* ---- set at creation ---- */
	evc_coord *scope;
	evc_reactor *reactor;
	evc_loop_ref *loop;
	const evc_engine_ops *ops; /* of the workers' engine */
	const evc_function *functions;
	unsigned n_functions, n_workers;
	double grace;
	struct redis_address address;
	char place[16], uri[32]; /* of the workers' engine */
	char **options;          /* of the workers' engine; ends with NULL */
	char host[72], name[NODE_NAME_SIZE];
	char where[NODE_TEXT_SIZE]; /* text of FRAME_NODE */
	struct redis_client *client;
	struct ev_loop *ev;

	/* ---- loop thread only ---- */
	evc_task task; /* keeps the loop turning, and hears the stop */
	struct ev_prepare turn;
	struct ev_cleanup cleanup;
	bool running;  /* the watchers are there */
	bool stopping; /* the program was asked to stop */
	bool over;     /* no session begins any more */
	bool lost;     /* the loop is being destroyed */
	evc_status status;
	struct session *session; /* NULL: the node looks for a coordinator */
	uint64_t inc;            /* number of the last session */
	bool no_memory;          /* a session ended for want of memory, and no
				    later one is registered */
	struct coord_search search;
	char said[REDIS_WHY_SIZE]; /* last text to the log */
	struct told told;
};

/* The next try of values and questions, after a refusal by a busy server. */
static inline void
node_again(struct session *s)
{
	if (!ev_is_active(&s->outbox.again))
		ev_timer_again(s->node->ev, &s->outbox.again);
}

/* ---- session.c ---- */

/* Log a text, unless the text is the last one. */
void evc__node_say(struct node *n, int level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Log as an error that the server refuses something; r: its answer. */
void evc__node_trouble(struct node *n, enum trouble_of of, const char *what,
		       const redisReply *r);

/* ---- identity.c ---- */

/* Find the node's name and place, and the options of the workers' engine.  0,
   or refused. */
evc_status evc__node_identify(struct node *n);
void evc__node_identity_free(struct node *n);

/* ---- link.c ---- */

void evc__node_up(struct redis_client *cl, bool same, void *arg);
void evc__node_down(struct redis_client *cl, const char *why, void *arg);
void evc__node_look_init(struct node *n);
/* Look for a coordinator, after a while that grows. */
void evc__node_look_later(struct node *n);

/* ---- node.c: operations of the engine ---- */

evc_status evc__redis_serve(const evc_engine_node_env *env,
			    evc_engine_node **ret_node);
evc_status evc__redis_served(evc_engine_node *node);

#endif
