/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A call that schedules, on its way: checked and copied without the lock
 * (request.c), let into the queue under the lock (admit.c).
 */
#ifndef EVC_CLUSTER_REQUEST_H
#define EVC_CLUSTER_REQUEST_H

#include "cluster/core/fetch.h"

/* The checked arguments and options of a call. */
struct request {
	const char *name;    /* NULL: `call` */
	evc_exec_fn *call;
	void *arg;
	evc_value args, kwargs;
	evc_schedule_opts opts;
	struct ref_list refs;
};

/* The name or the call is set; the rest is checked and filled in. 0 or a
   refusal, and in both cases evc__request_free follows. */
evc_status evc__request_check(evc_cluster *cl, struct request *q,
			      const evc_value *args, const evc_value *kwargs,
			      const evc_schedule_opts *opts);
void evc__request_free(struct request *q);

/* A remote with references of the cluster and the program.  NULL: no memory. */
evc_remote *evc__request_make(evc_cluster *cl, const struct request *q);
/* Free a remote that was not let into the queue. */
void evc__request_unmake(evc_remote *r);

/* Lock held, given up during waits: all n functions, or none. 0; > 0: an error
   was raised; < 0: refused. */
evc_status evc__admit(evc_cluster *cl, const struct request *q,
		      evc_remote **remotes, unsigned n, bool each_worker);

#endif
