/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes of this very machine, of which the kernel tells at once when they have
 * ended.
 *
 * A pid is a process of this machine if boot and pid namespace are the same
 * (two containers share the boot), and it is the right one if it has begun
 * when its node says, or is a child of that.  It is asked for when its pidfd
 * is open: who had the number before would be another one's, and is let go.
 *
 * Every writer of the namespace can say any pid.  So the coordinator looks at a
 * process and does nothing to it; the end of a process ends the life that has said
 * its pid, and no other life; and the number of processes looked at is small.
 */
#include "redis/engine/engine.h"

#include <stdio.h>

/* ---- what the kernel says ---- */

/* The text of a file, n - 1 bytes at most; false: it cannot be read. */
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

/* Of a process: its parent, and when it has begun, as /proc says it.  false:
   there is none. */
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
	/* Its name may hold anything. */
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

/* false: it cannot be. */
static bool
watch_process(struct watched *w, struct node_session *s, pid_t pid)
{
	w->e = s->e;
	w->session = s;
	w->pid = pid;
	w->dead = false;
	/* The others end with their leases. */
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

/* It cannot be the one that was meant, which has ended then, if those that read
   its number knew what they said. */
static void
note_other_process(struct watched *w)
{
	evc__watched_stop(w);
	w->dead = true;
}

/* It has ended just now, or we cannot see it, for want of a descriptor or of the
   right to look at processes of another user: then leases have to tell. */
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
	/* A child whose parent has died has another one: then its lease has to
	   be waited for. */
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
