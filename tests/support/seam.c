/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What src/base/sync.h calls in a seam build.  Atomics and a short nap only: it
 * may be called in signal handlers, in any state of the library.
 */
#include "seam.h"
#include "support.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int evc__seam(const char *op, const char *func, const volatile void *obj);

enum { UNUSED, HOLDS, FAILS, FAILS_ALL };

#define PLACES 64

/* All atomic: a thread that nobody has awaited, a helper of the library's, may
   still look at a place of before the last reset that is taken again. */
static struct place {
	_Atomic(const char *) op, func;
	atomic_int nth, err;
	atomic_long not_tid, only_tid;
	atomic_int what;
	atomic_int arrivals;
	atomic_bool held, released;
} place[PLACES];

static atomic_int n_places;

static void
nap(void)
{
	t_sleep(0.00005); /* to t_until_quiet it rests */
}

static bool
matches(const char *want, const char *is)
{
	return want == NULL || strcmp(want, is) == 0;
}

static int
at(struct place *p)
{
	int what = atomic_load(&p->what), n;

	if (what == UNUSED)
		return 0;
	if (p->not_tid != 0 && p->not_tid == syscall(SYS_gettid))
		return 0;
	if (p->only_tid != 0 && p->only_tid != syscall(SYS_gettid))
		return 0;
	n = atomic_fetch_add(&p->arrivals, 1) + 1;
	if (what == FAILS_ALL && n >= p->nth)
		return p->err;
	if (n != p->nth)
		return 0;
	if (what == FAILS)
		return p->err;
	atomic_store(&p->held, true);
	while (!atomic_load(&p->released))
		nap();
	atomic_store(&p->held, false);
	return 0;
}

int
evc__seam(const char *op, const char *func, const volatile void *obj)
{
	int i, n = atomic_load(&n_places), e = errno, err = 0;

	(void)obj;
	for (i = 0; i < n; i++)
		if (atomic_load(&place[i].what) != UNUSED &&
		    matches(place[i].op, op) && matches(place[i].func, func)) {
			int r = at(&place[i]);

			err = err != 0 ? err : r;
		}
	errno = e;
	return err;
}

static int
add(int what, const char *op, const char *func, int nth, int err, long not_tid,
    long only_tid)
{
	int i = atomic_load(&n_places);
	struct place *p = &place[i];

	if (i == PLACES)
		_exit(99);
	atomic_store(&p->what, UNUSED);
	p->op = op;
	p->func = func;
	p->nth = nth;
	p->err = err;
	p->not_tid = not_tid;
	p->only_tid = only_tid;
	atomic_store(&p->arrivals, 0);
	atomic_store(&p->held, false);
	atomic_store(&p->released, false);
	atomic_store(&p->what, what);
	atomic_store(&n_places, i + 1);
	return i;
}

int
seam_hold(const char *op, const char *func, int nth)
{
	return add(HOLDS, op, func, nth, 0, 0, 0);
}

int
seam_hold_others(const char *op, const char *func, int nth)
{
	return add(HOLDS, op, func, nth, 0, syscall(SYS_gettid), 0);
}

int
seam_hold_mine(const char *op, const char *func, int nth)
{
	return add(HOLDS, op, func, nth, 0, 0, syscall(SYS_gettid));
}

int
seam_fail(const char *op, const char *func, int nth, int err)
{
	return add(FAILS, op, func, nth, err, 0, 0);
}

int
seam_fail_all(const char *op, const char *func, int nth, int err)
{
	return add(FAILS_ALL, op, func, nth, err, 0, 0);
}

bool
seam_is_held(int handle)
{
	return atomic_load(&place[handle].held);
}

bool
seam_await(int handle)
{
	int i;

	for (i = 0; i < 400000; i++) {
		if (seam_is_held(handle))
			return true;
		nap();
	}
	return false;
}

void
seam_release(int handle)
{
	atomic_store(&place[handle].released, true);
	while (seam_is_held(handle))
		nap();
	atomic_store(&place[handle].what, UNUSED);
}

int
seam_arrivals(int handle)
{
	return atomic_load(&place[handle].arrivals);
}

void
seam_reset(void)
{
	int i, n = atomic_load(&n_places);

	for (i = 0; i < n; i++)
		if (atomic_load(&place[i].what) == HOLDS)
			seam_release(i);
	atomic_store(&n_places, 0);
}
