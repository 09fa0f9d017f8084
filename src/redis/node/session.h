/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A session of the node: what lasts from a registration with a coordinator to
 * its end.
 */
#ifndef EVC_REDIS_NODE_SESSION_H
#define EVC_REDIS_NODE_SESSION_H

#include "base/list.h"
#include "redis/node/outbox.h"

struct node;

enum session_state {
	SESSION_JOINING, /* the answer to REGISTER is missing */
	SESSION_LIVE,
	SESSION_LEAVING, /* functions that run may end */
	SESSION_SAYING,  /* no function runs; the outbox is sent */
	SESSION_ENDING,  /* workers are killed, the outbox is not sent */
	SESSION_OVER
};

/* lease.c, runs.c.  Loop thread only. */
struct lease {
	uint64_t sent_ns; /* time of a renewal without answer; 0: none */
	uint64_t deadline_ns; /* end of the lease; 0: not known yet */
	bool alone;       /* the server knows no coordinator */
	uint64_t beat;    /* number of the last renewal */
	struct ev_timer renew, deadline;
	char *runs; /* what {NS}:G:runs has of this node; NULL: not known */
};

#define GAPS 64

/* Numbers of entries that were passed by, in ranges.  Loop thread only. */
struct gaps {
	struct {
		uint64_t from, to;
	} at[GAPS];
	unsigned n;
	uint64_t lost; /* ranges up to this number are forgotten */
};

/* hear.c, gaps.c.  Loop thread only. */
struct inbox {
	bool reading;       /* an XREAD is on its way */
	uint64_t heard;     /* number of the last entry */
	struct gaps gaps;   /* entries before `heard` that never came */
	uint64_t trimmed;   /* entries up to this number are deleted */
	size_t heard_bytes; /* bytes that came since the last XTRIM */
	uint64_t cancelled; /* functions up to this number are cancelled */
};

enum value_state {
	VALUE_ASKED,
	VALUE_THERE,
	VALUE_BAD
};

/* A value with a key of its own.  Loop thread only. */
struct value {
	struct list age;
	struct session *session;
	uint64_t id;
	unsigned refs; /* inputs of jobs, the table, the missing answer */
	bool known;    /* the table has the value for jobs that come */
	bool sent;     /* an answer is on its way */
	enum value_state state;
	bool missing; /* BAD: the key is not there, or holds something else */
	evc_value value;
	void *memory; /* the block that `value` stands in */
	char why[REDIS_WHY_SIZE]; /* BAD */
};

/* values.c.  Loop thread only. */
struct value_table {
	struct list ages; /* all values, the oldest first; few, as each is
			     large */
	size_t bytes;
};

/* The fields up to `begun` are set at creation, all others are for the loop
   thread only. */
struct session {
	struct node *node;
	char gen[24];   /* the coordinator's generation */
	uint64_t inc;   /* number of the session */
	char stamp[48]; /* "GEN INC" */
	uint64_t lease_ns;
	long lease_ms;
	size_t max_frame;
	struct local_worker *workers;
	double begun; /* ev_now */
	enum session_state state;
	evc_engine *engine; /* of the workers; NULL: closed */
	unsigned pending;   /* answers that will come */
	bool linked;        /* both connections are there, and so is the
			       lease */
	bool reset;         /* the last answers were asked for */
	bool ask_soon;      /* a question has come in this turn */
	unsigned asking;    /* scripts with questions, without an answer */
	unsigned ask_from;  /* index of the worker that is asked for first */
	struct ev_timer back; /* worker.c: the next look at jobs that wait */
	struct lease lease;
	struct inbox inbox;
	struct outbox outbox;
	struct value_table values;
};

static inline bool
session_says(const struct session *s)
{
	return s->state < SESSION_ENDING;
}

/* ---- session.c ---- */

/* Add a key of the generation, or the number of the session, to the arguments
   of a script or a command. */
void evc__node_key(const struct session *s, struct redis_args *a,
		   const char *what);
void evc__node_add_inc(const struct session *s, struct redis_args *a);
/* Send a command or a script for this session, and count its answer.  false:
   not sent. */
bool evc__node_command(struct session *s, enum redis_which which,
		       redis_reply_fn *fn, void *arg, struct redis_args *a);
bool evc__node_script(struct session *s, enum redis_script script,
		      unsigned n_keys, redis_reply_fn *fn, void *arg,
		      struct redis_args *a);
/* End the session at once: workers are killed, and the outbox is not sent. */
void evc__node_end(struct session *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* The same, if the answer of a script says that the session is over. */
void evc__node_end_if_over(struct session *s, const redisReply *r);
/* The same, because there is no memory. */
void evc__node_no_memory(struct session *s);
/* The coordinator, which greets each new node, has said nothing for too long. */
bool evc__node_is_unknown(const struct session *s);
/* Stop all timers, and send no more. */
void evc__node_stop_timers(struct session *s);

/* ---- gaps.c ---- */

void evc__node_gaps_add(struct gaps *g, uint64_t from, uint64_t to);
/* 1: the entry with this number has not come yet; 0: the entry has come before;
   -1: not known. */
int evc__node_gaps_fill(struct gaps *g, uint64_t number);

/* ---- values.c ---- */

/* An input by key, until evc__node_value_drop.  NULL: no memory. */
struct value *evc__node_value_get(struct session *s, uint64_t id);
void evc__node_value_drop(struct value *v);
/* Keep the value of a result, and its memory if it has one of its own; until
   evc__node_value_drop.  NULL: no memory. */
struct value *evc__node_value_keep(struct session *s, uint64_t id,
				   evc_engine_result *r);
void evc__node_value_forget(struct session *s, uint64_t id);
/* Ask again for the values without an answer. */
void evc__node_values_resume(struct session *s);
void evc__node_values_clear(struct session *s);

/* ---- runs.c ---- */

/* The text to be written with a renewal; "": the text is the last one. */
const char *evc__node_runs_new(struct session *s);
/* The text was not written. */
void evc__node_runs_lost(struct session *s);

/* ---- end.c ---- */

/* Leave: functions that run may end, within the node's grace. */
void evc__node_leave(struct session *s);
/* End the node with this status, when its session is over. */
void evc__node_over(struct node *n, evc_status status);
/* Free a session that is over, without an engine; all answers have come. */
void evc__node_session_free(struct session *s);
/* The engine of the workers has closed. */
void evc__node_closed(struct session *s);
/* Tell the coordinator that the node has left, when all else is told. */
void evc__node_last_word(struct session *s);

/* ---- hear.c ---- */

/* Wait for the next entries. */
void evc__node_hear(struct session *s);
/* Delete the entries that were heard. */
void evc__node_hear_trim(struct session *s);

/* ---- lease.c ---- */

static inline uint64_t
session_lease_ns(const struct session *s)
{
	return (uint64_t)s->lease_ms * 1000000;
}

void evc__node_lease_init(struct session *s);
/* Go on: the connections are there again, and so is the lease. */
void evc__node_resume(struct session *s);
/* The lease was given or renewed by a script that was sent then. */
void evc__node_lease_until(struct session *s, uint64_t sent_ns);
void evc__node_lease_renew(struct session *s);
/* true: the lease is over, and its timer is late: this process stood still. */
bool evc__node_lease_is_over(const struct session *s);

/* ---- begin.c ---- */

/* Begin a session for the generation node->search.gen.  false: not begun. */
bool evc__node_session_begin(struct node *n, long lease_ms, size_t max_frame);

#endif
