/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The program of the workers, its arguments and its environment, as they are
 * when the engine is opened.
 * Called by: processes.c.
 * Locks: none; the thread that opens the cluster.
 */
#include "cluster/processes/processes.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/proc.h"
#include "wire/uri.h"

#define OWN_LINK "/proc/self/exe"

static char *
copy_of(const char *s)
{
	char *copy = sync_alloc(1, strlen(s) + 1);

	return copy != NULL ? strcpy(copy, s) : NULL;
}

/* The path of this program, or the link of the kernel if the file was
   replaced, or is not there by this path, as after a chroot. */
static char *
own_path(void)
{
	static const char gone[] = " (deleted)";
	char path[PATH_MAX];
	size_t n, tail = sizeof gone - 1;

	if (evc__proc_program(path, sizeof path)) {
		n = strlen(path);
		if ((n <= tail || strcmp(path + n - tail, gone) != 0) &&
		    access(path, F_OK) == 0)
			return copy_of(path);
	}
	return copy_of(OWN_LINK);
}

/* The name by which this program was started: some programs look for their files
   beside this name, and not beside the target of the link. */
static char *
own_name(const char *path)
{
	char line[PATH_MAX];

	return copy_of(evc__proc_file("/proc/self/cmdline", line,
				      sizeof line) > 0 && line[0] != '\0' ?
			       line : path);
}

static char *
argument(const struct processes *p, const char *const *options, unsigned i)
{
	if (i > 0)
		return copy_of(evc__uri_option(options, "arg", i - 1));
	return evc__uri_option(options, "program", 0) != NULL ?
		       copy_of(p->path) : own_name(p->path);
}

/* 0, or refused at the open, instead of after worker_wait: the file cannot be
   executed. */
static evc_status
check_program(const char *path)
{
	struct stat s;
	int err = stat(path, &s) < 0 ? errno : S_ISDIR(s.st_mode) ? EISDIR :
		  access(path, X_OK) < 0 ? errno : 0;

	if (err == 0)
		return 0;
	return evc_refuse(err == ENOENT ? -EVC_NOT_FOUND :
			  err == EACCES || err == EISDIR ?
					  -EVC_PERMISSION_DENIED :
					  -EVC_FAILED_PRECONDITION,
			  "processes: the program %s cannot be executed: %s",
			  path, strerror(err));
}

static evc_status
no_memory(void)
{
	return evc_refuse(-EVC_RESOURCE_EXHAUSTED, "processes: no memory");
}

/* A copy, because the program may change its environment on another thread
   later. environment[0] stays free for WORKER_VARIABLE. */
static bool
copy_environment(struct processes *p)
{
	size_t n = 0, i, at = 1;

	while (environ != NULL && environ[n] != NULL)
		n++;
	p->environment = sync_alloc(n + 2, sizeof *p->environment);
	for (i = 0; p->environment != NULL && i < n; i++) {
		p->environment[at] = copy_of(environ[i]);
		if (p->environment[at++] == NULL)
			return false;
	}
	return p->environment != NULL;
}

static void
free_strings(char **list)
{
	for (; list != NULL && *list != NULL; list++)
		sync_free(*list);
}

evc_status
evc__processes_program(struct processes *p, const char *const *options)
{
	const char *program = evc__uri_option(options, "program", 0);
	unsigned n = 0, i;
	evc_status st;

	if (evc__uri_option(options, "program", 1) != NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "processes: more than one program");
	if (program != NULL && program[0] == '\0')
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "processes: the program has no name");
	while (evc__uri_option(options, "arg", n) != NULL)
		n++;
	p->runs_itself = program == NULL;
	p->path = program != NULL ? evc__proc_path(program) : own_path();
	p->argv = sync_alloc(n + 2, sizeof *p->argv);
	if (p->path == NULL || p->argv == NULL)
		return no_memory();
	/* Without /proc a program cannot find its own file. */
	st = check_program(p->path);
	if (st < 0)
		return st;
	for (i = 0; i <= n; i++) {
		p->argv[i] = argument(p, options, i);
		if (p->argv[i] == NULL)
			return no_memory();
	}
	return copy_environment(p) ? 0 : no_memory();
}

bool
evc__processes_own_again(struct processes *p)
{
	char *link;

	if (!p->runs_itself || access(p->path, F_OK) == 0 || errno != ENOENT)
		return false;
	link = copy_of(OWN_LINK);
	if (link == NULL)
		return false;
	sync_free(p->path);
	p->path = link;
	return true;
}

void
evc__processes_program_free(struct processes *p)
{
	free_strings(p->argv);
	if (p->environment != NULL)
		free_strings(p->environment + 1);
	sync_free(p->argv);
	sync_free(p->environment);
	sync_free(p->path);
}
