/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc_dump: a report to a descriptor, at any time.
 *
 * The facts are collected once; the text is made of them twice, to know how
 * long it is and to have it, so that no buffer has to be guessed.
 */
#include "observe/facts.h"

#include "base/text.h"
#include "observe/write_out.h"

/* A pipe that is not full takes so much at once without blocking. */
#define PIECE ((size_t)PIPE_BUF)
/* How long to wait for a reader that takes nothing. */
#define PATIENCE_NS UINT64_C(1000000000)

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

/*
 * In pieces, each when there is room for it: a descriptor that blocks must not
 * block us for ever.  On the helper thread, which has stops to drive, the
 * patience is for all of it.
 */
static evc_status
write_pieces(int fd, const char *buf, size_t n, bool helper)
{
	uint64_t now = sync_mono(), end = now + PATIENCE_NS;
	evc_status st = 0;
	size_t k;

	while (st == 0 && n > 0 && now < end) {
		k = 0;
		errno = 0;
		if (sync_fd_writable(fd, (int)((end - now) / 1000000) + 1)) {
			k = n < PIECE ? n : PIECE;
			st = evc__write_out(fd, buf, k);
		} else if (errno != EINTR)
			break;
		buf += k;
		n -= k;
		now = sync_mono();
		if (!helper && k > 0)
			end = now + PATIENCE_NS;
	}
	if (st == 0 && n > 0)
		st = evc__refuse(-EVC_UNAVAILABLE,
				 "descriptor %d takes nothing", fd);
	return st;
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
		st = write_pieces(fd, buf,
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
