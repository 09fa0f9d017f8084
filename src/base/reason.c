/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Words for parts of a reason.
 * Called by: evc_explain, the log, the reports of observe and group.
 * Locks: none; the buffer is the caller's.
 */
#include "base/reason.h"

#include <string.h>

#include "base/libc.h"

const char *
evc__reason_kind(unsigned kind)
{
	static const char *const name[] = {
		"?",	  "request", "error",	    "member end",
		"signal", "empty",   "loop broken", "parent",
	};

	return name[kind < sizeof name / sizeof name[0] ? kind : 0];
}

static bool
ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), k = strlen(end);

	return n >= k && strcmp(text + n - k, end) == 0;
}

void
evc__text_errno(struct text *t, const char *said, int err)
{
	const char *e = err != 0 ? evc__errno_text(err) : NULL;

	/* `said` may have the meaning already, as what() of C++ does. */
	if (e != NULL && !ends_with(said, e))
		evc__text_fmt(t, ": %s", e);
	else if (e == NULL && err != 0)
		evc__text_fmt(t, ": errno %d", err);
}

void
evc__text_place(struct text *t, const char *file, int line, const char *func)
{
	if (file[0] != '\0') {
		evc__text_add(t, " [");
		if (func[0] != '\0')
			evc__text_fmt(t, "%s() at ", func);
		evc__text_fmt(t, "%s:%d]", file, line);
	} else if (func[0] != '\0')
		evc__text_fmt(t, " [%s]", func);
}
