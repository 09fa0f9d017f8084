/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The client: finds the server, logs in on two connections, and is up.  After
 * any failure both connections are taken down, and the client begins anew, with
 * a delay that grows.
 *
 *     waits -> (asks a Sentinel) -> looks up the name -> logs in -> up
 *       ^                                                           |
 *       +------------------------- lost ----------------------------+
 *
 * Called by: engine and node, and libev's timers.
 * Locks: none; loop thread only.
 */
#include "redis/client/client.h"

#include "base/backoff.h"

#define BACKOFF_FIRST_NS UINT64_C(50000000)
#define BACKOFF_MOST_NS UINT64_C(1000000000)
#define TICKS          4 /* in the time of `patience` */

/* ---- going down ---- */

/* Log the loss of the server: once in an absence, and again when a server that
   answers gives a new reason. */
static void
log_away(struct redis_client *cl)
{
	if (cl->meant ||
	    (cl->away && (!cl->refused || strcmp(cl->why, cl->said) == 0)))
		return;
	cl->away = true;
	evc__copy(cl->said, sizeof cl->said, cl->why);
	evc_log(cl->env.scope, EVC_LOG_WARNING, NULL,
		"redis: there is no connection: %s", cl->why);
}

/* The client may be freed in this call, so the caller returns afterwards. */
static void
tell_down(struct redis_client *cl, bool was_up)
{
	if (!was_up && cl->told && strcmp(cl->why, cl->told_why) == 0)
		return;
	cl->told = true;
	evc__copy(cl->told_why, sizeof cl->told_why, cl->why);
	log_away(cl);
	cl->meant = false;
	cl->env.down(cl, cl->told_why, cl->env.arg);
}

static void
close_all(struct redis_client *cl)
{
	ev_timer_stop(cl->ev, &cl->tick);
	ev_timer_stop(cl->ev, &cl->limit);
	evc__lookup_drop(cl);
	evc__client_link_close(&cl->links[REDIS_SAY]);
	evc__client_link_close(&cl->links[REDIS_LISTEN]);
	evc__client_link_close(&cl->ask);
	/* A lost client sends nothing. */
	cl->lost = true;
	evc__link_answer_none(&cl->links[REDIS_SAY]);
	evc__link_answer_none(&cl->links[REDIS_LISTEN]);
	evc__link_answer_none(&cl->ask);
	cl->lost = false;
}

/* true: some Sentinel was not asked in this round. */
static bool
has_another_sentinel(struct redis_client *cl)
{
	if (cl->state != CLIENT_ASKS)
		return false;
	if (++cl->asked < cl->env.address->n_sentinels)
		return true;
	cl->asked = 0;
	return false;
}

static void
take_down(struct redis_client *cl)
{
	bool was_up = cl->was_up, asks = has_another_sentinel(cl);

	cl->state = CLIENT_WAITS;
	cl->was_up = false;
	close_all(cl);
	if (asks) {
		redis_timer_in(cl->ev, &cl->again, 0);
		return;
	}
	cl->backoff_ns = evc__backoff_next(cl->backoff_ns, BACKOFF_FIRST_NS,
					   BACKOFF_MOST_NS);
	redis_timer_in(cl->ev, &cl->again, (double)cl->backoff_ns / 1e9);
	tell_down(cl, was_up);
}

/* ---- coming up ---- */

/* How the server has changed since the last `up`.  NULL: not at all. */
static const char *
change_of_server(const struct redis_client *cl, const struct link *say)
{
	if (strcmp(cl->run, say->run) != 0)
		return cl->env.address->master != NULL ?
			       "another server is the master, or it was "
			       "restarted" :
			       "the server was restarted";
	if (cl->was_replica ||
	    client_is_promoted(cl, say->data, say->data_before))
		return "the server was a replica meanwhile";
	return NULL;
}

const char *
evc__redis_client_anew(const struct redis_client *cl)
{
	return cl->anew;
}

/* The client may be freed in this call, so the caller returns afterwards. */
static void
come_up(struct redis_client *cl)
{
	const char *run = cl->links[REDIS_SAY].run;
	bool same;
	struct text t = { cl->server, sizeof cl->server, strlen(cl->server),
			  false };

	evc__text_fmt(&t, ", run %.8s", run);
	cl->anew = change_of_server(cl, &cl->links[REDIS_SAY]);
	same = cl->anew == NULL;
	cl->was_replica = false;
	evc__copy(cl->run, sizeof cl->run, run);
	evc__copy(cl->data, sizeof cl->data, cl->links[REDIS_SAY].data);
	cl->state = CLIENT_UP;
	cl->was_up = true;
	cl->told = cl->no_memory = false;
	cl->backoff_ns = 0;
	cl->tries = cl->tries > 0 ? cl->tries - 1 : 0;
	cl->asked = 0;
	cl->looked = cl->ticked = sync_mono_coarse();
	ev_timer_stop(cl->ev, &cl->limit);
	ev_timer_again(cl->ev, &cl->tick);
	if (cl->away || !same)
		evc_log(cl->env.scope, EVC_LOG_INFO, NULL,
			"redis: connected to %s: %s", cl->place, cl->server);
	cl->away = false;
	cl->env.up(cl, same, cl->env.arg);
}

static void
on_login(struct redis_client *cl)
{
	const struct link *say = &cl->links[REDIS_SAY],
			  *listen = &cl->links[REDIS_LISTEN];

	if (say->at < say->n_steps || listen->at < listen->n_steps)
		return;
	if (strcmp(say->run, listen->run) != 0)
		evc__client_lost(cl, "two connections lead to two servers");
	else
		come_up(cl);
}

static void
connect_both(struct redis_client *cl, const char *number)
{
	unsigned i;

	cl->state = CLIENT_LOGS_IN;
	redis_timer_in(cl->ev, &cl->limit, cl->env.patience);
	for (i = 0; i < 2; i++) {
		if (!evc__link_connect(&cl->links[i], number,
				       cl->lookup_port))
			return;
		evc__login_begin(&cl->links[i], on_login);
	}
}

static void
look_up_server(struct redis_client *cl, const char *host, unsigned port)
{
	cl->state = CLIENT_LOOKS;
	evc__client_place(cl, host, port);
	if (port != 0) {
		evc__lookup_begin(cl, host, port, connect_both);
		return;
	}
	cl->lookup_port = 0;
	connect_both(cl, host);
}

static void
try_to_connect(struct redis_client *cl)
{
	const struct redis_address *at = cl->env.address;

	if (at->master != NULL)
		evc__sentinel_begin(cl);
	else
		look_up_server(cl, at->at.host, at->at.port);
}

/* ---- the timers ---- */

static void
on_again(struct ev_loop *ev, struct ev_timer *timer, int events)
{
	struct redis_client *cl = timer->data;

	(void)ev;
	(void)events;
	if (on_loop_inherited(&cl->on))
		return;
	if (cl->lost)
		take_down(cl);
	else if (cl->state == CLIENT_FOUND) {
		evc__sentinel_end(cl);
		look_up_server(cl, cl->master, cl->master_port);
	} else
		try_to_connect(cl);
}

static void
on_limit(struct ev_loop *ev, struct ev_timer *timer, int events)
{
	struct redis_client *cl = timer->data;
	struct text t;

	(void)ev;
	(void)events;
	if (on_loop_inherited(&cl->on))
		return;
	if (cl->lookup == NULL) {
		evc__client_lost(cl, "no answer");
		return;
	}
	/* A look-up cannot be interrupted, so the client waits for its end. */
	t = evc__text_in(cl->why, sizeof cl->why);
	evc__text_fmt(&t, "%s: the look-up of its name has not ended yet",
		      cl->place);
	tell_down(cl, false);
}

static void
on_tick(struct ev_loop *ev, struct ev_timer *timer, int events)
{
	struct redis_client *cl = timer->data;
	uint64_t now = sync_mono_coarse();
	double patience = cl->env.patience;
	struct link *l;

	(void)ev;
	(void)events;
	if (on_loop_inherited(&cl->on))
		return;
	/* After a sleep of this process the answers may still stand behind this
	   timer. */
	if ((double)(now - cl->ticked) > patience / 2 * 1e9)
		for (l = cl->links; l < cl->links + 2; l++)
			l->heard = now;
	cl->ticked = now;
	for (l = cl->links; l < cl->links + 2; l++)
		if (evc__link_is_silent(l, now, patience)) {
			evc__client_lost(cl, "no answer for %.2g s", patience);
			return;
		}
	l = &cl->links[REDIS_SAY];
	if (cl->env.look_again > 0 &&
	    (double)(now - cl->looked) > cl->env.look_again * 1e9) {
		cl->looked = now;
		evc__login_look(l);
	}
	/* Also beside other commands: the answer shows that the answers before fit
	   their questions. */
	evc__link_ping(l);
}

void
evc__redis_client_patience(struct redis_client *cl, double seconds)
{
	if (seconds >= cl->env.patience)
		return;
	cl->env.patience = seconds;
	cl->tick.repeat = seconds / TICKS;
	/* A tick that is near stays: this may be called again and again. */
	if (ev_is_active(&cl->tick) &&
	    ev_timer_remaining(cl->ev, &cl->tick) > cl->tick.repeat)
		ev_timer_again(cl->ev, &cl->tick);
}

/* ---- for the others ---- */

static void
stop_watchers(struct on_loop *on, struct ev_loop *loop)
{
	struct redis_client *cl = LIST_OF(on, struct redis_client, on);

	ev_timer_stop(loop, &cl->again);
	ev_timer_stop(loop, &cl->limit);
	ev_timer_stop(loop, &cl->tick);
	evc__link_off(&cl->links[REDIS_SAY], loop);
	evc__link_off(&cl->links[REDIS_LISTEN], loop);
	evc__link_off(&cl->ask, loop);
}

static void
link_init(struct link *l, struct redis_client *cl)
{
	l->cl = cl;
	l->last = &l->first;
}

struct redis_client *
evc__redis_client_new(const struct redis_client_env *env)
{
	struct redis_client *cl = sync_alloc(1, sizeof *cl);
	struct ev_loop *ev = evc_reactor_loop(env->reactor);

	if (cl == NULL || ev == NULL || !evc__fork_watch()) {
		sync_free(cl);
		return NULL;
	}
	cl->env = *env;
	cl->ev = ev;
	link_init(&cl->links[REDIS_SAY], cl);
	link_init(&cl->links[REDIS_LISTEN], cl);
	link_init(&cl->ask, cl);
	ev_timer_init(&cl->again, on_again, 0, 0);
	ev_timer_init(&cl->limit, on_limit, 0, 0);
	ev_timer_init(&cl->tick, on_tick, 0, env->patience / TICKS);
	on_loop_init(&cl->on, stop_watchers);
	on_loop_begin(&cl->on, ev);
	cl->again.data = cl->limit.data = cl->tick.data = cl;
	redis_timer_in(cl->ev, &cl->again, 0);
	return cl;
}

void
evc__redis_client_free(struct redis_client *cl)
{
	if (cl == NULL)
		return;
	cl->state = CLIENT_WAITS;
	close_all(cl);
	ev_timer_stop(cl->ev, &cl->again);
	on_loop_end(&cl->on);
#ifdef HAVE_HIREDIS_SSL
	evc__client_tls_free(cl);
#endif
	sync_free(cl->master);
	sync_free(cl);
}

void
evc__redis_client_reset(struct redis_client *cl, const char *why)
{
	/* A client that waits or is lost begins anew in any case. */
	if (cl->state == CLIENT_WAITS || cl->lost)
		return;
	cl->meant = true;
	evc__client_lost(cl, "%s", why);
}

bool
evc__redis_client_no_memory(const struct redis_client *cl)
{
	return cl->no_memory;
}

bool
evc__redis_send(struct redis_client *cl, enum redis_which which,
		redis_reply_fn *fn, void *arg, struct redis_args *a)
{
	if (evc__redis_client_is_up(cl))
		return evc__link_say(&cl->links[which], fn, arg, a);
	evc__args_free(a);
	return false;
}
