/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The threads that answer over UDP: each blocks in recvmmsg(2) on a socket of
 * its own.  At the stop a signal wakes them (EVC_KICK); they answer what has
 * come by then and leave.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "dnsd.h"

#define BATCH 32 /* datagrams in one call */

/* Room for a batch. */
struct batch {
	struct mmsghdr in[BATCH], out[BATCH];
	struct iovec in_iov[BATCH], out_iov[BATCH];
	struct sockaddr_in from[BATCH];
	uint8_t query[BATCH][QUERY_MAX];
	uint8_t answer[BATCH][UDP_MOST];
};

static void
batch_init(struct batch *b)
{
	for (int i = 0; i < BATCH; i++) {
		b->in_iov[i] = (struct iovec){ b->query[i], QUERY_MAX };
		b->in[i].msg_hdr = (struct msghdr){
			.msg_name = &b->from[i],
			.msg_namelen = sizeof(b->from[i]),
			.msg_iov = &b->in_iov[i],
			.msg_iovlen = 1,
		};
	}
}

/*
 * Sleep for ever and take no notice of anything; deaf: not even of a signal
 * that wants to see the stack.
 */
__attribute__((noinline)) void
stuck_on_purpose(bool deaf)
{
	const struct timespec long_time = { 3600, 0 };
	sigset_t all;

	sigfillset(&all);
	if (deaf)
		pthread_sigmask(SIG_SETMASK, &all, NULL);
	for (;;)
		nanosleep(&long_time, NULL);
}

/* Answer n datagrams. */
static void
batch_answer(struct udp *u, struct batch *b, int n, ldns_buffer *out)
{
	struct zone *zone = zone_get(&u->server->zone);
	unsigned long answered = 0;
	int n_out = 0, sent = 0, r;

	for (int i = 0; i < n; i++) {
		size_t len = dns_answer(zone, b->query[i], b->in[i].msg_len,
					true, out);

		b->in[i].msg_hdr.msg_namelen = sizeof(b->from[i]);
		if (len == 0 || len > UDP_MOST)
			continue;
		memcpy(b->answer[n_out], ldns_buffer_begin(out), len);
		b->out_iov[n_out] = (struct iovec){ b->answer[n_out], len };
		b->out[n_out].msg_hdr = (struct msghdr){
			.msg_name = &b->from[i],
			.msg_namelen = sizeof(b->from[i]),
			.msg_iov = &b->out_iov[n_out],
			.msg_iovlen = 1,
		};
		n_out++;
	}
	zone_put(zone);
	while (sent < n_out) {
		r = sendmmsg(u->fd, b->out + sent, (unsigned)(n_out - sent), 0);
		if (r > 0)
			answered += (unsigned long)r;
		else if (errno == EINTR)
			continue;
		/* What cannot be sent is lost, as a datagram may be. */
		sent += r > 0 ? r : 1;
	}
	atomic_fetch_add_explicit(&u->answered, answered,
				  memory_order_relaxed);
}

/* The loop of the thread: 0, or an errno value. */
static int
serve(struct udp *u, struct batch *b, ldns_buffer *out)
{
	bool stopping;
	unsigned stick;
	int n;

	do {
		/* stop: */
		stopping = evc_should_stop(u->server->coord);
		/* :stop */
		/* After the stop one batch more: what has come before it. */
		n = recvmmsg(u->fd, b->in, BATCH,
			     stopping ? MSG_DONTWAIT : MSG_WAITFORONE, NULL);
		stick = atomic_exchange_explicit(&u->server->stick, STICK_NOT,
						 memory_order_relaxed);
		if (stick != STICK_NOT) {
			/* stop: */
			evc_progress("stuck on purpose");
			/* :stop */
			stuck_on_purpose(stick == STICK_DEAF);
		}
		if (n > 0)
			batch_answer(u, b, n, out);
		else if (errno != EINTR && errno != EAGAIN &&
			 errno != ECONNREFUSED)
			return errno;
	} while (!stopping);
	return 0;
}

evc_status
udp_thread(evc_coord *c, void *arg)
{
	struct udp *u = arg;
	struct batch *b = calloc(1, sizeof(*b));
	ldns_buffer *out = ldns_buffer_new(LDNS_MAX_PACKETLEN);
	int err = ENOMEM;

	if (b != NULL && out != NULL) {
		batch_init(b);
		err = serve(u, b, out);
	}
	ldns_buffer_free(out);
	free(b);
	/* stop: */
	return err == 0 ? 0 : evc_fail(c, EVC_UNAVAILABLE, err, "%s", u->name);
	/* :stop */
}
