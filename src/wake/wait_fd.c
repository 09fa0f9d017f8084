/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc_wait_fd and evc_poll: poll(2) on the caller's descriptors and the stop
 * descriptor; without a stop descriptor, in slices of time with a check of the
 * stop.  A stop that is cleared at once makes the stop descriptor unreadable
 * again, so a woken poller may find no reason for its wake-up.  Therefore a
 * poller counts itself in `pollers` before it checks the word; evc_clear_stop
 * waits, with the flag still set, for a moment without pollers.  A later poller
 * finds the flag.
 * Called by: the program.
 * Locks: none; pollers is atomic, and the refgate keeps the coordinator.
 */
#include <errno.h>

#include "wake/alarm.h"

#define SLICE_NS UINT64_C(25000000)
#define FEW 64

struct poller {
	/* set at creation */
	evc_coord *c;
	struct pollfd *fds; /* the caller's n, then room for the stop's */
	size_t n;
	uint64_t until;
	const char *func;
	uint32_t stops; /* number of stops at the begin */
	/* The stop descriptor; -1: wait in slices. */
	int stop_fd;
	bool counted; /* in c->pollers */
	bool crowded; /* poll takes no further descriptor */
};

/* Get the stop descriptor, and count the poller. */
static void
prepare_poller(struct poller *p)
{
	if (p->counted || p->crowded)
		return;
	p->stop_fd = evc_stop_fd(p->c);
	if (p->stop_fd < 0)
		return;
	evc__readers_enter(&p->c->stop.pollers);
	p->counted = true;
}

/* poll(2) once, ns at most: the number of ready descriptors of the caller, or
   -errno. */
static int
poll_once(struct poller *p, uint64_t ns)
{
	bool ours = ns > 0 && p->stop_fd >= 0;
	int n;

	if (ours)
		p->fds[p->n] = (struct pollfd){ .fd = p->stop_fd,
						.events = POLLIN };
	else if (ns > SLICE_NS)
		ns = SLICE_NS;
	n = sync_ppoll(p->fds, p->n + ours, ns);
	if (n < 0 && errno == EINVAL && ours) {
		/* Perhaps the stop descriptor alone exceeds RLIMIT_NOFILE. */
		p->crowded = true;
		p->stop_fd = -1;
		return -EINTR;
	}
	return n < 0 ? -errno : n - (ours && p->fds[p->n].revents != 0);
}

static evc_status
refuse_poll(const struct poller *p, int e)
{
	return evc__refuse(e == ENOMEM ? -EVC_RESOURCE_EXHAUSTED :
					 -EVC_INVALID_ARGUMENT,
			   "%s: %s", p->func, strerror(e));
}

/* > 0: number of ready descriptors; else the reason of the end. */
static int
wait_ready(struct poller *p)
{
	uint64_t now, rest;
	int n;

	if (evc__stop_came(p->c, p->stops))
		return evc__end_by_stop(p->func);
	for (;;) {
		now = p->until == SYNC_FOREVER ? 0 : evc__now(p->c);
		rest = p->until > now ? p->until - now : 0;
		/* A check without waiting needs no stop descriptor. */
		if (rest > 0)
			prepare_poller(p);
		/* The poller is counted before this check; see the head. */
		if (evc__stop_came(p->c, p->stops))
			return evc__end_by_stop(p->func);
		if (evc__refgate_is_shut(&p->c->life.gate))
			return evc__end_by_free(p->func);
		n = poll_once(p, evc__real_ns(p->c, rest));
		/* A stop wins over ready descriptors. */
		if (evc__stop_came(p->c, p->stops))
			return evc__end_by_stop(p->func);
		if (n > 0)
			return n;
		if (n < 0 && n != -EINTR)
			return refuse_poll(p, -n);
		if (n == 0 && rest == 0)
			return evc__end_by_time(p->func);
	}
}

/* The caller has entered the refgate; this function leaves the refgate. */
static int
wait_counted(struct poller *p)
{
	evc_coord *c = p->c;
	int n;

	/* For evc_free, which is refused while threads wait for a stop that
	   was not requested. */
	sync_add(&c->stop.n_waiters, 1);
	n = wait_ready(p);
	if (p->counted)
		evc__readers_leave(&c->stop.pollers);
	sync_sub(&c->stop.n_waiters, 1);
	evc__refgate_leave(&c->life.gate);
	return n;
}

static evc_status
begin_poll(struct poller *p, evc_coord *c, double timeout, const char *func)
{
	evc_status st = evc__check_wait(c, timeout, func);

	if (st == 0)
		st = evc__enter(c, -EVC_FAILED_PRECONDITION, func);
	if (st < 0)
		return st;
	*p = (struct poller){ .c = c, .func = func, .stop_fd = -1 };
	p->until = evc__wait_end(c, timeout);
	p->stops = WORD_STOPS(sync_load_sc(&c->word));
	return 0;
}

static evc_status
check_fd(int fd, unsigned events)
{
	const unsigned both = EVC_READ | EVC_WRITE;

	if (fd < 0)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "evc_wait_fd: %d is no descriptor", fd);
	if (events == 0 || (events & ~both))
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "evc_wait_fd: events %#x are none", events);
	return 0;
}

evc_status
evc_wait_fd(evc_coord *c, int fd, unsigned events, double timeout,
	    unsigned *ret_events)
{
	struct pollfd fds[2] = { { .fd = fd } };
	struct poller p;
	unsigned got = 0;
	int n;
	short r;

	n = check_fd(fd, events);
	if (n == 0)
		n = begin_poll(&p, c, timeout, __func__);
	if (n < 0)
		return n;
	fds[0].events = (short)((events & EVC_READ ? POLLIN : 0) |
				(events & EVC_WRITE ? POLLOUT : 0));
	p.fds = fds;
	p.n = 1;
	n = wait_counted(&p);
	if (n < 0)
		return n;
	r = fds[0].revents;
	if (r & POLLNVAL)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "evc_wait_fd: %d is closed", fd);
	/* After an error the next read or write gives the reason. */
	if (r & (POLLIN | POLLERR | POLLHUP))
		got |= EVC_READ;
	if (r & (POLLOUT | POLLERR | POLLHUP))
		got |= EVC_WRITE;
	if (ret_events != NULL)
		*ret_events = got & events;
	return 0;
}

evc_status
evc_poll(evc_coord *c, struct pollfd *fds, size_t n_fds, double timeout,
	 unsigned *ret_n)
{
	struct pollfd few[FEW + 1], *all = few;
	struct poller p;
	size_t i;
	int n;

	if ((fds == NULL && n_fds > 0) || n_fds >= INT_MAX)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "evc_poll: %zu descriptors at %s", n_fds,
				   fds == NULL ? "NULL" : "once");
	n = begin_poll(&p, c, timeout, __func__);
	if (n < 0)
		return n;
	if (n_fds > FEW)
		all = sync_alloc(n_fds + 1, sizeof *all);
	if (all == NULL) {
		evc__refgate_leave(&c->life.gate);
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				   "evc_poll: no memory");
	}
	if (n_fds > 0)
		memcpy(all, fds, n_fds * sizeof *all);
	p.fds = all;
	p.n = n_fds;
	n = wait_counted(&p);
	for (i = 0; n > 0 && i < n_fds; i++)
		fds[i].revents = all[i].revents;
	if (all != few)
		sync_free(all);
	if (n < 0)
		return n;
	if (ret_n != NULL)
		*ret_n = (unsigned)n;
	return 0;
}
