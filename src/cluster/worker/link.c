/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The data stream of a worker process.  The thread of the functions reads and
 * writes it, and sleeps in the read, so no other thread stands between a frame
 * and its function.
 * A running function has its arguments in the frame, in place.  If the function
 * asks the coordinator and has to read on, later bytes go to other memory, and
 * the frame's memory is retired until the function is over.
 * Called by: serve.c and cluster/open/main.c.
 * Locks: none; the thread of the functions.
 */
#include "cluster/worker/process.h"

#define READ_LEAST ((size_t)16 << 10)
#define GIVE_BACK_NS UINT64_C(1000000000)
#define SMALL_MOST 256 /* small frames after a large value */

static ssize_t
send_once(const struct worker_process *p)
{
	struct iovec pieces[PIECES_MOST];
	unsigned n = evc__outgoing_pieces(&p->out, pieces);

	return n == 1 ? sync_send_wait(p->data, pieces[0].iov_base,
				       pieces[0].iov_len) :
			sync_sendv_wait(p->data, pieces, n);
}

bool
evc__worker_flush(struct worker_process *p)
{
	while (outgoing_size(&p->out) > 0 && !p->gone) {
		ssize_t n = send_once(p);

		if (n >= 0)
			evc__outgoing_take(&p->out, (size_t)n);
		else if (errno != EINTR)
			p->gone = true;
	}
	p->unsent = 0;
	return !p->gone;
}

void
evc__worker_flush_some(struct worker_process *p)
{
	struct iovec pieces[PIECES_MOST];
	ssize_t n = 1;

	/* The thread of the functions finds out that the coordinator is
	   gone. */
	while (outgoing_size(&p->out) > 0 && n > 0) {
		n = sync_sendv(p->data, pieces,
			       evc__outgoing_pieces(&p->out, pieces));
		if (n > 0)
			evc__outgoing_take(&p->out, (size_t)n);
	}
}

/* ---- memory of large values ---- */

static bool
is_large(const struct bytes *b)
{
	return b->room > BYTES_KEPT;
}

/* Nothing large has come for a while. */
static void
give_back(struct worker_process *p)
{
	if (p->in.n == 0 && is_large(&p->in))
		bytes_free(&p->in);
	if (p->w != NULL)
		evc__worker_spare_drop(p->w);
	p->grown = is_large(&p->in);
}

/* Wait for bytes, and give the memory back when none come for long. */
static void
wait_grown(struct worker_process *p)
{
	struct pollfd fd = { .fd = p->data, .events = POLLIN };

	if (sync_ppoll(&fd, 1, GIVE_BACK_NS) == 0)
		give_back(p);
}

/* A frame of so many bytes is done with. */
static void
note_size(struct worker_process *p, size_t n)
{
	if (n > BYTES_KEPT || !p->grown)
		p->n_small = 0;
	else if (++p->n_small >= SMALL_MOST)
		give_back(p);
	p->grown |= n > BYTES_KEPT || is_large(&p->in);
}

/* ---- reading ---- */

/* 1: bytes came; 0: the end; < 0: refused. */
static int
read_more(struct worker_process *p, size_t least)
{
	unsigned char *to;
	ssize_t n;

	if (!evc__worker_flush(p))
		return 0;
	if (p->grown && p->in.n == 0)
		wait_grown(p);
	if (least < READ_LEAST)
		least = READ_LEAST;
	to = bytes_room(&p->in, least);
	if (to == NULL)
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
				  "no memory for a frame");
	do
		n = sync_recv_wait(p->data, to,
				   p->in.room - p->in.from - p->in.n);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return 0;
	p->in.n += (size_t)n;
	return 1;
}

/* The first whole frame from `at` on. */
static int
wait_frame(struct worker_process *p, size_t at, struct frame *ret)
{
	int got;

	for (;;) {
		got = evc__frame_next(bytes_behind(&p->in, at), p->in.n - at,
				      p->max_frame, ret);
		if (got != 0)
			return got;
		got = read_more(p, ret->whole - (p->in.n - at));
		if (got <= 0)
			return got;
	}
}

int
evc__worker_next(struct worker_process *p, struct frame *ret)
{
	int got = wait_frame(p, 0, ret);

	p->current = got > 0 ? ret->whole : 0;
	p->scanned = 0;
	return got;
}

void
evc__worker_used(struct worker_process *p)
{
	if (p->retired.p != NULL)
		bytes_free(&p->retired);
	else
		bytes_pass(&p->in, p->current);
	note_size(p, p->current);
	p->current = 0;
}

/* Move the bytes behind the frame in use to other memory. false: no memory. */
static bool
retire_buffer(struct worker_process *p)
{
	struct bytes rest = { 0 };

	if (p->retired.p != NULL)
		return true;
	/* Some room in any case: NULL would mean no memory. */
	if (bytes_room(&rest, READ_LEAST) == NULL ||
	    !bytes_put(&rest, bytes_behind(&p->in, p->current),
		       p->in.n - p->current)) {
		bytes_free(&rest);
		return false;
	}
	p->retired = p->in;
	p->in = rest;
	return true;
}

int
evc__worker_await(struct worker_process *p, unsigned type, struct frame *ret)
{
	int got;

	if (!retire_buffer(p))
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
				  "no memory for an answer");
	for (;;) {
		got = wait_frame(p, p->scanned, ret);
		if (got <= 0 || ret->type == type)
			return got;
		p->scanned += ret->whole;
	}
}

void
evc__worker_erase(struct worker_process *p, const struct frame *f)
{
	unsigned char *at = bytes_behind(&p->in, p->scanned);

	memmove(at, at + f->whole, p->in.n - p->scanned - f->whole);
	p->in.n -= f->whole;
}
