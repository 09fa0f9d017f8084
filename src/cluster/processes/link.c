/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The streams to a worker.  Bytes are read into memory that all workers share;
 * only the beginning of an incomplete frame is copied to the link's own memory.
 * Bytes to write are put behind others, and one call sends them all.
 * Called by: all files of this room but process.c.
 * Locks: none; the loop's thread.
 */
#include "cluster/processes/processes.h"

#define READS_MOST 4 /* in one turn, for the sake of other workers */
#define MUCH ((size_t)64 << 10) /* bytes of a read that has not taken all */

static void
watch_events(struct link *l, int events)
{
	struct processes *p = l->w->p;

	if (l->events == events)
		return;
	ev_io_stop(p->ev, &l->io);
	ev_io_set(&l->io, l->fd, events);
	if (events != 0)
		ev_io_start(p->ev, &l->io);
	l->events = events;
}

/* The other end is closed; the pidfd tells the rest. */
static void
end_link(struct link *l)
{
	l->ended = true;
	evc__outgoing_free(&l->out);
	watch_events(l, 0);
}

static ssize_t
send_once(struct link *l)
{
	struct iovec pieces[PIECES_MOST];
	unsigned n = evc__outgoing_pieces(&l->out, pieces);

	return n == 1 ? sync_send(l->fd, pieces[0].iov_base,
				  pieces[0].iov_len) :
			sync_sendv(l->fd, pieces, n);
}

void
evc__link_flush(struct link *l)
{
	while (outgoing_size(&l->out) > 0 && !link_is_shut(l)) {
		ssize_t n = send_once(l);

		if (n >= 0) {
			evc__outgoing_take(&l->out, (size_t)n);
			l->sent += (uint64_t)n;
		} else if (errno == EAGAIN || errno == ENOBUFS ||
			 errno == ENOMEM) {
			watch_events(l, EV_READ | EV_WRITE);
			return;
		} else if (errno != EINTR)
			l->unheard = true;
	}
	/* Words of the worker may wait to be read all the same: results from
	   before its death. */
	if (l->unheard)
		evc__outgoing_free(&l->out);
	if (!l->ended)
		watch_events(l, EV_READ);
}

/* The number of bytes to read behind the beginning of a frame. */
static size_t
bytes_wanted(const struct link *l)
{
	struct frame f;
	size_t more = 4096;

	if (evc__frame_next(bytes_at(&l->in), l->in.n, l->w->p->max_frame,
			    &f) == 0 &&
	    f.whole - l->in.n > more)
		more = f.whole - l->in.n;
	return more;
}

/* Keep the beginning of a frame, in memory for all of it. */
static bool
keep_rest(struct link *l, const unsigned char *p, size_t n)
{
	struct frame f;

	if (n == 0)
		return true;
	if (evc__frame_next(p, n, l->w->p->max_frame, &f) == 0 &&
	    bytes_room(&l->in, f.whole) == NULL)
		return false;
	return bytes_put(&l->in, p, n);
}

static void
no_memory(struct link *l)
{
	evc__process_fence(l->w, "could not be heard: no memory for what it "
				 "sends");
	bytes_free(&l->in);
}

/* Read once. *ret_full: the room was filled; false: no more bytes. */
static bool
read_once(struct link *l, bool *ret_full)
{
	struct process *w = l->w;
	unsigned char *to = w->p->scratch;
	bool begun = l->in.n > 0;
	size_t room = SCRATCH, used;
	ssize_t n;

	if (begun) {
		to = bytes_room(&l->in, bytes_wanted(l));
		if (to == NULL) {
			no_memory(l);
			return false;
		}
		room = l->in.room - l->in.from - l->in.n;
	}
	do
		n = sync_recv(l->fd, to, room);
	while (n < 0 && errno == EINTR);
	if (n <= 0) {
		if (n == 0 || errno != EAGAIN)
			end_link(l);
		return false;
	}
	/* Behind many bytes of a large frame there are others by now. */
	*ret_full = (size_t)n == room || (begun && (size_t)n >= MUCH);
	process_lives(w);
	if (begun) {
		l->in.n += (size_t)n;
		used = w->p->hear(l, bytes_at(&l->in), l->in.n);
		/* The memory was given away, or is here still. */
		if (l->in.p != NULL)
			bytes_take(&l->in, used);
		return true;
	}
	used = w->p->hear(l, to, (size_t)n);
	if (!keep_rest(l, to + used, (size_t)n - used))
		no_memory(l);
	return true;
}

void
evc__link_hear_rest(struct link *l)
{
	size_t used;

	if (l->fd < 0 || l->in.n == 0 || l->w->hears)
		return;
	used = l->w->p->hear(l, bytes_at(&l->in), l->in.n);
	if (l->in.p != NULL)
		bytes_take(&l->in, used);
}

void
evc__link_read(struct link *l, bool to_the_end)
{
	unsigned reads = 0;
	bool full = false;

	while (l->fd >= 0 && !l->ended && read_once(l, &full))
		if (!to_the_end && (!full || ++reads == READS_MOST))
			break;
}

void
evc__link_open(struct link *l, struct process *w, int fd)
{
	*l = (struct link){ .w = w, .fd = fd };
	ev_io_init(&l->io, w->p->on_io, fd, EV_READ);
	l->io.data = l;
	watch_events(l, EV_READ);
}

void
evc__link_close(struct link *l)
{
	if (l->fd < 0)
		return;
	watch_events(l, 0);
	sync_fd_close(l->fd);
	l->fd = -1;
	bytes_free(&l->in);
	evc__outgoing_free(&l->out);
}
