/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The outbox of a session: what the coordinator is told, in its order.
 */
#ifndef EVC_REDIS_NODE_OUTBOX_H
#define EVC_REDIS_NODE_OUTBOX_H

#include "wire/frames.h"
#include "redis/node/worker.h"

/* The result of a transactional function, or of a plain one with additions.
   Loop thread only. */
struct deal {
	struct deal *next;
	unsigned worker;
	uint32_t number; /* of the worker's start */
	uint64_t n;      /* number of the function */
	double took;
	struct bytes frame;
	struct bytes updates; /* for each update: op, name and value, as
				 bytes */
	struct bytes lengths; /* for each of those words: a size_t */
	unsigned n_updates;
	double us;       /* the server's time for them */
	bool succeeded;  /* else there are reads alone */
	bool plain;      /* the function does not count as a transaction */
};

#define NOWHERE UINT64_MAX /* event_batch.at: no worker */

/* Frames that become one command.  Loop thread only. */
struct event_batch {
	struct event_batch *next;
	struct session *session;
	bool sent;
	uint64_t seq; /* number of the entry; 0: never sent */
	struct bytes frames;
	uint64_t at; /* worker and start that the last frames are about */
	struct deal *deals, *last_deal; /* NULL: the frames are all */
	unsigned n_deals;
	size_t n_bytes; /* of the deals */
	double us;      /* the server's time for them */
};

/* Loop thread only. */
struct outbox {
	struct event_batch *first, *last; /* the oldest batch first */
	struct event_batch *next; /* to be sent; NULL: all are under way */
	unsigned under_way;       /* batches without an answer */
	uint64_t seq;             /* number of the last entry */
	bool refused;             /* the server refused the first batch */
	struct ev_timer again;    /* the next try after a refusal */
	bool used;       /* the coordinator knows that variables are used */
	bool leave_sent; /* an answer to LEAVE is on its way */
	uint64_t say_by_ns; /* end of the tries, in the state SAYING */
};

/* ---- outbox.c ---- */

/* The frames of the last batch, to add a frame about this worker; w NULL: about
   the node.  NULL: no memory, and the session ends. */
struct bytes *evc__node_tell(struct session *s, const struct local_worker *w);
/* Append the result of a function with updates, or of a transactional one; us: the
   server's time for its updates, which were checked. */
void evc__node_tell_deal(struct local_worker *w, const struct frame_result *f,
			 bool plain, double us);
/* true: the last batch has such results, and was not sent yet. */
bool evc__node_deals_wait(const struct session *s);
bool evc__node_deals_send(struct event_batch *batch, redis_reply_fn *fn);
/* The batch was carried out; results that could not be made are told anew.
   false: r is no answer to the batch. */
bool evc__node_deals_done(struct event_batch *batch, const redisReply *r);
/* The batch can never be carried out: its results become failures. */
void evc__node_deals_fail(struct event_batch *batch, const redisReply *r);
void evc__node_deals_free(struct event_batch *batch);

/* ---- send.c ---- */

/* The number up to which the server has all entries. */
static inline uint64_t
evc__outbox_answered(const struct outbox *o)
{
	return o->first != NULL && o->first->seq != 0 ? o->first->seq - 1 :
							o->seq;
}

void evc__node_send_init(struct session *s);
void evc__node_batch_free(struct event_batch *batch);
/* Send the batches that can be sent. */
void evc__node_send(struct session *s);
/* The connection is gone: no batch is under way any more. */
void evc__node_send_lost(struct session *s);

#endif
