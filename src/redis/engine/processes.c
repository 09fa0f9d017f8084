/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Watches processes of this machine: the kernel reports their ends at once.
 *
 * A pid means a process of this machine if boot id and pid namespace are those
 * of this process (two containers share the boot id).  The process is the right
 * one if its start time is the one that the node has written, or if its parent
 * is the node.  Both are read while a pidfd is open: a former owner of the pid
 * would not match.  Every writer of the namespace can write any pid.  So the
 * coordinator only watches; the end of a process ends the session that has
 * written its pid, and no other; and the number of processes is limited.
 * Called by: nodes.c, worker.c, fence.c; turn.c in a fork child.
 * Locks: none; loop thread only.
 */
#include "redis/engine/engine.h"

#include <stdio.h>

/* ---- /proc ---- */

/* Read a file, n - 1 bytes at most. false: not readable. */
static bool
read_text(const char *path, char *to, size_t n)
{
	int fd = sync_file_open(path);
	ssize_t got = fd >= 0 ? sync_fd_read(fd, to, n - 1) : -1;

	if (fd >= 0)
		sync_fd_close(fd);
	to[got > 0 ? got : 0] = '\0';
	return got > 0;
}

void
evc__redis_detect_init(struct redis_engine *e)
{
	char space[64];
	ssize_t n = readlink("/proc/self/ns/pid", space, sizeof space - 1);
	const char *digits;

	if (read_text("/proc/sys/kernel/random/boot_id", e->detect.boot_id,
		      sizeof e->detect.boot_id))
		e->detect.boot_id[strcspn(e->detect.boot_id, "\n")] = '\0';
	space[n > 0 ? n : 0] = '\0';
	digits = strchr(space, '[');
	e->detect.pid_namespace =
		digits != NULL ? strtoull(digits + 1, NULL, 10) : 0;
}

/* Read the parent and the start time of a process from /proc. false: there is
   no such process. */
static bool
read_stat(pid_t pid, pid_t *ret_parent, uint64_t *ret_start)
{
	char path[64], text[1024];
	struct text t = evc__text_in(path, sizeof path);
	int parent;
	unsigned long long start;
	const char *s;

	evc__text_fmt(&t, "/proc/%d/stat", (int)pid);
	if (!read_text(path, text, sizeof text))
		return false;
	/* The name of the process may hold any byte. */
	s = strrchr(text, ')');
	if (s == NULL ||
	    sscanf(s + 1,
		   " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d "
		   "%*d %*d %*d %*d %*d %llu",
		   &parent, &start) != 2)
		return false;
	*ret_parent = parent;
	*ret_start = start;
	return true;
}

/* ---- processes of this machine ---- */

static void
on_process_end(struct ev_loop *ev, struct ev_io *io, int events)
{
	struct watched *w = io->data;
	struct node_session *s = w->session;

	(void)ev;
	(void)events;
	if (on_loop_inherited(&w->e->turn.on))
		return;
	w->dead = true;
	ev_io_stop(w->e->ev, &w->io);
	if (w != &s->process) {
		redis_look_soon(w->e);
		return;
	}
	s->blames = true;
	evc__session_fence(s, "its process (pid %d) has ended", (int)w->pid);
}

void
evc__watched_stop(struct watched *w)
{
	if (w->pidfd < 0)
		return;
	if (w->e->ev != NULL)
		ev_io_stop(w->e->ev, &w->io);
	sync_fd_close(w->pidfd);
	w->pidfd = -1;
	w->e->detect.n_watched--;
}

void
evc__session_unwatch(struct redis_engine *e)
{
	struct node_session *s, *tmp;
	unsigned i;

	EACH_SESSION(s, tmp, e) {
		evc__watched_stop(&s->process);
		for (i = 0; i < s->n_workers; i++)
			if (s->workers[i] != NULL)
				evc__watched_stop(&s->workers[i]->process);
	}
}

/* Watch a process. false: not watched. */
static bool
watch_process(struct watched *w, struct node_session *s, pid_t pid)
{
	w->e = s->e;
	w->session = s;
	w->pid = pid;
	w->dead = false;
	/* All others end with their leases. */
	if (s->e->detect.n_watched >= WATCHED_MOST)
		return false;
	w->pidfd = sync_pidfd_process(pid);
	if (w->pidfd < 0) {
		w->dead = errno == ESRCH;
		return false;
	}
	s->e->detect.n_watched++;
	ev_io_init(&w->io, on_process_end, w->pidfd, EV_READ);
	w->io.data = w;
	ev_io_start(s->e->ev, &w->io);
	return true;
}

/* The process is another one, so the one that was meant has ended, if the node
   wrote its pid correctly. */
static void
note_other_process(struct watched *w)
{
	evc__watched_stop(w);
	w->dead = true;
}

/* The process has ended just now, or cannot be read, for want of a descriptor
   or of a right: then its lease tells. */
static void
note_unseen_process(struct watched *w)
{
	if (sync_fd_readable(w->pidfd))
		note_other_process(w);
	else
		evc__watched_stop(w);
}

void
evc__session_read_note(struct node_session *s, const char *text)
{
	char boot[64] = "", host[64] = "";
	unsigned long long space = 0, start = 0;
	uint64_t begun;
	pid_t parent;
	int pid = 0;

	if (sscanf(text, "%63s %d %63s %llu %llu", host, &pid, boot, &space,
		   &start) < 2)
		return;
	evc__copy(s->host, sizeof s->host, host);
	s->process.pid = pid;
	s->here = pid > 0 && start != 0 && space != 0 &&
		  space == s->e->detect.pid_namespace && boot[0] != '\0' &&
		  strcmp(boot, s->e->detect.boot_id) == 0;
	if (!s->here)
		return;
	if (watch_process(&s->process, s, pid)) {
		if (!read_stat(pid, &parent, &begun))
			note_unseen_process(&s->process);
		else if (begun != start)
			note_other_process(&s->process);
	}
	if (s->process.dead)
		evc__session_fence(s, "its process (pid %d) has ended", pid);
}

void
evc__remote_worker_watch(struct remote_worker *w, pid_t pid)
{
	struct node_session *s = w->session;
	uint64_t begun;
	pid_t parent;

	evc__watched_stop(&w->process);
	w->process = (struct watched){ .pidfd = -1, .pid = pid };
	if (!s->here || pid <= 0 || !watch_process(&w->process, s, pid))
		return;
	if (!read_stat(pid, &parent, &begun))
		note_unseen_process(&w->process);
	/* The worker has lost its parent, and its end is not proof: its lease
	   tells. */
	else if (parent != s->process.pid)
		evc__watched_stop(&w->process);
}

bool
evc__session_is_dead(const struct node_session *s)
{
	unsigned i;

	for (i = 0; i < s->n_workers; i++) {
		const struct remote_worker *w = s->workers[i];

		if (w != NULL && w->up && !w->process.dead)
			return false;
	}
	return true;
}
