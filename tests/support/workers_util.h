/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests of worker groups share: a diary of what was called in which
 * order and on which thread, groups that write it, workers that beat, obey or
 * stay, a registry whose log lines are kept.
 */
#ifndef TESTS_SUPPORT_WORKERS_UTIL_H
#define TESTS_SUPPORT_WORKERS_UTIL_H

#include "api_util.h"

/* ---- what was said ---- */

#define MAX_SAID 1024

static struct {
	pthread_mutex_t lock;
	int n, level[MAX_SAID];
	char line[MAX_SAID][320];
} said MAYBE_UNUSED = { .lock = PTHREAD_MUTEX_INITIALIZER };

static MAYBE_UNUSED void
keep_said(int level, const char *line, const evc_reason *r, void *arg)
{
	(void)r;
	(void)arg;
	pthread_mutex_lock(&said.lock);
	if (said.n < MAX_SAID) {
		said.level[said.n] = level;
		snprintf(said.line[said.n++], sizeof(said.line[0]), "%s", line);
	}
	pthread_mutex_unlock(&said.lock);
}

static MAYBE_UNUSED void
forget_said(void)
{
	pthread_mutex_lock(&said.lock);
	said.n = 0;
	pthread_mutex_unlock(&said.lock);
}

/* How many lines hold all of up to three parts; NULL: no more. */
static MAYBE_UNUSED int
n_said(const char *a, const char *b, const char *c)
{
	int i, n = 0;

	pthread_mutex_lock(&said.lock);
	for (i = 0; i < said.n; i++)
		n += strstr(said.line[i], a) != NULL &&
		     (b == NULL || strstr(said.line[i], b) != NULL) &&
		     (c == NULL || strstr(said.line[i], c) != NULL);
	pthread_mutex_unlock(&said.lock);
	return n;
}

/* The level of the first line that holds both; 0: there is none. */
static MAYBE_UNUSED int
level_said(const char *a, const char *b)
{
	int i, level = 0;

	pthread_mutex_lock(&said.lock);
	for (i = 0; i < said.n && level == 0; i++)
		if (strstr(said.line[i], a) != NULL &&
		    strstr(said.line[i], b) != NULL)
			level = said.level[i];
	pthread_mutex_unlock(&said.lock);
	return level;
}

/* All lines, for a test that misses one. */
static MAYBE_UNUSED const char *
all_said(void)
{
	static char text[MAX_SAID * 64];
	size_t at = 0;
	int i;

	pthread_mutex_lock(&said.lock);
	text[0] = '\0';
	for (i = 0; i < said.n && at + 512 < sizeof(text); i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s\n",
				       said.line[i]);
	pthread_mutex_unlock(&said.lock);
	return text;
}

/* A line comes that holds all of these. */
#define SAYS(a, b, c) \
	do { \
		double says_ = t_now() + T_LIMIT; \
		while (n_said((a), (b), (c)) == 0) { \
			ck_assert_msg(t_now() < says_, \
				      "no line with (%s, %s, %s) in:\n%s", #a, \
				      #b, #c, all_said()); \
			t_sleep(0.001); \
		} \
	} while (0)

/* ---- the diary ---- */

struct diary {
	pthread_mutex_t lock;
	int n, tid[256];
	char what[256][40];
};

#define DIARY_INIT { .lock = PTHREAD_MUTEX_INITIALIZER }

static MAYBE_UNUSED void
note(struct diary *d, const char *what, const char *who)
{
	if (d == NULL)
		return;
	pthread_mutex_lock(&d->lock);
	if (d->n < 256) {
		d->tid[d->n] = own_tid();
		snprintf(d->what[d->n++], sizeof(d->what[0]), "%s:%s", what,
			 who);
	}
	pthread_mutex_unlock(&d->lock);
}

/* "init:a start:a ..." */
static MAYBE_UNUSED const char *
diary_text(struct diary *d)
{
	static char text[256 * 41];
	size_t at = 0;
	int i;

	pthread_mutex_lock(&d->lock);
	text[0] = '\0';
	for (i = 0; i < d->n; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s",
				       i > 0 ? " " : "", d->what[i]);
	pthread_mutex_unlock(&d->lock);
	return text;
}

static MAYBE_UNUSED void
diary_clear(struct diary *d)
{
	pthread_mutex_lock(&d->lock);
	d->n = 0;
	pthread_mutex_unlock(&d->lock);
}

/* On which thread it was; 0: it was not. */
static MAYBE_UNUSED int
tid_of(struct diary *d, const char *entry)
{
	int i, tid = 0;

	pthread_mutex_lock(&d->lock);
	for (i = 0; i < d->n; i++)
		if (strcmp(d->what[i], entry) == 0)
			tid = d->tid[i];
	pthread_mutex_unlock(&d->lock);
	return tid;
}

#define DIARY(d, expected) ck_assert_str_eq(diary_text(d), (expected))

/* ---- a group that keeps it ---- */

#define N_IDS 256

struct crew {
	evc_worker_fn *run;               /* NULL: crew_beat */
	struct diary *diary;
	evc_status init_says, start_says;
	evc_status end_says;              /* of crew_end */
	void *more;
	atomic_int open;                  /* lets go who stays */
	const char *name;
	evc_group *group;
	atomic_int n_init, n_start, n_shutdown, n_stop, n_cleanup;
	atomic_int runs, in, wrong;
	atomic_int tid[N_IDS], by_id[N_IDS];
};

static MAYBE_UNUSED evc_status
crew_init(evc_group *group, evc_registry *reg, void *arg)
{
	struct crew *k = arg;

	if (evc_group_registry(group) != reg || k->group != group)
		atomic_fetch_add(&k->wrong, 1);
	atomic_fetch_add(&k->n_init, 1);
	note(k->diary, "init", k->name);
	return k->init_says;
}

static MAYBE_UNUSED void
crew_shutdown(evc_group *group, void *arg)
{
	struct crew *k = arg;

	/* Inactive and told before its functions run. */
	if (evc_group_is_active(group) ||
	    !evc_should_stop(evc_group_scope(group)))
		atomic_fetch_add(&k->wrong, 1);
	atomic_fetch_add(&k->n_shutdown, 1);
	note(k->diary, "shutdown", k->name);
}

static MAYBE_UNUSED evc_status
crew_start(void *arg)
{
	struct crew *k = arg;

	atomic_fetch_add(&k->n_start, 1);
	note(k->diary, "start", k->name);
	return k->start_says;
}

static MAYBE_UNUSED void
crew_stop(void *arg)
{
	struct crew *k = arg;

	atomic_fetch_add(&k->n_stop, 1);
	note(k->diary, "stop", k->name);
}

static MAYBE_UNUSED void
crew_cleanup(void *arg)
{
	struct crew *k = arg;

	if (atomic_load(&k->in) != 0)
		atomic_fetch_add(&k->wrong, 1);
	atomic_fetch_add(&k->n_cleanup, 1);
	note(k->diary, "cleanup", k->name);
}

/* ---- what workers do ---- */

/* A run begins. */
static MAYBE_UNUSED void
crew_enter(evc_group *group, unsigned id, struct crew *k)
{
	if (group != k->group)
		atomic_fetch_add(&k->wrong, 1);
	if (id < N_IDS) {
		atomic_store(&k->tid[id], own_tid());
		atomic_fetch_add(&k->by_id[id], 1);
	}
	atomic_fetch_add(&k->runs, 1);
	atomic_fetch_add(&k->in, 1);
}

static MAYBE_UNUSED evc_status
crew_leave(struct crew *k, evc_status result)
{
	atomic_fetch_sub(&k->in, 1);
	return result;
}

/* A millisecond of work, again and again. */
static MAYBE_UNUSED evc_status
crew_beat(evc_group *group, unsigned id, void *arg)
{
	crew_enter(group, id, arg);
	evc_sleep(evc_group_scope(group), 0.001);
	return crew_leave(arg, 0);
}

/* Waits for the stop, and says that it has heard it. */
static MAYBE_UNUSED evc_status
crew_obey(evc_group *group, unsigned id, void *arg)
{
	crew_enter(group, id, arg);
	evc_wait_for_stop(evc_group_scope(group), INFINITY);
	return crew_leave(arg, EVC_CANCELLED);
}

/* Stays until it is let go, stop or no stop. */
static MAYBE_UNUSED evc_status
crew_stay(evc_group *group, unsigned id, void *arg)
{
	struct crew *k = arg;

	crew_enter(group, id, k);
	while (!atomic_load(&k->open))
		t_sleep(0.001);
	return crew_leave(k, evc_should_stop(evc_group_scope(group)) ?
				     EVC_CANCELLED :
				     0);
}

/* Ends with what the test says, in its first run. */
static MAYBE_UNUSED evc_status
crew_end(evc_group *group, unsigned id, void *arg)
{
	struct crew *k = arg;

	crew_enter(group, id, k);
	return crew_leave(k, k->end_says);
}

/* The first worker of the group fails when open is set; others beat. */
static MAYBE_UNUSED evc_status
crew_fail(evc_group *group, unsigned id, void *arg)
{
	struct crew *k = arg;
	unsigned first = 0;

	crew_enter(group, id, k);
	evc_group_ids(group, &first, 1);
	if (id == first && atomic_load(&k->open))
		return crew_leave(k, evc_fail(evc_group_scope(group),
					      EVC_DATA_LOSS, EIO, "shard %u",
					      7u));
	evc_sleep(evc_group_scope(group), 0.001);
	return crew_leave(k, 0);
}

/* ---- registries and groups ---- */

/* 0: generous, for the library's five seconds are few on a loaded machine. */
static MAYBE_UNUSED evc_registry *
new_registry(double grace)
{
	evc_registry_opts o = { .grace = grace > 0 ? grace : T_LIMIT,
				.config.log = keep_said };
	evc_registry *reg = NULL;

	OK(evc_registry_new(&o, &reg));
	ck_assert_ptr_nonnull(reg);
	return reg;
}

static MAYBE_UNUSED void
end_registry(evc_registry *reg)
{
	evc_join_opts o = { .grace = T_LIMIT };

	/* A worker's error, which a test has looked at, is an answer, too. */
	ck_assert_int_ge(evc_registry_stop(reg, &o), 0);
	ck_assert_msg(evc_registry_free(reg) == 0, "evc_registry_free: %s",
		      evc_last_error());
}

/* Fills in the functions of more, which may be NULL; more's own are kept. */
static MAYBE_UNUSED evc_group *
crew_add(evc_registry *reg, const char *name, struct crew *k,
	 unsigned n_threads, const evc_group_opts *more)
{
	evc_group_opts o = { 0 };
	evc_registry *got = NULL;

	if (more != NULL)
		o = *more;
	o.n_threads = n_threads;
	if (o.init == NULL)
		o.init = crew_init;
	if (o.shutdown == NULL)
		o.shutdown = crew_shutdown;
	if (o.state.start == NULL)
		o.state.start = crew_start;
	if (o.state.stop == NULL)
		o.state.stop = crew_stop;
	if (o.state.cleanup == NULL)
		o.state.cleanup = crew_cleanup;
	if (o.state.arg == NULL)
		o.state.arg = k;
	k->name = name;
	ck_assert_msg(evc_group_init(reg, name,
				       k->run != NULL ? k->run : crew_beat, k,
				       &o, &k->group, &got) == 0,
		      "evc_group_init: %s", evc_last_error());
	ck_assert_ptr_nonnull(k->group);
	ck_assert_ptr_eq(got, reg != NULL ? reg : evc_registry_default());
	return k->group;
}

/* That often was each function called, and nothing out of place was seen. */
#define CALLED(k, init, start, shutdown, stop, cleanup) \
	do { \
		ck_assert_int_eq(atomic_load(&(k)->n_init), (init)); \
		ck_assert_int_eq(atomic_load(&(k)->n_start), (start)); \
		ck_assert_int_eq(atomic_load(&(k)->n_shutdown), (shutdown)); \
		ck_assert_int_eq(atomic_load(&(k)->n_stop), (stop)); \
		ck_assert_int_eq(atomic_load(&(k)->n_cleanup), (cleanup)); \
		ck_assert_int_eq(atomic_load(&(k)->wrong), 0); \
	} while (0)

static MAYBE_UNUSED evc_group_info
info_of(const evc_group *group)
{
	evc_group_info info;

	memset(&info, 0xff, sizeof(info));
	OK(evc_group_get(group, &info));
	return info;
}

static MAYBE_UNUSED evc_worker_info
worker_of(const evc_group *group, unsigned index)
{
	evc_worker_info info;

	memset(&info, 0xff, sizeof(info));
	OK(evc_group_worker_get(group, index, &info));
	return info;
}

static MAYBE_UNUSED evc_worker_error
error_of(const evc_group *group, unsigned index)
{
	evc_worker_error e;

	memset(&e, 0xff, sizeof(e));
	OK(evc_group_error_get(group, index, &e));
	return e;
}

#define STATE(group, expected) \
	ck_assert_uint_eq(info_of(group).state, (expected))

#define STATE_COMES(group, expected) UNTIL(info_of(group).state == (expected))

#define LATE(call) ck_assert_int_eq((call), EVC_DEADLINE_EXCEEDED)

/* The ids are first, first + 1, ... */
static MAYBE_UNUSED void
ids_are(const evc_group *group, unsigned first, size_t n)
{
	unsigned ids[64], i;

	ck_assert_uint_eq(evc_group_ids(group, NULL, 0), n);
	ck_assert_uint_eq(evc_group_ids(group, ids, 64), n);
	for (i = 0; i < n; i++)
		ck_assert_uint_eq(ids[i], first + i);
}

static MAYBE_UNUSED evc_status
no_log(evc_group *group, const evc_metric *m, unsigned n, void *arg)
{
	(void)group;
	(void)m;
	(void)n;
	(void)arg;
	return 0;
}

/* A shutdown that stays until the crew is let go. */
static MAYBE_UNUSED void
shut_slowly(evc_group *group, void *arg)
{
	struct crew *k = arg;

	crew_shutdown(group, arg);
	while (!atomic_load(&k->open))
		t_sleep(0.001);
}

#endif
