/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the coordinator finds out that a node has ended.
 */
#ifndef EVC_REDIS_ENGINE_DETECT_H
#define EVC_REDIS_ENGINE_DETECT_H

#include "redis/client/redis.h"

#define ID_SIZE 48       /* of the id of a stream's entry */
#define WATCHED_MOST 256 /* processes: each of them takes a descriptor */

struct redis_engine; /* is the evc_engine */
struct node_session;
struct remote_worker;

/* A process of a node or of a worker; a process of this machine may be watched.
   Loop thread only. */
struct watched {
	struct redis_engine *e;
	struct node_session *session;
	pid_t pid;
	int pidfd; /* -1: the process is not watched */
	struct ev_io io;
	bool dead; /* the end of the process is proven */
};

/* boot_id and pid_namespace are set at creation, all other fields are for the
   loop thread only. */
struct detection {
	unsigned n_asking;   /* answers with leases that are on their way */
	uint64_t asked_ns;   /* time of the last question for leases */
	uint64_t looked_ns;  /* time of the last answered question */
	uint64_t stood_ns;   /* length of the last gap of a lease or more
				between two questions */
	uint64_t back_ns;    /* end of that gap; 0: there was none */
	unsigned n_watched;  /* processes with a pidfd */
	char boot_id[64];    /* of this machine; "": not known */
	uint64_t pid_namespace; /* of this process; 0: not known */
	bool asking_end; /* an answer with `end` is to come */
	char end[ID_SIZE]; /* of an entry behind all others at end_ns, in
			      generation end_g; "": none */
	uint64_t end_g, end_ns;
	char lost_of[NODE_NAME_SIZE]; /* node with a lost entry, for the end of
					 the cluster; "": none */
};

void evc__redis_detect_init(struct redis_engine *e);
/* Look whether `text` of a FRAME_NODE names this machine. */
void evc__session_read_note(struct node_session *s, const char *text);
/* Watch the process of a worker, a child of the node's process. */
void evc__remote_worker_watch(struct remote_worker *w, pid_t pid);
void evc__watched_stop(struct watched *w);
/* End all watches, in a fork child. */
void evc__sessions_unwatch(struct redis_engine *e);
/* true: the ends of all workers of the session are proven. */
bool evc__session_is_dead(const struct node_session *s);

/* Ask for the leases of all sessions, or of the next ones in turn: at each
   tick. */
void evc__redis_detect(struct redis_engine *e);
/* `beat`, of the last renewal, is as on the server; "": none. */
void evc__session_beat(struct node_session *s, const char *beat);

#endif
