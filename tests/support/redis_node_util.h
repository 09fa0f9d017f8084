/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Nodes for tests of the engine "redis": this very program, run again as a node,
 * whose workers are this program once more.  Its main asks evc_worker_is first,
 * then node_is.
 */
#ifndef TESTS_SUPPORT_REDIS_NODE_UTIL_H
#define TESTS_SUPPORT_REDIS_NODE_UTIL_H

#include "api_util.h"

#include <dirent.h>
#include <evcoord/worker.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

extern char **environ;

/* "WORKERS URI" */
#define NODE_VARIABLE "EVC_TEST_NODE"

/* Set, a node and its workers are of an older program, that does not have the last
   function of the table yet. */
#define OLD_VARIABLE "EVC_TEST_OLD"

static MAYBE_UNUSED bool
node_is_old(void)
{
	return getenv(OLD_VARIABLE) != NULL;
}

/* ---- in the node ---- */

static MAYBE_UNUSED bool
node_is(void)
{
	return getenv(NODE_VARIABLE) != NULL && !evc_worker_is();
}

/* What main returns then. */
static MAYBE_UNUSED int
node_main(const evc_function *functions, unsigned n,
	  const evc_worker_opts *opts)
{
	evc_worker_opts o = { 0 };
	const char *uri = strchr(getenv(NODE_VARIABLE), ' ');
	evc_status st;

	if (opts != NULL)
		o = *opts;
	if (uri == NULL)
		return EXIT_FAILURE;
	/* The thread sanitizer makes its list of pending signals in a thread's
	   first blocking call, and forgets a signal that comes meanwhile. */
	poll(NULL, 0, 0);
	o.uri = uri + 1;
	o.n_workers = (unsigned)atoi(getenv(NODE_VARIABLE));
	st = evc_worker_main(functions, n, &o);
	if (st != 0)
		fprintf(stderr, "node: %d, %s\n", st, evc_last_error());
	return st == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* ---- processes ---- */

/* The field of /proc/PID/stat by its number in proc(5), 3 and more, in TEXT; NULL:
   there is no such process. */
static inline const char *
process_field(pid_t pid, int number, char *text, size_t size)
{
	char path[32], *p;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "r");
	if (f == NULL)
		return NULL;
	p = fgets(text, (int)size, f) != NULL ? strrchr(text, ')') : NULL;
	fclose(f);
	for (; p != NULL && number > 3; number--)
		p = strchr(p + 2, ' ') - 1;
	return p != NULL ? p + 2 : NULL;
}

/* A letter, as the kernel says it: R S T Z; 0: there is none. */
static MAYBE_UNUSED char
process_state(pid_t pid)
{
	char text[512];
	const char *state = process_field(pid, 3, text, sizeof(text));

	return state != NULL ? *state : 0;
}

/* The process is closed, too: files, locks, memory. */
static MAYBE_UNUSED bool
process_is_over(pid_t pid)
{
	char s = process_state(pid);

	return s == 0 || s == 'Z' || s == 'X';
}

/* No instruction of the program runs any more, but the kernel may not have closed
   its files yet. */
static MAYBE_UNUSED bool
process_is_killed(pid_t pid)
{
	const unsigned long exiting = 4, sigkill = 1UL << (SIGKILL - 1);
	char text[512];
	const char *flags = process_field(pid, 9, text, sizeof(text)),
		   *pending;

	if (flags == NULL || (strtoul(flags, NULL, 10) & exiting) != 0)
		return true;
	pending = process_field(pid, 31, text, sizeof(text));
	return pending == NULL || (strtoul(pending, NULL, 10) & sigkill) != 0;
}

/* ---- in the test ---- */

/* The environment with one variable more; for free. */
static inline char **
node_environment(char *variable)
{
	size_t n = 0, i, k = 0;
	char **env;

	while (environ[n] != NULL)
		n++;
	env = calloc(n + 2, sizeof(*env));
	ck_assert_ptr_nonnull(env);
	for (i = 0; i < n; i++)
		if (strncmp(environ[i], NODE_VARIABLE "=",
			    sizeof(NODE_VARIABLE)) != 0)
			env[k++] = environ[i];
	env[k] = variable;
	return env;
}

/* A process that is the node of that address with so many workers.  It ends with
   the thread that has called this. */
static MAYBE_UNUSED pid_t
node_start(const char *uri, unsigned n_workers)
{
	char variable[512], *argv[] = { (char *)(uintptr_t)"node", NULL };
	char **env, self[4096] = "";
	pid_t test = getpid(), pid;

	/* By its name: the link itself would be valgrind's program. */
	ck_assert_int_gt(readlink("/proc/self/exe", self, sizeof(self) - 1), 0);
	snprintf(variable, sizeof(variable), NODE_VARIABLE "=%u %s", n_workers,
		 uri);
	env = node_environment(variable);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != test)
			_exit(125);
		execve(self, argv, env);
		_exit(126);
	}
	free(env);
	ck_assert_int_gt(pid, 0);
	return pid;
}

/* It has ended, and how; a hang is none. */
static MAYBE_UNUSED int
node_wait(pid_t pid)
{
	double until = t_now() + T_LIMIT;
	int status = 0;
	pid_t got;

	while ((got = waitpid(pid, &status, WNOHANG)) == 0 && t_now() < until)
		t_sleep(0.001);
	if (got == 0) {
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		ck_abort_msg("node %d did not end", (int)pid);
	}
	ck_assert_int_eq(got, pid);
	return status;
}

/* Is it what node_start has started, and not this program still? */
static inline bool
node_is_begun(pid_t pid)
{
	static char text[1 << 16];
	char path[64];
	size_t n, i;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	f = fopen(path, "r");
	if (f == NULL)
		return true;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	for (i = 0; i < n; i += strlen(text + i) + 1)
		if (strncmp(text + i, NODE_VARIABLE "=",
			    sizeof(NODE_VARIABLE)) == 0)
			return true;
	return process_is_over(pid);
}

/* Does it do something about a SIGTERM?  One that has just been started does
   not, and that it is blocked for a moment does not help. */
static inline bool
node_heeds(pid_t pid)
{
	unsigned long long caught = 0;
	char path[64], line[128];
	FILE *f;

	if (!node_is_begun(pid))
		return false;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "r");
	if (f == NULL)
		return true;
	while (fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "SigCgt: %llx", &caught) == 1)
			break;
	fclose(f);
	return (caught >> (SIGTERM - 1) & 1) || process_is_over(pid);
}

/* It was told to leave, once, and that is no error. */
static MAYBE_UNUSED void
node_ended(pid_t pid)
{
	int status = node_wait(pid);

	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0,
		      "node %d: status %#x", (int)pid, (unsigned)status);
}

/* As an operator does it.  Not a second time: when its main returns the signal
   is no longer its own. */
static MAYBE_UNUSED void
node_end(pid_t pid)
{
	double until = t_now() + T_LIMIT;

	while (!node_heeds(pid) && t_now() < until)
		t_sleep(0.001);
	OK(kill(pid, SIGTERM));
	node_ended(pid);
}

/* Also of one that is stopped. */
static MAYBE_UNUSED void
node_kill(pid_t pid)
{
	OK(kill(pid, SIGKILL));
	node_wait(pid);
}

/* The children of a process, `most` at most. */
static MAYBE_UNUSED unsigned
children_of(pid_t pid, pid_t *ret, unsigned most)
{
	char path[300];
	struct dirent *e;
	unsigned n = 0;
	int child;
	FILE *f;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	d = opendir(path);
	while (d != NULL && (e = readdir(d)) != NULL) {
		snprintf(path, sizeof(path), "/proc/%d/task/%s/children",
			 (int)pid, e->d_name);
		f = e->d_name[0] != '.' ? fopen(path, "r") : NULL;
		while (f != NULL && n < most && fscanf(f, "%d", &child) == 1)
			ret[n++] = (pid_t)child;
		if (f != NULL)
			fclose(f);
	}
	if (d != NULL)
		closedir(d);
	return n;
}

#endif
