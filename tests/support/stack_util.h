/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For tests that take stacks: asking, and threads that can be told apart by
 * where they stand.
 */
#ifndef TESTS_SUPPORT_STACK_UTIL_H
#define TESTS_SUPPORT_STACK_UTIL_H

#include "victim_util.h"

#include "base/stack.h"

/* Long enough for any answer that comes at all. */
#define LONG UINT64_C(10000000000)
/* For answers that do not come. */
#define SHORT UINT64_C(50000000)

/* Of that thread, in this program. */
struct taken {
	void *frame[EVC__STACK_MOST];
	unsigned n;
	const char *why;
};

static inline struct taken
take(int tid, uint64_t ns)
{
	struct taken t = { .n = 0 };

	t.n = evc__stack_take(tid, t.frame, EVC__STACK_MOST, ns, &t.why);
	return t;
}

#define install() \
	do { \
		NEEDS_BACKTRACE(); \
		OK(evc__stack_install(0)); \
		ck_assert_int_ne(evc__stack_signal(), 0); \
	} while (0)

/* Why some are not run there. */
#define BY_TSAN "to it, a handler runs when a call returns"
#define BY_VALGRIND "under it, who runs blocks all signals"

/* Is somebody's function in it? */
#define STANDS_IN(t, place) stands_in((t), __start_##place, __stop_##place)

static inline bool
stands_in(const struct taken *t, const char *start, const char *stop)
{
	unsigned i;

	for (i = 0; i < t->n; i++)
		if ((char *)t->frame[i] >= start && (char *)t->frame[i] < stop)
			return true;
	return false;
}

/* ---- two who run, each in a place of its own ---- */

PLACE_OF(evc_spins);
PLACED(evc_spins) static void MAYBE_UNUSED
spins(struct victim *v)
{
	while (!atomic_load_explicit(&v->done, memory_order_relaxed))
		v->turns++;
}

PLACE_OF(evc_whirls);
PLACED(evc_whirls) static void MAYBE_UNUSED
whirls(struct victim *v)
{
	while (!atomic_load_explicit(&v->done, memory_order_relaxed))
		v->turns++;
}

#endif
