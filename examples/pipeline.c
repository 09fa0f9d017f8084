/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pipeline - read files, sum them on several threads, print in order.
 *
 *	pipeline [-j THREADS] FILE...
 *
 *   reader  one thread -> files -> sum  THREADS threads -> sums -> main prints
 *
 * Each arrow is an evc_queue, and what stands before it feeds it: a function
 * that is called again and again and hands over one item each time.  When the
 * last feeder of a queue is at the end of its input, the queue is closed, and
 * whoever pops hears that once everything was popped: so the end travels down
 * the line by itself.  A full queue makes its feeders wait, so that no more
 * than a few files are in memory, however many there are.
 *
 * It prints what cksum(1) prints.  A SIGINT or SIGTERM, or a file that cannot
 * be read, stops it half way: then the lines that were printed are those of the
 * first files, each once, and the last line on standard error says how many.
 *
 * The exit status is 0, 1 after an error, and 130 when it was interrupted.
 */
#include <evcoord.h>

#include "bar.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define QUEUE_LENGTH 16

/* A file on its way. */
struct item {
	unsigned number; /* which one of the command line */
	unsigned char *data;
	size_t size;
	uint32_t sum;
};

struct line {
	evc_coord *c;
	evc_queue *files, *sums;
	char **names;
	unsigned n_names;
	unsigned next; /* to be read: the reader's */
};

static void
item_free(struct item *it)
{
	if (it)
		free(it->data);
	free(it);
}

/* What a feeder could not push any more, because of the stop. */
static void
dropped(void *item, void *arg)
{
	(void)arg;
	item_free(item);
}

/* ---- reader ---- */

/* The whole file into memory; -1 and errno. */
static int
read_all(evc_coord *c, int fd, struct item *it)
{
	unsigned char *more;
	size_t room = 0;
	ssize_t n;

	for (;;) {
		if (it->size == room) {
			room = room ? 2 * room : 65536;
			more = realloc(it->data, room);
			if (more == NULL)
				return -1;
			it->data = more;
		}
		if (evc_should_stop(c)) {
			errno = EINTR;
			return -1;
		}
		n = read(fd, it->data + it->size, room - it->size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return (int)n;
		it->size += (size_t)n;
	}
}

static evc_status
read_next(evc_queue *queue, unsigned number, void **ret_item, void *arg)
{
	struct line *l = arg;
	struct item *it;
	const char *name;
	int fd, err;

	(void)queue;
	(void)number;
	if (l->next == l->n_names)
		return EVC_OUT_OF_RANGE; /* the end of input */
	name = l->names[l->next];
	it = calloc(1, sizeof(*it));
	if (it == NULL)
		return evc_fail(l->c, EVC_RESOURCE_EXHAUSTED, ENOMEM, "%s",
				name);
	it->number = l->next;
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read_all(l->c, fd, it) < 0) {
		err = errno;
		if (fd >= 0)
			close(fd);
		item_free(it);
		/* It was in the middle of it, or kicked out of a call that
		   blocks (EVC_KICK): that is no error. */
		if (err == EINTR && evc_should_stop(l->c))
			return EVC_CANCELLED;
		return evc_fail(l->c, EVC_NOT_FOUND, err, "cannot read %s: %s",
				name, strerror(err));
	}
	close(fd);
	l->next++;
	*ret_item = it;
	return 0;
}

/* ---- sum ---- */

/* The CRC of cksum(1), a bit at a time: slow, so that threads pay. */
static uint32_t
crc_byte(uint32_t crc, unsigned byte)
{
	int i;

	crc ^= (uint32_t)byte << 24;
	for (i = 0; i < 8; i++)
		crc = crc & 0x80000000 ? crc << 1 ^ 0x04c11db7 : crc << 1;
	return crc;
}

static evc_status
sum_next(evc_queue *queue, unsigned number, void **ret_item, void *arg)
{
	struct line *l = arg;
	struct item *it;
	uint32_t crc = 0;
	evc_status st;
	void *popped;
	size_t i;

	(void)queue;
	(void)number;
	/* It waits here.  The end of input and the stop are results that this
	   may return as they are. */
	st = evc_queue_pop(l->files, &popped, INFINITY);
	if (st < 0)
		return st;
	it = popped;
	for (i = 0; i < it->size; i++) {
		if (i % 65536 == 0 && evc_should_stop(l->c)) {
			item_free(it);
			return EVC_CANCELLED;
		}
		crc = crc_byte(crc, it->data[i]);
	}
	for (i = it->size; i > 0; i >>= 8)
		crc = crc_byte(crc, i & 0xff);
	it->sum = ~crc;
	free(it->data); /* only the sum goes on */
	it->data = NULL;
	*ret_item = it;
	return 0;
}

/* ---- main prints ---- */

/* Sums come in any order and are kept until it is their turn. */
struct printer {
	const struct line *l;
	struct item **kept; /* by number */
	unsigned n_printed; /* the first so many files */
	struct bar bar;
};

/* What is written counts as done; false: it cannot be written. */
static bool
print_ready(struct printer *p)
{
	unsigned n = p->n_printed;

	if (p->kept[n] == NULL)
		return true;
	bar_clear(&p->bar);
	for (; n < p->l->n_names && p->kept[n]; n++)
		printf("%" PRIu32 " %zu %s\n", p->kept[n]->sum,
		       p->kept[n]->size, p->l->names[n]);
	if (fflush(stdout) != 0)
		return false;
	while (p->n_printed < n) {
		item_free(p->kept[p->n_printed]);
		p->kept[p->n_printed++] = NULL;
	}
	return true;
}

static void
draw(struct printer *p)
{
	bar_draw(&p->bar, (double)p->n_printed / p->l->n_names,
		 "%u of %u files", p->n_printed, p->l->n_names);
}

static void
print_sums(struct printer *p)
{
	struct item *it;
	void *popped;

	/* Until it is closed, or stopped, and empty. */
	while (evc_queue_pop(p->l->sums, &popped, INFINITY) == 0) {
		it = popped;
		p->kept[it->number] = it;
		if (!print_ready(p)) {
			evc_fail(p->l->c, EVC_DATA_LOSS, errno,
				 "cannot write: %s", strerror(errno));
			break;
		}
		draw(p);
	}
	bar_clear(&p->bar);
}

/* ---- all of it ---- */

static evc_status
start(struct line *l, unsigned n_threads)
{
	/* After a stop pops still hand out what is there: sums that were done
	   are printed.  There is no need to begin with more files. */
	const evc_queue_opts drain = { .flags = EVC_QUEUE_DRAIN };
	/* A read may block, in a fifo or on a dead network. */
	const evc_feed_opts reader = { .dropped = dropped,
				       .member.flags = EVC_KICK };
	const evc_feed_opts sum = { .dropped = dropped };
	evc_status st;

	st = evc_queue_new(l->c, "files", QUEUE_LENGTH, NULL, &l->files);
	if (st == 0)
		st = evc_queue_new(l->c, "sums", QUEUE_LENGTH, &drain,
				   &l->sums);
	if (st == 0)
		st = evc_queue_feed(l->sums, "sum", n_threads, sum_next, l,
				    &sum);
	if (st == 0)
		st = evc_queue_feed(l->files, "reader", 1, read_next, l,
				    &reader);
	return st;
}

/* What nobody has popped, as evc_finish frees empty queues alone. */
static void
queue_empty(evc_queue *q)
{
	void *item;

	while (evc_queue_try_pop(q, &item) == 0)
		item_free(item);
}

static void
usage(int status)
{
	fputs("usage: pipeline [-j THREADS] FILE...\n",
	      status == 0 ? stdout : stderr);
	exit(status);
}

int
main(int argc, char **argv)
{
	struct line l = { 0 };
	struct printer p = { .l = &l };
	unsigned long n_threads = 4;
	evc_verdict v;
	evc_status st;
	unsigned i;
	char *end;
	bool interrupted;
	int opt, status;

	if (argc == 2 && strcmp(argv[1], "--help") == 0)
		usage(0);
	while ((opt = getopt(argc, argv, "j:")) != -1) {
		if (opt != 'j')
			usage(2);
		n_threads = strtoul(optarg, &end, 10);
		if (*optarg < '0' || *optarg > '9' || *end || n_threads < 1 ||
		    n_threads > 1000)
			usage(2);
	}
	if (optind == argc)
		usage(2);
	l.names = argv + optind;
	l.n_names = (unsigned)(argc - optind);
	p.kept = calloc(l.n_names, sizeof(struct item *));
	bar_init(&p.bar);
	/* Signals last: up to there they end the program as they always do, and
	   no line has been printed. */
	if (p.kept == NULL || evc_new(NULL, NULL, &l.c) < 0 ||
	    start(&l, (unsigned)n_threads) < 0 ||
	    evc_signals_start(l.c, NULL) < 0) {
		fprintf(stderr, "pipeline: %s\n",
			p.kept ? evc_last_error() : strerror(errno));
		_exit(EXIT_FAILURE); /* threads may run */
	}
	draw(&p);
	print_sums(&p);
	st = evc_join(l.c, NULL, &v);

	interrupted = st == 0 && v.stop.kind == EVC_BY_SIGNAL &&
		      p.n_printed < l.n_names;
	if (st != 0 || interrupted)
		fprintf(stderr, "pipeline: %s: the first %u of %u files are "
			"done\n", st < 0 ? evc_last_error() :
			st > 0 ? v.error.text : v.stop.text, p.n_printed,
			l.n_names);
	if (st < 0 || v.n_stragglers)
		_exit(EXIT_FAILURE); /* somebody still runs, and uses this */
	for (i = 0; i < l.n_names; i++)
		item_free(p.kept[i]);
	free(p.kept);
	queue_empty(l.files);
	queue_empty(l.sums);
	status = evc_finish(l.c, st);
	return interrupted ? 130 : status;
}
