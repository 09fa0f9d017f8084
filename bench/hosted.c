/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hosted reactor beside one on libev, on one thread: a turn that has nothing
 * to do, a ring of the loop (of which a turn makes one again), and a ring with
 * its turn.  On libev the turn is ev_run with EVRUN_NOWAIT, the ring an
 * ev_async.
 */
#include <ev.h>
#include <poll.h>
#include <stdlib.h>

#include "bench.h"

#define TIMES 2000u
#define ROUNDS 15

struct place {
	struct ev_loop *loop; /* NULL: hosted */
	evc_coord *c;
	evc_reactor *r;
	evc_loop_ref *handle;
	int fd;
	bool rings;
	evc_message mail;
};

static void
on_mail(evc_message *m, evc_status why)
{
	(void)m;
	bench_must(-why, "a mail");
}

static void
turn(struct place *p)
{
	struct pollfd fd = { .fd = p->fd, .events = POLLIN };

	if (p->loop != NULL) {
		ev_run(p->loop, EVRUN_NOWAIT);
		return;
	}
	/* The host's own look at its descriptors. */
	(void)poll(&fd, 1, 0);
	bench_must(evc_reactor_turn(p->r), "evc_reactor_turn");
}

/* Nanoseconds of a turn, with a ring before it or without. */
static double
sample_turn(void *arg)
{
	struct place *p = arg;
	uint64_t t0 = bench_now();
	unsigned i;

	for (i = 0; i < TIMES; i++) {
		if (p->rings)
			bench_must(evc_post_message(p->handle, &p->mail),
				   "evc_post_message");
		turn(p);
	}
	return (double)(bench_now() - t0) / TIMES;
}

/* Nanoseconds of a ring alone. */
static double
sample_ring(void *arg)
{
	struct place *p = arg;
	uint64_t t0, took = 0;
	unsigned i;

	for (i = 0; i < TIMES; i++) {
		t0 = bench_now();
		bench_must(evc_post_message(p->handle, &p->mail),
			   "evc_post_message");
		took += bench_now() - t0;
		turn(p);
	}
	return (double)took / TIMES;
}

static void
open_place(struct place *p, bool hosted)
{
	*p = (struct place){ .fd = -1, .mail.fn = on_mail };
	bench_must(evc_new(NULL, NULL, &p->c), "evc_new");
	if (hosted) {
		bench_must(evc_reactor_foreign(p->c, "host", &p->fd, &p->r),
			   "evc_reactor_foreign");
	} else {
		p->loop = ev_loop_new(EVFLAG_AUTO);
		bench_must(evc_reactor_attach(p->c, "libev", p->loop, &p->r),
			   "evc_reactor_attach");
	}
	p->handle = evc_loop_of(p->r);
	turn(p);
}

static void
close_place(struct place *p)
{
	evc_loop_release(p->handle);
	bench_must(evc_free(p->c), "evc_free");
	if (p->loop != NULL)
		ev_loop_destroy(p->loop);
}

void
bench_hosted(void)
{
	struct place hosted, libev;
	struct bench_side sides[] = {
		{ "evcoord/hosted", NULL, &hosted, 0 },
		{ "evcoord/libev", NULL, &libev, 0 },
	};
	unsigned i;

	open_place(&hosted, true);
	open_place(&libev, false);
	for (i = 0; i < 3; i++) {
		static const char *const metric[] = { "turn-idle", "ring",
						      "ring-and-turn" };

		hosted.rings = libev.rings = i == 2;
		sides[0].sample = sides[1].sample =
			i == 1 ? sample_ring : sample_turn;
		bench_compare(metric[i], "ns", sides, 2, ROUNDS, 5, NULL);
	}
	close_place(&libev);
	close_place(&hosted);
}
