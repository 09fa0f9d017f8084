/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How workers end.
 *
 * Only the kernel proves that a process does not run: its pidfd says so at once.
 * Where there are none (Linux before 5.3, valgrind) it is asked again and again,
 * and the number has to do, while the kernel says that it is a child of ours.
 *
 * What a worker has written until then is read to the end first, unless it was
 * fenced: results that are there count.
 *
 * Somebody else may have reaped it: libev's default loop reaps whatever it can
 * get.  Newer kernels keep the status with the pidfd; else it is lost, and only
 * that is said.
 */
#include "cluster/processes.h"

enum look { RUNS, ENDED, LOST };

#define ASKS 40
#define ASK_NS 50000
#define NAP_NS UINT64_C(2000000)
#define ASK_EVERY 0.025 /* seconds, without a pidfd */

/* The kernel shows the status a moment after it is no child any more: two
   milliseconds at most are given to that. */
static enum look
ask_pidfd(int fd, siginfo_t *info)
{
	struct sync_pidfd_info p;
	uint32_t nobody = 0;
	int status, i;

	for (i = 0; fd >= 0 && i < ASKS; i++) {
		p = (struct sync_pidfd_info){ .mask = SYNC_PIDFD_INFO_EXIT };
		if (sync_pidfd_info(fd, &p) < 0) {
			if (errno != ESRCH)
				return LOST;
		} else if (p.mask & SYNC_PIDFD_INFO_EXIT)
			break;
		sync_futex_wait(&nobody, 0, ASK_NS);
	}
	if (fd < 0 || i == ASKS)
		return LOST;
	status = p.exit_code;
	info->si_code = CLD_KILLED;
	info->si_status = WTERMSIG(status);
	if (WCOREDUMP(status))
		info->si_code = CLD_DUMPED;
	if (WIFEXITED(status)) {
		info->si_code = CLD_EXITED;
		info->si_status = WEXITSTATUS(status);
	}
	return ENDED;
}

/* Has it ended?  Then it is reaped; WNOWAIT: it is left to be. */
static enum look
look(const struct process *w, siginfo_t *info, int flags)
{
	int e = -1;

	memset(info, 0, sizeof *info);
	if (w->pidfd >= 0)
		e = sync_waitid(SYNC_P_PIDFD, w->pidfd, info, flags);
	if (w->pidfd < 0 || (e < 0 && errno == EINVAL)) /* Linux before 5.4 */
		e = sync_waitid(P_PID, w->pid, info, flags);
	if (e == 0)
		return info->si_pid == 0 ? RUNS : ENDED;
	if (errno == EINTR || errno == EAGAIN)
		return RUNS;
	return ask_pidfd(w->pidfd, info);
}

static void
kill_it(const struct process *w)
{
	siginfo_t info;

	if (w->pidfd >= 0)
		sync_pidfd_signal(w->pidfd, SIGKILL);
	else if (look(w, &info, WNOWAIT) == RUNS)
		sync_pid_signal(w->pid, SIGKILL);
}

/* ---- in words ---- */

static void
add_status(struct text *t, enum look l, const siginfo_t *info)
{
	const char *name;

	if (l == LOST) {
		evc__text_add(t, "ended, and somebody else has reaped it");
		return;
	}
	if (info->si_code == CLD_EXITED) {
		evc__text_fmt(t, "ended with exit status %d", info->si_status);
		return;
	}
	name = sigabbrev_np(info->si_status);
	evc__text_fmt(t, "was killed by signal %d", info->si_status);
	if (name != NULL)
		evc__text_fmt(t, " (SIG%s)", name);
	if (info->si_code == CLD_DUMPED)
		evc__text_add(t, " (core dumped)");
}

/* "worker 2 (pid 17) was killed by signal 11 (SIGSEGV); its last words: ..." */
static void
describe(const struct process *w, enum look l, const siginfo_t *info, char *why)
{
	struct text t = evc__text_in(why, WHY_ROOM);

	evc__text_fmt(&t, "%s (pid %d) ", w->name, (int)w->pid);
	if (w->why[0] != '\0')
		evc__text_add(&t, w->why);
	else
		add_status(&t, l, info);
	if (w->state == PROCESS_STARTING && w->why[0] == '\0')
		evc__text_add(&t, " before it was up");
	evc__process_words(w, &t);
}

/* ---- fence ---- */

void
evc__process_fence(struct process *w, const char *fmt, ...)
{
	struct text t = evc__text_in(w->why, sizeof w->why);
	struct processes *p = w->p;
	char why[WHY_ROOM];
	bool was_up = w->state == PROCESS_UP;
	va_list ap;

	if (w->state != PROCESS_STARTING && w->state != PROCESS_UP)
		return;
	w->state = PROCESS_FENCED;
	evc__process_deadline_stop(w);
	va_start(ap, fmt);
	evc__text_vfmt(&t, fmt, ap);
	va_end(ap);
	t = evc__text_in(why, sizeof why);
	evc__text_fmt(&t, "%s (pid %d) %s", w->name, (int)w->pid, w->why);
	if (was_up)
		p->sink->fenced(p->core, w->index, why);
	kill_it(w);
}

/* ---- gone ---- */

/* Is this life the last one? */
static bool
is_last(const struct processes *p)
{
	return p->left || p->lost;
}

static void
gone(struct process *w, enum look l, const siginfo_t *info)
{
	struct processes *p = w->p;
	char why[WHY_ROOM];
	bool ran;

	evc__link_read(&w->data, true);
	evc__process_output_close(w);
	describe(w, l, info, why);
	ran = w->n_taken > 0 && !w->settled;
	evc__process_deadline_stop(w);
	ev_io_stop(p->ev, &w->end);
	ev_timer_stop(p->ev, &w->ask);
	if (w->pidfd >= 0)
		sync_fd_close(w->pidfd);
	w->pidfd = -1;
	w->pid = 0;
	evc__link_close(&w->data);
	evc__link_close(&w->control);
	sync_sub(&p->notes.n_kept, (uint32_t)w->kept.n);
	evc__kept_clear(&w->kept);
	w->n_taken = 0;
	evc__process_again(w);
	p->sink->gone(p->core, w->index, why, ran);
	if (is_last(p))
		evc__process_over(w);
	else
		evc__processes_spawn(p);
}

static void
check(struct process *w)
{
	siginfo_t info;
	enum look l = look(w, &info, 0);

	if (l != RUNS)
		gone(w, l, &info);
}

static void
on_end(struct ev_loop *ev, struct ev_io *io, int events)
{
	(void)ev;
	(void)events;
	check(io->data);
}

static void
on_ask(struct ev_loop *ev, struct ev_timer *timer, int events)
{
	(void)ev;
	(void)events;
	check(timer->data);
}

void
evc__process_end_watch(struct process *w)
{
	ev_io_init(&w->end, on_end, w->pidfd, EV_READ);
	ev_timer_init(&w->ask, on_ask, ASK_EVERY, ASK_EVERY);
	w->end.data = w->ask.data = w;
	if (w->pidfd >= 0)
		ev_io_start(w->p->ev, &w->end);
	else
		ev_timer_start(w->p->ev, &w->ask);
}

void
evc__process_end_now(struct process *w, uint64_t until)
{
	uint32_t nobody = 0;
	enum look l;
	siginfo_t info;

	if (w->pid == 0) {
		evc__process_over(w);
		return;
	}
	evc__process_fence(w, "was killed: its coordinator's loop is gone");
	while ((l = look(w, &info, 0)) == RUNS && evc__left_ns(until) > 0)
		sync_futex_wait(&nobody, 0, NAP_NS);
	gone(w, l == RUNS ? LOST : l, &info);
}
