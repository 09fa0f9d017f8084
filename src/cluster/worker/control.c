/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control stream of a worker process, read by another thread than the
 * functions': pings are answered and cancels heard while a function runs.
 * The coordinator may set a time for the end of this process.  A timer of the
 * kernel keeps that time: neither a function, whatever signals are blocked, nor
 * a SIGSTOP holds the timer up, and no thread has to get its turn.
 * Called by: cluster/open/main.c and serve.c.
 * Locks: worker_process.lock; `leaving` and `heard` are atomic.
 */
#include "cluster/worker/process.h"

#include <math.h>
#include <signal.h>

#include "base/deadline.h"

/* Seconds that the last line of a worker has to come out. */
#define LAST_WORDS 1.0

#define NO_MORE 64 /* bytes: longer frames do not come on this stream */

/* ---- the end of the functions ---- */

struct worker *
evc__worker_take(struct worker_process *p)
{
	struct worker *w;

	sync_lock(&p->lock);
	w = p->w;
	p->w = NULL;
	sync_unlock(&p->lock);
	return w;
}

/* A cancel may come after the last function. */
static void
cancel_tasks(struct worker_process *p, bool one, uint64_t n)
{
	sync_lock(&p->lock);
	if (p->w != NULL && one)
		evc__worker_cancel_one(p->w, n);
	else if (p->w != NULL)
		evc__worker_cancel(p->w, n);
	sync_unlock(&p->lock);
}

/* ---- what is taken back ---- */

/* What the coordinator said before it gave this process its first function is
   in force when that begins.  The stream is looked at before `heard`: the
   control thread takes bytes only while `heard` is odd. */
static void
await_control(struct worker_process *p)
{
	uint32_t seen = sync_load_sc(&p->heard);

	while (seen != HEARD_ALL && (sync_fd_readable(p->control) ||
				     sync_load_sc(&p->heard) % 2 != 0)) {
		sync_futex_wait(&p->heard, seen, SYNC_FOREVER);
		seen = sync_load_sc(&p->heard);
	}
}

bool
evc__worker_begin(struct worker_process *p, uint64_t n)
{
	bool yes;

	if (p->begun == 0)
		await_control(p);
	sync_lock(&p->lock);
	yes = n > p->back_upto;
	if (yes)
		p->begun = n;
	sync_unlock(&p->lock);
	return yes;
}

static struct frame_backed
mark_given_back(struct worker_process *p, uint64_t upto)
{
	struct frame_backed said = { .upto = upto };

	sync_lock(&p->lock);
	if (upto > p->back_upto)
		p->back_upto = upto;
	said.begun = p->begun;
	sync_unlock(&p->lock);
	return said;
}

/* ---- the end by the clock ---- */

/* The end as told last, by the clock that goes on while the machine sleeps,
   because other machines do not wait.  This clock is read first: time that
   passes in between makes the end too early, not too late. */
static uint64_t
end_by_boot(const struct worker_process *p)
{
	uint64_t boot = sync_boot(), left = evc__deadline_left_ns(p->until_ns);

	return evc__after(boot, left);
}

/* Without a timer the end is now, because nobody could promise a later one. */
static void
set_timer(struct worker_process *p)
{
	if (p->until_ns <= p->set_ns)
		return;
	if ((p->set_ns == 0 && sync_end_timer(&p->timer) < 0) ||
	    sync_end_timer_set(p->timer, end_by_boot(p)) < 0) {
		evc_log(p->coord, EVC_LOG_ERROR, NULL,
			"no timer for the end of this worker: %s",
			strerror(errno));
		(void)evc_log_flush(p->coord, LAST_WORDS);
		(void)sync_pid_signal(getpid(), SIGKILL);
	}
	p->set_ns = p->until_ns;
}

/* Functions are over, and the program's own work has no limit. */
static void
drop_timer(struct worker_process *p)
{
	if (p->set_ns != 0)
		sync_end_timer_free(p->timer);
}

/* ---- frames ---- */

/* false: the coordinator is gone. */
static bool
send_answers(struct worker_process *p, struct bytes *out)
{
	while (out->n > 0) {
		ssize_t n = sync_send_wait(p->control, bytes_at(out), out->n);

		if (n >= 0)
			bytes_take(out, (size_t)n);
		else if (errno != EINTR)
			return false;
	}
	return true;
}

/* ---- where the worker stands ---- */

/* The functions' thread is the program's, and does not block the signal, unless
   the program has it do so.  The wait for its answer is short beside a lease. */
static bool
send_stack(struct worker_process *p, struct bytes *out)
{
	char lines[FRAME_STACK_MOST + 1] = "stack: not available: max_frame is "
					   "too small";
	const struct frame_note said = { .text = lines };
	evc_status st = evc_stack_signal(0);

	/* Another signal was chosen before, or no stacks can be had; the lines
	   say so. */
	(void)st;
	if (p->max_frame > FRAME_STACK_MOST + FRAME_HEAD + 16)
		(void)evc_stack_of(p->tid, lines, sizeof lines);
	return evc__frame_put_note(out, FRAME_STACK, &said) == 0 &&
	       send_answers(p, out);
}

/* false: the coordinator is gone, or the frame is unknown. */
static bool
hear_frame(struct worker_process *p, const struct frame *f, struct bytes *out)
{
	struct frame_backed said;
	uint64_t n;

	if (f->type == FRAME_PING)
		return evc__frame_put_bare(out, FRAME_PONG) == 0 &&
		       send_answers(p, out);
	if (f->type == FRAME_LOOK)
		return send_stack(p, out);
	if (evc__frame_get_number(f, &n) < 0)
		return false;
	if (f->type == FRAME_CANCEL)
		cancel_tasks(p, false, n);
	else if (f->type == FRAME_CANCEL_ONE)
		cancel_tasks(p, true, n);
	else if (f->type == FRAME_UNTIL && n > p->until_ns)
		p->until_ns = n;
	else if (f->type == FRAME_BACK) {
		said = mark_given_back(p, n);
		return evc__frame_put_backed(out, &said) == 0 &&
		       send_answers(p, out);
	}
	return true;
}

/* A thread of functions may wait: await_control(). */
static void
mark_heard(struct worker_process *p, uint32_t heard)
{
	if (sync_load_sc(&p->heard) == HEARD_ALL)
		return;
	sync_store_sc(&p->heard, heard);
	sync_futex_wake(&p->heard);
}

/* Until the end of the stream. */
static void
listen_to(struct worker_process *p, struct bytes *in, struct bytes *out)
{
	struct frame f;
	unsigned char *to;
	unsigned events;
	bool told = false;
	ssize_t n;
	int got;

	for (;;) {
		/* Frames that came while this process was starting, or stopped,
		   may be out of date, with a later frame behind. */
		if (!sync_fd_readable(p->control)) {
			set_timer(p);
			mark_heard(p, (sync_load_sc(&p->heard) | 1) + 1);
		}
		/* A stop that the program asks for ends the worker: a thread
		   that waits for functions hears of their end. */
		if (!told && evc_wait_fd(p->coord, p->control, EVC_READ,
					 INFINITY, &events) < 0) {
			told = true;
			mark_heard(p, HEARD_ALL);
			sync_shutdown(p->data, SHUT_RD);
		}
		mark_heard(p, sync_load_sc(&p->heard) | 1);
		to = bytes_room(in, 1024);
		if (to == NULL)
			return;
		n = sync_recv_wait(p->control, to, 1024);
		if (n == 0 || (n < 0 && errno != EINTR))
			return;
		in->n += n > 0 ? (size_t)n : 0;
		while ((got = evc__frame_next(bytes_at(in), in->n, NO_MORE,
					      &f)) > 0) {
			if (!hear_frame(p, &f, out))
				return;
			bytes_take(in, f.whole);
		}
		if (got < 0)
			return;
	}
}

static evc_status
control_main(evc_coord *c, void *arg)
{
	struct worker_process *p = arg;
	struct bytes in = { 0 }, out = { 0 };

	listen_to(p, &in, &out);
	bytes_free(&in);
	bytes_free(&out);
	mark_heard(p, HEARD_ALL);
	if (sync_load_sc(&p->leaving) != 0) {
		drop_timer(p);
		return 0;
	}
	set_timer(p);
	/* The parent's death kills this process in a moment. */
	cancel_tasks(p, false, UINT64_MAX);
	(void)(evc_request_stop)(c, EVC_UNAVAILABLE, "the coordinator is gone");
	sync_shutdown(p->data, SHUT_RD);
	return 0;
}

evc_status
evc__worker_control_start(struct worker_process *p)
{
	const evc_member_opts opts = { .flags = EVC_AFTER_STOP };

	return evc_thread_start(p->coord, "control", control_main, p, &opts,
				NULL);
}

void
evc__worker_control_end(struct worker_process *p)
{
	/* -> control_main */
	sync_store_sc(&p->leaving, 1);
	evc__additions_end(p);
	sync_shutdown(p->control, SHUT_RDWR);
}
