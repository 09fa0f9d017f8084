/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * foreign_loop - a program whose main loop is a poll() of its own.
 *
 *	foreign_loop <INPUT
 *
 * It reads its input, while a thread works.  The end of the input asks for the
 * stop; so does SIGTERM, or an error of the thread.  Two descriptors in the
 * poll set are all that it takes: one says that the stop was requested, the
 * other that the join has something to decide.  A step of the join never
 * blocks.
 */
#include <evcoord.h>

#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static evc_status
work(evc_coord *c, void *arg)
{
	evc_wait_for_stop(c, INFINITY);
	return dprintf(1, "%s\n", (char *)arg) < 0 ? EVC_DATA_LOSS : 0;
}

int
main(int argc, char **argv)
{
	struct pollfd p[3] = { { .fd = 0, .events = POLLIN } };
	evc_status st = EVC_PENDING;
	double wait = INFINITY;
	evc_verdict v;
	evc_coord *c;
	char buf[512];

	if (argc > 1) {
		int help = strcmp(argv[1], "--help") == 0;

		dprintf(help ? 1 : 2, "usage: foreign_loop <INPUT\n");
		return help ? 0 : 2;
	}
	if (evc_new(NULL, NULL, &c) < 0 ||
	    evc_thread_start(c, "worker", work, "worker: done", NULL, NULL) < 0 ||
	    evc_signals_start(c, NULL) < 0) {
		dprintf(2, "foreign_loop: %s\n", evc_last_error());
		return 1;
	}
	p[1] = (struct pollfd){ .fd = evc_stop_fd(c), .events = POLLIN };
	p[2] = (struct pollfd){ .fd = evc_join_fd(c), .events = POLLIN };
	while (st == EVC_PENDING) {
		if (poll(p, 3, wait < 3600 ? (int)ceil(wait * 1e3) : -1) < 0)
			continue; /* interrupted */
		if (p[0].revents != 0 && read(0, buf, sizeof(buf)) <= 0) {
			evc_request_stop(c, 0, "the input has ended");
			p[0].fd = -1;
		}
		if (p[1].revents != 0)
			p[1].fd = -1; /* seen: from here on we are joining */
		if (p[1].fd < 0)
			st = evc_join_step(c, NULL, &wait, &v);
	}
	dprintf(1, "%s: %s\n", v.stop.text, evc_status_name(st));
	_exit(evc_finish(c, st)); /* no return: somebody late may still run */
}
