/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is wrong about a run of evc-shake: threads that hang, a bad status, a
 * crash, children that nobody waited for, files left, requests cut.
 * Called by: shake_run.c and shake_trace.c.
 * Locks: none; one thread.
 */
#include "shake_tool.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

void
fault_add(struct result *r, enum fault fault, const char *fmt, ...)
{
	size_t n = strlen(r->why);
	va_list ap;

	r->faults |= fault;
	if (n > 0)
		append(r->why, sizeof r->why, "\n");
	n = strlen(r->why);
	va_start(ap, fmt);
	vsnprintf(r->why + n, sizeof r->why - n, fmt, ap);
	va_end(ap);
}

void
status_value(pid_t tid, const char *key, char *value, size_t size)
{
	char path[40], line[512];
	size_t n = strlen(key);
	FILE *f;

	value[0] = '\0';
	snprintf(path, sizeof path, "/proc/%d/status", (int)tid);
	f = fopen(path, "re");
	if (f == NULL)
		return;
	while (fgets(line, sizeof line, f) != NULL)
		if (strncmp(line, key, n) == 0 && line[n] == ':') {
			char *from = line + n + 1 + strspn(line + n + 1, " \t");

			snprintf(value, size, "%.*s",
				 (int)strcspn(from, "\n"), from);
			break;
		}
	fclose(f);
}

void
judge_hang(struct run *run)
{
	char name[32], place[PLACE_SIZE], stack[STACK_SIZE];
	unsigned more = 0, named = 0;

	fault_add(run->r, HANGS, "has not ended %g s after the signal",
		  run->o->grace);
	for (size_t i = 0; i < run->n_tasks; i++) {
		const struct task *t = &run->task[i];

		if (!t->alive)
			continue;
		if (named == 4) {
			more++;
			continue;
		}
		named++;
		status_value(t->tid, "Name", name, sizeof name);
		place_now(t->pid, t->tid, place, sizeof place, stack,
			  sizeof stack);
		fault_add(run->r, HANGS, "thread %zu (%s): %s%s%s", i + 1,
			  name, place, stack[0] != '\0' ? " < " : "", stack);
	}
	if (more > 0)
		fault_add(run->r, HANGS, "and %u more", more);
}

/* Is the process a zombie of this parent? */
static bool
is_zombie(pid_t pid, pid_t parent)
{
	char state[32], of[32];

	status_value(pid, "State", state, sizeof state);
	status_value(pid, "PPid", of, sizeof of);
	return state[0] == 'Z' && atol(of) == parent;
}

void
judge_zombies(struct run *run)
{
	unsigned long status = 0;
	unsigned n = 0;

	/* A death by a signal gives nobody time to wait. */
	if (ptrace(PTRACE_GETEVENTMSG, run->main, NULL, &status) != 0 ||
	    !WIFEXITED((int)status))
		return;
	/* The parent could wait only for children whose end we have seen. */
	for (size_t i = 0; i < run->n_tasks; i++)
		if (!run->task[i].alive && run->task[i].tid ==
		    run->task[i].pid && is_zombie(run->task[i].pid, run->main))
			n++;
	if (n > 0)
		fault_add(run->r, ZOMBIE, "%u %s that nobody waited for", n,
			  n == 1 ? "child has ended" : "children have ended");
}

bool
died_by_default(const struct options *o, const struct result *r)
{
	return r->sent && WIFSIGNALED(r->status) &&
		WTERMSIG(r->status) == o->signo &&
		(r->action == ACT_DEFAULT || r->action == ACT_BLOCKED);
}

static void
judge_status(struct run *run)
{
	struct result *r = run->r;
	const struct options *o = run->o;

	if (r->faults & HANGS)
		return;
	if (run->crash > 0)
		fault_add(r, CRASHED, "a process has crashed: %s",
			  strsignal(run->crash));
	if (WIFEXITED(r->status) && !o->status[WEXITSTATUS(r->status)])
		fault_add(r, BAD_STATUS, "exit status %d",
			  WEXITSTATUS(r->status));
	if (!WIFSIGNALED(r->status) || WTERMSIG(r->status) == run->crash)
		return;
	/* Without a handler nothing else can happen. */
	if (!died_by_default(o, r) &&
	    !(WTERMSIG(r->status) == o->signo && r->sent &&
	      o->signal_allowed))
		fault_add(r, BAD_STATUS, "killed by %s",
			  strsignal(WTERMSIG(r->status)));
}

static void
judge_files(struct run *run)
{
	char path[200], first[256] = "";
	const struct dirent *e;
	unsigned n = 0;
	DIR *d;

	snprintf(path, sizeof path, "%s/tmp", run->folder);
	d = opendir(path);
	if (d == NULL)
		return;
	while ((e = readdir(d)) != NULL) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (n++ == 0)
			snprintf(first, sizeof first, "%s", e->d_name);
	}
	closedir(d);
	if (n > 0)
		fault_add(run->r, LEFT_FILE, "%u left in TMPDIR: %s%s", n,
			  first, n > 1 ? " ..." : "");
}

/* The last line of a file of the run's folder. */
static void
last_line(const struct run *run, const char *name, char *text, size_t size)
{
	char path[200], line[1024];
	FILE *f;

	text[0] = '\0';
	snprintf(path, sizeof path, "%s/%s", run->folder, name);
	f = fopen(path, "re");
	if (f == NULL)
		return;
	if (fseek(f, -8192, SEEK_END) != 0)
		rewind(f);
	while (fgets(line, sizeof line, f) != NULL)
		if (line[0] != '\n')
			snprintf(text, size, "%.*s",
				 (int)strcspn(line, "\n"), line);
	fclose(f);
}

static void
judge_load(struct run *run)
{
	const int status = run->load_status;
	char said[160];

	/* The shell tells of a command that our SIGTERM has killed. */
	if (run->o->load == NULL ||
	    (run->load_told && WIFEXITED(status) &&
	     WEXITSTATUS(status) == 128 + SIGTERM))
		return;
	last_line(run, "load", said, sizeof said);
	if (run->load_killed)
		fault_add(run->r, CUT, "the load does not end");
	else if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
		fault_add(run->r, CUT, "the load's exit status is %d: %s",
			  WEXITSTATUS(status), said);
	else if (WIFSIGNALED(status) &&
		 !(run->load_told && WTERMSIG(status) == SIGTERM))
		fault_add(run->r, CUT, "the load was killed by %s",
			  strsignal(WTERMSIG(status)));
}

void
judge_end(struct run *run)
{
	const struct options *o = run->o;
	struct result *r = run->r;

	if (r->sent)
		r->took = (r->faults & HANGS) ? o->grace :
			run->ended_at - run->sent_at;
	if (o->only_handled && died_by_default(o, r)) {
		r->faults = 0;
		r->why[0] = '\0';
		return;
	}
	judge_status(run);
	/* A load that was cut by our SIGKILL says nothing new. */
	if (!(r->faults & HANGS))
		judge_load(run);
	judge_files(run);
	last_line(run, "out", r->said, sizeof r->said);
}
