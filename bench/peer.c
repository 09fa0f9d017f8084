/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The peer of the pool, from our side.  libuv has one pool in a process, whose
 * size is said once and for all, so each size gets a process of its own: this
 * program once more, asked by a pipe.  The cpus on which it may run are those
 * of the thread that starts it.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

extern char **environ;

static void
write_all(int fd, const void *data, size_t n)
{
	if (write(fd, data, n) != (ssize_t)n)
		bench_must_sys(errno ? errno : EIO, "write to the peer");
}

static void
read_all(int fd, void *data, size_t n)
{
	char *at = data;
	ssize_t got;

	while (n > 0) {
		got = read(fd, at, n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			bench_must_sys(got < 0 ? errno : EPIPE,
				       "read from the peer");
		at += got;
		n -= (size_t)got;
	}
}

bool
bench_peer_start(struct bench_peer *p, const struct bench_make *make)
{
#ifdef HAVE_LIBUV
	char text[4][16];
	char *argv[] = { (char *)"evcbench", (char *)"--peer", text[0],
			 text[1], text[2], text[3], NULL };
	posix_spawn_file_actions_t act;
	int to[2], from[2];

	snprintf(text[0], sizeof(text[0]), "%u", make->n_threads);
	snprintf(text[1], sizeof(text[1]), "%d", make->loop_cpu);
	snprintf(text[2], sizeof(text[2]), "%d", make->work_cpu);
	snprintf(text[3], sizeof(text[3]), "%d", make->counted);
	/* The other peers must not hold their ends open. */
	if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0)
		bench_must_sys(errno, "pipe2");
	bench_must_sys(posix_spawn_file_actions_init(&act), "posix_spawn");
	posix_spawn_file_actions_adddup2(&act, to[0], 0);
	posix_spawn_file_actions_adddup2(&act, from[1], 1);
	bench_must_sys(posix_spawn(&p->pid, "/proc/self/exe", &act, NULL,
				   argv, environ), "posix_spawn");
	posix_spawn_file_actions_destroy(&act);
	close(to[0]);
	close(from[1]);
	p->ask = to[1];
	p->answer = from[0];
	return true;
#else
	(void)p;
	(void)make;
	return false;
#endif
}

struct bench_went
bench_peer_work(struct bench_peer *p, const struct bench_load *load,
		double *each)
{
	struct bench_went went;

	write_all(p->ask, load, sizeof(*load));
	read_all(p->answer, &went, sizeof(went));
	if (load->each)
		read_all(p->answer, each, load->jobs * sizeof(*each));
	return went;
}

void
bench_peer_end(struct bench_peer *p)
{
	int status;

	/* The end of its input is the end of it. */
	close(p->ask);
	close(p->answer);
	while (waitpid(p->pid, &status, 0) < 0) {
		if (errno != EINTR)
			bench_must_sys(errno, "waitpid");
	}
	if (status != 0)
		bench_must_sys(ECHILD, "the peer's end");
}
