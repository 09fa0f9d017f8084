/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests of runners share: a runner that does what the test says and
 * notes how it is called, and the ways in which its operations may be driven -
 * by whoever joins, by the loop of the test's own thread, and by the loop of
 * another thread.
 */
#ifndef TESTS_SUPPORT_RUNNER_UTIL_H
#define TESTS_SUPPORT_RUNNER_UTIL_H

#include "api_util.h"

#include <ev.h>

struct machine {
	/* the test says */
	atomic_int runs;      /* what is_running answers */
	bool ends_at_stop;    /* its stop makes it end */
	evc_status result;    /* what its join returns */
	struct guest *inside; /* its join stays there until it is let go */
	atomic_int over;      /* from now on every call is wrong */
	atomic_int done;      /* evc_runner_done is about to be called */
	const char *word;     /* what it says of itself */
	/* what was seen */
	atomic_int asked, stops, joins, told;
	atomic_int asked_tid, stop_tid, join_tid;
	atomic_int wrong;
	evc_id id;
};

static MAYBE_UNUSED bool
machine_runs(void *arg)
{
	struct machine *m = arg;

	if (atomic_load(&m->over))
		atomic_fetch_add(&m->wrong, 1);
	atomic_store(&m->asked_tid, own_tid());
	atomic_fetch_add(&m->asked, 1);
	return atomic_load(&m->runs);
}

static MAYBE_UNUSED void
machine_stop(void *arg)
{
	struct machine *m = arg;

	if (atomic_load(&m->over))
		atomic_fetch_add(&m->wrong, 1);
	atomic_store(&m->stop_tid, own_tid());
	if (m->ends_at_stop)
		atomic_store(&m->runs, 0);
	atomic_fetch_add(&m->stops, 1);
}

static MAYBE_UNUSED evc_status
machine_join(void *arg)
{
	struct machine *m = arg;

	/* Never while it runs, never twice. */
	if (atomic_load(&m->over) ||
	    (atomic_load(&m->runs) && !atomic_load(&m->done)) ||
	    atomic_load(&m->joins) > 0)
		atomic_fetch_add(&m->wrong, 1);
	atomic_store(&m->join_tid, own_tid());
	atomic_fetch_add(&m->joins, 1);
	if (m->inside != NULL)
		stay(NULL, m->inside);
	return m->result;
}

static MAYBE_UNUSED void
machine_says(char *buf, size_t n, void *arg)
{
	struct machine *m = arg;

	if (atomic_load(&m->over))
		atomic_fetch_add(&m->wrong, 1);
	atomic_fetch_add(&m->told, 1);
	snprintf(buf, n, "%s", m->word != NULL ? m->word : "");
}

static const evc_runner_ops machine_ops MAYBE_UNUSED = {
	machine_runs, machine_stop, machine_join, machine_says
};

/* What cannot be stopped, joined or asked about. */
static const evc_runner_ops bare_ops MAYBE_UNUSED = { .is_running =
							      machine_runs };

static MAYBE_UNUSED void
machine_add(evc_coord *c, const char *name, struct machine *m, evc_reactor *r,
	    unsigned flags)
{
	evc_member_opts opts = { .reactor = r, .flags = flags };

	OK(evc_runner_add(c, name, &machine_ops, m, &opts, &m->id));
	ck_assert_uint_ne(m->id, 0);
}

/* Joined once, told at most once, and nothing that must not be. */
static MAYBE_UNUSED void
machine_was_joined(struct machine *m, int stops)
{
	ck_assert_int_eq(atomic_load(&m->joins), 1);
	ck_assert_int_eq(atomic_load(&m->stops), stops);
	ck_assert_int_eq(atomic_load(&m->wrong), 0);
	atomic_store(&m->over, 1);
}

/* ---- who drives a runner ---- */

enum drive {
	BY_JOINER,     /* no loop: whoever joins */
	BY_HOME,       /* the home loop, which evc_join runs meanwhile */
	BY_FAR_LOOP,   /* the loop of another thread */
	BY_NAMED_HOME, /* the home loop, which opts.reactor names */
	N_DRIVES
};

struct setting {
	enum drive drive;
	evc_coord *c;
	struct ev_loop *loop; /* BY_HOME, BY_NAMED_HOME */
	evc_reactor *far;     /* BY_FAR_LOOP; what to name as opts.reactor */
	atomic_int far_tid;
	int threads, fds;
};

static MAYBE_UNUSED evc_status
note_far_tid(evc_reactor *r, void *arg)
{
	(void)r;
	atomic_store((atomic_int *)arg, own_tid());
	return 0;
}

static MAYBE_UNUSED void
far_start(struct setting *s)
{
	/* In the background: it is no part of what the test counts on. */
	evc_member_opts opts = { .flags = EVC_BACKGROUND | EVC_AFTER_STOP };

	s->far = NULL;
	OK(evc_reactor_start(s->c, "far-loop", note_far_tid, &s->far_tid, &opts,
			     &s->far));
	ck_assert_ptr_nonnull(s->far);
}

static MAYBE_UNUSED void
begin_setting(struct setting *s, enum drive drive, const evc_config *cfg)
{
	memset(s, 0, sizeof(*s));
	s->threads = t_count_threads();
	s->fds = t_count_fds();
	s->drive = drive;
	if (drive == BY_HOME || drive == BY_NAMED_HOME)
		s->loop = ev_loop_new(EVFLAG_AUTO);
	s->c = new_coord_with(s->loop, cfg);
	if (drive == BY_FAR_LOOP)
		far_start(s);
	if (drive == BY_NAMED_HOME)
		s->far = evc_home(s->c);
}

/* How many members of its own the setting brings into each verdict. */
static MAYBE_UNUSED unsigned
own_members(const struct setting *s)
{
	return s->drive == BY_FAR_LOOP;
}

/* Give all back, and find as many threads and descriptors as before. */
static MAYBE_UNUSED void
end_setting(struct setting *s)
{
	if (s->drive == BY_FAR_LOOP && !evc_should_stop(s->c)) {
		OK(evc_request_stop(s->c, 0, NULL));
		OK(evc_join(s->c, NULL, NULL));
	}
	OK(evc_free(s->c));
	if (s->loop != NULL)
		ev_loop_destroy(s->loop);
	ck_assert_int_eq(t_settle_threads(s->threads), s->threads);
	ck_assert_int_eq(t_settle_fds(s->fds), s->fds);
}

/* Let the loops of this thread turn until something is true. */
#define TURN_UNTIL(s, cond) \
	do { \
		double turn_until_ = t_now() + T_LIMIT; \
		while (!(cond)) { \
			ck_assert_msg(t_now() < turn_until_, \
				      "never came true: %s", #cond); \
			if ((s)->loop != NULL) \
				ev_run((s)->loop, EVRUN_NOWAIT); \
			t_sleep(0.001); \
		} \
	} while (0)

#endif
