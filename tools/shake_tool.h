/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts of evc-shake, and their shared types and calls.
 *
 *   evc-shake.c     the command line, and the order of the runs
 *   shake_plan.c    moments: which ones are tried, their text and back
 *   shake_run.c     one run: start, signal, end, left processes and files
 *   shake_trace.c   the threads of a run, their calls, the signal before a call
 *   shake_judge.c   what is wrong about a run that has ended
 *   shake_place.c   where a thread stands: function, module, stack
 *   shake_symbol.c  names of functions, from ELF files
 *   shake_call.c    names of system calls, and the filter that stops at them
 *   shake_print.c   the report, JSON, the bar
 *
 * A task is a thread of any process of the program; tasks are numbered from 1
 * in the order in which they were made.  Times are seconds of the monotonic
 * clock.
 */
#ifndef TOOLS_SHAKE_TOOL_H
#define TOOLS_SHAKE_TOOL_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* so this header comes first */
#endif

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define CALLS 512       /* numbers of system calls are below it */
#define PLACE_SIZE 128
#define STACK_SIZE 512
#define WORST_MOST 100

/* ---- evc-shake.c ---- */

struct options {
	char **program;         /* and its arguments, NULL at the end */
	const char *load;       /* a command for the shell, or NULL */
	const char *json;       /* a file, or NULL */
	int signo;
	double grace;           /* seconds from the signal to the end */
	double time;            /* seconds from the start to the signal, where
				   no call is waited for */
	uint64_t seed;
	unsigned moments;       /* number of runs of a plan */
	unsigned worst;         /* number of moments in the report */
	unsigned times;         /* number of repeats; 0: the default */
	bool status[256];       /* exit statuses that are no fault */
	bool signal_allowed;    /* a death by the signal is no fault */
	bool only_handled;      /* no moment before there is a handler */
	bool some_calls;        /* only calls with call[NUMBER] */
	bool call[CALLS];
};

/* A message on standard error; the program ends with status 3. */
_Noreturn void die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Zeroed memory; without memory the program ends. */
void *room_for(size_t n, size_t size);
/* Adds text to the string in buf, as far as there is room. */
void append(char *buf, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
double seconds_now(void);
/* True after SIGINT, SIGTERM or SIGHUP: no further run begins. */
bool is_interrupted(void);
/* The signal has to be known by is_interrupted. */
void interrupted_by(int signo);
/* SIGCHLD and what interrupts; blocked, and taken by sigtimedwait alone. */
void signals_of_tool(sigset_t *set);

/* ---- shake_plan.c ---- */

/* BEFORE_CALL: the n-th call nr of task number `task`; INSTANT: `after`
   seconds after the start.  SURVEY: the first run, of which all calls are
   counted; the signal comes at o->time. */
struct moment {
	enum { BEFORE_CALL, INSTANT, SURVEY } kind;
	int nr;
	unsigned task;
	unsigned long n;
	double after;
};

/* The number of calls nr that task number `task` made before the signal; the
   `early` first ones before the program had a handler. */
struct count {
	unsigned task;
	int nr;
	unsigned long n, early;
};

struct counts {
	struct count *of;
	size_t n, size;
	double from, until;     /* seconds from the start to the handler, and
				   to the signal */
};

/* Fills m with o->moments moments; answers how many these are. */
size_t plan_moments(struct moment *m, const struct options *o,
		    const struct counts *c);
/* "accept4#17@3" or "12.345ms"; the next call reuses the memory. */
const char *moment_text(const struct moment *m);
bool moment_parse(struct moment *m, const char *text);

/* ---- shake_run.c ---- */

enum fault {
	HANGS = 1,
	CRASHED = 2,
	BAD_STATUS = 4,
	CUT = 8,
	LEFT_PROCESS = 16,
	ZOMBIE = 32,
	LEFT_FILE = 64
};

/* What the program did with the signal at the moment of the signal. */
enum action { ACT_NONE, ACT_DEFAULT, ACT_HANDLED, ACT_BLOCKED, ACT_IGNORED };

struct result {
	struct moment moment;
	bool sent;              /* false: the program ended before */
	bool reached;           /* the signal was sent at the moment */
	double at, took;        /* seconds: start to signal, signal to end */
	enum action action;
	unsigned faults;        /* enum fault, or-ed */
	int status;             /* of wait(2); of a hanging program SIGKILL's */
	char name[16];          /* of the thread at the moment */
	char place[PLACE_SIZE]; /* where that thread was */
	char stack[STACK_SIZE];
	char why[1024];         /* the faults, a line of text for each */
	char said[160];         /* the program's last line */
	unsigned times, same, bad; /* repeats: all, at the same place, failed */
};

/* Run the program once.  c, if any: gets the calls of the run. */
void run_once(const struct options *o, const struct moment *m,
	      struct result *r, struct counts *c);

/* ---- shake_trace.c ---- */

struct task {
	pid_t tid, pid;
	bool alive;
	bool again;             /* its next call was counted already */
	unsigned long *counts;  /* of each call, CALLS of them */
	unsigned long *early;   /* of them before there was a handler; or NULL */
};

struct run {
	const struct options *o;
	struct result *r;
	struct task *task;      /* in the order of their numbers */
	size_t n_tasks, size_tasks;
	pid_t main, load;       /* 0: no such process (any more) */
	uint32_t arch;          /* of all calls that count */
	bool begun;             /* the program itself runs */
	bool ended;             /* main has been waited for */
	bool handler;           /* of the first run: main has one for the
				   signal */
	double began, handled_at, sent_at, ended_at;
	struct task *held;      /* stands before its call until held_until */
	double held_until;
	int crash;              /* the signal that killed a process, or 0 */
	int load_status;
	bool load_told, load_killed;
	char folder[160];       /* of this run; has tmp/, out and load */
};

/* A status that waitpid gave for a process that is not the load. */
void trace_event(struct run *run, pid_t tid, int status);
/* The thread that stands before its call goes on. */
void trace_release(struct run *run);
/* Send the signal to the program now. */
void trace_send(struct run *run);

/* ---- shake_judge.c ---- */

/* One more fault: its text is added to why. */
void fault_add(struct result *r, enum fault fault, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* What each thread of the program does now, into why: the program hangs. */
void judge_hang(struct run *run);
/* The main process is about to exit: children that nobody waited for. */
void judge_zombies(struct run *run);
/* All has ended: statuses, files, the load. */
void judge_end(struct run *run);
/* The signal has killed the program, and there was no handler. */
bool died_by_default(const struct options *o, const struct result *r);
/* The value of a line "KEY:\tVALUE" of /proc/TID/status, or "". */
void status_value(pid_t tid, const char *key, char *value, size_t size);

/* ---- shake_place.c ---- */

/* A thread that is in a system call: its function and stack, and in front of
   them the name of the call.  Of other threads the state: "R (running)". */
void place_now(pid_t pid, pid_t tid, char *text, size_t size, char *stack,
	       size_t stack_size);
/* Where ip is, as text: "function+0x12 (module)". */
void place_text(pid_t pid, uint64_t ip, char *text, size_t size);
/* The words from sp on that look like return addresses, as text. */
void stack_text(pid_t pid, uint64_t sp, char *text, size_t size);

/* ---- shake_symbol.c ---- */

/* The function of an ELF file at an offset in the file: "name+0x12", or
   "+0xoffset" when no symbol is known. */
void symbol_text(const char *file, uint64_t offset, char *text, size_t size);

/* ---- shake_call.c ---- */

/* The name of a system call; the next call may reuse the memory. */
const char *call_name(int nr);
/* The number of a system call, or -1. */
int call_number(const char *name);
/* From now on each call of this process with call[NUMBER] stops for the tracer
   (NULL: each call).  0, or -1 and errno. */
int call_filter(const bool *call);

/* ---- shake_print.c ---- */

struct summary {
	struct result *result;
	size_t n;               /* of results */
};

void print_summary(const struct options *o, struct summary *s);
void print_repeats(const struct result *r);
/* One line for a run. */
void print_json(FILE *f, const struct options *o, const struct result *r);
/* Only on a terminal. */
void print_bar(size_t done, size_t of, size_t failed);
/* How bad is it?  Larger is worse. */
double badness(const struct result *r);

#endif
