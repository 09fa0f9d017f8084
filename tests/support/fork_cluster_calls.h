/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each public call of libevcoord-cluster and libevcoord-redis, made in a fork child
 * with what is its parent's, and how it has to answer there; and apart those that
 * a function makes while it runs.  evcoord-cluster(7), FORK CHILDREN.
 */
#ifndef TESTS_SUPPORT_FORK_CLUSTER_CALLS_H
#define TESTS_SUPPORT_FORK_CLUSTER_CALLS_H

#include "fork_util.h"

#include <evcoord/cluster.h>
#include <evcoord/redis.h>
#include <evcoord/worker.h>

/* What the parent has. */
struct world {
	evc_coord *c;
	evc_cluster *cl;
	evc_remote *done, *runs;
	evc_per_worker *value, *dataset, *iterator;
	evc_value args;  /* [1, 2] */
	evc_exec *x;     /* in a function: the call */
	evc_local *local;
	/* Room for answers that a refused call leaves alone. */
	evc_remote *remote;
	evc_per_worker *made;
	evc_value answer, made_of;
	evc_reason reason;
	evc_remote_info remote_info;
	evc_cluster_info info;
	evc_cluster_worker_info worker_info;
	evc_exec_info exec_info;
	int64_t number;
	size_t at;
	double now;
	bool yes;
	char text[2048];
};

static MAYBE_UNUSED evc_status
never_exec(evc_exec *x, void *arg)
{
	(void)x;
	(void)arg;
	NEVER;
	return 0;
}

static MAYBE_UNUSED void
never_joined(evc_cluster *cl, evc_status st, void *arg)
{
	(void)cl;
	(void)st;
	(void)arg;
	NEVER;
}

static MAYBE_UNUSED void
never_fetched(evc_cluster *cl, evc_status st, const evc_value *value, void *arg)
{
	(void)cl;
	(void)st;
	(void)value;
	(void)arg;
	NEVER;
}

static MAYBE_UNUSED bool
never_variable(const char *name, const evc_value *value, void *arg)
{
	(void)name;
	(void)value;
	(void)arg;
	NEVER;
	return false;
}

#define ONE_ELEMENT ((evc_elements){ .doubles = &w->now, .n = 1 })

#define VALUES(X) \
	X(evc_pack, evc_pack(&w->answer, "[ii]", 1, 2) == 0 && \
		    (w->runs == NULL || \
		     REF(evc_pack(&w->made_of, "r", w->runs)))) \
	X(evc_unpack, evc_unpack(&w->args, "[II]", &w->number, &w->number) == 0) \
	X(evc_value_free, DONE(evc_value_free(&w->answer))) \
	X(evc_value_copy, evc_value_copy(&w->answer, &w->args) == 0) \
	X(evc_value_check, evc_value_check(&w->args) == 0) \
	X(evc_value_type, evc_value_type(&w->args) == EVC_VALUE_ARRAY) \
	X(evc_value_count, evc_value_count(&w->args) == 2) \
	X(evc_value_at, evc_value_at(&w->args, 0, &w->answer) == 0) \
	X(evc_value_next, (w->at = 0, evc_value_next(&w->args, &w->at, NULL, \
						     &w->answer))) \
	X(evc_value_elements, evc_value_elements(&w->args, &ONE_ELEMENT) < 0) \
	X(evc_value_print, evc_value_print(&w->args, w->text, 100) > 0) \
	X(evc_worker_is, !evc_worker_is())

/* The name, and what is true of its answer. */
#define FORK_CLUSTER_CALLS(X) \
	X(evc_cluster_open, \
	  REF(evc_cluster_open(w->c, "threads://1", NULL, \
			       &(evc_cluster *){ NULL }))) \
	X(evc_cluster_close, REF(evc_cluster_close(w->cl)) && \
			     evc_cluster_close(NULL) == 0) \
	X(evc_cluster_resize, REF(evc_cluster_resize(w->cl, 2))) \
	X(evc_cluster_scope, evc_cluster_scope(w->cl) != NULL) \
	X(evc_schedule, \
	  REF(evc_schedule(w->cl, "add", &w->args, NULL, NULL, &w->remote))) \
	X(evc_schedule_pack, \
	  REF(evc_schedule_pack(w->cl, "add", NULL, NULL, "[ii]", 1, 2))) \
	X(evc_schedule_call, \
	  REF(evc_schedule_call(w->cl, never_exec, NULL, NULL, NULL, NULL, \
			        &w->remote))) \
	X(evc_schedule_all, \
	  REF(evc_schedule_all(w->cl, "add", &w->args, NULL, NULL, NULL, NULL))) \
	X(evc_cluster_join, REF(evc_cluster_join(w->cl, INFINITY))) \
	X(evc_cluster_join_start, \
	  REF(evc_cluster_join_start(w->cl, never_joined, NULL))) \
	X(evc_cluster_done, REF(evc_cluster_done(w->cl, &w->yes))) \
	X(evc_cluster_error_get, \
	  REF(evc_cluster_error_get(w->cl, 0, &w->reason))) \
	X(evc_remote_ref, evc_remote_ref(w->done) == w->done) \
	X(evc_remote_free, DONE(evc_remote_free(w->done)) && \
			   DONE(evc_remote_free(NULL))) \
	X(evc_remote_get, REF(evc_remote_get(w->done, &w->remote_info))) \
	X(evc_remote_text, evc_remote_text(w->done, NULL, 0) == 0) \
	X(evc_remote_fetch, \
	  REF(evc_remote_fetch(w->runs, INFINITY, NULL)) && \
		  evc_remote_fetch(w->done, INFINITY, NULL) == 0) \
	X(evc_remote_cancel, REF(evc_remote_cancel(w->runs))) \
	X(evc_fetch, REF(evc_fetch(w->cl, &w->args, INFINITY, &w->answer))) \
	X(evc_fetch_start, \
	  REF(evc_fetch_start(w->cl, &w->args, never_fetched, NULL))) \
	X(evc_per_worker_value, \
	  REF(evc_per_worker_value(w->cl, "v", "add", &w->args, &w->made))) \
	X(evc_per_worker_dataset, \
	  REF(evc_per_worker_dataset(w->cl, "d", "add", &w->args, NULL, \
				     &w->made))) \
	X(evc_per_worker_dataset_of, \
	  REF(evc_per_worker_dataset_of(w->cl, "d", &w->args, NULL, \
					&w->made))) \
	X(evc_per_worker_iterator, \
	  REF(evc_per_worker_iterator(w->dataset, &w->made))) \
	X(evc_per_worker_next, \
	  evc_per_worker_next(w->iterator, NULL) == -EVC_UNIMPLEMENTED) \
	X(evc_per_worker_free, DONE(evc_per_worker_free(w->value)) && \
			       DONE(evc_per_worker_free(w->iterator))) \
	X(evc_variable_add, REF(evc_variable_add(w->cl, "n", 1, &w->now))) \
	X(evc_variable_set, REF(evc_variable_set(w->cl, "n", &w->args))) \
	X(evc_variable_get, REF(evc_variable_get(w->cl, "n", &w->answer))) \
	X(evc_variable_number, \
	  REF(evc_variable_number(w->cl, "n", &w->now))) \
	X(evc_variable_compare_set, \
	  REF(evc_variable_compare_set(w->cl, "n", NULL, &w->args))) \
	X(evc_vector_set, REF(evc_vector_set(w->cl, "v", &ONE_ELEMENT))) \
	X(evc_vector_add, REF(evc_vector_add(w->cl, "v", &ONE_ELEMENT))) \
	X(evc_vector_get, REF(evc_vector_get(w->cl, "v", &ONE_ELEMENT))) \
	X(evc_vector_size, REF(evc_vector_size(w->cl, "v", &w->at))) \
	X(evc_variable_each, \
	  REF(evc_variable_each(w->cl, never_variable, NULL))) \
	X(evc_cluster_save, REF(evc_cluster_save(w->cl, "/dev/null/no"))) \
	X(evc_cluster_restore, REF(evc_cluster_restore(w->cl, "/dev/null/no"))) \
	X(evc_cluster_finished, evc_cluster_finished(w->cl) == 0) \
	X(evc_cluster_get, REF(evc_cluster_get(w->cl, &w->info))) \
	X(evc_cluster_worker_get, \
	  REF(evc_cluster_worker_get(w->cl, 0, &w->worker_info))) \
	X(evc_cluster_worker_text, \
	  evc_cluster_worker_text(w->cl, 0, NULL, 0) == 0) \
	X(evc_worker_main, REF(evc_worker_main(NULL, 0, NULL))) \
	X(evc_redis_engine, true) /* a table; in programs that link it */ \
	VALUES(X)

/* In a child of a function of [1, 2]. */
#define FORK_EXEC_CALLS(X) \
	X(evc_exec_unpack, evc_exec_unpack(w->x, "[II]", &w->number, \
					   &w->number) == 0) \
	X(evc_exec_unpack_named, evc_exec_unpack_named(w->x, "{}") == 0) \
	X(evc_exec_args, evc_value_count(evc_exec_args(w->x)) > 0) \
	X(evc_exec_return, evc_exec_return(w->x, "i", 1) == 0) \
	X(evc_exec_fail, \
	  evc_exec_fail(w->x, EVC_INTERNAL, "no") == EVC_INTERNAL) \
	X(evc_exec_should_stop, !evc_exec_should_stop(w->x)) \
	X(evc_exec_wait_for_stop, !evc_exec_wait_for_stop(w->x, INFINITY)) \
	X(evc_exec_coord, REF(evc_request_stop(evc_exec_coord(w->x), 0, "no"))) \
	X(evc_exec_get, evc_exec_get(w->x, &w->exec_info) == 0) \
	X(evc_exec_variable_add, \
	  REF(evc_exec_variable_add(w->x, "n", 1, &w->now))) \
	X(evc_exec_variable_set, \
	  REF(evc_exec_variable_set(w->x, "n", evc_exec_args(w->x)))) \
	X(evc_exec_variable_get, \
	  REF(evc_exec_variable_get(w->x, "n", &w->answer))) \
	X(evc_exec_variable_number, \
	  REF(evc_exec_variable_number(w->x, "n", &w->now))) \
	X(evc_exec_variable_get_loose, \
	  REF(evc_exec_variable_get_loose(w->x, "n", &w->answer))) \
	X(evc_exec_vector_set, REF(evc_exec_vector_set(w->x, "v", &ONE_ELEMENT))) \
	X(evc_exec_vector_add, REF(evc_exec_vector_add(w->x, "v", &ONE_ELEMENT))) \
	X(evc_exec_vector_get, REF(evc_exec_vector_get(w->x, "v", &ONE_ELEMENT))) \
	X(evc_exec_vector_get_loose, REF(evc_exec_vector_get_loose(w->x, "v", &ONE_ELEMENT))) \
	X(evc_exec_vector_size, REF(evc_exec_vector_size(w->x, "v", &w->at))) \
	X(evc_exec_variable_compare_set, \
	  REF(evc_exec_variable_compare_set(w->x, "n", NULL, \
					    evc_exec_args(w->x)))) \
	X(evc_exec_keep, \
	  REF(evc_exec_keep(w->x, &(evc_keep_ops){ 0 }, NULL))) \
	X(evc_local_state, evc_local_state(NULL) == NULL) \
	X(evc_local_value, evc_local_value(NULL) != NULL) \
	X(evc_exec_next, evc_exec_next(w->x, NULL, &w->answer) < 0)

FORK_CLUSTER_CALLS(FORK_FUNCTION)
FORK_EXEC_CALLS(FORK_FUNCTION)

static const struct fork_row fork_cluster_call[] MAYBE_UNUSED = {
	FORK_CLUSTER_CALLS(FORK_ROW)
};
static const struct fork_row fork_exec_call[] MAYBE_UNUSED = {
	FORK_EXEC_CALLS(FORK_ROW)
};

#endif
