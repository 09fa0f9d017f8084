/* SPDX-License-Identifier: BSD-2-Clause */
#define TESTS_SUPPORT_LOOPS_C
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "loops.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>

#include "host.h"

/* The longest wait of one iteration, in milliseconds: a test may wait for a
   thread that wakes nobody. */
#define MOST_MS 100

/* A hosted reactor on a loop. */
struct guest {
	struct guest *next;
	struct loop *on;
	evc_coord *c;
	evc_reactor *r;
	int fd;
};

/* A loop of bare epoll; its address goes for that of a libev loop. */
struct loop {
	struct loop *next;
	struct host host;
	struct guest *guests;
	ev_timer **timer;
	int n_timers, room;
	int tid;
	int refs; /* of the test, and of joins: they keep a run going */
	unsigned depth, iterations;
	bool broken;
	evc_status lost; /* a turn was refused: a fork child */
	struct {
		int type;
		struct ev_watcher *w; /* NULL: none */
	} watch[8];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct loop *loops; /* lock */

bool
t_on_epoll(void)
{
	const char *form = getenv("EVC_TEST_LOOP");

	return form != NULL && strcmp(form, "epoll") == 0;
}

static int
own_tid(void)
{
	return (int)syscall(SYS_gettid);
}

/* The loop of bare epoll with this address, or NULL. */
static struct loop *
loop_of(const struct ev_loop *loop)
{
	struct loop *l;

	pthread_mutex_lock(&lock);
	for (l = loops; l != NULL && (const void *)l != (const void *)loop;)
		l = l->next;
	pthread_mutex_unlock(&lock);
	return l;
}

/* ---- loops ---- */

struct ev_loop *
t_loop_new(unsigned flags)
{
	struct loop *l;

	if (!t_on_epoll())
		return ev_loop_new(flags);
	l = calloc(1, sizeof(*l));
	ck_assert_ptr_nonnull(l);
	host_init(&l->host);
	l->tid = own_tid();
	pthread_mutex_lock(&lock);
	l->next = loops;
	loops = l;
	pthread_mutex_unlock(&lock);
	return (struct ev_loop *)(void *)l;
}

static void
add_guest(struct guest *g)
{
	pthread_mutex_lock(&lock);
	g->on->tid = own_tid();
	g->next = g->on->guests;
	g->on->guests = g;
	pthread_mutex_unlock(&lock);
}

static void
drop_guest(struct guest *g)
{
	struct guest **at = &g->on->guests;

	pthread_mutex_lock(&lock);
	while (*at != g)
		at = &(*at)->next;
	*at = g->next;
	pthread_mutex_unlock(&lock);
	free(g);
}

void
t_loop_destroy(struct ev_loop *loop)
{
	struct loop *l = loop_of(loop), **at = &loops;

	if (l == NULL) {
		ev_loop_destroy(loop);
		return;
	}
	while (l->guests != NULL) {
		host_del(&l->host, l->guests->fd);
		(void)evc_reactor_detach(l->guests->r);
		drop_guest(l->guests);
	}
	pthread_mutex_lock(&lock);
	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
	pthread_mutex_unlock(&lock);
	host_end(&l->host);
	free(l->timer);
	free(l);
}

unsigned
t_loop_depth(struct ev_loop *loop)
{
	struct loop *l = loop_of(loop);

	return l != NULL ? l->depth : ev_depth(loop);
}

void
t_loop_break(struct ev_loop *loop, int how)
{
	struct loop *l = loop_of(loop);

	if (l != NULL)
		l->broken = true;
	else
		ev_break(loop, how);
}

double
t_loop_now(struct ev_loop *loop)
{
	return loop_of(loop) != NULL ? ev_time() : ev_now(loop);
}

void
t_loop_now_update(struct ev_loop *loop)
{
	if (loop_of(loop) == NULL)
		ev_now_update(loop);
}

void
t_loop_ref(struct ev_loop *loop, int n)
{
	struct loop *l = loop_of(loop);

	if (l != NULL)
		l->refs += n;
	else if (n > 0)
		ev_ref(loop);
	else
		ev_unref(loop);
}

/* ---- timers ---- */

void
t_timer_stop(struct ev_loop *loop, ev_timer *t)
{
	struct loop *l = loop_of(loop);
	int i;

	if (l == NULL) {
		ev_timer_stop(loop, t);
		return;
	}
	for (i = 0; i < l->n_timers; i++)
		if (l->timer[i] == t)
			l->timer[i--] = l->timer[--l->n_timers];
	t->active = 0;
}

void
t_timer_start(struct ev_loop *loop, ev_timer *t)
{
	struct loop *l = loop_of(loop);

	if (l == NULL) {
		ev_timer_start(loop, t);
		return;
	}
	if (t->active)
		return;
	if (l->n_timers == l->room) {
		l->room = 2 * l->room + 8;
		l->timer = realloc(l->timer,
				   (size_t)l->room * sizeof(*l->timer));
		ck_assert_ptr_nonnull(l->timer);
	}
	t->active = 1;
	t->at += t_now();
	l->timer[l->n_timers++] = t;
}

void
t_timer_again(struct ev_loop *loop, ev_timer *t)
{
	if (loop_of(loop) == NULL) {
		ev_timer_again(loop, t);
		return;
	}
	t_timer_stop(loop, t);
	t->at = t->repeat;
	if (t->repeat > 0)
		t_timer_start(loop, t);
}

/* The timer that is due first, or NULL. */
static ev_timer *
first_timer(const struct loop *l)
{
	ev_timer *first = NULL;
	int i;

	for (i = 0; i < l->n_timers; i++)
		if (first == NULL || l->timer[i]->at < first->at)
			first = l->timer[i];
	return first;
}

static void
run_timers(struct loop *l)
{
	struct ev_loop *loop = (struct ev_loop *)(void *)l;
	double now = t_now();
	ev_timer *t;

	while ((t = first_timer(l)) != NULL && t->at <= now) {
		if (t->repeat > 0)
			t->at = (t->at + t->repeat > now ? t->at : now) +
				t->repeat;
		else
			t_timer_stop(loop, t);
		t->cb(loop, t, EV_TIMER);
	}
}

/* ---- other watchers ---- */

void
t_watch_start(struct ev_loop *loop, int type, void *w)
{
	struct loop *l = loop_of(loop);
	int i = 0;

	if (l != NULL) {
		while (l->watch[i].w != NULL)
			ck_assert_int_lt(++i, 8);
		l->watch[i].type = type;
		l->watch[i].w = w;
		((struct ev_watcher *)w)->active = 1;
	} else if (type == EV_IDLE)
		ev_idle_start(loop, w);
	else if (type == EV_PREPARE)
		ev_prepare_start(loop, w);
	else
		ev_check_start(loop, w);
}

void
t_watch_stop(struct ev_loop *loop, int type, void *w)
{
	struct loop *l = loop_of(loop);
	int i;

	if (l != NULL) {
		for (i = 0; i < 8; i++)
			if (l->watch[i].w == w)
				l->watch[i].w = NULL;
		((struct ev_watcher *)w)->active = 0;
	} else if (type == EV_IDLE)
		ev_idle_stop(loop, w);
	else if (type == EV_PREPARE)
		ev_prepare_stop(loop, w);
	else
		ev_check_stop(loop, w);
}

static void
call_watches(struct loop *l, int type)
{
	struct ev_loop *loop = (struct ev_loop *)(void *)l;
	int i;

	for (i = 0; i < 8; i++)
		if (l->watch[i].w != NULL && l->watch[i].type == type)
			l->watch[i].w->cb(loop, l->watch[i].w, type);
}

static bool
is_idle(const struct loop *l)
{
	int i;

	for (i = 0; i < 8; i++)
		if (l->watch[i].w != NULL && l->watch[i].type == EV_IDLE)
			return true;
	return false;
}

unsigned
t_loop_iteration(struct ev_loop *loop)
{
	struct loop *l = loop_of(loop);

	return l != NULL ? l->iterations : ev_iteration(loop);
}

/* ---- iterations ---- */

static int
wait_ms(const struct loop *l, int flags)
{
	ev_timer *t = first_timer(l);
	double left = t != NULL ? t->at - t_now() : 1e6;

	if ((flags & EVRUN_NOWAIT) || left <= 0 || is_idle(l))
		return 0;
	if (!(flags & EVRUN_ONCE) && l->n_timers + l->refs <= 0)
		return 0;
	if ((flags & EVRUN_ONCE) && left * 1000 > MOST_MS)
		return MOST_MS;
	return t != NULL ? (int)(left * 1000) + 1 : -1;
}

static void
iterate(struct loop *l, int flags)
{
	unsigned n;

	l->iterations++;
	call_watches(l, EV_PREPARE);
	n = host_once(&l->host, wait_ms(l, flags));
	call_watches(l, EV_CHECK);
	run_timers(l);
	if (n == 0)
		call_watches(l, EV_IDLE);
}

int
t_loop_run(struct ev_loop *loop, int flags)
{
	struct loop *l = loop_of(loop);

	if (l == NULL)
		return ev_run(loop, flags);
	l->depth++;
	l->broken = false;
	do
		iterate(l, flags);
	while (!l->broken && !(flags & (EVRUN_NOWAIT | EVRUN_ONCE)) &&
	       l->lost == 0 && l->n_timers + l->refs > 0);
	l->broken = false;
	l->depth--;
	return 1;
}

/* ---- reactors ---- */

/* NULL, too, for a reactor of another thread, which may be going. */
static struct guest *
guest_of(const evc_reactor *r)
{
	struct guest *g = NULL;
	struct loop *l;

	pthread_mutex_lock(&lock);
	for (l = loops; l != NULL && g == NULL; l = l->next)
		for (g = l->tid == own_tid() ? l->guests : NULL;
		     g != NULL && g->r != r;)
			g = g->next;
	pthread_mutex_unlock(&lock);
	return g;
}

/* The loop of this thread that turns c: that of its home, or of one above. */
static struct loop *
loop_above(const evc_coord *c, const evc_reactor *r)
{
	struct guest *g;

	for (g = guest_of(r); g == NULL && c != NULL; c = evc_scope_parent(c))
		g = guest_of(evc_home(c));
	return g != NULL ? g->on : NULL;
}

/* The turn may take the guest away. */
static void
turn(void *arg)
{
	struct loop *l = ((struct guest *)arg)->on;
	evc_status st = evc_reactor_turn(((struct guest *)arg)->r);

	if (st < 0)
		l->lost = st;
}

static evc_status
attach(evc_coord *c, const char *name, struct loop *l, evc_reactor **ret)
{
	struct guest *g = calloc(1, sizeof(*g));
	evc_status st;

	ck_assert_ptr_nonnull(g);
	st = evc_reactor_foreign(c, name, &g->fd, &g->r);
	if (st < 0) {
		free(g);
		return st;
	}
	g->on = l;
	g->c = c;
	add_guest(g);
	host_add(&l->host, g->fd, turn, g);
	if (ret != NULL)
		*ret = g->r;
	return 0;
}

evc_status
t_reactor_attach(evc_coord *c, const char *name, struct ev_loop *loop,
		 evc_reactor **ret)
{
	struct loop *l = loop_of(loop);
	struct guest *g;

	if (l == NULL || ret == NULL)
		return evc_reactor_attach(c, name, loop, ret);
	for (g = l->guests; g != NULL; g = g->next)
		if (g->c == c)
			return evc_refuse(-EVC_ALREADY_EXISTS,
					  "this loop is attached");
	return attach(c, name, l, ret);
}

struct ev_loop *
t_reactor_loop(const evc_reactor *r)
{
	struct ev_loop *loop = evc_reactor_loop(r);
	struct loop *l;

	if (loop != NULL || r == NULL)
		return loop;
	l = loop_above(evc_reactor_coord(r), r);
	return (struct ev_loop *)(void *)l;
}

evc_status
t_evc_new(struct ev_loop *home, const evc_config *cfg, evc_coord **ret_c)
{
	struct loop *l = loop_of(home);
	evc_status st;

	if (l == NULL)
		return evc_new(home, cfg, ret_c);
	st = evc_new(NULL, cfg, ret_c);
	if (st == 0) {
		st = attach(*ret_c, "home", l, NULL);
		if (st < 0) {
			(void)evc_free(*ret_c);
			*ret_c = NULL;
		}
	}
	return st;
}

/* Is c the coordinator of g, or above it? */
static bool
is_above(const evc_coord *c, const struct guest *g)
{
	const evc_coord *at = g->c;

	while (at != NULL && at != c)
		at = evc_scope_parent(at);
	return at != NULL;
}

/* The guests of this thread below c leave their loops; back: come back. */
static void
move_guests(const evc_coord *c, struct guest **away)
{
	struct guest **at, *g;
	struct loop *l;

	*away = NULL;
	pthread_mutex_lock(&lock);
	for (l = c != NULL ? loops : NULL; l != NULL; l = l->next)
		for (at = l->tid == own_tid() ? &l->guests : NULL;
		     at != NULL && (g = *at) != NULL;) {
			if (!is_above(c, g)) {
				at = &g->next;
				continue;
			}
			*at = g->next;
			g->next = *away;
			*away = g;
			host_del(&l->host, g->fd);
		}
	pthread_mutex_unlock(&lock);
}

static void
end_guests(struct guest *away, bool back)
{
	struct guest *next;

	for (; away != NULL; away = next) {
		next = away->next;
		if (!back) {
			free(away);
			continue;
		}
		add_guest(away);
		host_add(&away->on->host, away->fd, turn, away);
	}
}

/* A call that may take the reactors of c away. */
#define TAKING(c, goes, call) \
	do { \
		struct guest *away_; \
		move_guests((c), &away_); \
		st = (call); \
		end_guests(away_, !(goes)); \
	} while (0)

evc_status
t_evc_free(evc_coord *c)
{
	evc_status st;

	if (!t_on_epoll())
		return evc_free(c);
	TAKING(c, st == 0, evc_free(c));
	return st;
}

evc_status
t_evc_abandon(evc_coord *c)
{
	evc_status st;

	if (!t_on_epoll())
		return evc_abandon(c);
	TAKING(c, st == 0, evc_abandon(c));
	return st;
}

evc_status
t_reactor_detach(evc_reactor *r)
{
	struct guest *g = guest_of(r);
	evc_status st;

	if (g == NULL)
		return evc_reactor_detach(r);
	host_del(&g->on->host, g->fd);
	st = evc_reactor_detach(r);
	if (st == 0)
		drop_guest(g);
	else
		host_add(&g->on->host, g->fd, turn, g);
	return st;
}

/* evc_finish frees c, or says that it cannot. */
int
t_evc_finish(evc_coord *c, evc_status result)
{
	struct guest *away;
	int status;

	if (!t_on_epoll())
		return evc_finish(c, result);
	move_guests(c, &away);
	status = evc_finish(c, result);
	/* The descriptor of a reactor that is gone is closed. */
	end_guests(away, away != NULL && fcntl(away->fd, F_GETFD) >= 0);
	return status;
}

/* ---- joins ---- */

struct answer {
	bool came;
	evc_verdict v;
};

static void
on_answer(evc_coord *c, const evc_verdict *v, void *arg)
{
	struct answer *a = arg;

	(void)c;
	a->came = true;
	a->v = *v;
}

/* Join by running the host. */
static evc_status
join_on(struct loop *l, evc_coord *c, const evc_join_opts *o, evc_verdict *v,
	bool until_stop)
{
	struct answer a = { .came = false };
	evc_join_opts opts = { .flags = 0 };
	evc_status st;

	if (o != NULL)
		opts = *o;
	opts.flags |= until_stop ? EVC_JOIN_UNTIL_STOP : 0;
	l->depth++;
	l->refs++;
	st = evc_join_start(c, on_answer, &a, &opts);
	while (st == 0 && !a.came && l->lost == 0) {
		iterate(l, 0);
		if (l->broken && until_stop)
			(evc_request_stop)(c, 0, "ev_break by the application");
		l->broken = false;
	}
	l->broken = false;
	l->refs--;
	l->depth--;
	if (st == 0 && l->lost != 0)
		return l->lost;
	if (st == 0 && v != NULL)
		*v = a.v;
	return st < 0 ? st : a.v.code;
}

evc_status
t_evc_run(evc_coord *c, const evc_join_opts *o, evc_verdict *v)
{
	struct loop *l = t_on_epoll() ? loop_above(c, NULL) : NULL;

	if (l == NULL || l->depth > 0)
		return evc_run(c, o, v);
	return join_on(l, c, o, v, true);
}

evc_status
t_evc_join(evc_coord *c, const evc_join_opts *o, evc_verdict *v)
{
	struct loop *l = t_on_epoll() ?
				 loop_above(c, o != NULL ? o->reactor : NULL) :
				 NULL;

	/* A scope without a home is on no loop. */
	if (l == NULL || l->depth > 0 || evc_home(c) == NULL)
		return evc_join(c, o, v);
	return join_on(l, c, o, v, false);
}

/* A join of the program; it keeps a run going, as on libev. */
struct started {
	struct loop *on;
	evc_join_fn *fn;
	void *arg;
};

static void
on_started(evc_coord *c, const evc_verdict *v, void *arg)
{
	struct started s = *(struct started *)arg;

	free(arg);
	s.on->refs--;
	s.fn(c, v, s.arg);
}

evc_status
t_evc_join_start(evc_coord *c, evc_join_fn *fn, void *arg,
		 const evc_join_opts *o)
{
	struct loop *l = t_on_epoll() ?
				 loop_above(c, o != NULL ? o->reactor : NULL) :
				 NULL;
	struct started *s;
	evc_status st;

	if (l == NULL || fn == NULL)
		return evc_join_start(c, fn, arg, o);
	s = malloc(sizeof(*s));
	ck_assert_ptr_nonnull(s);
	*s = (struct started){ l, fn, arg };
	l->refs++;
	st = evc_join_start(c, on_started, s, o);
	if (st < 0) {
		l->refs--;
		free(s);
	}
	return st;
}

static bool
is_elsewhere(const evc_member_info *i, void *arg)
{
	*(bool *)arg = i->kind == EVC_TASK || i->kind == EVC_LOOPER;
	return !*(bool *)arg;
}

/* Has the loop nothing more to do for r?  A reactor that is no home goes. */
static bool
has_ended(struct loop *l, evc_reactor *r)
{
	bool busy = host_once(&l->host, 0) > 0;

	if (busy || r != evc_home(evc_reactor_coord(r)))
		return !busy && t_reactor_detach(r) == 0;
	evc_member_each(evc_reactor_coord(r), is_elsewhere, &busy);
	return !busy;
}

evc_status
t_reactor_run(evc_reactor *r)
{
	struct guest *g = t_on_epoll() ? guest_of(r) : NULL;
	struct loop *l = g != NULL ? g->on : NULL;
	evc_coord *c = evc_reactor_coord(r);

	if (l == NULL || l->depth > 0)
		return evc_reactor_run(r);
	l->depth++;
	do {
		iterate(l, EVRUN_ONCE);
		if (l->broken)
			(evc_request_stop)(c, 0, "ev_break by the application");
		l->broken = false;
	} while (l->lost == 0 && (!evc_should_stop(c) || !has_ended(l, r)));
	l->depth--;
	return l->lost;
}
