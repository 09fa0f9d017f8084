/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine "processes": each worker is a process of this machine, started by
 * posix_spawn, and everything about it happens on the loop's thread.
 *
 *     notes (any thread) --mail--> loop: spawn, feed, hear, lease, end
 *
 * A worker has two streams: data, for what is done one after the other (tasks,
 * results, what is built), and control, which a thread of its own reads there,
 * for what must not wait behind a function (pings, cancels).  A pipe has its
 * output.  That it has ended is what the kernel says, by its pidfd.
 *
 * Workers are spawned on the loop's thread alone: a worker asks the kernel for a
 * SIGKILL when the thread that has spawned it ends, and that must be one that
 * stays.
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
#include "engine/notes.h"
#include "engine/on_loop.h"
#include "engine/kept.h"

#define PROCESSES_MOST WORKERS_MOST
#define WINDOW_MOST 256
#define WORDS_ROOM 512
#define LINE_ROOM 512
#define WHY_ROOM 192

struct processes; /* is the evc_engine */
struct process;

/* A stream to a worker: loop thread only. */
struct link {
	struct process *w;
	int fd;           /* -1: none */
	struct ev_io io;  /* not started while fd is -1 */
	int events;
	struct bytes in;  /* the beginning of a frame */
	struct bytes out;
	uint64_t sent;    /* bytes of all that was written */
	bool ended;       /* nothing more comes, and nothing can be written */
};

/* What a worker has taken, in the order it will end. */
struct taken {
	uint64_t n, id;
	double deadline; /* 0: none */
	bool asked;      /* to stop, by itself */
};

enum process_state {
	PROCESS_WAITS,    /* there is none; one is started when due_ns is over */
	PROCESS_STARTING, /* it has not said hello */
	PROCESS_UP,
	PROCESS_FENCED,   /* killed: what it says counts no more */
	PROCESS_OVER      /* there is none, and will be none */
};

struct process {
	struct processes *p;
	unsigned index;
	unsigned rank;          /* its number in the cluster, */
	bool ranked;            /* if that is known: else it is not started */
	enum process_state state;
	char name[48];
	evc_id hold;            /* the member that stands for it; 0: none */
	/* this life */
	pid_t pid;              /* 0: there is none */
	int pidfd;              /* -1: none */
	struct ev_io end;       /* on the pidfd */
	struct ev_timer ask;    /* without one */
	struct link data, control;
	uint64_t born_ns;
	uint64_t ping_ns;       /* since when it owes an answer; 0: not */
	uint64_t closed_ns;     /* since when a stream has ended; 0: none has */
	uint64_t answered;      /* of data: the end of the last answer that it
				   has asked for */
	bool asks;              /* it waits for one that comes later */
	bool was_up;            /* `up` was told */
	bool talks;             /* somebody reads its control stream there */
	bool leaving;           /* it was told to end */
	bool of_use;            /* it has run something to its end */
	bool settled;           /* what has ended it is no function that it has
				   still */
	char why[WHY_ROOM];     /* why it was fenced, or what it said itself;
				   "": its end says why */
	struct taken taken[WINDOW_MOST];
	unsigned n_taken, first_taken;
	bool begun;             /* the first of them, which has a deadline */
	double moved;           /* ev_now: the last one ended, or the first was
				   taken */
	uint64_t back_upto;     /* asked to give back those that have not
				   begun; 0: not */
	struct ev_timer deadline;
	unsigned window;
	double average;         /* seconds that a function takes, lately */
	struct kept kept;       /* results that it keeps: sizes alone */
	struct {
		int fd;         /* -1: none */
		struct ev_io io;
		char line[LINE_ROOM];
		size_t n_line;
		char words[WORDS_ROOM]; /* a ring: the last it has said */
		uint64_t n_words;
		/* from life to life: what the log was told in this second */
		uint64_t second_ns;
		unsigned n_said;
		uint64_t n_left_out;
		struct ev_timer rest; /* while some were left out */
	} output;
	/* from life to life */
	uint64_t due_ns, backoff_ns;
};

struct processes {
	struct notes notes;     /* the first; any thread */

	/* ---- set at open ---- */
	evc_coord *scope;
	evc_reactor *reactor;
	evc_loop_ref *loop;
	const evc_engine_sink *sink;
	void *core;
	uint64_t lease_ns, grace_ns, generation;
	size_t max_frame;
	char *path;             /* of the program */
	char **argv, **environment; /* of the program; the first in the latter
				       is set for each worker */
	unsigned n;
	struct process *workers;
	/* Of a link: how many of the bytes that came are done with; something can
	   be read or written.  (hear.c) */
	size_t (*hear)(struct link *l, const unsigned char *p, size_t n);
	void (*on_io)(struct ev_loop *ev, struct ev_io *io, int events);

	/* ---- loop thread only ---- */
	struct ev_loop *ev;
	struct on_loop on;
	bool running;           /* the watchers are there */
	bool lost;              /* the loop is being destroyed */
	bool left;              /* leave was heard */
	bool ended;             /* all workers are over */
	evc_task task;          /* keeps the loop turning */
	struct ev_timer lease;  /* for all of them */
	struct ev_timer spawn;  /* the next start that is due */
	struct ev_timer grace;  /* after leave */
	struct ev_timer back;   /* while a worker has more than one function */
	struct ev_cleanup cleanup;
	uint64_t tick_ns;       /* of the lease timer, the last one */
	uint64_t cancelled_upto;
	uint64_t until_ns;      /* workers end by themselves then; 0: they do
				   not */
	unsigned next;          /* which worker is fed first */
	unsigned char *scratch; /* what is read, before it has a frame */
};

#define SCRATCH ((size_t)256 << 10)

extern const evc_engine_ops evc__engine_processes;

/* The i-th of those it has taken, the oldest first; i is n_taken at most: the
   place of the next one. */
static inline struct taken *
process_taken(struct process *w, unsigned i)
{
	return &w->taken[(w->first_taken + i) % WINDOW_MOST];
}

/* It has said something. */
static inline void
process_lives(struct process *w)
{
	w->ping_ns = 0;
}

/* ---- process.c ---- */

/* The oldest that it has taken has begun: its deadline counts from now. */
void evc__process_begun(struct process *w);
void evc__process_deadline_stop(struct process *w);
/* It completes nothing more: SIGKILL, and `gone` follows.  why: "sent garbage:
   ..."; a name and a pid are put before. */
void evc__process_fence(struct process *w, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* This one will not live again; when it was the last the engine ends. */
void evc__process_over(struct process *w);

/* ---- program.c ---- */

/* The path and the arguments from the options.  0, or refused. */
evc_status evc__processes_program(struct processes *p,
				  const char *const *options);
void evc__processes_program_free(struct processes *p);

/* ---- link.c ---- */

void evc__link_open(struct link *l, struct process *w, int fd);
void evc__link_close(struct link *l);
/* Write what can be written. */
void evc__link_flush(struct link *l);
/* Read what is there, once or to the end; each frame goes to p->hear. */
void evc__link_read(struct link *l, bool to_the_end);

/* ---- output.c ---- */

void evc__process_output_open(struct process *w, int fd);
/* What is there still is read and told. */
void evc__process_output_close(struct process *w);
/* ": its last words: ..." into t, as many as there is room for; nothing if it
   has said nothing. */
void evc__process_words(const struct process *w, struct text *t);

/* ---- feed.c ---- */

/* Give workers what there is to build and to run. */
void evc__processes_feed(struct processes *p);
void evc__process_feed(struct process *w);
/* The oldest that it has taken is over, and took so long (< 0: given back). */
void evc__process_ended_one(struct process *w, double took);

/* ---- back.c ---- */

void evc__processes_back_init(struct processes *p);
/* Those behind this one do not begin there.  false: nobody has asked. */
bool evc__process_gave_back(struct process *w, const struct frame_backed *f);

/* ---- lease.c ---- */

void evc__processes_lease_start(struct processes *p);
/* The timer of its deadline. */
void evc__process_overdue(struct ev_loop *ev, struct ev_timer *timer,
			  int events);
/* Have workers end by themselves, later than was said before. */
void evc__processes_until(struct processes *p, uint64_t mono_ns);
/* This one has just been started. */
void evc__process_until(struct process *w);

/* ---- hear.c ---- */

size_t evc__process_hear(struct link *l, const unsigned char *p, size_t n);
void evc__process_on_io(struct ev_loop *ev, struct ev_io *io, int events);
/* The answer that it waits for. */
void evc__process_answer(struct process *w, const evc_engine_answer *a);

/* ---- spawn.c ---- */

/* Start those that are due, and see to it that the others are. */
void evc__processes_spawn(struct processes *p);
/* This one is to be started after a while, the longer the sooner it ended. */
void evc__process_again(struct process *w);

/* ---- end.c ---- */

/* Its pidfd says that it has ended; without one it is asked. */
void evc__process_on_end(struct ev_loop *ev, struct ev_io *io, int events);
void evc__process_on_ask(struct ev_loop *ev, struct ev_timer *timer,
			 int events);
/* The loop is going: kill it, and see it end here. */
void evc__process_end_now(struct process *w, uint64_t until);

/* ---- turn.c ---- */

/* Begins everything, too. */
void evc__processes_mail(evc_message *m, evc_status why);
/* A fork child keeps the loop, or destroys it. */
void evc__processes_off(struct on_loop *on, struct ev_loop *loop);

#endif
