/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tables of calls in fork children share: a row is a call with what is
 * the parent's, a struct world, and how it has to answer.
 */
#ifndef TESTS_SUPPORT_FORK_UTIL_H
#define TESTS_SUPPORT_FORK_UTIL_H

#include "api_util.h"

struct world;

/* In a function of a call that is refused. */
#define NEVER fork_never()
static inline void
fork_never(void)
{
	fprintf(stderr, "a function of a refused call was called\n");
	_exit(2);
}

static MAYBE_UNUSED bool
fork_refused(int st)
{
	return st == -EVC_FAILED_PRECONDITION &&
	       evc_last_error()[0] != '\0';
}

#define REF(call) fork_refused(call)
#define DONE(call) ((call), true)

struct fork_row {
	const char *name;
	bool (*is_right)(struct world *w);
};

#define FORK_FUNCTION(name, ...) \
	static bool fork_##name(struct world *w) \
	{ \
		(void)w; \
		return (__VA_ARGS__); \
	}
#define FORK_ROW(name, ...) { #name, fork_##name },

/* All of a table; the first that is not right ends the child. */
#define FORK_CHECK(table, w) \
	fork_check((table), sizeof(table) / sizeof((table)[0]), (w))

static MAYBE_UNUSED void
fork_check(const struct fork_row *row, size_t n, struct world *w)
{
	for (; n > 0; row++, n--)
		if (!row->is_right(w)) {
			fprintf(stderr, "%s: %s\n", row->name,
				evc_last_error());
			_exit(3);
		}
}

#endif
