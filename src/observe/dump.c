/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc_report and evc_dump: a report into a buffer, or to a descriptor, at any
 * time.  The facts are collected once; for a descriptor the report is written
 * twice, first for its length, so no buffer is guessed.
 * Called by: the program; signals/dump.c.
 * Locks: none of its own; facts.c takes the locks, and none is held during a
 * write.
 */
#include "observe/facts.h"

#include "base/json_write.h"
#include "base/prometheus.h"
#include "base/text.h"
#include "observe/write_out.h"

static void
write_as(struct text *t, unsigned form, const struct evc__facts *f)
{
	if (form == EVC_REPORT_TEXT)
		evc__report_write(t, f);
	else if (form == EVC_REPORT_JSON)
		evc__json_write(t, f);
	else
		evc__metrics_write(t, f);
}

static evc_status
check_report(const evc_coord *c, unsigned format, const char *func)
{
	unsigned form = REPORT_FORM(format);
	evc_status st = evc__check(c, func);

	if (st < 0)
		return st;
	if (form < EVC_REPORT_TEXT || form > EVC_REPORT_METRICS)
		return evc__refuse(-EVC_INVALID_ARGUMENT, "%s: no format %#x",
				   func, format);
	if (format == (EVC_REPORT_METRICS | EVC_REPORT_STACKS))
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "%s: counters have no stacks", func);
	return 0;
}

/* The refusal of a report, in the report's place. */
static void
add_refusal(struct text *t, unsigned form)
{
	struct evc__json j = { .t = t };

	if (form == EVC_REPORT_JSON) {
		evc__json_begin(&j, NULL, "{");
		evc__json_string(&j, "error", evc_last_error());
		evc__json_end(&j, "}");
		evc__text_add(t, "\n");
	} else if (form == EVC_REPORT_METRICS)
		evc__prometheus_comment(t, evc_last_error());
	else
		evc__text_add(t, evc_last_error());
}

size_t
evc_report(const evc_coord *c, unsigned format, char *buf, size_t n)
{
	struct text t = evc__text_in(buf, buf != NULL ? n : 0);
	unsigned form = REPORT_FORM(format);
	struct evc__facts f;

	if (check_report(c, format, __func__) < 0) {
		add_refusal(&t, form);
		return t.len;
	}
	evc__facts_take((evc_coord *)c, format, &f);
	write_as(&t, form, &f);
	evc__facts_free(&f);
	return t.len;
}

evc_status
evc_dump(const evc_coord *c, int fd, unsigned format)
{
	unsigned form = REPORT_FORM(format);
	evc_status st = check_report(c, format, __func__);
	struct text length = evc__text_in(NULL, 0), t;
	struct evc__facts f;
	char *buf;

	if (st == 0 && fd < 0)
		st = evc__refuse(-EVC_INVALID_ARGUMENT,
				 "evc_dump: %d is no descriptor", fd);
	if (st < 0)
		return st;
	evc__facts_take((evc_coord *)c, format, &f);
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
