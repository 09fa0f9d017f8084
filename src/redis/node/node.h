/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The node: one process of a machine, whose workers are processes that the
 * engine "processes" carries.  It is the core of that engine, and runs nothing
 * itself, so its loop never waits for anything.
 *
 *     {NS}:G:to:NODE.INC --> node_hear.c --> queues of the slots (node_slot.c)
 *                                                 |  ^ node_values.c
 *                                                 v  |
 *                                       node_sink.c <--> the engine's workers
 *                                                 |
 *     {NS}:G:ev <-- node_send.c, node_deals.c <---+--> node_variables.c
 *
 * A node looks for a coordinator (node_link.c), and for each one that it finds
 * it has a life: an instance of the engine, a lease that is renewed
 * (node_lease.c), and an end (node_end.c).  Whoever registers says that of his
 * former lives nothing runs.
 *
 * Everything here is of the loop's thread.
 *
 * {NS}:G:runs has for each NODE a text, for people; a line for each worker, its
 * words separated by one space:
 *
 *     WORKER PID STATE FUNCTION N SINCE
 *
 * WORKER its number in the cluster; PID 0 where there is no process; STATE idle, runs, starting
 * or gone; FUNCTION its name, "-" where it runs none; N how many functions it
 * has, with those that wait behind that one; SINCE ms since 1970, when that
 * began.  It is written with a renewal of the lease, if it has changed.
 */
#ifndef EVC_REDIS_NODE_H
#define EVC_REDIS_NODE_H

#include "base/list.h"
#include "base/until.h"
#include "wire/frames.h"
#include "redis/client/redis.h"

#define NODE_TEXT_ROOM 320

struct node; /* is the evc_engine_node */
struct session;

/* ---- what is to be done: node_slot.c ---- */

/* An entry of the stream; what came in it points into it. */
struct entry {
	unsigned refs;
	size_t n;
	unsigned char bytes[];
};

/* A function, or something to build or to drop. */
struct job {
	struct job *next;
	struct entry *entry;
	bool is_def;
	union {
		evc_engine_task task; /* inputs: allocated */
		evc_engine_def def;
	};
	struct value **values; /* of its inputs, those that have come by key;
				  NULL: none has */
};

struct queue {
	struct job *first, *last;
	unsigned n;
};

enum worker_state {
	WORKER_STARTING, /* or it will be started again */
	WORKER_UP,
	WORKER_FENCED,
	WORKER_GONE
};

/* A worker, from life to life. */
struct local_worker {
	struct session *session;
	unsigned index;
	unsigned rank;       /* its number in the cluster, */
	bool ranked;         /* if that was told */
	enum worker_state state;
	uint32_t number;     /* of its life */
	long pid;            /* 0: none */
	struct queue waits;  /* what came; functions and defs in their order */
	struct queue has;    /* functions that the engine has taken */
	struct queue builds; /* defs that it has taken */
	struct job *drop;    /* one that needs no answer; until the next */
	uint64_t newest;     /* of the functions that came */
	double moved;        /* ev_now: one has ended, or the first was taken */
	double since;        /* the same, for people */
	struct question *question;
	uint64_t n_asked;
	unsigned n_deals;    /* its transactional results without an answer of
				the server: its questions wait for these */
};

/* ---- what is told: node_send.c ---- */

enum batch_kind {
	BATCH_PLAIN, /* an entry of ev */
	BATCH_DEALS, /* the same, with updates of variables */
	BATCH_VALUE  /* a value, set before the entry that needs it */
};

/* The result of a transactional function. */
struct deal {
	struct deal *next;
	unsigned worker;
	uint32_t number;
	uint64_t n;
	double took;
	struct bytes frame;
	struct bytes updates;  /* op name value: their bytes, and */
	struct bytes lengths;  /* size_t, of each of them */
	unsigned n_updates;
};

struct event_batch {
	struct event_batch *next;
	struct session *session;
	enum batch_kind kind;
	bool sent;
	uint64_t seq;        /* 0: it was never sent */
	struct bytes frames;
	uint64_t at;         /* which worker the last of them is about */
	struct deal *deals, *last_deal;
	unsigned n_deals;
	uint64_t id;         /* of the value */
	evc_value value;
};

#define NOWHERE UINT64_MAX /* parcel.at: about none */

/* ---- what has not come: node_gaps.c ---- */

#define GAPS 64

/* Numbers of entries that were passed by, in ranges; those up to `lost` are not
   known any more. */
struct gaps {
	struct {
		uint64_t from, to;
	} at[GAPS];
	unsigned n;
	uint64_t lost;
};

void evc__node_gaps_add(struct gaps *g, uint64_t from, uint64_t to);
/* It comes now: 1; it has come before: 0; nobody knows: -1. */
int evc__node_gaps_fill(struct gaps *g, uint64_t number);

/* ---- a life ---- */

enum session_state {
	SESSION_JOINING, /* it registers */
	SESSION_LIVE,
	SESSION_LEAVING, /* what runs may end */
	SESSION_SAYING,  /* nothing runs; what there is to say is said */
	SESSION_ENDING,  /* what runs is killed, nothing is said any more */
	SESSION_OVER
};

#define VALUE_BUCKETS 256

struct session {
	struct node *node;
	enum session_state state;
	char gen[24];
	uint64_t inc;
	char stamp[48];         /* "GEN INC" */
	uint64_t lease_ns;
	long lease_ms;
	size_t max_frame;
	evc_engine *engine;     /* NULL: it is not there any more */
	struct local_worker *workers;
	double begun;           /* ev_now */
	unsigned pending;       /* answers that will come */
	bool linked;            /* the connections are there, and the lease is
				   ours */
	bool reset;             /* its last answers were asked for */
	/* node_lease.c */
	uint64_t sent_ns;       /* of a renewal without its answer; 0: none */
	uint64_t deadline_ns;   /* 0: none yet */
	bool alone;
	uint64_t beat;          /* renewals, so far */
	struct ev_timer renew, deadline;
	char *runs;             /* as it was written last */
	/* node_hear.c */
	bool reading;
	uint64_t heard;         /* the last entry's number */
	struct gaps gaps;       /* those before it that never came */
	uint64_t trimmed;
	size_t heard_bytes;     /* since it was trimmed */
	uint64_t cancelled;     /* functions up to this one are */
	struct ev_timer back;
	/* node_send.c */
	struct event_batch *first, *last, *next; /* next: to be sent */
	unsigned under_way;
	uint64_t seq;
	bool refused;           /* by the server: tried again after a while */
	bool used;              /* variables are, which was told */
	struct ev_timer again;
	bool leave_sent;
	uint64_t say_by_ns;     /* SAYING: what is refused then is not said */
	/* node_values.c */
	struct value *values[VALUE_BUCKETS];
	struct list ages;
	size_t value_bytes;
};

/* ---- the node ---- */

struct node {
	evc_coord *scope;
	evc_reactor *reactor;
	evc_loop *loop;
	const evc_engine_ops *ops;
	const evc_function *functions;
	unsigned n_functions, n_workers;
	double grace;
	struct redis_address address;
	char place[16], uri[32];  /* of the workers' engine */
	char **options;           /* the same; NULL at the end */
	char host[72], name[NODE_NAME_ROOM];
	char where[NODE_TEXT_ROOM]; /* of FRAME_NODE */
	struct redis_client *client;
	struct ev_loop *ev;
	evc_task task;            /* keeps the loop turning, hears the stop */
	struct ev_prepare turn;
	struct ev_cleanup cleanup;
	bool running;             /* the watchers are there */
	bool stopping;            /* the program's stop */
	bool over;                /* no life comes any more */
	bool lost;                /* the loop is being destroyed */
	evc_status status;
	struct session *session; /* NULL: it looks for a coordinator */
	uint64_t inc;
	/* node_link.c */
	struct ev_timer look;
	bool asked;               /* and there is no answer yet */
	double wait;              /* until it looks again */
	char gen[24];             /* of the coordinator that it has found */
	char left[24];            /* the generation that it was to leave */
	char said[REDIS_WHY_ROOM]; /* last, to the log */
};

/* ---- session.c ---- */

/* To the log, when it is something else than the last time. */
void evc__node_say(struct node *n, int level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Arguments of a script or a command. */
void evc__node_key(const struct session *s, struct redis_args *a,
		   const char *what);
void evc__node_add_inc(const struct session *s, struct redis_args *a);
/* Send for this life: its answer is counted.  false: not sent. */
bool evc__node_command(struct session *s, enum redis_which which,
		       redis_reply_fn *fn, void *arg, struct redis_args *a);
bool evc__node_script(struct session *s, enum redis_script script,
		      unsigned n_keys, redis_reply_fn *fn, void *arg,
		      struct redis_args *a);
/* At once: what runs is killed, and nothing more is said. */
void evc__node_end(struct session *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* The same, for want of memory. */
void evc__node_no_memory(struct session *s);
/* No timer of it fires any more, and nothing is sent. */
void evc__node_stop_timers(struct session *s);

/* ---- node_who.c ---- */

/* Its name and where it is; the options of the workers' engine.  0, or
   refused. */
evc_status evc__node_who(struct node *n);
void evc__node_who_free(struct node *n);

/* ---- node_link.c ---- */

void evc__node_up(struct redis_client *cl, bool same, void *arg);
void evc__node_down(struct redis_client *cl, const char *why, void *arg);
void evc__node_look_init(struct node *n);
/* Look for a coordinator, after a while that grows. */
void evc__node_look_later(struct node *n);

/* ---- node_life.c ---- */

/* Begin one: node->gen, and these of its options.  false: it was not to be. */
bool evc__node_session_begin(struct node *n, long lease_ms, size_t max_frame);

/* ---- node_lease.c ---- */

void evc__node_lease_init(struct session *s);
/* The connections are there again, and the lease is ours: go on. */
void evc__node_resume(struct session *s);
/* Renewed, or given, by something that was sent then. */
void evc__node_lease_until(struct session *s, uint64_t sent_ns);
void evc__node_lease_renew(struct session *s);
/* Over, though nobody has said it: this process was stopped. */
bool evc__node_lease_is_over(const struct session *s);

/* ---- node_runs.c ---- */

/* To be written with a renewal; "": nothing has changed since the last time. */
const char *evc__node_runs_new(struct session *s);
/* That was not written. */
void evc__node_runs_lost(struct session *s);

/* ---- node_end.c ---- */

/* What runs may end, within the node's grace. */
void evc__node_leave(struct session *s);
/* It ends, with that status, when its life is over. */
void evc__node_over(struct node *n, evc_status status);
/* It is over, all answers have come, and there is no engine. */
void evc__node_session_free(struct session *s);
/* The engine has closed. */
void evc__node_closed(struct session *s);
/* Nothing is left to be said: leave the coordinator, too. */
void evc__node_last_word(struct session *s);

/* ---- node_hear.c ---- */

void evc__node_hear(struct session *s);
void evc__node_hear_trim(struct session *s);

/* ---- node_slot.c ---- */

void evc__node_queue_add(struct queue *q, struct job *job);
/* It has come. */
void evc__node_worker_add(struct local_worker *w, struct job *job);
struct job *evc__node_queue_first(struct queue *q);
/* The function with that number, or the def with that id; NULL: it is not
   there. */
struct job *evc__node_queue_take(struct queue *q, bool is_def, uint64_t n);
void evc__node_job_free(struct job *job);
void evc__node_worker_clear(struct local_worker *w);
/* Functions that wait there, up to that one, or that one alone, are given
   back. */
void evc__node_give_back(struct local_worker *w, uint64_t upto);
void evc__node_give_back_one(struct local_worker *w, uint64_t n);
void evc__node_give_back_init(struct session *s);
void evc__node_give_back_watch(struct session *s);

/* ---- node_sink.c ---- */

extern const evc_engine_sink evc__node_sink;

/* ---- batch.c ---- */

/* Where a frame about this worker (NULL: about the node) is to be put: behind
   the others.  NULL: no memory, and the life ends. */
struct bytes *evc__node_tell(struct session *s, const struct local_worker *w);
/* Which worker what follows is about.  false: no memory. */
bool evc__node_tell_about(struct bytes *b, unsigned worker, uint32_t number);
/* A parcel behind the others.  NULL: no memory, and the life ends. */
struct event_batch *evc__node_batch_add(struct session *s,
					enum batch_kind kind);
/* A value of a result that follows; it is copied. */
void evc__node_tell_value(struct session *s, uint64_t id,
			  const evc_value *value);

/* ---- node_send.c ---- */

void evc__node_send_init(struct session *s);
void evc__node_batch_free(struct event_batch *batch);
/* Send what can be sent. */
void evc__node_send(struct session *s);
/* The connection is gone: nothing is on its way any more. */
void evc__node_send_lost(struct session *s);

/* ---- node_deals.c ---- */

/* The result of a transactional function. */
void evc__node_tell_deal(struct local_worker *w, const struct job *job,
			 const evc_engine_result *r, bool by_key);
bool evc__node_deals_send(struct event_batch *batch, redis_reply_fn *fn);
/* It was carried out: those that could not be made are told anew.  false: no
   answer to it; garbage. */
bool evc__node_deals_done(struct event_batch *batch, const redisReply *r);
/* They cannot be made, and that is their outcome. */
void evc__node_deals_fail(struct event_batch *batch, const redisReply *r);
void evc__node_deals_free(struct event_batch *batch);

/* ---- node_values.c ---- */

enum value_state {
	VALUE_ASKED,
	VALUE_THERE,
	VALUE_BAD
};

struct value {
	struct value *next;
	struct list age;
	struct session *session;
	uint64_t id;
	unsigned refs;
	bool known;   /* it stands in the table */
	bool sent;    /* its question is under way */
	enum value_state state;
	bool missing; /* BAD: it is not there, or something else */
	evc_value value;
	char why[REDIS_WHY_ROOM];
};

void evc__node_values_init(struct session *s);
/* An input by key: for evc__node_value_drop.  NULL: no memory. */
struct value *evc__node_value_get(struct session *s, uint64_t id);
void evc__node_value_drop(struct value *v);
/* One that was made here. */
void evc__node_value_keep(struct session *s, uint64_t id,
			  const evc_value *value);
void evc__node_value_forget(struct session *s, uint64_t id);
/* Ask again for those that were not answered. */
void evc__node_values_resume(struct session *s);
void evc__node_values_clear(struct session *s);

/* ---- node_variables.c ---- */

/* As evc_engine_sink.variable. */
evc_status evc__node_ask(struct local_worker *w, const evc_engine_update *u);
/* Nobody waits for it any more. */
void evc__node_ask_drop(struct local_worker *w);
/* Send the questions that are not under way and need not wait. */
void evc__node_ask_resume(struct session *s);

/* ---- small things ---- */

static inline bool
session_says(const struct session *s)
{
	return s->state < SESSION_ENDING;
}

#endif
