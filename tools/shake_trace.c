/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The program under ptrace: all its threads and processes get a number; the
 * kernel stops the calls of the filter; before the chosen one the signal is
 * sent.  strace could send as well (-e inject=CALL:signal=TERM:when=N), but its
 * signal comes with the call already begun, so that the call fails with EINTR:
 * a program that tests a flag and then sleeps for ever ends well under strace,
 * and hangs where the handler runs between the two.  So the call is taken back:
 * the handler runs, and then the program makes its call.
 * Called by: shake_run.c.
 * Locks: none; one thread.
 */
#include "shake_tool.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

/* Seconds that a thread stands before its call, so that the handler can run on
   another thread of the program. */
#define HOLD 0.005
#define HOLD_TAKEN 0.001

/* A call, as Linux 5.3 and later tells of it; headers may be older. */
#define GET_CALL_INFO 0x420e
#define CALL_OF_FILTER 3
struct call_info {
	uint8_t op;
	uint32_t arch;
	uint64_t instruction_pointer, stack_pointer, nr;
};

static struct task *
task_find(struct run *run, pid_t tid)
{
	for (size_t i = run->n_tasks; i > 0; i--)
		if (run->task[i - 1].tid == tid && run->task[i - 1].alive)
			return &run->task[i - 1];
	return NULL;
}

static struct task *
task_of(struct run *run, pid_t tid)
{
	struct task *t = task_find(run, tid);
	char pid[32];

	if (t != NULL)
		return t;
	if (run->n_tasks == run->size_tasks) {
		/* A pointer into the array would not stay. */
		size_t held = run->held != NULL ?
			(size_t)(run->held - run->task) : 0;

		run->size_tasks = 2 * run->size_tasks + 64;
		run->task = realloc(run->task,
				    run->size_tasks * sizeof *run->task);
		if (run->task == NULL)
			die("no memory");
		if (run->held != NULL)
			run->held = run->task + held;
	}
	status_value(tid, "Tgid", pid, sizeof pid);
	t = &run->task[run->n_tasks++];
	*t = (struct task){ .tid = tid, .alive = true };
	t->pid = pid[0] != '\0' ? (pid_t)atol(pid) : tid;
	t->counts = room_for(CALLS, sizeof *t->counts);
	return t;
}

static void
resume(pid_t tid, int signo)
{
	ptrace(PTRACE_CONT, tid, NULL, (void *)(intptr_t)signo);
}

void
trace_release(struct run *run)
{
	if (run->held != NULL)
		resume(run->held->tid, 0);
	run->held = NULL;
}

static enum action
action_now(const struct run *run)
{
	static const struct {
		const char *key;
		enum action action;
	} masks[] = {
		{ "SigCgt", ACT_HANDLED },
		{ "SigIgn", ACT_IGNORED },
		{ "SigBlk", ACT_BLOCKED },
	};
	char mask[32];

	for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) {
		status_value(run->main, masks[i].key, mask, sizeof mask);
		if (strtoull(mask, NULL, 16) >> (run->o->signo - 1) & 1)
			return masks[i].action;
	}
	return ACT_DEFAULT;
}

void
trace_send(struct run *run)
{
	run->r->action = action_now(run);
	run->r->sent = true;
	run->sent_at = seconds_now();
	run->r->at = run->sent_at - run->began;
	kill(run->main, run->o->signo);
}

/* The program makes the call again when the thread goes on: after the handler,
   if the thread runs it. */
static void
take_back(struct task *t, int nr)
{
#if defined(__x86_64__)
	struct user_regs_struct u;

	if (ptrace(PTRACE_GETREGS, t->tid, NULL, &u) != 0)
		return;
	u.rip -= 2; /* the instruction "syscall" */
	u.rax = (unsigned long long)nr;
	u.orig_rax = (unsigned long long)-1;
	t->again = ptrace(PTRACE_SETREGS, t->tid, NULL, &u) == 0;
#else
	/* On other machines the call begins with the signal pending. */
	(void)t, (void)nr;
#endif
}

static bool
others_hear(const struct run *run, const struct task *t)
{
	for (size_t i = 0; i < run->n_tasks; i++)
		if (&run->task[i] != t && run->task[i].alive &&
		    run->task[i].pid == run->main)
			return true;
	return false;
}

static void
send_before(struct run *run, struct task *t, const struct call_info *info)
{
	struct result *r = run->r;

	r->reached = true;
	status_value(t->tid, "Name", r->name, sizeof r->name);
	place_text(t->pid, info->instruction_pointer, r->place,
		   sizeof r->place);
	stack_text(t->pid, info->stack_pointer, r->stack, sizeof r->stack);
	take_back(t, (int)info->nr);
	trace_send(run);
	if (!others_hear(run, t)) {
		resume(t->tid, 0);
		return;
	}
	run->held = t;
	run->held_until = run->sent_at + HOLD;
}

/* Has the program a handler now?  All calls so far were made without. */
static void
look_for_handler(struct run *run)
{
	enum action now = action_now(run);

	/* pthread_create blocks signals for a moment, so that does not count. */
	if (now != ACT_HANDLED && now != ACT_IGNORED)
		return;
	run->handler = true;
	run->handled_at = seconds_now();
	for (size_t i = 0; i < run->n_tasks; i++) {
		struct task *t = &run->task[i];

		t->early = room_for(CALLS, sizeof *t->early);
		memcpy(t->early, t->counts, CALLS * sizeof *t->early);
	}
}

/* A call of the filter is about to begin. */
static void
on_call(struct run *run, struct task *t)
{
	const struct moment *m = &run->r->moment;
	struct call_info info = { 0 };
	int nr;

	if (ptrace(GET_CALL_INFO, t->tid, (void *)sizeof info, &info) < 0 &&
	    errno == EIO)
		die("Linux 5.3 or later is needed");
	if (info.op != CALL_OF_FILTER || t->again) {
		t->again = false;
		resume(t->tid, 0);
		return;
	}
	/* The first one is our own execve. */
	if (run->arch == 0)
		run->arch = info.arch;
	nr = (int)info.nr;
	if (!run->begun || run->r->sent || info.arch != run->arch || nr < 0 ||
	    nr >= CALLS) {
		resume(t->tid, 0);
		return;
	}
	if (m->kind == SURVEY && !run->handler)
		look_for_handler(run);
	t->counts[nr]++;
	if (m->kind == BEFORE_CALL && m->nr == nr && m->n == t->counts[nr] &&
	    m->task == (size_t)(t - run->task) + 1)
		send_before(run, t, &info);
	else
		resume(t->tid, 0);
}

static void
on_exec(struct run *run, struct task *t)
{
	unsigned long former = 0;
	struct task *other;

	ptrace(PTRACE_GETEVENTMSG, t->tid, NULL, &former);
	other = (pid_t)former != t->tid ? task_find(run, (pid_t)former) : NULL;
	if (other != NULL)
		other->alive = false;
	if (t->tid == run->main && !run->begun) {
		run->begun = true;
		run->began = seconds_now();
	}
}

static void
on_stop(struct run *run, struct task *t, int signo, int event)
{
	pid_t tid = t->tid; /* the array may move */
	unsigned long made = 0;

	switch (event) {
	case PTRACE_EVENT_SECCOMP:
		on_call(run, t);
		return;
	case PTRACE_EVENT_STOP:
		/* SIGSTOP and its like; others: a new thread. */
		if (signo != SIGTRAP) {
			ptrace(PTRACE_LISTEN, t->tid, NULL, NULL);
			return;
		}
		break;
	case PTRACE_EVENT_EXEC:
		on_exec(run, t);
		break;
	case PTRACE_EVENT_EXIT:
		if (t->tid == run->main)
			judge_zombies(run);
		break;
	case PTRACE_EVENT_CLONE:
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
		if (ptrace(PTRACE_GETEVENTMSG, tid, NULL, &made) == 0)
			task_of(run, (pid_t)made);
		break;
	default:
		if (signo == run->o->signo && run->held != NULL &&
		    t != run->held)
			run->held_until = seconds_now() + HOLD_TAKEN;
		resume(tid, signo);
		return;
	}
	resume(tid, 0);
}

/* Deaths that leave a core, where the system keeps cores. */
static bool
is_crash(int signo)
{
	static const int crashes[] = {
		SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP
	};

	for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++)
		if (crashes[i] == signo)
			return true;
	return false;
}

void
trace_event(struct run *run, pid_t tid, int status)
{
	struct task *t;

	if (WIFSTOPPED(status)) {
		t = task_of(run, tid);
		on_stop(run, t, WSTOPSIG(status), status >> 16);
		return;
	}
	t = task_find(run, tid);
	if (t != NULL) {
		t->alive = false;
		if (run->held == t)
			run->held = NULL;
	}
	if (WIFSIGNALED(status) && is_crash(WTERMSIG(status)) &&
	    WTERMSIG(status) != run->o->signo && run->crash == 0)
		run->crash = WTERMSIG(status);
	if (tid == run->main && !run->ended) {
		run->ended = true;
		run->ended_at = seconds_now();
		run->r->status = status;
	}
}
