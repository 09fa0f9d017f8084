/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A worker's runtime on its own: no engine, no cluster, variables of its own.
 * Tasks and definitions are made here and given to it directly.
 */
#ifndef TESTS_UNIT_WORKER_H
#define TESTS_UNIT_WORKER_H

#include "../support/api_util.h"

#include <evcoord/unstable/engine.h>

#include "cluster/variables/variable.h"
#include "cluster/worker/worker.h"

struct bench {
	evc_coord *c;
	struct worker *w;
	struct variables vars;
	uint64_t last_n;
	evc_value kept;     /* what worker_env.kept has of remote 7 */
	evc_engine_result r; /* of the last run */
	evc_value args, kwargs;
};

static MAYBE_UNUSED evc_status
bench_variable(void *arg, const evc_engine_update *u, double *ret_now,
	       evc_value *ret_value)
{
	struct bench *b = arg;

	return evc__variable_do(&b->vars, u, ret_now, ret_value);
}

static MAYBE_UNUSED bool
bench_kept(void *arg, uint64_t id, evc_value *ret_value)
{
	struct bench *b = arg;

	if (id != 7 || b->kept.size == 0)
		return false;
	*ret_value = b->kept;
	return true;
}

static inline void
bench_open_as(struct bench *b, const evc_function *table, unsigned n,
	      unsigned index)
{
	struct worker_env env = {
		.functions = table,
		.n_functions = n,
		.index = index,
		.generation = 3,
		.variable = bench_variable,
		.kept = bench_kept,
		.arg = b,
	};

	memset(b, 0, sizeof *b);
	b->c = new_coord(NULL);
	env.coord = b->c;
	ck_assert(evc__variables_init(&b->vars));
	OK(evc__worker_new(&env, &b->w));
}

#define BENCH(b, table) \
	bench_open_as((b), (table), sizeof(table) / sizeof((table)[0]), 0)

static inline void
bench_close(struct bench *b)
{
	evc__worker_free(b->w);
	evc__variables_destroy(&b->vars);
	evc_value_free(&b->args);
	evc_value_free(&b->kwargs);
	OK(evc_free(b->c));
}

/* A task with the next number; args and kwargs are b->args and ->kwargs. */
static inline evc_engine_task
bench_task(struct bench *b, const char *function)
{
	return (evc_engine_task){
		.n = ++b->last_n,
		.id = 100 + b->last_n,
		.function = function,
		.args = b->args,
		.kwargs = b->kwargs,
		.attempt = 1,
	};
}

#define ARGS(b, ...) \
	do { \
		evc_value_free(&(b)->args); \
		OK(evc_pack(&(b)->args, __VA_ARGS__)); \
	} while (0)

/* Run it as it is; the result stays until the next run. */
static inline evc_status
bench_run(struct bench *b, const evc_engine_task *task)
{
	evc__worker_done(b->w);
	evc__worker_run(b->w, task, &b->r);
	ck_assert_uint_eq(b->r.n, task->n);
	return b->r.code;
}

static inline evc_status
bench_call(struct bench *b, const char *function)
{
	evc_engine_task task = bench_task(b, function);

	return bench_run(b, &task);
}

static inline evc_status
bench_transact(struct bench *b, const char *function)
{
	evc_engine_task task = bench_task(b, function);

	task.flags = EVC_TRANSACTIONAL;
	return bench_run(b, &task);
}

/* The result is this number. */
#define GIVES(b, number) \
	do { \
		int gives_ = -1; \
		ck_assert_msg((b)->r.code == 0, "code %d: %s", (b)->r.code, \
			      (b)->r.text != NULL ? (b)->r.text : ""); \
		OK(evc_unpack(&(b)->r.value, "i", &gives_)); \
		ck_assert_int_eq(gives_, (number)); \
	} while (0)

/* The result is this error. */
#define FAILS(b, its_code, its_kind, part) \
	do { \
		ck_assert_int_eq((b)->r.code, (its_code)); \
		ck_assert_uint_eq((b)->r.kind, (its_kind)); \
		ck_assert_uint_eq((b)->r.value.size, 0); \
		ck_assert_ptr_nonnull((b)->r.text); \
		HAS((b)->r.text, (part)); \
	} while (0)

/* What stands for a remote or a per-worker value in arguments. */
static MAYBE_UNUSED evc_value
ref_value(unsigned char *bytes, bool per_worker, uint64_t id)
{
	evc__walk_put_ref(bytes, per_worker, 1, id);
	return (evc_value){ bytes, REF_BYTES };
}

#endif
