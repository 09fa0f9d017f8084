/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine "processes": each worker is a process of this machine, started by
 * posix_spawn.  All of its data belongs to the loop's thread, but for the
 * notes.
 *
 *     notes (any thread) --message--> loop: spawn, feed, hear, lease, end
 *
 * A worker has two streams.  Data is for work in an order: tasks, results,
 * builds.  Control, which another thread of the worker reads, is for words that
 * must not wait behind a function: pings, cancels.  A pipe has the worker's
 * output.  The kernel says by the pidfd that a worker has ended.
 *
 * Workers are spawned on the loop's thread alone, because a worker asks the
 * kernel for a SIGKILL when the thread that has spawned it ends, and the loop's
 * thread stays.
 */
#ifndef EVC_CLUSTER_PROCESSES_H
#define EVC_CLUSTER_PROCESSES_H

#include <ev.h>
#include <evcoord.h>
#include <evcoord/unstable/engine.h>
#include <signal.h>

#include "base/sync.h"
#include "base/text.h"
#include "base/deadline.h"
#include "wire/frames.h"
#include "engine/death.h"
#include "engine/flow.h"
#include "engine/notes.h"
#include "engine/on_loop.h"
#include "engine/kept.h"

#define PROCESSES_MOST WORKERS_MOST
#define WORDS_SIZE 4096
#define LINE_SIZE 512
#define WHY_SIZE 192
#define LOOKS_MOST 8 /* workers that are asked at once, before their kill */

struct processes; /* the evc_engine */
struct process;

/* A stream to a worker.  In this file all fields without another guard belong
   to the loop's thread. */
struct link {
	struct process *w;
	int fd;           /* -1: none */
	struct ev_io io;  /* stopped while fd is -1 */
	int events;
	struct bytes in;  /* beginning of a frame */
	struct outgoing out;
	uint64_t sent;    /* bytes written, in all */
	bool ended;       /* the other end is closed: no byte comes or goes */
	bool unheard;     /* a write has failed: no byte goes */
};

/* A function that a worker has taken. */
struct taken {
	uint64_t n, id;
	double deadline; /* 0: none */
	uint64_t end;    /* bytes of `data` up to the end of its frame */
	bool asked;      /* the function was asked to stop, alone */
};

enum process_state {
	PROCESS_WAITS,    /* no process; the next starts at due_ns */
	PROCESS_STARTING, /* started, without a hello */
	PROCESS_UP,
	PROCESS_FENCED,   /* killed: further words do not count */
	PROCESS_OVER      /* no process, and no other to come */
};

struct process {
	struct processes *p;
	unsigned index;
	unsigned rank;          /* number in the cluster */
	bool ranked;            /* the number is known: the worker may start */
	enum process_state state;
	char name[48];
	evc_id hold;            /* the scope's member for the worker; 0: none */
	/* Fields of one life, up to `kept`. */
	pid_t pid;              /* 0: no process */
	int pidfd;              /* -1: none */
	struct ev_io end;       /* watches the pidfd */
	struct ev_timer ask;    /* asks the kernel, without a pidfd */
	struct ev_child reaped; /* on libev's default loop, which may reap the
				   process before the engine does */
	struct link data, control;
	uint64_t born_ns;
	uint64_t ping_ns;       /* time of a ping without an answer; 0: none */
	uint64_t closed_ns;     /* end of a stream; 0: open */
	uint64_t answered;      /* bytes of `data` up to the end of the last
				   answer to a question */
	bool asks;              /* a question waits for a later answer */
	bool hears;             /* bytes of its streams are heard */
	bool stack_asked;       /* a question for its stack is under way */
	bool stack_due;         /* the cluster gets the answer */
	enum {
		LOOK_NONE,
		LOOK_WANTED,    /* the log gets the answer to that question */
		LOOK_DONE
	} last_look;            /* of a worker that is soon killed because it
				   has not left */
	bool was_up;            /* `up` was told to the cluster */
	bool talks;             /* a thread of the worker reads the control
				   stream */
	bool leaving;           /* the worker was told to end */
	bool dismissed;         /* the cluster has let the worker go */
	uint64_t leave_ns;      /* latest end of a dismissed worker */
	bool of_use;            /* a function has come to its end */
	bool settled;           /* the worker's end is not its function's
				   fault */
	char why[WHY_SIZE];     /* reason of a fence, or the worker's own words;
				   "": the end says the reason */
	struct taken taken[WINDOW_MOST];
	unsigned n_taken, first_taken;
	unsigned n_building;    /* definitions without an answer */
	bool begun;             /* the oldest function runs, and has a
				   deadline */
	double moved;           /* ev_now at the last end, or at the first
				   take */
	uint64_t back_upto;     /* functions up to this attempt are asked back,
				   unless begun; 0: none */
	struct ev_timer deadline;
	struct flow flow;
	struct kept kept;       /* sizes of the results that the worker keeps */
	struct {
		int fd;         /* -1: none */
		struct ev_io io;
		char line[LINE_SIZE];
		size_t n_line;
		char *words;    /* a ring of the last words, WORDS_SIZE bytes;
				   NULL: the worker has printed nothing */
		uint64_t n_words;
		/* Fields of all lives: lines in the log in the present
		   second. */
		uint64_t second_ns;
		unsigned n_said;
		uint64_t n_left_out;
		struct ev_timer rest; /* runs while lines are left out */
	} output;
	/* Fields of all lives. */
	uint64_t due_ns, backoff_ns;
};

struct processes {
	struct notes notes;     /* the first field; any thread */

	/* ---- set at open ---- */
	evc_coord *scope;
	evc_reactor *reactor;
	evc_loop_ref *loop;
	const evc_engine_sink *sink;
	void *core;
	uint64_t lease_ns, grace_ns, generation;
	size_t max_frame;
	char *path;             /* of the program; the loop's, after that */
	bool runs_itself;       /* the program is that of this process */
	char **argv, **environment; /* of the program; environment[0] is set for
				       each start */
	struct process **workers; /* PROCESSES_MOST places: the loop looks at
				     those below n, resize at others */
	/* ---- the cluster's lock, after the open ---- */
	unsigned n_made;        /* workers with memory */
	/* ---- set at open ---- */
	/* hear.c: the number of bytes of a link that are done with; a link has
	   bytes to read or room to write. */
	size_t (*hear)(struct link *l, const unsigned char *p, size_t n);
	void (*on_io)(struct ev_loop *ev, struct ev_io *io, int events);

	/* ---- loop thread only ---- */
	struct ev_loop *ev;
	struct on_loop on;
	bool running;           /* the watchers run */
	bool lost;              /* the loop is being destroyed */
	unsigned n;             /* workers, never less than before */
	unsigned n_wanted;      /* workers to be there */
	bool left;              /* `leave` was heard */
	bool looked;            /* workers were asked where they stand, before
				   the grace of `leave` ends */
	bool ended;             /* all workers are over */
	evc_task task;          /* lets the loop turn */
	struct ev_timer lease;  /* of all workers */
	struct ev_timer spawn;  /* the next start */
	struct ev_timer grace;  /* after `leave` */
	struct ev_timer back;   /* runs while a worker has several functions */
	struct ev_cleanup cleanup;
	uint64_t tick_ns;       /* time of the last tick of `lease` */
	uint64_t leave_ns;      /* time of `leave` */
	uint64_t cancelled_upto;
	uint64_t until_ns;      /* end of all workers; 0: none */
	unsigned next;          /* the worker that is fed first */
	unsigned char *scratch; /* bytes read, before their frame is known */
};

#define SCRATCH ((size_t)256 << 10)

extern const evc_engine_ops evc__engine_processes;

/* The i-th function of a worker, the oldest first; i == n_taken: the place of
   the next function. */
static inline struct taken *
process_taken(struct process *w, unsigned i)
{
	return &w->taken[(w->first_taken + i) % WINDOW_MOST];
}

/* The worker can have read all of the function. */
static inline bool
process_has_sent(const struct process *w, const struct taken *t)
{
	return w->data.sent >= t->end;
}

/* Nothing can be written any more. */
static inline bool
link_is_shut(const struct link *l)
{
	return l->ended || l->unheard;
}

/* An answer to a question is not yet written, and will be. */
static inline bool
process_owes_answer(const struct process *w)
{
	return w->data.sent < w->answered && !w->data.unheard;
}

/* Any byte is a sign of life. */
static inline void
process_lives(struct process *w)
{
	w->ping_ns = 0;
}

/* ---- process.c ---- */

/* The worker has this number in the cluster, and is a member of the scope.  0,
   or refused: no member. */
evc_status evc__process_rank(struct process *w, unsigned index);
/* The oldest function has begun: its deadline counts from now. */
void evc__process_begun(struct process *w);
void evc__process_deadline_stop(struct process *w);
/* The worker completes nothing more: SIGKILL, and `gone` follows. fmt: "sent
   garbage: ..."; a name and a pid come before. */
void evc__process_fence(struct process *w, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* The worker lives no more; after the last one the engine ends. */
void evc__process_over(struct process *w);

/* ---- resize.c ---- */

/* There should be n workers; more, up to `most`, were wanted before. */
void evc__processes_resize(struct processes *p, unsigned n, unsigned most);
/* A worker beyond the number leaves if the cluster has nothing for it. */
void evc__process_try_leave(struct process *w);
/* A dismissed worker has no process any more. */
void evc__process_has_left(struct process *w);
/* The worker is told to end. */
void evc__process_send_leave(struct process *w);

/* ---- look.c ---- */

/* Ask the worker where it stands.  false: it cannot answer. */
bool evc__process_ask_stack(struct process *w);
/* The same for the log, once in a life: a kill is near.  false: not asked. */
bool evc__process_look(struct process *w);
/* false: nobody has asked, or no answer. */
bool evc__process_hear_stack(struct process *w, const struct frame *f);

/* ---- program.c ---- */

/* Path and arguments from the options. 0, or refused. */
evc_status evc__processes_program(struct processes *p,
				  const char *const *options);
/* The program, which is this process's own, was deleted after the open: its path
   is the kernel's link from here on.  false: nothing has changed. */
bool evc__processes_own_again(struct processes *p);
void evc__processes_program_free(struct processes *p);

/* ---- link.c ---- */

void evc__link_open(struct link *l, struct process *w, int fd);
void evc__link_close(struct link *l);
/* Write as much as the socket takes. */
void evc__link_flush(struct link *l);
/* Read once, or to the end; the bytes go to p->hear. */
void evc__link_read(struct link *l, bool to_the_end);
/* Hear the bytes read before, which had to wait for an answer. */
void evc__link_hear_rest(struct link *l);

/* ---- output.c ---- */

void evc__process_output_open(struct process *w, int fd);
/* Read and log the last bytes. */
void evc__process_output_close(struct process *w);
/* Put "; its last words: ..." into t; nothing after silence. */
void evc__process_words(const struct process *w, struct text *t);
/* The words are told. */
void evc__process_words_drop(struct process *w);

/* ---- feed.c ---- */

/* Definitions and functions for all workers, for one worker. */
void evc__processes_feed(struct processes *p);
void evc__process_feed(struct process *w);
/* The oldest function is over and took so many seconds; < 0: given back. */
void evc__process_ended_one(struct process *w, double took);

/* ---- back.c ---- */

void evc__processes_back_init(struct processes *p);
/* The functions behind the begun one do not begin. false: they were not asked
   back. */
bool evc__process_gave_back(struct process *w, const struct frame_backed *f);

/* ---- lease.c ---- */

void evc__processes_lease_start(struct processes *p);
/* The timer of the deadline. */
void evc__process_overdue(struct ev_loop *ev, struct ev_timer *timer,
			  int events);
/* Workers end by themselves at a later time than before. */
void evc__processes_until(struct processes *p, uint64_t mono_ns);
/* The same for a worker that has just started. */
void evc__process_until(struct process *w);

/* ---- hear.c ---- */

size_t evc__process_hear(struct link *l, const unsigned char *p, size_t n);
void evc__process_on_io(struct ev_loop *ev, struct ev_io *io, int events);
/* The answer to the worker's question. */
void evc__process_answer(struct process *w, const evc_engine_answer *a);

/* ---- spawn.c ---- */

/* Start the workers that are due, and set the timer for others. */
void evc__processes_spawn(struct processes *p);
/* The next start comes after a pause, which doubles with each early end. */
void evc__process_again(struct process *w);

/* ---- end.c ---- */

/* A look for the end: by the pidfd, and by the timer without one. */
void evc__process_on_end(struct ev_loop *ev, struct ev_io *io, int events);
void evc__process_on_reaped(struct ev_loop *ev, struct ev_child *child,
			    int events);
void evc__process_on_ask(struct ev_loop *ev, struct ev_timer *timer,
			 int events);
/* The loop is going: kill the worker, and see its end here. */
void evc__process_end_now(struct process *w, uint64_t until);

/* ---- turn.c ---- */

/* The message of the notes; the first message begins everything. */
void evc__processes_message(evc_message *m, evc_status why);
/* A fork child keeps the loop, or destroys it. */
void evc__processes_off(struct on_loop *on, struct ev_loop *loop);

#endif
