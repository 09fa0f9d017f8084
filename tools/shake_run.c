/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One run of evc-shake: the program starts in a folder and a process group of
 * its own, beside the load; its events are served until it has ended, or its
 * time is over; then nothing is left of it.
 * Called by: evc-shake.c.
 * Locks: none; one thread.
 */
#include "shake_tool.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SETTLE 0.2      /* seconds for other processes after the main one */
#define LOAD_ENDS 0.2   /* seconds for the load after the program */
#define LOAD_TOLD 5.0   /* seconds for the load after its SIGTERM */
#define LATE 1.5        /* a call that has not come by so many times o->time
			   does not come */

static int
remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

static void
folder_remove(const struct run *run)
{
	nftw(run->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void
folder_make(struct run *run)
{
	const char *in = getenv("TMPDIR");
	char path[200];

	snprintf(run->folder, sizeof run->folder, "%s/evc-shake.XXXXXX",
		 in != NULL && in[0] != '\0' ? in : "/tmp");
	if (mkdtemp(run->folder) == NULL)
		die("%s: %s", run->folder, strerror(errno));
	snprintf(path, sizeof path, "%s/tmp", run->folder);
	if (mkdir(path, 0700) != 0)
		die("%s: %s", path, strerror(errno));
}

/* A port that nobody has at the moment. */
static unsigned
port_free(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	socklen_t size = sizeof a;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) != 0 ||
	    getsockname(fd, (struct sockaddr *)&a, &size) != 0)
		die("no free port: %s", strerror(errno));
	close(fd);
	return ntohs(a.sin_port);
}

/* The argument with the values of {port} and {tmp}. */
static char *
filled_in(const char *argument, const char *port, const char *tmp)
{
	size_t size = strlen(argument) + 1 + (strlen(argument) / 5 + 1) *
		(strlen(tmp) + strlen(port));
	char *text = room_for(size, 1);
	const char *from = argument;

	while (*from != '\0') {
		if (strncmp(from, "{port}", 6) == 0) {
			append(text, size, "%s", port);
			from += 6;
		} else if (strncmp(from, "{tmp}", 5) == 0) {
			append(text, size, "%s", tmp);
			from += 5;
		} else {
			append(text, size, "%c", *from++);
		}
	}
	return text;
}

/* Output goes to a file of the run's folder, there is no input, and signals
   are as a shell gives them. */
static void
child_set_up(const struct run *run, const char *file)
{
	int in = open("/dev/null", O_RDONLY), out;
	char path[200];
	sigset_t none;

	snprintf(path, sizeof path, "%s/%s", run->folder, file);
	out = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (in < 0 || out < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 ||
	    dup2(out, 2) < 0)
		_exit(126);
	if (in > 2)
		close(in);
	if (out > 2)
		close(out);
	setpgid(0, 0);
	signal(SIGPIPE, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The load: a shell's command, whose last status is its verdict when SIGTERM
   has told it to end. */
static void
load_start(struct run *run)
{
	static const char trap[] = "trap 'exit $?' TERM\n";
	char *command;

	if (run->o->load == NULL)
		return;
	run->load = fork();
	if (run->load < 0)
		die("fork: %s", strerror(errno));
	if (run->load > 0)
		return;
	child_set_up(run, "load");
	command = room_for(sizeof trap + strlen(run->o->load), 1);
	strcat(strcpy(command, trap), run->o->load);
	execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(127);
}

static _Noreturn void
program_exec(struct run *run, char **argument, int go, int failed)
{
	const struct rlimit no_core = { 0, 0 };
	bool calls[CALLS] = { false };
	const struct moment *m = &run->r->moment;
	char path[200], byte;
	int error;

	child_set_up(run, "out");
	setrlimit(RLIMIT_CORE, &no_core);
	snprintf(path, sizeof path, "%s/tmp", run->folder);
	setenv("TMPDIR", path, 1);
	if (m->kind == BEFORE_CALL)
		calls[m->nr] = true;
	/* An instant stops no call: the program runs at its own speed. */
	if (read(go, &byte, 1) == 1 &&
	    (m->kind == INSTANT ||
	     call_filter(m->kind == BEFORE_CALL ? calls :
			 run->o->some_calls ? run->o->call : NULL) == 0))
		execvp(argument[0], argument);
	error = errno;
	if (write(failed, &error, sizeof error) < 0)
		_exit(126);
	_exit(127);
}

static void
program_start(struct run *run)
{
	const long how = PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE |
		PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC |
		PTRACE_O_TRACEEXIT | PTRACE_O_EXITKILL;
	char port[16], tmp[200], **argument;
	int go[2], failed[2], error;
	size_t n = 0;

	snprintf(port, sizeof port, "%u", port_free());
	snprintf(tmp, sizeof tmp, "%s/tmp", run->folder);
	setenv("EVC_SHAKE_PORT", port, 1);
	while (run->o->program[n] != NULL)
		n++;
	argument = room_for(n + 1, sizeof *argument);
	for (size_t i = 0; i < n; i++)
		argument[i] = filled_in(run->o->program[i], port, tmp);
	if (pipe2(go, O_CLOEXEC) != 0 || pipe2(failed, O_CLOEXEC) != 0)
		die("pipe: %s", strerror(errno));
	run->main = fork();
	if (run->main < 0)
		die("fork: %s", strerror(errno));
	if (run->main == 0)
		program_exec(run, argument, go[0], failed[1]);
	close(go[0]);
	close(failed[1]);
	if (ptrace(PTRACE_SEIZE, run->main, NULL, (void *)how) != 0) {
		kill(run->main, SIGKILL);
		die("ptrace: %s", strerror(errno));
	}
	if (write(go[1], "", 1) != 1)
		die("pipe: %s", strerror(errno));
	close(go[1]);
	run->began = seconds_now();
	/* The read end has a byte only if the program cannot be executed; until
	   then the child's stops are to be served. */
	while (!run->begun && !run->ended) {
		int status;
		pid_t pid = waitpid(run->main, &status, __WALL);

		if (pid == run->main)
			trace_event(run, pid, status);
		else if (errno != EINTR)
			break;
	}
	if (read(failed[0], &error, sizeof error) == sizeof error) {
		folder_remove(run);
		die("%s: %s", run->o->program[0], strerror(error));
	}
	close(failed[0]);
	for (size_t i = 0; i < n; i++)
		free(argument[i]);
	free(argument);
}

static void
on_wait(struct run *run, pid_t pid, int status)
{
	if (pid != run->load) {
		trace_event(run, pid, status);
		return;
	}
	run->load = 0;
	run->load_status = status;
}

/* Serve what has happened; sleep until `until` at most if nothing has. */
static void
events_serve(struct run *run, double until)
{
	struct timespec t = { 0, 0 };
	double left = until - seconds_now();
	bool any = false;
	int status, signo;
	sigset_t set;
	pid_t pid;

	while ((pid = waitpid(-1, &status, __WALL | WNOHANG)) > 0) {
		on_wait(run, pid, status);
		any = true;
	}
	if (any || left <= 0)
		return;
	left = left > 1 ? 1 : left;
	t.tv_sec = (time_t)left;
	t.tv_nsec = (long)((left - (double)t.tv_sec) * 1e9);
	signals_of_tool(&set);
	signo = sigtimedwait(&set, NULL, &t);
	if (signo > 0 && signo != SIGCHLD)
		interrupted_by(signo);
}

static bool
others_alive(const struct run *run)
{
	for (size_t i = 0; i < run->n_tasks; i++)
		if (run->task[i].alive)
			return true;
	return false;
}

/* When the signal is sent, if no call comes first. */
static double
instant_of(const struct run *run)
{
	const struct moment *m = &run->r->moment;

	return run->began + (m->kind == INSTANT ? m->after :
			     m->kind == SURVEY ? run->o->time :
			     LATE * run->o->time);
}

/* Until the main process has ended, or hangs. */
static void
serve_until_end(struct run *run)
{
	double at = instant_of(run), until;

	while (!run->ended && !is_interrupted()) {
		until = run->r->sent ? run->sent_at + run->o->grace : at;
		if (run->held != NULL && run->held_until < until)
			until = run->held_until;
		/* Events change what is waited for, so look again after them. */
		if (seconds_now() < until) {
			events_serve(run, until);
		} else if (run->held != NULL) {
			trace_release(run);
		} else if (run->r->sent) {
			judge_hang(run);
			return;
		} else {
			run->r->reached = run->r->moment.kind != BEFORE_CALL;
			place_now(run->main, run->main, run->r->place,
				  sizeof run->r->place, run->r->stack,
				  sizeof run->r->stack);
			trace_send(run);
		}
	}
}

/* The end of all processes of the program; those that live too long are named
   and killed. */
static void
end_others(struct run *run)
{
	double until = seconds_now() + SETTLE;
	bool named = (run->r->faults & HANGS) != 0 || is_interrupted();

	while (others_alive(run) && seconds_now() < until && !named)
		events_serve(run, until);
	for (size_t i = 0; i < run->n_tasks; i++) {
		struct task *t = &run->task[i];
		char name[32];

		if (!t->alive)
			continue;
		if (!named && t->tid == t->pid) {
			status_value(t->tid, "Name", name, sizeof name);
			fault_add(run->r, LEFT_PROCESS,
				  "process %d (%s) is left", (int)t->pid, name);
		}
		kill(t->pid, SIGKILL);
	}
	until = seconds_now() + 10;
	while (others_alive(run) && seconds_now() < until)
		events_serve(run, until);
}

/* The load hears that the program has ended: it may finish its count. */
static void
end_load(struct run *run)
{
	double until = seconds_now() + LOAD_ENDS;
	pid_t group = run->load;

	if (group <= 0)
		return;
	while (run->load > 0 && seconds_now() < until && !is_interrupted())
		events_serve(run, until);
	if (run->load > 0) {
		run->load_told = true;
		kill(-group, SIGTERM);
		kill(-group, SIGCONT);
	}
	until = seconds_now() + LOAD_TOLD;
	while (run->load > 0 && seconds_now() < until)
		events_serve(run, until);
	run->load_killed = run->load > 0;
	kill(-group, SIGKILL);
	until = seconds_now() + 10;
	while (run->load > 0 && seconds_now() < until)
		events_serve(run, until);
}

/* Orphans that ptrace has not followed came to us, their subreaper. */
static void
end_orphans(void)
{
	char line[512], *at, *end;
	long pid;

	for (unsigned round = 0; round < 100; round++) {
		FILE *f = fopen("/proc/thread-self/children", "re");

		if (f == NULL || fgets(line, sizeof line, f) == NULL)
			line[0] = '\0';
		if (f != NULL)
			fclose(f);
		for (at = line; (pid = strtol(at, &end, 10)) > 0; at = end)
			kill((pid_t)pid, SIGKILL);
		if (at == line)
			break;
		while (waitpid(-1, NULL, __WALL | WNOHANG) > 0)
			;
		usleep(1000);
	}
}

static void
counts_fill(struct counts *c, const struct run *run)
{
	c->n = 0;
	c->from = run->handler ? run->handled_at - run->began : 0;
	c->until = run->r->sent ? run->r->at : run->ended_at - run->began;
	for (size_t i = 0; i < run->n_tasks; i++)
		for (int nr = 0; nr < CALLS; nr++) {
			if (run->task[i].counts[nr] == 0)
				continue;
			if (c->n == c->size) {
				c->size = 2 * c->size + 256;
				c->of = realloc(c->of,
						c->size * sizeof *c->of);
				if (c->of == NULL)
					die("no memory");
			}
			c->of[c->n++] = (struct count){
				.task = (unsigned)i + 1,
				.nr = nr,
				.n = run->task[i].counts[nr],
				.early = run->task[i].early != NULL ?
					run->task[i].early[nr] : 0,
			};
		}
}

void
run_once(const struct options *o, const struct moment *m, struct result *r,
	 struct counts *c)
{
	struct run run = { .o = o, .r = r };

	*r = (struct result){ .moment = *m };
	folder_make(&run);
	program_start(&run);
	load_start(&run);
	serve_until_end(&run);
	end_others(&run);
	end_load(&run);
	end_orphans();
	if (c != NULL)
		counts_fill(c, &run);
	if (!is_interrupted())
		judge_end(&run);
	folder_remove(&run);
	for (size_t i = 0; i < run.n_tasks; i++) {
		free(run.task[i].counts);
		free(run.task[i].early);
	}
	free(run.task);
}
