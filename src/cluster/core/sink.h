/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine's side of a cluster.  Included by cluster/core/cluster.h.
 */
#ifndef EVC_CLUSTER_SINK_H
#define EVC_CLUSTER_SINK_H

struct engine_side {
	const evc_engine_ops *ops;  /* creation */
	evc_engine *at;             /* lock: NULL: not open, or closed */
	bool left;                  /* lock: ops->leave was called */
	bool closed;                /* lock: the engine has said its last
				       word */
	char down[TEXT_SIZE];       /* lock: why the engine is down for good;
				       "": the engine is not down */
	uint64_t away_ns;           /* lock: since when the engine's server
				       cannot be reached; 0: it can, or there
				       is none */
	char trouble[TEXT_SIZE];    /* lock: the engine's words for why
				       functions wait at the moment; "": none */
};

/* The calls of engines: sink.c; some stand in workers.c, resize.c, names.c and
   info.c. */
extern const evc_engine_sink evc__sink;
bool evc__sink_workers(void *core, unsigned n);
void evc__sink_names(void *core, const char *const *functions, unsigned n);
void evc__sink_worker_names(void *core, unsigned worker,
			    const char *const *functions, unsigned n);
void evc__sink_up(void *core, unsigned worker, const char *name,
		  const char *where);
void evc__sink_fenced(void *core, unsigned worker, const char *why);
void evc__sink_gone(void *core, unsigned worker, const char *why, unsigned how);
void evc__sink_trouble(void *core, const char *why);
void evc__sink_away(void *core, uint64_t since_ns);
void evc__sink_stack(void *core, unsigned worker, const char *lines);
void evc__sink_counts(void *core, uint64_t *ret_queued, uint64_t *ret_running,
		      uint64_t *ret_done);
void evc__sink_down(void *core, const char *why);
void evc__sink_closed(void *core);
bool evc__sink_leave(void *core, unsigned worker);

#endif
