/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the parts of the DNS server share.
 */
#ifndef DNSD_H
#define DNSD_H

#include <ev.h>
#include <evcoord.h>
#include <ldns/ldns.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UNUSED __attribute__((unused))

#define QUERY_MAX 4096 /* bytes of a query; a longer one is no honest one */
#define UDP_MOST 1232  /* of an answer over UDP: what fits through any path */

/*
 * A zone, as it was loaded: never changed, so it is read without a lock.  Who
 * reads it holds it; the last one that lets go frees it.
 */
struct zone {
	atomic_uint held;         /* zone_get -> zone_put, which frees */
	ldns_dnssec_zone *names;
	ldns_rdf *apex;
	ldns_rr *soa;
	uint32_t serial, negative_ttl;
};

/* Where the zone of today is found. */
struct zone_place {
	pthread_mutex_t lock;     /* for the moment between look and hold */
	struct zone *zone;
};

struct server;

/* Read a master file.  NULL: why says what is wrong with it. */
struct zone *zone_load(const char *path, char *why, size_t n);
/* Today's zone, held until zone_put. */
struct zone *zone_get(struct zone_place *place);
void zone_put(struct zone *zone);
/* From now on it is this one. */
void zone_set(struct zone_place *place, struct zone *zone);

/*
 * Answer one query: the answer is written to out, from its beginning; its
 * length, or 0 when there is nothing to be said.
 */
size_t dns_answer(const struct zone *zone, const uint8_t *query, size_t len,
		  bool udp, ldns_buffer *out);

/* What a thread is asked to do wrong, so that somebody can watch. */
enum stick { STICK_NOT, STICK, STICK_DEAF };

struct server {
	const char *zone_file;
	struct zone_place zone;
	int port;
	struct udp *udp;
	struct tcp *tcp;
	unsigned n_udp, n_tcp;
	atomic_uint stick;        /* enum stick; control -> the first UDP thread
				     that comes by */
	/* Home loop: the zone is being read again, and then once more. */
	bool reloading, again;
	/* The thread that reads it; then the home loop. */
	struct zone *loaded;
	char why[256];            /* there is none */
	/* stop: */
	evc_coord *coord;
	/* :stop */
};

/* A thread that blocks in recvmmsg(2), with a socket of its own. */
struct udp {
	struct server *server;
	char name[16];
	int fd;
	atomic_ulong answered;    /* this thread -> anybody */
};

/* A thread with a loop, and a listening socket of its own. */
struct tcp {
	struct server *server;
	char name[16];
	int fd;
	struct ev_loop *ev;
	ldns_buffer *out;         /* one answer at a time */
	atomic_ulong answered;    /* this thread -> anybody */
	atomic_ulong cut;         /* clients that were too slow, likewise */
};

/* Sockets for all of them on 127.0.0.1, on one port (0: a free one, which is
   noted in the server).  False: errno says why. */
bool sockets_open(struct server *s, int port);

/* The threads' function; arg is a struct udp. */
evc_status udp_thread(evc_coord *c, void *arg);
/* So many seconds one TCP client may hold us up; before the first loop. */
void tcp_patience(double seconds);
/* The set-up of a loop; arg is a struct tcp. */
evc_status tcp_setup(evc_reactor *r, void *arg);

/* Never comes back. */
void stuck_on_purpose(bool deaf);

/* Have the zone read again, on a thread of its own.  On the home loop. */
void reload_ask(struct server *s);

/* The server answers; tell the service manager. */
void serving(struct server *s);

/* Take commands at a UNIX socket, on this loop, from this user alone; where
   nothing is, or a socket at which nobody answers.  NULL, or why not. */
const char *control_start(struct server *s, struct ev_loop *ev,
			  const char *path);
void control_stop(struct ev_loop *ev, const char *path);

/* May a signal stop the server now?  Not between the commands "hold" and
   "unhold".  Asked by signal handlers. */
bool unheld(int signo, void *unused);

/* Be the other side: send one command, print what comes.  An exit status. */
int control_send(const char *path, const char *command);

#endif
