/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc_dump: a report to a descriptor, at any time.  The facts are collected
 * once; the text is made twice, first for its length, so no buffer is guessed.
 * Called by: the program.
 * Locks: none of its own; facts.c takes the locks, and none is held during a
 * write.
 */
#include "observe/facts.h"

#include "base/text.h"
#include "observe/write_out.h"

static void
write_as(struct text *t, unsigned form, const struct evc__facts *f)
{
	if (form == EVC_DUMP_TEXT)
		evc__report_write(t, f);
	else if (form == EVC_DUMP_JSON)
		evc__json_write(t, f);
	else
		evc__metrics_write(t, f);
}

static evc_status
check(int fd, unsigned format)
{
	unsigned form = format & ~(unsigned)EVC_DUMP_STACKS;

	if (form < EVC_DUMP_TEXT || form > EVC_DUMP_METRICS)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "evc_dump: no format %#x", format);
	if (format == (EVC_DUMP_METRICS | EVC_DUMP_STACKS))
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "evc_dump: counters have no stacks");
	if (fd < 0)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "evc_dump: %d is no descriptor", fd);
	return 0;
}

evc_status
evc_dump(const evc_coord *c, int fd, unsigned format)
{
	unsigned form = format & ~(unsigned)EVC_DUMP_STACKS, what = 0;
	evc_status st = evc__check(c, __func__);
	struct text length = evc__text_in(NULL, 0), t;
	struct evc__facts f;
	char *buf;

	if (st == 0)
		st = check(fd, format);
	if (st < 0)
		return st;
	if (form != EVC_DUMP_METRICS)
		what = format & EVC_DUMP_STACKS ? FACTS_ALL_THREADS :
						  FACTS_THREADS;
	evc__facts_take((evc_coord *)c, what, &f);
	write_as(&length, form, &f);
	buf = sync_alloc(length.len + 1, 1);
	if (buf != NULL) {
		t = evc__text_in(buf, length.len + 1);
		write_as(&t, form, &f);
		/* The helper thread has stops to drive, so its write may take a
		   second in all. */
		st = evc__write_out(fd, buf,
				    t.len < length.len ? t.len : length.len,
				    evc__helper_is_self(c));
	} else
		st = evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				 "evc_dump: no memory for %zu bytes",
				 length.len);
	sync_free(buf);
	evc__facts_free(&f);
	return st;
}
