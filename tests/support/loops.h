/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The loop of a test, in two forms.  A test says what it wants of its loop in
 * the names of libev: ev_loop_new, ev_run, ev_break, timers.  With
 * EVC_TEST_LOOP=epoll in the environment these names stand for a loop of bare
 * epoll (host.h), and evc_new and evc_reactor_attach make hosted reactors on
 * it; so the same test shows that a hosted reactor does what one on libev does.
 *
 * evc_run, evc_reactor_run and evc_join run the loop on libev.  A hosted
 * reactor refuses them on its thread, so on epoll they are what its program
 * does in their place: run the host until the stop, and until evc_join_start
 * has its answer.
 *
 * Watchers of descriptors, children and signals are libev's alone.  A test that
 * is about them, or about ev_loop_destroy, stands in tests/libev-only with the
 * reason.
 */
#ifndef TESTS_SUPPORT_LOOPS_H
#define TESTS_SUPPORT_LOOPS_H

#include <ev.h>
#include <evcoord.h>

bool t_on_epoll(void);

struct ev_loop *t_loop_new(unsigned flags);
void t_loop_destroy(struct ev_loop *loop);
int t_loop_run(struct ev_loop *loop, int flags);
void t_loop_break(struct ev_loop *loop, int how);
unsigned t_loop_depth(struct ev_loop *loop);
void t_timer_start(struct ev_loop *loop, ev_timer *t);
void t_timer_stop(struct ev_loop *loop, ev_timer *t);
void t_timer_again(struct ev_loop *loop, ev_timer *t);
/* An ev_idle, ev_prepare or ev_check; type is EV_IDLE, ... */
void t_watch_start(struct ev_loop *loop, int type, void *w);
void t_watch_stop(struct ev_loop *loop, int type, void *w);
unsigned t_loop_iteration(struct ev_loop *loop);
double t_loop_now(struct ev_loop *loop);
void t_loop_now_update(struct ev_loop *loop);
void t_loop_ref(struct ev_loop *loop, int n);

evc_status t_evc_new(struct ev_loop *home, const evc_config *cfg,
		     evc_coord **ret_c);
evc_status t_evc_free(evc_coord *c);
int t_evc_finish(evc_coord *c, evc_status result);
evc_status t_evc_abandon(evc_coord *c);
evc_status t_evc_run(evc_coord *c, const evc_join_opts *o, evc_verdict *v);
evc_status t_evc_join(evc_coord *c, const evc_join_opts *o, evc_verdict *v);
evc_status t_evc_join_start(evc_coord *c, evc_join_fn *fn, void *arg,
			    const evc_join_opts *o);
evc_status t_reactor_attach(evc_coord *c, const char *name,
			    struct ev_loop *loop, evc_reactor **ret);
evc_status t_reactor_run(evc_reactor *r);
evc_status t_reactor_detach(evc_reactor *r);
struct ev_loop *t_reactor_loop(const evc_reactor *r);

#ifndef TESTS_SUPPORT_LOOPS_C
#define ev_loop_new(flags) t_loop_new(flags)
#define ev_loop_destroy(loop) t_loop_destroy(loop)
#define ev_run(loop, flags) t_loop_run((loop), (flags))
#define ev_break(loop, how) t_loop_break((loop), (how))
#define ev_depth(loop) t_loop_depth(loop)
#define ev_timer_start(loop, t) t_timer_start((loop), (t))
#define ev_timer_stop(loop, t) t_timer_stop((loop), (t))
#define ev_timer_again(loop, t) t_timer_again((loop), (t))
#define ev_idle_start(loop, w) t_watch_start((loop), EV_IDLE, (w))
#define ev_idle_stop(loop, w) t_watch_stop((loop), EV_IDLE, (w))
#define ev_prepare_start(loop, w) t_watch_start((loop), EV_PREPARE, (w))
#define ev_prepare_stop(loop, w) t_watch_stop((loop), EV_PREPARE, (w))
#define ev_check_start(loop, w) t_watch_start((loop), EV_CHECK, (w))
#define ev_check_stop(loop, w) t_watch_stop((loop), EV_CHECK, (w))
#define ev_iteration(loop) t_loop_iteration(loop)
#define ev_now(loop) t_loop_now(loop)
#define ev_now_update(loop) t_loop_now_update(loop)
#define ev_ref(loop) t_loop_ref((loop), 1)
#define ev_unref(loop) t_loop_ref((loop), -1)
#define evc_new(home, cfg, ret) t_evc_new((home), (cfg), (ret))
#define evc_free(c) t_evc_free(c)
#define evc_finish(c, result) t_evc_finish((c), (result))
#define evc_abandon(c) t_evc_abandon(c)
#define evc_run(c, o, v) t_evc_run((c), (o), (v))
#define evc_join(c, o, v) t_evc_join((c), (o), (v))
#define evc_join_start(c, fn, arg, o) t_evc_join_start((c), (fn), (arg), (o))
#define evc_reactor_attach(c, name, loop, ret) \
	t_reactor_attach((c), (name), (loop), (ret))
#define evc_reactor_run(r) t_reactor_run(r)
#define evc_reactor_detach(r) t_reactor_detach(r)
#define evc_reactor_loop(r) t_reactor_loop(r)
#endif

#endif
