/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds out that a node or a worker has ended: by the ends of processes of this
 * machine, which the kernel reports at once, and by the leases of all sessions
 * and the numbers of their last renewals, which are asked for again and again.
 * Called by: turn.c, nodes.c, worker.c, fence.c, engine.c.
 * Locks: none; loop thread only.
 */
#include "redis/engine/engine.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/proc.h"

/*
 * A pid means a process of this machine if boot id and pid namespace are those
 * of this process (two containers share the boot id).  The process is the right
 * one if its start time is the one that the node has written, or if its parent
 * is the node.  Both are read while a pidfd is open: a former owner of the pid
 * would not match.  Every writer of the namespace can write any pid.  So the
 * coordinator only watches; the end of a process ends the session that has
 * written its pid, and no other; and the number of processes is limited.
 */

void
evc__redis_detect_init(struct redis_engine *e)
{
	evc__proc_boot_id(e->detect.boot_id, sizeof e->detect.boot_id);
	e->detect.pid_namespace = evc__proc_pid_namespace();
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
evc__sessions_unwatch(struct redis_engine *e)
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

/* Watch a process.  false: not watched. */
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

/* The process has ended just now, or cannot be read, for want of a descriptor
   or of a right: then its lease tells. */
static void
note_unseen_process(struct watched *w)
{
	bool dead = sync_fd_readable(w->pidfd);

	evc__watched_stop(w);
	w->dead = dead;
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
		if (!evc__proc_process(pid, &parent, &begun))
			note_unseen_process(&s->process);
		/* Another process has this pid by now; or the node has another
		   /proc, or another clock (time_namespaces(7)): its lease
		   tells. */
		else if (begun != start) {
			evc__watched_stop(&s->process);
			s->here = false;
		}
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
	if (!evc__proc_process(pid, &parent, &begun))
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

/* ---- leases ---- */

/*
 * The sessions are asked for in the order of their beginning, around and around,
 * in questions of LOOK_MOST sessions: the server works for nobody else
 * meanwhile.  Up to that number each tick asks for all.  Of more, a round takes
 * the time between two renewals: a node's death is noticed as much later, and
 * the server has the same work for each node, however many there are.
 */
#define LOOK_MOST 500

/* The argument of a question: its sessions; NULL: that session is over. */
struct look {
	struct redis_engine *e;
	unsigned n;
	struct node_session *at[];
};

void
evc__session_beat(struct node_session *s, const char *beat)
{
	if (strncmp(beat, s->beat, sizeof s->beat - 1) == 0)
		return;
	evc__copy(s->beat, sizeof s->beat, beat);
	s->beat_ns = sync_mono();
	evc__session_has(s, beat);
}

static void
check_lease(struct node_session *s, const redisReply *lease)
{
	char want[48];
	struct text t = evc__text_in(want, sizeof want);
	const char *space;
	uint64_t heard = sync_mono() - s->beat_ns;

	evc__text_fmt(&t, "%s %" PRIu64, s->e->lock.g_text, s->inc);
	if (lease->type == REDIS_REPLY_STRING) {
		if (strcmp(lease->str, want) == 0)
			return;
		/* The node has registered anew, and the entry will be read
		   soon, or somebody has made this up. */
		space = strchr(lease->str, ' ');
		if (space != NULL &&
		    strncmp(lease->str, want, strlen(s->e->lock.g_text) + 1) ==
			    0 &&
		    strtoull(space + 1, NULL, 10) > s->inc &&
		    heard < 2 * s->e->lease_ns)
			return;
	}
	/* A node gives up when there is no coordinator for a lease; its
	   functions are not to blame. */
	if (s->e->detect.back_ns != 0 &&
	    sync_mono() - s->e->detect.back_ns < 2 * s->e->lease_ns) {
		evc__session_fence(s,
				   "its lease is gone: the coordinator stood "
				   "still, or had no server, for %.1f s",
				   (double)s->e->detect.stood_ns / 1e9);
		return;
	}
	s->blames = true;
	/* By then a renewal is missing. */
	if (heard >= s->e->lease_ns / 2)
		evc__session_fence(s,
				   "its lease is over: no renewal was seen for "
				   "%.1f s (its lease is %.1f s)",
				   (double)heard / 1e9,
				   (double)s->e->lease_ns / 1e9);
	else
		evc__session_fence(
			s,
			"its lease is gone, %.1f s after a renewal: the key "
			"was deleted or replaced, or the server's clock was "
			"set",
			(double)heard / 1e9);
}

static void
take_lease(struct node_session *s, const redisReply *lease,
	   const redisReply *beat)
{
	evc__session_beat(s, beat->type == REDIS_REPLY_STRING ? beat->str : "");
	check_lease(s, lease);
}

static void
on_leases(const redisReply *r, void *arg)
{
	struct look *k = arg;
	struct redis_engine *e = k->e;
	struct node_session *s;
	bool fine = r != NULL && r->type == REDIS_REPLY_ARRAY &&
		    r->elements == 2 * k->n && e->lock.phase == PHASE_LIVE;
	unsigned i;

	e->detect.n_asking--;
	for (i = 0; i < k->n; i++) {
		s = k->at[i];
		if (s == NULL)
			continue;
		s->look = NULL;
		if (fine && !s->ending && s->g == e->lock.g)
			take_lease(s, r->element[2 * i], r->element[2 * i + 1]);
	}
	sync_free(k);
	if (fine)
		e->detect.looked_ns = e->detect.asked_ns;
	/* So the server counts as away, and is given up in time. */
	else if (r != NULL && reply_is_refused_for_now(r) &&
		 sync_mono() - e->detect.looked_ns >= e->lease_ns)
		evc__redis_client_reset(e->client, r->str);
}

/* Note a gap between two answered questions. */
static void
note_question(struct redis_engine *e)
{
	uint64_t now = e->detect.asked_ns = sync_mono();

	if (now - e->detect.looked_ns >= e->lease_ns) {
		e->detect.stood_ns = now - e->detect.looked_ns;
		e->detect.back_ns = now;
	}
}

/* Ask for the next n sessions. */
static void
ask_for_leases(struct redis_engine *e, unsigned n)
{
	struct look *k = sync_alloc(1, sizeof *k + n * sizeof(k->at[0]));
	struct redis_args a = { 0 };
	struct node_session *s;

	if (k == NULL)
		return;
	k->e = e;
	evc__args_text(&a, "MGET");
	for (; k->n < n; k->n++) {
		s = evc__session_next(e, &e->sessions.looked);
		s->look = &k->at[k->n];
		k->at[k->n] = s;
		evc__args_key(&a, &e->address, "lease:%s", s->name);
		evc__redis_beat_key(s, &a);
	}
	if (evc__redis_send(e->client, REDIS_SAY, on_leases, k, &a)) {
		e->detect.n_asking++;
		return;
	}
	while (k->n-- > 0)
		k->at[k->n]->look = NULL;
	sync_free(k);
}

/* How many sessions this tick asks for. */
static unsigned
count_sessions(const struct redis_engine *e)
{
	unsigned n = (unsigned)e->sessions.by_name.n, ticks;

	if (n <= LOOK_MOST)
		return n;
	ticks = (unsigned)((double)RENEW_AFTER(e->lease_ns) / 1e9 /
			   e->turn.tick.repeat);
	n = ticks > 1 ? n / ticks + 1 : n;
	return n < LOOK_MOST ? LOOK_MOST : n;
}

void
evc__redis_detect(struct redis_engine *e)
{
	unsigned n = count_sessions(e), some;

	if (e->detect.n_asking > 0 || !e->up)
		return;
	note_question(e);
	if (n == 0)
		e->detect.looked_ns = e->detect.asked_ns;
	for (; n > 0; n -= some) {
		some = n < LOOK_MOST ? n : LOOK_MOST;
		ask_for_leases(e, some);
	}
}
