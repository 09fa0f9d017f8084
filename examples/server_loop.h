/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the parts of the file server share: the server, its loops, and what
 * they count.
 */
#ifndef SERVER_LOOP_H
#define SERVER_LOOP_H

#include <ev.h>
#include <evcoord.h>
#include <stdatomic.h>

#include "server_sock.h"
#include "server_worker.h"

/*
 * What a loop counts.  A request is begun when its first byte was read; it is
 * cut when in the end it is neither answered, aborted by its client nor given
 * up because that was too slow or the file has become shorter.
 */
enum count {
	CONNECTIONS, /* accepted */
	BEGUN,       /* requests */
	ANSWERED,    /* all bytes of the answer are with the kernel */
	ABORTED,     /* the client left before its answer */
	SHRUNK,      /* the file became shorter than its answer */
	TOO_SLOW,    /* the client was slower than the server's patience */
	IDLE_CLOSED, /* connections closed with no request on them */
	DISCARDED,   /* bytes that came after "Connection: close" */
	N_COUNTS
};

/* stop: */
/* What is told to stop, in this order, after the listening socket. */
enum part { CONNS, HASHER, LOG, N_PARTS };
/* :stop */

/* One event loop: the first is main's, the others have threads of their own. */
struct loop {
	struct server *server;
	char name[16];
	struct ev_loop *ev;
	struct sock listener;
	int hashed[2];            /* a pipe: what the hasher has done for it */
	ev_io on_hashed;
	atomic_ulong counts[N_COUNTS]; /* this loop -> anybody */
	/* stop: */
	evc_reactor *reactor;     /* of its connections */
	/* :stop */
};

struct server {
	int folder;               /* the files are in here */
	int listening;
	double patience;          /* seconds for a client that is slow */
	int log;                  /* the access log */
	int jobs[2], lines[2];    /* pipes: to the hasher, to the log */
	struct loop *loops;
	unsigned n_loops;
	/* stop: */
	evc_coord *coord, *part[N_PARTS];
	/* :stop */
};

/* A listening socket on 127.0.0.1 (port 0: a free one), or -1 and errno. */
int listening_socket(int port, int *ret_port);

/* Accept on this loop, on its own thread, as a task of that reactor.  False:
   refused. */
bool listener_start(struct loop *loop, evc_reactor *reactor);

/* Take over a connection that was accepted on this loop. */
void conn_open(struct loop *loop, int fd);

static inline void
count_add(struct loop *loop, enum count which, unsigned long n)
{
	atomic_fetch_add_explicit(&loop->counts[which], n,
				  memory_order_release);
}

#endif
