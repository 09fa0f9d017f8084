/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine "redis" at its coordinator: functions go out as frames, in one
 * stream for each node, and events of all nodes come in by another one.
 * Everything happens on the loop's thread.
 *
 *     notes (any thread) --mail--> engine_turn: a turn of the loop
 *     engine_lock        who is the coordinator, in which generation
 *     engine_restart     an old generation is brought to its end
 *     engine_feed        functions for workers, how many; engine_chunks: on
 *                        their way
 *     engine_events      what nodes say; engine_hear: what is in it
 *     engine_nodes       lives of nodes; engine_fence: their ends
 *     engine_detect      leases, and processes of this very machine
 *     engine_values      large values, each under a key of its own
 *     engine_unlink      keys are deleted, though connections are lost
 *     engine_variables   what is asked of the variables
 *     engine_state       for people
 *
 * A node registers, and lives, until its lease is over or it registers anew:
 * that is a `life`, and has workers.  The place of a worker among all those of
 * the cluster is free again when its node's life is over.
 */
#ifndef EVC_REDIS_ENGINE_H
#define EVC_REDIS_ENGINE_H

#include "base/until.h"
#include "engine/notes.h"
#include "engine/on_loop.h"
#include "redis/engine/session.h"

#define WHERE_ROOM 128
#define TROUBLES_LOGGED 4

enum engine_phase {
	PHASE_AWAY,     /* no connection */
	PHASE_TAKING,   /* not the coordinator yet */
	PHASE_LIVE,
	PHASE_RESTART,  /* an old generation is brought to its end */
	PHASE_LOST,     /* for good; workers are waited for, then it is down */
	PHASE_DOWN,     /* the cluster knows */
	PHASE_RELEASING /* the last that is asked of Redis */
};

/* An entry of ev, copied, that waits behind a value. */
struct event {
	struct list link;
	char node[NODE_NAME_ROOM];
	uint64_t inc, seq;
	bool fence;       /* a mark */
	bool rest;        /* of an entry whose first frames are done with */
	const unsigned char *frames;
	size_t n;
	unsigned char bytes[];
};

/* Results of one worker that were read and are not told yet: they point into
   what was read. */
#define RESULTS 64
struct results {
	struct remote_worker *of;
	evc_engine_result r[RESULTS];
	unsigned n;
};

struct redis_engine {
	struct notes notes; /* the first; any thread */

	/* ---- set at open ---- */
	evc_coord *scope;
	evc_reactor *reactor;
	evc_loop *loop;
	const evc_engine_sink *sink;
	void *core;
	uint64_t lease_ns, grace_ns;
	size_t max_frame;
	struct redis_address address;
	char where[WHERE_ROOM];   /* the server, for texts */
	char id[NODE_NAME_ROOM];  /* of this coordinator */
	char host[64];
	evc_id hold;

	/* ---- any thread ---- */
	pthread_mutex_t asking;
	evc_engine_question *asked, **asked_end; /* asking */

	/* ---- the loop's thread only ---- */
	struct ev_loop *ev;
	struct redis_client *client;
	struct on_loop on;
	bool running, lost, left, ended;
	evc_task task;
	struct ev_cleanup cleanup;
	struct ev_timer tick, due;
	struct ev_prepare prepare;
	bool want_feed, want_look, want_lock, alone_told; /* trouble says that no node is there */
	uint64_t cancelled_upto;
	char trouble[REDIS_WHY_ROOM];
	/* What the log has heard of since there was no trouble. */
	char troubles[TROUBLES_LOGGED][REDIS_WHY_ROOM];
	unsigned n_troubles;
	uint64_t alone_ns;        /* since when no node is there; 0: one is */

	/* engine_lock.c, engine_restart.c */
	enum engine_phase phase;
	bool up;                  /* the connections are there */
	uint64_t g;               /* 0: never was the coordinator */
	char g_text[24];
	bool taking, locking;     /* an answer is on its way */
	uint64_t lock_ns;         /* when it was asked for last */
	uint64_t least;           /* the generation to take is greater than that */
	uint64_t away_ns;         /* since when there is no connection */
	bool server_anew;         /* its data may be older than it was */
	char why_restart[REDIS_WHY_ROOM]; /* the generation is over */
	bool counting, counted;   /* after it: what became of the variables */
	uint64_t changes;         /* of variables, as the server said last */
	bool no_memory;           /* the server's is used up, and it was told */
	const char *fewer;        /* than there were, of which some are in use */
	unsigned refresh_soon;    /* ticks: keys that are new have no end yet */
	bool variables_used;      /* in this cluster */
	uint64_t leave_ns;        /* when it was asked for */
	char why_down[REDIS_WHY_ROOM];

	/* engine_nodes.c */
	struct list sessions;
	uint64_t n_sessions;      /* there ever were */
	unsigned n_workers;       /* places that the cluster knows */
	struct remote_worker **workers; /* NULL: a free one */
	unsigned next;            /* which is fed first */
	struct {
		char name[NODE_NAME_ROOM];
		uint64_t inc;
	} former[64];             /* nodes whose lives are over */
	unsigned n_former;

	/* engine_events.c */
	bool reading;             /* an XREAD is on its way */
	uint64_t reading_g;
	char last[ID_ROOM];       /* the last entry that was read */
	unsigned n_untrimmed;
	struct list held;         /* entries that wait behind a value */
	struct node_session *hearing; /* whose entry is read */
	bool whole_node;          /* no FRAME_SLOT was in it yet */
	unsigned worker_at;
	uint32_t worker_start;
	bool by_key;              /* the value of the result that follows is */
	uint64_t value_id;
	struct value_wait *waits; /* for a value; NULL: nothing does */
	struct results results;
	char logged[16][NODE_NAME_ROOM]; /* whose garbage was named */
	unsigned n_logged;

	/* engine_values.c: id -> when it was set (8 bytes, ns) */
	struct kept values;
	struct list unlinking;    /* engine_unlink.c */

	/* engine_variables.c */
	evc_engine_question *question, *queue, **queue_end;
	uint64_t question_seq;
	bool question_sent;
	bool question_doubt;      /* it was, and may have been done */
	uint64_t question_ns;     /* since when some wait in vain; 0: not */
	bool deaf;                /* all are answered at once, with this: */
	char deaf_why[REDIS_WHY_ROOM];

	/* engine_detect.c */
	bool detecting;
	uint64_t looked_ns;       /* when leases were asked for last */
	uint64_t stood_ns;        /* they were not for so long, a lease or */
	uint64_t back_ns;         /* more, until then; 0: that never was */
	unsigned n_watched;       /* processes */
	char boot_id[64];
	uint64_t pid_namespace;
	char *state;              /* as it was written last */
};

/* Each session; s may be freed meanwhile, no other. */
#define EACH_SESSION(s, tmp, e) \
	for ((s) = LIST_OF((e)->sessions.next, struct node_session, link); \
	     &(s)->link != &(e)->sessions && \
	     ((tmp) = LIST_OF((s)->link.next, struct node_session, link), 1); \
	     (s) = (tmp))

/* ---- engine_turn.c ---- */

void evc__redis_mail(evc_mail *m, evc_status why);
/* A fork child keeps the loop, or destroys it. */
void evc__redis_off(struct on_loop *on, struct ev_loop *loop);
/* Have workers fed before the loop sleeps. */
static inline void
redis_feed_soon(struct redis_engine *e)
{
	e->want_feed = true;
}
/* Have all lives, the end of a generation and that of the engine looked at before
   the loop sleeps. */
static inline void
redis_look_soon(struct redis_engine *e)
{
	e->want_look = true;
}
/* The lock may be another one's: it is asked for then, too. */
static inline void
redis_doubt_lock(struct redis_engine *e)
{
	e->want_lock = true;
	redis_look_soon(e);
}

/* ---- engine_lock.c ---- */

/* At each tick. */
void evc__redis_lock_tick(struct redis_engine *e, uint64_t now);
void evc__redis_lock_again(struct redis_engine *e);
void evc__redis_take(struct redis_engine *e, uint64_t least);
/* The server has counted n changes of variables; gone: it has fewer variables than
   after the last of them.  false: some of those in use are lost, and the generation
   is over. */
bool evc__redis_changes(struct redis_engine *e, int64_t n, bool gone);
/* Nothing will ever come from here again; first the workers' leases have to be
   over, unless they are. */
void evc__redis_lose(struct redis_engine *e, bool leases_are_over,
		     const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static inline unsigned long long
redis_ms(uint64_t ns)
{
	return ns < UINT64_C(1000000) ? 1 : ns / 1000000;
}
/* engine_restart.c */
/* Go on with it when all lives are read up to their marks. */
void evc__redis_restart_go_on(struct redis_engine *e);

/* ---- session.c ---- */

struct node_session *evc__session_find(struct redis_engine *e,
				       const char *name);
/* Was it known once, with this number or a greater one? */
bool evc__session_is_former(const struct redis_engine *e, const char *name,
			    uint64_t inc);
void evc__session_remember(const struct node_session *s);
/* It is to complete nothing more; why: "its lease is over". */
void evc__session_fence(struct node_session *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Look at what is due then. */
void evc__redis_due(struct redis_engine *e, uint64_t mono_ns);
/* When what has a lease of that length since then runs no more. */
uint64_t evc__redis_over_ns(uint64_t since_ns, uint64_t lease_ns);

/* ---- engine_nodes.c ---- */

/* A node registers. */
void evc__session_begin(struct redis_engine *e, const char *name, uint64_t inc,
			const unsigned char *frames, size_t n);
/* When there is no memory for that, it is fenced. */
void evc__session_tell_to_leave(struct node_session *s);
/* Nothing of it runs: its workers are gone, and it is. */
void evc__session_over(struct node_session *s, const char *why, unsigned how);
/* They are members of the scope no more. */
void evc__session_let_go(struct redis_engine *e);
/* The memory alone. */
void evc__session_free(struct redis_engine *e);

/* engine_fence.c */
/* Its mark was read, or there will be none. */
void evc__session_marked(struct node_session *s);
/* All that is to be fenced and was not asked for yet. */
void evc__redis_fence_all(struct redis_engine *e);
/* The generation is over, and its data perhaps gone. */
void evc__redis_restart(struct redis_engine *e, const char *why);
/* As if all had renewed their leases now. */
void evc__redis_beats_anew(struct redis_engine *e);
/* Is it proven that nothing of it runs?  Then it is over. */
void evc__session_look(struct node_session *s);
/* An id of a stream: is a at b or before? */
bool evc__id_is_upto(const char *a, const char *b);

/* engine_events.c */
void evc__redis_read(struct redis_engine *e);
void evc__redis_trim(struct redis_engine *e);
/* Ask for the value that a result waits for. */
void evc__redis_get_value(struct redis_engine *e);
void evc__events_free(struct redis_engine *e);

/* engine_hear.c */
/* An entry of this life, or the rest of one: how much of it was done with;
   less than n, or e->waits: a value has to come first. */
size_t evc__redis_hear(struct node_session *s, const unsigned char *p, size_t n,
		       bool is_rest);
/* The value that a result waits for; NULL: it is not there. */
void evc__redis_hear_value(struct value_wait *wait, const evc_value *v);
/* A result whose value is on its way. */
struct value_wait {
	struct redis_engine *e;
	struct node_session *session; /* NULL: it is over */
	unsigned at;
	uint32_t worker_start;
	uint64_t id;
	bool sent, dropped; /* nobody wants it any more */
	size_t n;           /* its frame, whole */
	unsigned char frame[];
};

/* engine_feed.c */
void evc__redis_feed(struct redis_engine *e);
/* worker.c */
/* The i-th that it was given, the oldest first. */
static inline struct sent_call *
worker_call(struct remote_worker *w, unsigned i)
{
	return &w->calls[(w->first + i) % WINDOW_MOST];
}
/* NULL: it does not have that one. */
struct sent_call *evc__remote_worker_find(struct remote_worker *w, uint64_t n,
					  unsigned *ret_i);
/* It has ended, and took so long (< 0: it came back). */
void evc__remote_worker_ended_one(struct remote_worker *w, unsigned i,
				  double took);
/* Results that were read and not told. */
void evc__redis_tell(struct redis_engine *e);
void evc__remote_worker_up(struct remote_worker *w, uint32_t start,
			   const struct frame_note *note);
void evc__remote_worker_fenced(struct remote_worker *w, const char *why);
void evc__remote_worker_gone(struct remote_worker *w, const char *why,
			     unsigned how);

/* engine_chunks.c */
/* What follows is about this worker. */
evc_status evc__frame_batch_about(struct frame_batch *batch,
				  const struct remote_worker *w);
/* What has gathered goes out. */
void evc__session_flush(struct node_session *s);
void evc__redis_flush(struct redis_engine *e);
/* Orders of the core: functions up to that one, pairs of worker and function, and
   a bit for each worker. */
void evc__redis_cancel(struct redis_engine *e, uint64_t upto);
void evc__redis_cancel_ones(struct redis_engine *e, const uint64_t *ones,
			    size_t n);
void evc__redis_kill(struct redis_engine *e, const uint64_t *kills);
/* After a lost connection, or when it is time to try again. */
void evc__redis_chunks_again(struct redis_engine *e);
void evc__session_chunks_drop(struct node_session *s);

/* processes.c */
void evc__redis_detect_init(struct redis_engine *e);
/* Does `text` of a FRAME_NODE name this machine? */
void evc__session_read_note(struct node_session *s, const char *text);
/* Look for the end of a worker, whose parent is known. */
void evc__remote_worker_watch(struct remote_worker *w, pid_t pid);
void evc__watched_stop(struct watched *w);
/* All of them, in a fork child. */
void evc__session_unwatch(struct redis_engine *e);
/* Are they, and the node, proven to be dead? */
bool evc__session_is_dead(const struct node_session *s);

/* engine_detect.c */
void evc__redis_detect(struct redis_engine *e);
void evc__session_beat(struct node_session *s, const char *beat);

/* engine_values.c */
/* All keys of this generation but those of lives, to be deleted: what is known of
   values is forgotten.  How many. */
unsigned evc__redis_last_keys(struct redis_engine *e, struct redis_args *a);
/* false: that input travels in the frame. */
bool evc__redis_put_input(struct node_session *s, const evc_engine_input *in);
/* A value that this node may have, or that stands under a key. */
void evc__redis_keep(struct node_session *s, uint64_t id, size_t size,
		     bool by_key);
/* The node has not found it. */
void evc__redis_value_missing(struct redis_engine *e, uint64_t id);
void evc__redis_forgets(struct redis_engine *e, const uint64_t *ids, size_t n);
void evc__session_values_drop(struct node_session *s);
/* Of results that it may have left behind, as its functions have not ended. */
void evc__remote_worker_last_keys(struct remote_worker *w,
				  struct redis_args *a);
/* They are deleted. */
void evc__remote_worker_values_drop(struct remote_worker *w);
void evc__values_free(struct redis_engine *e);

/* keys.c */
/* Keys of this generation: one of few, the stream to a node, a value. */
void evc__redis_own_key(struct redis_engine *e, struct redis_args *a,
			const char *name);
void evc__redis_to_key(const struct node_session *s, struct redis_args *a);
/* The latter ends by itself. */
void evc__redis_to_ends(struct node_session *s);
void evc__redis_value_key(struct redis_engine *e, struct redis_args *a,
			  uint64_t id);
/* Its last renewal, as the server has it; "": none. */
void evc__redis_beat_key(const struct node_session *s, struct redis_args *a);
/* "UNLINK" and keys, which are taken over, and of which none is pointed to: they
   are deleted now, or when there is a connection. */
void evc__redis_unlink(struct redis_engine *e, struct redis_args *keys);
/* There is one again: before anything else is said. */
void evc__redis_unlink_again(struct redis_engine *e);
/* The memory alone, when nothing is answered any more. */
void evc__unlinks_free(struct redis_engine *e);

/* engine_variables.c */
/* Send what waits. */
void evc__redis_questions(struct redis_engine *e);
/* Before the namespace is ours nobody waits for longer than two leases: one is that
   of somebody who has died, and it is taken some time later. */
void evc__redis_questions_tick(struct redis_engine *e, uint64_t now);
/* The connection is lost. */
void evc__redis_questions_again(struct redis_engine *e, bool anew);
/* All that wait, and all that will come, are answered with that. */
void evc__redis_questions_end(struct redis_engine *e, const char *why);

/* engine_state.c */
/* Why functions wait; "": they do not.  _is: the log has it already. */
void evc__redis_trouble_is(struct redis_engine *e, const char *why);
void evc__redis_trouble(struct redis_engine *e, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Named once, and dropped. */
void evc__redis_garbage(struct redis_engine *e, const char *node,
			const char *what);
void evc__redis_state_write(struct redis_engine *e);
/* There is no trouble, but that nobody may be there. */
void evc__redis_well(struct redis_engine *e);
/* At each tick, and when a node came. */
void evc__redis_look_alone(struct redis_engine *e);

#endif
