/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The library's calls as the rows make them: short, and with a hang or a refusal
 * as a failure that says what it was.
 */
#ifndef TESTS_CONFORMANCE_CALLS_H
#define TESTS_CONFORMANCE_CALLS_H

#include "conformance.h"

#define IS(call, st) ck_assert_int_eq((call), (st))

#define SCHEDULE_WITH(opts, function, ...) \
	__extension__({ \
		evc_remote *r_ = NULL; \
		ck_assert_msg(evc_schedule_pack(on.cl, (function), (opts), \
						&r_, __VA_ARGS__) == 0, \
			      "evc_schedule(%s): %s", (function), \
			      evc_last_error()); \
		ck_assert_ptr_nonnull(r_); \
		r_; \
	})
#define SCHEDULE(function, ...) SCHEDULE_WITH(NULL, function, __VA_ARGS__)
/* Nobody wants to know what becomes of it. */
#define DO(function, ...) \
	OK(evc_schedule_pack(on.cl, (function), NULL, NULL, __VA_ARGS__))

#define PACKED(...) \
	__extension__({ \
		evc_value v_ = { NULL, 0 }; \
		OK(evc_pack(&v_, __VA_ARGS__)); \
		v_; \
	})

static MAYBE_UNUSED evc_status
join(void)
{
	evc_status st = evc_cluster_join(on.cl, T_LIMIT);

	ck_assert_msg(st >= 0, "evc_cluster_join: %d, %s", st,
		      evc_last_error());
	return st;
}

static MAYBE_UNUSED bool
all_done(void)
{
	bool done = false;

	OK(evc_cluster_done(on.cl, &done));
	return done;
}

/* Of one that is not dropped yet. */
static MAYBE_UNUSED evc_remote_info
info_of(const evc_remote *r)
{
	evc_remote_info i;

	OK(evc_remote_get(r, &i));
	return i;
}

/* Its error, or 0; a hang is none. */
static MAYBE_UNUSED evc_status
code_of(evc_remote *r)
{
	evc_status st = evc_remote_fetch(r, T_LIMIT, NULL);

	ck_assert_msg(st >= 0, "evc_remote_fetch: %d, %s", st,
		      evc_last_error());
	ck_assert_uint_eq(info_of(r).state, EVC_REMOTE_DONE);
	IS(info_of(r).code, st);
	return st;
}

/* Its result; the remote stays. */
static MAYBE_UNUSED int64_t
number_of(evc_remote *r)
{
	evc_value v = { NULL, 0 };
	evc_status st = evc_remote_fetch(r, T_LIMIT, &v);
	int64_t n = -1;

	ck_assert_msg(st == 0, "evc_remote_fetch: %d, %s", st,
		      st < 0 ? evc_last_error() : info_of(r).text);
	OK(evc_unpack(&v, "I", &n));
	return n;
}

/* And it goes. */
static MAYBE_UNUSED int64_t
take_number(evc_remote *r)
{
	int64_t n = number_of(r);

	evc_remote_free(r);
	return n;
}

struct asked {
	const char *name;
	evc_value v;
};

static inline evc_status
get_aside(void *arg)
{
	struct asked *a = arg;

	return evc_variable_get(on.cl, a->name, &a->v);
}

/* A variable that is a number; one that is not there is 0. */
static MAYBE_UNUSED double
variable(const char *name)
{
	struct asked a = { name, { NULL, 0 } };
	evc_status st = aside(get_aside, &a);
	double d = 0;

	if (st == 0)
		OK(evc_unpack(&a.v, "d", &d));
	else
		ck_assert_msg(st == -EVC_NOT_FOUND, "variable %s: %d, %s",
			      name, st, evc_last_error());
	evc_value_free(&a.v);
	return d;
}

static MAYBE_UNUSED evc_cluster_info
numbers(void)
{
	evc_cluster_info i;

	OK(evc_cluster_get(on.cl, &i));
	return i;
}

static MAYBE_UNUSED evc_cluster_worker_info
worker(unsigned index)
{
	evc_cluster_worker_info w;

	OK(evc_cluster_worker_get(on.cl, index, &w));
	ck_assert_uint_eq(w.index, index);
	return w;
}

/* ---- gates: functions that are held until the test lets them go ---- */

/* As many as n are in hold(NAME). */
static MAYBE_UNUSED bool
are_in(const char *name, int n)
{
	char var[64];

	snprintf(var, sizeof(var), "%s.in", name);
	return variable(var) >= n;
}

static inline evc_status
add_aside(void *arg)
{
	return evc_variable_add(on.cl, arg, 1, NULL);
}

static MAYBE_UNUSED void
let_go(const char *name)
{
	char var[64];

	snprintf(var, sizeof(var), "%s.open", name);
	OK(aside(add_aside, var));
}

/* ---- workers that die ---- */

/* The process that is named there, maybe with its machine; 0: none. */
static MAYBE_UNUSED pid_t
pid_where(const evc_cluster_worker_info *w)
{
	const char *p = strstr(w->where, "pid ");
	int pid = 0;

	return p != NULL && sscanf(p, "pid %d", &pid) == 1 ? (pid_t)pid : 0;
}

/* The process of a worker; 0: it has none at the moment. */
static MAYBE_UNUSED pid_t
pid_of(unsigned index)
{
	evc_cluster_worker_info w = worker(index);

	return w.state == EVC_WORKER_UP ? pid_where(&w) : 0;
}

static MAYBE_UNUSED pid_t
pid_when_up(unsigned index)
{
	pid_t pid = 0;

	UNTIL((pid = pid_of(index)) != 0);
	return pid;
}

/* Proven not to run: there is no such process any more, or nobody has reaped it
   yet. */
static MAYBE_UNUSED bool
is_dead(pid_t pid)
{
	char path[32], text[512] = "";
	const char *state = NULL;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "r");
	if (f == NULL)
		return true;
	if (fgets(text, sizeof(text), f) != NULL)
		state = strrchr(text, ')');
	fclose(f);
	return state == NULL || state[2] == 'Z' || state[2] == 'X';
}

/* Of the worker that has it. */
static MAYBE_UNUSED pid_t
pid_with(const evc_remote *r)
{
	unsigned i;

	for (i = 0; i < on.n_workers; i++)
		if (strcmp(worker(i).name, info_of(r).worker) == 0)
			return pid_when_up(i);
	ck_abort_msg("it is on no worker");
	return 0;
}

/* A signal is named, by a number or a name. */
#define SAYS_KILLED(text) \
	do { \
		const char *killed_ = (text); \
		ck_assert_msg(strstr(killed_, "KILL") != NULL || \
				      strstr(killed_, "signal 9") != NULL, \
			      "no signal in \"%s\"", killed_); \
	} while (0)

/* kill -9, and it is another process when this returns. */
static MAYBE_UNUSED void
replace_worker(unsigned index)
{
	pid_t pid = pid_when_up(index), now = pid;

	OK(kill(pid, SIGKILL));
	UNTIL((now = pid_of(index)) != 0 && now != pid);
}

#endif
