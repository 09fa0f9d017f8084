/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests of the stop-aware waits share: each of the five, with nothing
 * to wait for but its time and the stop, on a thread of its own.
 */
#ifndef TESTS_SUPPORT_WAIT_UTIL_H
#define TESTS_SUPPORT_WAIT_UTIL_H

#include "api_util.h"

#include <sys/eventfd.h>
#include <sys/resource.h>

enum { BY_SLEEP, BY_WAIT_FD, BY_POLL, BY_UNTIL, BY_CALL, N_WAITS };

/* ---- what evc_call_detached calls: it hangs until all are let go ---- */

static atomic_int hang_open, hang_begun, hang_released;

static MAYBE_UNUSED int
hang(void *arg)
{
	(void)arg;
	atomic_fetch_add(&hang_begun, 1);
	while (!atomic_load(&hang_open))
		t_sleep(0.001);
	return 7;
}

static MAYBE_UNUSED void
hang_release(void *arg)
{
	free(arg);
	atomic_fetch_add(&hang_released, 1);
}

/* All that were left behind have ended, and released what they had. */
static MAYBE_UNUSED void
hangs_end(int n)
{
	atomic_store(&hang_open, 1);
	UNTIL(atomic_load(&hang_released) == n);
	atomic_store(&hang_open, 0);
	atomic_store(&hang_begun, 0);
	atomic_store(&hang_released, 0);
}

/* ---- a wait ---- */

struct wait {
	int way;
	evc_coord *c;
	double timeout;
	int fd; /* never readable */
	evc_cond *cond;
	pthread_mutex_t mutex;
	pthread_t thread;
	evc_status status;
	atomic_int tid, done;
};

static MAYBE_UNUSED evc_status
wait_now(struct wait *w)
{
	struct pollfd p = { .fd = w->fd, .events = POLLIN };
	unsigned got = 77;
	int result = 77;
	evc_status st;
	void *arg;

	switch (w->way) {
	case BY_SLEEP:
		return evc_sleep(w->c, w->timeout);
	case BY_WAIT_FD:
		st = evc_wait_fd(w->c, w->fd, EVC_READ, w->timeout, &got);
		break;
	case BY_POLL:
		st = evc_poll(w->c, &p, 1, w->timeout, &got);
		break;
	case BY_UNTIL:
		pthread_mutex_lock(&w->mutex);
		st = evc_cond_wait(w->cond, &w->mutex, never_true, NULL,
				    w->timeout);
		pthread_mutex_unlock(&w->mutex);
		break;
	default:
		arg = malloc(1);
		st = evc_call_detached(w->c, NULL, hang, arg, hang_release, w->timeout,
			      &result);
		/* Ours again when it was refused. */
		if (st != -EVC_CANCELLED && st != -EVC_DEADLINE_EXCEEDED)
			free(arg);
		break;
	}
	/* Results are set with 0 alone. */
	return got == 77 && result == 77 ? st : 77;
}

static MAYBE_UNUSED void
wait_make(struct wait *w, int way, evc_coord *c, double timeout)
{
	memset(w, 0, sizeof(*w));
	w->way = way;
	w->c = c;
	w->timeout = timeout;
	w->fd = eventfd(0, EFD_CLOEXEC);
	ck_assert_int_ge(w->fd, 0);
	pthread_mutex_init(&w->mutex, NULL);
	if (way == BY_UNTIL)
		OK(evc_cond_new(c, &w->cond));
}

static MAYBE_UNUSED void
wait_drop(struct wait *w)
{
	OK(evc_cond_free(w->cond));
	w->cond = NULL;
	pthread_mutex_destroy(&w->mutex);
	close(w->fd);
}

static MAYBE_UNUSED void *
wait_main(void *arg)
{
	struct wait *w = arg;

	atomic_store(&w->tid, own_tid());
	w->status = wait_now(w);
	atomic_store(&w->done, 1);
	return NULL;
}

/* It is under way, and sleeps. */
static MAYBE_UNUSED void
wait_begin(struct wait *w, int way, evc_coord *c, double timeout)
{
	wait_make(w, way, c, timeout);
	OK(pthread_create(&w->thread, NULL, wait_main, w));
	UNTIL(atomic_load(&w->tid) != 0);
	until_asleep(atomic_load(&w->tid));
	if (way == BY_CALL)
		UNTIL(atomic_load(&hang_begun) > 0);
	ck_assert_msg(!atomic_load(&w->done), "way %d: it did not wait", way);
}

/* What it returned. */
static MAYBE_UNUSED evc_status
wait_end(struct wait *w)
{
	UNTIL(atomic_load(&w->done));
	OK(pthread_join(w->thread, NULL));
	wait_drop(w);
	return w->status;
}

/* At once, on this thread. */
static MAYBE_UNUSED evc_status
wait_here(int way, evc_coord *c, double timeout)
{
	struct wait w;

	wait_make(&w, way, c, timeout);
	w.status = wait_now(&w);
	wait_drop(&w);
	return w.status;
}

#define STOPPED(st) ck_assert_int_eq((st), -EVC_CANCELLED)

/* Is a thread asleep in poll(2)?  Where the kernel does not say, a while of
   sleep is all there is to see. */
static MAYBE_UNUSED bool
is_in_poll(int tid)
{
	char path[64], text[32] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", tid);
	f = fopen(path, "r");
	if (f == NULL || fgets(text, sizeof(text), f) == NULL) {
		if (f != NULL)
			fclose(f);
		return sleeps_on(tid, 0.02);
	}
	fclose(f);
#ifdef SYS_ppoll_time64
	if (atol(text) == SYS_ppoll_time64)
		return true;
#endif
	return strncmp(text, "running", 7) != 0 && atol(text) == SYS_ppoll;
}

/* ---- no descriptors ---- */

static struct rlimit usual_nofile MAYBE_UNUSED;

/* From here on every new descriptor is EMFILE; those that are open can be
   polled still. */
static MAYBE_UNUSED void
take_descriptors(void)
{
	struct rlimit few;
	int fd = dup(0);

	getrlimit(RLIMIT_NOFILE, &usual_nofile);
	ck_assert_int_ge(fd, 0); /* the lowest that is free */
	few = usual_nofile;
	few.rlim_cur = (rlim_t)fd;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
	close(fd);
}

static MAYBE_UNUSED void
give_descriptors(void)
{
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &usual_nofile), 0);
}

#endif
