/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A call that schedules, on its way: checked and copied without the lock
 * (request.c), let in under it (admit.c).
 */
#ifndef EVC_CLUSTER_REQUEST_H
#define EVC_CLUSTER_REQUEST_H

#include "cluster/core/fetch.h"

/* What a call asks for, checked. */
struct request {
	const char *name;    /* NULL: call */
	evc_exec_fn *call;
	void *arg;
	evc_value args, kwargs;
	evc_schedule_opts opts;
	struct ref_list refs;
};

/* The name or the call is set; all else is checked and filled in.  0 or a
   refusal; in both cases evc__request_free. */
evc_status evc__request_check(evc_cluster *cl, struct request *q,
			      const evc_value *args, const evc_value *kwargs,
			      const evc_schedule_opts *opts);
void evc__request_free(struct request *q);

/* A remote for it, with a reference for the cluster and one for the program.
   NULL: no memory. */
evc_remote *evc__request_make(evc_cluster *cl, const struct request *q);
/* One that was not let in. */
void evc__request_unmake(evc_remote *r);

/* Lock held, given up meanwhile: all n of them, or none.  0; > 0: an error was
   raised; < 0: refused. */
evc_status evc__admit(evc_cluster *cl, const struct request *q,
		      evc_remote **remotes, unsigned n, bool each_worker);

#endif
