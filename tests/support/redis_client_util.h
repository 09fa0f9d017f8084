/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests of the client share: a loop, a server and a client on it, and
 * what that has called.
 */
#ifndef TESTS_SUPPORT_REDIS_CLIENT_UTIL_H
#define TESTS_SUPPORT_REDIS_CLIENT_UTIL_H

#include "redis_util.h"

#include "redis/client/redis.h"

struct world {
	struct ev_loop *ev;
	evc_coord *c;
	evc_loop_ref *loop;
	struct redis_server s;
	struct redis_address at;
	struct redis_client *cl;
	double patience;
	/* What the client has called. */
	int ups, downs, answers, nones, errors;
	bool same, is_up;
	char why[REDIS_WHY_SIZE], last[256], order[64];
	void (*when_up)(struct world *w);
};

static MAYBE_UNUSED void
on_up(struct redis_client *cl, bool same, void *arg)
{
	struct world *w = arg;

	ck_assert(evc__redis_client_is_up(cl));
	/* Between two of them it was down, or could not be had. */
	ck_assert(!w->is_up);
	w->is_up = true;
	w->ups++;
	w->same = same;
	if (w->when_up != NULL)
		w->when_up(w);
}

static MAYBE_UNUSED void
on_down(struct redis_client *cl, const char *why, void *arg)
{
	struct world *w = arg;
	struct redis_args a = { .n = 0 };

	ck_assert(!evc__redis_client_is_up(cl));
	evc__args_text(&a, "PING");
	ck_assert(!evc__redis_send(cl, REDIS_SAY, NULL, NULL, &a));
	w->downs++;
	w->is_up = false;
	snprintf(w->why, sizeof(w->why), "%s", why);
}

/* arg: the world; what was answered. */
static MAYBE_UNUSED void
on_answer(const redisReply *r, void *arg)
{
	struct world *w = arg;

	w->answers++;
	w->nones += r == NULL;
	w->errors += r != NULL && r->type == REDIS_REPLY_ERROR;
	snprintf(w->last, sizeof(w->last), "%s",
		 r == NULL        ? "(none)"
		 : r->str != NULL ? r->str
		 : r->type == REDIS_REPLY_ARRAY && evc__reply_word(r) != NULL
			 ? evc__reply_word(r)
			 : "?");
}

static MAYBE_UNUSED void
nothing(struct ev_loop *ev, struct ev_timer *timer, int events)
{
	(void)ev;
	(void)timer;
	(void)events;
}

/* Turn the loop until it is so. */
#define TURN(w, cond) \
	do { \
		double turn_until_ = t_now() + T_LIMIT; \
		struct ev_timer turn_timer_; \
		ev_timer_init(&turn_timer_, nothing, 0.005, 0.005); \
		ev_timer_start((w)->ev, &turn_timer_); \
		while (!(cond)) { \
			ck_assert_msg(t_now() < turn_until_, \
				      "never came true: %s (%s)", #cond, \
				      (w)->why); \
			ev_run((w)->ev, EVRUN_ONCE); \
		} \
		ev_timer_stop((w)->ev, &turn_timer_); \
	} while (0)

/* Turn it for so long. */
static MAYBE_UNUSED void
turn_for(struct world *w, double seconds)
{
	double until = t_now() + seconds;

	TURN(w, t_now() > until);
}

static MAYBE_UNUSED void
address_of(const char *uri, struct redis_address *ret)
{
	const char *place = strstr(uri, "://") + 3, *rest;
	const char *options[16] = { NULL };
	char buf[256], all[256], *at, *save = NULL;
	unsigned n = 0;

	rest = strchr(place, '?');
	snprintf(buf, sizeof(buf), "%.*s",
		 rest != NULL ? (int)(rest - place) : (int)strlen(place),
		 place);
	snprintf(all, sizeof(all), "%s", rest != NULL ? rest + 1 : "");
	for (at = strtok_r(all, "&", &save); at != NULL;
	     at = strtok_r(NULL, "&", &save))
		options[n++] = at;
	OK(evc__redis_address(uri, buf, options, ret));
}

static MAYBE_UNUSED void
world_open(struct world *w)
{
	w->ev = ev_loop_new(EVFLAG_AUTO);
	w->c = new_coord(w->ev);
	w->loop = evc_loop_of(evc_home(w->c));
	if (w->patience <= 0)
		w->patience = 5;
}

/* false: no memory. */
static MAYBE_UNUSED bool
begin_or_not(struct world *w)
{
	struct redis_client_env env = { .scope = w->c,
					.reactor = evc_home(w->c),
					.loop = w->loop,
					.address = &w->at,
					.patience = w->patience,
					.who = "evcoord-test",
					.up = on_up,
					.down = on_down,
					.arg = w };

	w->ups = w->downs = 0;
	w->is_up = false;
	w->cl = evc__redis_client_new(&env);
	ck_assert_int_eq(w->ups + w->downs, 0);
	return w->cl != NULL;
}

/* uri NULL: the same as before. */
static MAYBE_UNUSED void
begin(struct world *w, const char *uri)
{
	if (uri != NULL)
		address_of(uri, &w->at);
	ck_assert(begin_or_not(w));
}

/* A server, and a client that is up. */
static MAYBE_UNUSED void
begin_up(struct world *w)
{
	char uri[128];

	rs_start(&w->s);
	world_open(w);
	begin(w, rs_uri(&w->s, "ns", "", uri, sizeof(uri)));
	TURN(w, w->ups == 1);
	ck_assert(!w->same);
	ck_assert_int_eq(w->downs, 0);
}

static MAYBE_UNUSED void
end(struct world *w)
{
	evc_verdict v;

	evc__redis_client_free(w->cl);
	w->cl = NULL;
	evc_loop_release(w->loop);
	OK(evc_request_stop(w->c, 0, "the end"));
	OK(evc_join(w->c, NULL, &v));
	OK(evc_free(w->c));
	ev_loop_destroy(w->ev);
	evc__redis_address_free(&w->at);
	rs_free(&w->s);
}

/* Words, NULL at the end. */
static MAYBE_UNUSED bool
say(struct world *w, enum redis_which which, redis_reply_fn *fn, ...)
{
	struct redis_args a = { .n = 0 };
	const char *word;
	va_list ap;

	va_start(ap, fn);
	while ((word = va_arg(ap, const char *)) != NULL)
		evc__args_text(&a, word);
	va_end(ap);
	return evc__redis_send(w->cl, which, fn, w, &a);
}

#endif
