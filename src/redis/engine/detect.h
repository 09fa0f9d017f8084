/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the coordinator finds out that a node has ended.
 */
#ifndef EVC_REDIS_ENGINE_DETECT_H
#define EVC_REDIS_ENGINE_DETECT_H

#include "redis/engine/session.h"

/* boot_id and pid_namespace are set at creation, all other fields are for the
   loop thread only. */
struct detection {
	bool asking;         /* an answer with all leases is on its way */
	uint64_t looked_ns;  /* time of the last question for leases */
	uint64_t stood_ns;   /* length of the last gap of a lease or more
				between two questions */
	uint64_t back_ns;    /* end of that gap; 0: there was none */
	unsigned n_watched;  /* processes with a pidfd */
	char boot_id[64];    /* of this machine; "": not known */
	uint64_t pid_namespace; /* of this process; 0: not known */
};

/* Ask for the leases of all sessions. */
void evc__redis_detect(struct redis_engine *e);
/* `beat` is the number of the last renewal, as the server has it; "": none. */
void evc__session_beat(struct node_session *s, const char *beat);

#endif
