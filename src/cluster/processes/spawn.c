/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Starts of workers, by posix_spawn: a fork of a program with threads could do
 * nothing.
 * A worker finds its two streams by their numbers in its environment, with the
 * pid of this process.  A worker has a process group of its own, so that a
 * terminal's SIGINT does not come; no signal is blocked or ignored; no other
 * descriptor of ours is open but its output.
 * Called by: turn.c, end.c and processes.c; the loop's timer.
 * Locks: none here; the sink takes the cluster's.  The loop's thread.
 */
#include "cluster/processes/processes.h"

#include <unistd.h>

#include "base/backoff.h"
#include "base/libc.h"
#include "cluster/worker/process.h"

#define APART_NS UINT64_C(2000000)       /* between two starts */
#define BACKOFF_FIRST_NS UINT64_C(100000000)
#define BACKOFF_MOST_NS UINT64_C(5000000000)
#define STAYED_NS UINT64_C(10000000000)  /* a longer life resets the pause */
#define AT_ONCE 4                        /* starts in one turn of the loop */

/* ---- descriptors ---- */

/* The ends of the streams: ours, and the worker's. */
struct ends {
	int data[2], control[2], output[2]; /* ours is the first */
};

/* Numbers in the worker, behind its output.  No other descriptor stays open: a
   connection or a locked file would live on in the worker. */
#define DATA_THERE 3
#define CONTROL_THERE 4
#define CLOSED_FROM 5

/* Move a descriptor above these numbers. */
static int
fd_above(int fd)
{
	int other;

	if (fd >= CLOSED_FROM)
		return fd;
	other = sync_fd_above(fd, CLOSED_FROM);
	sync_fd_close(fd);
	return other;
}

static bool
both_above(int fds[2])
{
	fds[0] = fd_above(fds[0]);
	fds[1] = fd_above(fds[1]);
	return fds[0] >= 0 && fds[1] >= 0;
}

static void
close_ends(struct ends *e, bool ours)
{
	int *pair[3] = { e->data, e->control, e->output };
	unsigned i;

	for (i = 0; i < 3; i++) {
		if (ours && pair[i][0] >= 0)
			sync_fd_close(pair[i][0]);
		if (pair[i][1] >= 0)
			sync_fd_close(pair[i][1]);
		pair[i][1] = -1;
	}
}

/* 0 or an errno value, and the call; open descriptors are in *e. */
static int
open_ends(struct ends *e, const char **ret_step)
{
	int *pair[3] = { e->data, e->control, e->output };
	unsigned i;

	*e = (struct ends){ { -1, -1 }, { -1, -1 }, { -1, -1 } };
	for (i = 0; i < 3; i++) {
		*ret_step = i < 2 ? "socketpair" : "pipe2";
		if ((i < 2 ? sync_socketpair(pair[i]) : sync_pipe(pair[i])) <
			    0 ||
		    !both_above(pair[i]))
			return errno;
	}
	return 0;
}

/* ---- the call ---- */

struct plan {
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	char variable[96]; /* for the environment */
};

static void
drop_plan(struct plan *plan)
{
	posix_spawn_file_actions_destroy(&plan->actions);
	posix_spawnattr_destroy(&plan->attr);
}

static void
name_streams(struct plan *plan)
{
	struct text t = evc__text_in(plan->variable, sizeof plan->variable);

	evc__text_fmt(&t, WORKER_VARIABLE "=%d %d %d %d", WORKER_PROTOCOL,
		      DATA_THERE, CONTROL_THERE, (int)getpid());
}

/* 0 or an errno value. */
static int
make_plan(struct plan *plan, const struct ends *e)
{
	posix_spawn_file_actions_t *a = &plan->actions;
	const short flags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF |
			    POSIX_SPAWN_SETSIGMASK;
	sigset_t all, none;
	int error;

	name_streams(plan);
	if (posix_spawn_file_actions_init(a) != 0)
		return ENOMEM;
	if (posix_spawnattr_init(&plan->attr) != 0) {
		posix_spawn_file_actions_destroy(a);
		return ENOMEM;
	}
	sigfillset(&all);
	sigemptyset(&none);
	posix_spawnattr_setsigdefault(&plan->attr, &all);
	posix_spawnattr_setsigmask(&plan->attr, &none);
	posix_spawnattr_setpgroup(&plan->attr, 0);
	posix_spawnattr_setflags(&plan->attr, flags);
	error = posix_spawn_file_actions_addopen(a, 0, "/dev/null", O_RDONLY,
						 0);
	if (error == 0)
		error = posix_spawn_file_actions_adddup2(a, e->output[1], 1);
	if (error == 0)
		error = posix_spawn_file_actions_adddup2(a, e->output[1], 2);
	if (error == 0)
		error = posix_spawn_file_actions_adddup2(a, e->data[1],
							 DATA_THERE);
	if (error == 0)
		error = posix_spawn_file_actions_adddup2(a, e->control[1],
							 CONTROL_THERE);
	if (error == 0)
		error = evc__close_from(a, CLOSED_FROM);
	if (error != 0)
		drop_plan(plan);
	return error;
}

static int
spawn_process(struct process *w, struct plan *plan)
{
	struct processes *p = w->p;
	int error;
	pid_t pid;

	p->environment[0] = plan->variable;
	error = sync_spawn(&pid, p->path, &plan->actions, &plan->attr, p->argv,
			   p->environment);
	p->environment[0] = NULL;
	if (error != 0)
		return error;
	w->pid = pid;
	/* Without a pidfd the kernel is asked by the pid. */
	w->pidfd = sync_pidfd_process(pid);
	return 0;
}

/* ---- a life begins ---- */

/* Watch for the end of the process. */
static void
watch_end(struct process *w)
{
	if (w->pidfd >= 0) {
		ev_io_set(&w->end, w->pidfd, EV_READ);
		ev_io_start(w->p->ev, &w->end);
	} else {
		ev_timer_again(w->p->ev, &w->ask);
	}
	if (ev_is_default_loop(w->p->ev)) {
		ev_child_set(&w->reaped, w->pid, 0);
		ev_child_start(w->p->ev, &w->reaped);
	}
}

static void
welcome_process(struct process *w, struct ends *e)
{
	struct processes *p = w->p;
	struct frame_welcome hello = { .index = w->rank,
				       .generation = p->generation,
				       .max_frame = p->max_frame,
				       .name = w->name };

	w->state = PROCESS_STARTING;
	w->born_ns = sync_mono();
	w->ping_ns = w->closed_ns = w->answered = 0;
	w->was_up = w->talks = w->leaving = w->settled = w->begun = false;
	w->of_use = w->asks = w->hears = w->dismissed = false;
	w->stack_asked = w->stack_due = false;
	w->last_look = LOOK_NONE;
	w->why[0] = '\0';
	w->n_taken = w->first_taken = 0;
	w->n_building = 0;
	w->back_upto = 0;
	evc__link_open(&w->data, w, e->data[0]);
	evc__link_open(&w->control, w, e->control[0]);
	evc__process_output_open(w, e->output[0]);
	watch_end(w);
	/* In front of all other words. */
	evc__process_until(w);
	if (evc__frame_put_welcome(&w->data.out.own, p->max_frame, &hello) < 0)
		evc__process_fence(w, "could not be welcomed: %s",
				   evc_last_error());
	evc__link_flush(&w->data);
}

/* 0 or an errno value. *ret_step: the call before the start of the program
   that has failed, or NULL. */
static int
start_process(struct process *w, const char **ret_step)
{
	struct ends e;
	struct plan plan;
	int error = open_ends(&e, ret_step);

	if (error == 0) {
		*ret_step = "posix_spawnattr_init";
		error = make_plan(&plan, &e);
	}
	if (error == 0) {
		*ret_step = NULL;
		error = spawn_process(w, &plan);
		drop_plan(&plan);
	}
	close_ends(&e, error != 0);
	if (error == 0)
		welcome_process(w, &e);
	return error;
}

void
evc__process_again(struct process *w)
{
	uint64_t now = sync_mono();

	/* A life that ran functions came forward, whatever ended it. */
	if (w->of_use || (w->was_up && now - w->born_ns >= STAYED_NS))
		w->backoff_ns = 0;
	w->backoff_ns = evc__backoff_next(w->backoff_ns, BACKOFF_FIRST_NS,
					  BACKOFF_MOST_NS);
	w->state = PROCESS_WAITS;
	w->due_ns = now + w->backoff_ns;
}

static void
try_start(struct process *w)
{
	struct processes *p = w->p;
	char why[DEATH_SIZE];
	struct text t = evc__text_in(why, sizeof why);
	const char *step;
	int error = start_process(w, &step);

	/* The program may have been deleted since the open. */
	if (error == ENOENT && evc__processes_own_again(p))
		error = start_process(w, &step);
	if (error == 0)
		return;
	w->was_up = w->of_use = false;
	evc__process_again(w);
	/* The worker's standard input, opened first. */
	if (step == NULL && error == ENOENT && access("/dev/null", R_OK) < 0)
		step = "/dev/null";
	evc__text_fmt(&t, "%s could not be started: ", w->name);
	/* posix_spawn does not say which of its calls a filter has refused. */
	if (step == NULL)
		evc__text_fmt(&t, "%s%s",
			      error == EPERM || error == ENOSYS ?
				      "setpgid or the exec of " :
				      "",
			      p->path);
	else
		evc__text_add(&t, step);
	evc__text_fmt(&t, ": %s", strerror(error));
	p->sink->gone(p->core, w->index, why, EVC_ENGINE_DIED);
}

static void
on_due(struct ev_loop *ev, struct ev_timer *timer, int events)
{
	struct processes *p = timer->data;

	(void)ev;
	(void)events;
	if (!on_loop_inherited(&p->on))
		evc__processes_spawn(p);
}

void
evc__processes_spawn(struct processes *p)
{
	uint64_t now = sync_mono(), next = SYNC_FOREVER;
	unsigned i, n = 0;

	if (p->left || p->lost)
		return;
	for (i = 0; i < p->n; i++) {
		struct process *w = p->workers[i];

		if (w->state == PROCESS_WAITS)
			evc__process_try_leave(w);
		if (w->state != PROCESS_WAITS || !w->ranked)
			continue;
		/* 0: never started. */
		if (w->due_ns == 0)
			w->due_ns = now + i * APART_NS;
		if (w->due_ns <= now && n < AT_ONCE) {
			n++;
			try_start(w);
		}
		if (w->state == PROCESS_WAITS && w->due_ns < next)
			next = w->due_ns;
	}
	ev_timer_stop(p->ev, &p->spawn);
	if (next == SYNC_FOREVER)
		return;
	ev_now_update(p->ev);
	ev_timer_init(&p->spawn, on_due,
		      next > now ? (double)(next - now) / 1e9 : 0., 0.);
	p->spawn.data = p;
	ev_timer_start(p->ev, &p->spawn);
}
