/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Output of workers: a pipe has standard output and standard error of a worker.
 * Whole lines go to the log; the last bytes are kept, because the last words of
 * a dying program often say why.
 * A worker that prints without end must not fill the disk by the log: a second
 * has a limited number of lines, and a line that counts the others.
 * Called by: spawn.c and end.c; the loop's watchers.
 * Locks: none; the loop's thread.
 */
#include "cluster/processes/processes.h"

#include <inttypes.h>

#define SECOND_NS UINT64_C(1000000000)
#define LINES_MOST 100  /* in a second */
#define READ_SIZE 4096
#define READS_MOST 16   /* in one turn */
#define READS_AT_END 256

static void
log_left_out(struct process *w)
{
	uint64_t n = w->output.n_left_out;

	w->output.n_left_out = 0;
	ev_timer_stop(w->p->ev, &w->output.rest);
	if (n > 0)
		evc_log(w->p->scope, EVC_LOG_WARNING, NULL,
			"%s: %" PRIu64 " more lines were left out", w->name, n);
}

static void
on_left_out_timer(struct ev_loop *ev, struct ev_timer *timer, int events)
{
	struct process *w = timer->data;

	(void)ev;
	(void)events;
	if (!on_loop_inherited(&w->p->on))
		log_left_out(w);
}

/* true: the log has had its lines of this second. */
static bool
is_too_much(struct process *w)
{
	uint64_t now = sync_mono();

	if (w->output.second_ns == 0 || now - w->output.second_ns > SECOND_NS) {
		log_left_out(w);
		w->output.second_ns = now;
		w->output.n_said = 0;
	}
	if (w->output.n_said < LINES_MOST) {
		w->output.n_said++;
		return false;
	}
	if (w->output.n_left_out++ == 0) {
		/* After an expiry libev keeps no delay: the next start would
		   fire at once. */
		ev_timer_set(&w->output.rest, 1., 0.);
		ev_now_update(w->p->ev);
		ev_timer_start(w->p->ev, &w->output.rest);
	}
	return true;
}

static void
log_line(struct process *w)
{
	size_t n = w->output.n_line;

	w->output.n_line = 0;
	/* Empty lines are for the eye. */
	if (n > 0 && !is_too_much(w))
		evc_log(w->p->scope, EVC_LOG_INFO, NULL, "%s: %.*s", w->name,
			(int)n, w->output.line);
}

static void
take_bytes(struct process *w, const char *bytes, size_t n)
{
	size_t i;

	/* Without memory a death has no last words, and the log has them. */
	if (w->output.words == NULL)
		w->output.words = sync_alloc(1, WORDS_SIZE);
	for (i = 0; i < n; i++) {
		char c = bytes[i];

		if (w->output.words != NULL)
			w->output.words[w->output.n_words++ % WORDS_SIZE] = c;
		if (c == '\n') {
			log_line(w);
			continue;
		}
		if (c == '\r')
			continue;
		if (w->output.n_line == LINE_SIZE)
			log_line(w);
		w->output.line[w->output.n_line++] =
			(unsigned char)c < ' ' || c == 0x7f ? ' ' : c;
	}
}

/* false: no more bytes. */
static bool
read_some(struct process *w)
{
	char buf[READ_SIZE];
	ssize_t n;

	do
		n = sync_fd_read(w->output.fd, buf, sizeof buf);
	while (n < 0 && errno == EINTR);
	if (n > 0)
		take_bytes(w, buf, (size_t)n);
	if (n == 0 || (n < 0 && errno != EAGAIN))
		ev_io_stop(w->p->ev, &w->output.io);
	return n > 0;
}

static void
on_output(struct ev_loop *ev, struct ev_io *io, int events)
{
	struct process *w = io->data;
	unsigned i;

	(void)ev;
	(void)events;
	if (on_loop_inherited(&w->p->on))
		return;
	for (i = 0; i < READS_MOST && read_some(w); i++)
		;
}

void
evc__process_output_open(struct process *w, int fd)
{
	w->output.fd = fd;
	w->output.n_line = 0;
	w->output.n_words = 0;
	sync_fd_nonblock(fd);
	ev_io_init(&w->output.io, on_output, fd, EV_READ);
	w->output.io.data = w;
	ev_init(&w->output.rest, on_left_out_timer);
	w->output.rest.data = w;
	ev_io_start(w->p->ev, &w->output.io);
}

void
evc__process_output_close(struct process *w)
{
	unsigned i;

	if (w->output.fd < 0)
		return;
	/* A child of the worker may write for ever. */
	for (i = 0; i < READS_AT_END && read_some(w); i++)
		;
	log_line(w);
	log_left_out(w);
	ev_io_stop(w->p->ev, &w->output.io);
	sync_fd_close(w->output.fd);
	w->output.fd = -1;
}

void
evc__process_words(const struct process *w, struct text *t)
{
	char words[WORDS_SIZE + 1];
	size_t n = 0;
	uint64_t i;

	i = w->output.n_words > WORDS_SIZE ? w->output.n_words - WORDS_SIZE : 0;
	for (; i < w->output.n_words; i++) {
		char c = w->output.words[i % WORDS_SIZE];

		c = (unsigned char)c < ' ' || c == 0x7f ? ' ' : c;
		/* Ends of lines and blanks become one blank. */
		if (c != ' ' || (n > 0 && words[n - 1] != ' '))
			words[n++] = c;
	}
	while (n > 0 && words[n - 1] == ' ')
		n--;
	words[n] = '\0';
	if (n == 0)
		return;
	evc__text_add(t, "; its last words: ");
	/* The ring may begin within a character. */
	evc__text_ends(t, evc__end_of(words, n - (words[0] & 0x80 ? 1 : 0)));
}

void
evc__process_words_drop(struct process *w)
{
	sync_free(w->output.words);
	w->output.words = NULL;
	w->output.n_words = 0;
}
