/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Turns of the loop: the message with all requests, from the first message to
 * the end; a tick for checks; and, before the loop sleeps, the consequences of
 * this turn's changes, and feeding, so that many frames go out as one entry.
 * Called by: libev, the loop's messages, and the client.
 * Locks: none; loop thread only.
 */
#include "redis/engine/engine.h"

#define TICK_LEAST 0.05
#define TICK_MOST  0.25

/* Seconds of the server's silence after which, from a stop on, it is away. */
#define SILENCE_LEAST 0.5
#define SILENCE_MOST  1.0

/* ---- timers ---- */

static void
look_at_grace(struct redis_engine *e, uint64_t now)
{
	struct node_session *s, *tmp;

	if (!e->turn.left || e->grace_ns == SYNC_FOREVER ||
	    now < evc__after(e->turn.leave_ns, e->grace_ns))
		return;
	EACH_SESSION(s, tmp, e)
		evc__session_fence(s, "it did not leave within %.1f s",
				   (double)e->grace_ns / 1e9);
}

static void
on_due(struct ev_loop *ev, struct ev_timer *timer, int events)
{
	struct redis_engine *e = timer->data;
	struct node_session *s, *tmp;
	uint64_t now = sync_mono();

	(void)ev, (void)events;
	if (on_loop_inherited(&e->turn.on))
		return;
	look_at_grace(e, now);
	EACH_ENDING(s, tmp, e) {
		if (s->gone_ns != 0 && now < s->gone_ns)
			evc__redis_due(e, s->gone_ns);
		else
			evc__session_look(s);
	}
	redis_feed_soon(e); /* A worker's rest may be over. */
}

static void
send_waiting(struct redis_engine *e)
{
	if (e->lock.phase == PHASE_LIVE)
		evc__redis_questions(e);
	if (e->lock.phase == PHASE_LIVE || e->lock.phase == PHASE_RESTART) {
		evc__redis_fence_all(e);
		evc__redis_read(e);
	}
	redis_feed_soon(e);
}

/* A stop has less time for a server that hangs than a lease. */
static void
look_at_stop(struct redis_engine *e)
{
	double left;

	if (e->client == NULL || !evc_should_stop(e->scope))
		return;
	left = evc_stop_left(e->scope) / 2;
	left = left > SILENCE_LEAST ? left : SILENCE_LEAST;
	evc__redis_client_patience(e->client, left < SILENCE_MOST ?
						      left : SILENCE_MOST);
}

static void
on_tick(struct ev_loop *ev, struct ev_timer *timer, int events)
{
	struct redis_engine *e = timer->data;

	(void)ev;
	(void)events;
	if (on_loop_inherited(&e->turn.on))
		return;
	look_at_stop(e);
	/* The timer `due` may be set for another time. */
	look_at_grace(e, sync_mono());
	evc__redis_lock_tick(e, sync_mono());
	evc__redis_questions_tick(e, sync_mono());
	evc__redis_look_alone(e);
	if (e->lock.phase == PHASE_LIVE) {
		evc__redis_detect(e);
		evc__redis_trim(e);
	}
	if (e->lock.phase == PHASE_LIVE || e->lock.phase == PHASE_RESTART)
		evc__redis_chunks_again(e);
	evc__feed_around(e);
	evc__redis_unlink_again(e);
	evc__redis_fence_again(e);
	e->reader.rests = false;
	send_waiting(e);
}

/* ---- the end ---- */

static void
lose_for_entry(struct redis_engine *e)
{
	if (e->detect.lost_of[0] == '\0' ||
	    (e->lock.phase != PHASE_LIVE && e->lock.phase != PHASE_RESTART))
		return;
	evc__redis_end_leases(e);
	evc__redis_lose(e, false,
			"an entry of node %s was lost, or the number of its "
			"last updates, which were made", e->detect.lost_of);
}

static void
end_engine(struct redis_engine *e)
{
	if (e->turn.ended)
		return;
	e->turn.ended = true;
	/* The caller still uses e, so the message ends the engine. */
	(void)evc__notes_ring(&e->notes);
}

static void
on_release(const redisReply *r, void *arg)
{
	struct redis_engine *e = arg;

	(void)r;
	end_engine(e);
}

static void
release_lock(struct redis_engine *e)
{
	struct redis_args a = { 0 };
	unsigned n;

	evc__redis_questions_close(e);
	e->lock.phase = PHASE_RELEASING;
	evc__args_key(&a, &e->address, "coord");
	n = 1 + evc__redis_last_keys(e, &a);
	evc__args_text(&a, e->id);
	if (!evc__redis_script(e->client, SCRIPT_RELEASE, n, on_release, e,
			       &a))
		end_engine(e);
}

static void
look_at_end(struct redis_engine *e)
{
	if (e->lock.phase == PHASE_LOST && list_empty(&e->sessions.all))
		redis_go_down(e);
	if (!e->turn.left || !list_empty(&e->sessions.all) || e->turn.lost ||
	    e->lock.phase == PHASE_RELEASING)
		return;
	if (e->lock.taking)
		return; /* The answer to TAKE looks again. */
	if (e->lock.g != 0 && e->up && e->lock.phase != PHASE_AWAY)
		release_lock(e);
	else
		end_engine(e);
}

/* ---- before the loop sleeps ---- */

/* A change by one of these steps may be the cause of another step. */
static void
look_at_all(struct redis_engine *e)
{
	struct node_session *s, *tmp;

	do {
		e->turn.want_look = false;
		lose_for_entry(e);
		if (e->turn.want_lock)
			evc__redis_lock_again(e);
		e->turn.want_lock = false;
		EACH_ENDING(s, tmp, e)
			evc__session_look(s);
		send_waiting(e);
		evc__redis_restart_go_on(e);
		look_at_end(e);
	} while (e->turn.want_look);
}

static void
on_prepare(struct ev_loop *ev, struct ev_prepare *prepare, int events)
{
	struct redis_engine *e = prepare->data;

	(void)ev;
	(void)events;
	if (on_loop_inherited(&e->turn.on))
		return;
	if (e->turn.want_look)
		look_at_all(e);
	if (e->turn.want_feed) {
		e->turn.want_feed = false;
		evc__redis_feed(e);
		evc__redis_flush(e);
	}
}

/* ---- the end of the loop ---- */

static void
stop_watchers(struct redis_engine *e)
{
	ev_timer_stop(e->ev, &e->turn.tick);
	ev_timer_stop(e->ev, &e->turn.due);
	ev_prepare_stop(e->ev, &e->turn.prepare);
	ev_cleanup_stop(e->ev, &e->turn.cleanup);
	evc__redis_questions_off(e);
}

void
evc__redis_off(struct on_loop *on, struct ev_loop *loop)
{
	struct redis_engine *e = LIST_OF(on, struct redis_engine, turn.on);

	(void)loop;
	stop_watchers(e);
	evc__sessions_unwatch(e);
}

static void
finish_engine(struct redis_engine *e)
{
	const evc_engine_sink *sink = e->sink;
	void *core = e->core;

	/* A message on its way calls this function again. */
	if (!evc__notes_shut(&e->notes))
		return;
	evc__redis_questions_close(e);
	evc__redis_client_free(e->client);
	e->client = NULL;
	if (e->turn.running) {
		stop_watchers(e);
		on_loop_end(&e->turn.on);
		evc_task_end(&e->turn.task);
	}
	evc__sessions_let_go(e);
	if (e->hold != 0)
		evc_hold_end(e->scope, e->hold);
	e->hold = 0;
	/* The core may free e within this call. */
	sink->closed(core);
}

/* The loop is being destroyed, or was destroyed before the first message.
   Functions that run end with their leases. */
static void
lose_loop(struct redis_engine *e)
{
	e->turn.lost = e->turn.ended = true;
	e->lock.phase = PHASE_DOWN;
	e->sink->down(e->core, "the loop of the cluster was destroyed");
	evc__redis_client_free(e->client);
	e->client = NULL;
	e->up = false;
	if (e->away_ns == 0)
		evc__redis_away(e, sync_mono());
	while (!list_empty(&e->sessions.all))
		evc__session_over(LIST_OF(e->sessions.all.next,
					  struct node_session, link),
				  "its coordinator's loop is gone",
				  EVC_ENGINE_DIED);
}

static void
on_engine_cleanup(struct ev_loop *ev, struct ev_cleanup *cleanup, int events)
{
	struct redis_engine *e = cleanup->data;

	(void)ev;
	(void)events;
	if (on_loop_inherited(&e->turn.on))
		return;
	if (!e->turn.ended)
		lose_loop(e);
	finish_engine(e);
}

/* ---- connections ---- */

static void
on_up(struct redis_client *cl, bool same, void *arg)
{
	struct redis_engine *e = arg;

	e->up = true;
	evc__redis_away(e, 0);
	evc__redis_unlink_again(e);
	if (e->lock.why_down[0] != '\0')
		evc_log(e->scope, EVC_LOG_ERROR, NULL,
			"redis: the cluster stays given up: %s",
			e->lock.why_down);
	if (e->lock.phase != PHASE_AWAY && e->lock.phase != PHASE_RESTART)
		return;
	if (e->lock.g == 0) {
		e->lock.phase = PHASE_TAKING;
		if (e->turn.left)
			look_at_end(e);
		else
			evc__redis_take(e, 0);
		return;
	}
	e->lock.server_anew |= !same;
	if (!same)
		evc__redis_restart(e, evc__redis_client_anew(cl));
	else if (e->lock.phase == PHASE_RESTART)
		evc__redis_restart(e, e->lock.why_restart);
	else
		evc__redis_lock_again(e);
}

static void
on_down(struct redis_client *cl, const char *why, void *arg)
{
	struct redis_engine *e = arg;
	char text[REDIS_WHY_SIZE];
	struct text t = evc__text_in(text, sizeof text);

	(void)cl;
	e->up = false;
	if (e->away_ns == 0)
		evc__redis_away(e, sync_mono());
	if (e->lock.phase == PHASE_LIVE || e->lock.phase == PHASE_TAKING)
		e->lock.phase = PHASE_AWAY;
	if (e->lock.phase == PHASE_AWAY || e->lock.phase == PHASE_RESTART) {
		evc__text_fmt(&t, "there is no connection: %s", why);
		evc__redis_trouble_is(e, text);
	}
	evc__redis_questions_again(e, false);
	look_at_end(e);
}

/* ---- the message ---- */

static evc_task_class task_class = { .name = "cluster redis",
				     .flags = EVC_AFTER_STOP };

static bool
begin_client(struct redis_engine *e)
{
	double patience = (double)e->lease_ns / 2e9;
	const struct redis_client_env env = {
		.scope = e->scope,
		.reactor = e->reactor,
		.loop = e->loop,
		.address = &e->address,
		.patience = patience < 0.2 ? 0.2 : patience,
		.look_again = (double)e->lease_ns / 1e9,
		.who = "evcoord-coordinator",
		.max_frame = e->max_frame,
		.up = on_up,
		.down = on_down,
		.arg = e,
	};

	e->client = evc__redis_client_new(&env);
	return e->client != NULL;
}

/* The first message begins the turns. */
static bool
begin_turns(struct redis_engine *e)
{
	double every = (double)e->lease_ns / 8e9;

	e->ev = evc_reactor_loop(e->reactor);
	if (e->ev == NULL ||
	    evc_task_begin(e->reactor, &e->turn.task, &task_class) < 0)
		return false;
	e->turn.running = true;
	every = every < TICK_LEAST ? TICK_LEAST : every;
	every = every > TICK_MOST ? TICK_MOST : every;
	ev_timer_init(&e->turn.tick, on_tick, every, every);
	ev_init(&e->turn.due, on_due);
	ev_prepare_init(&e->turn.prepare, on_prepare);
	ev_cleanup_init(&e->turn.cleanup, on_engine_cleanup);
	e->turn.tick.data = e->turn.due.data = e->turn.prepare.data =
		e->turn.cleanup.data = e;
	on_loop_begin(&e->turn.on, e->ev);
	ev_timer_start(e->ev, &e->turn.tick);
	ev_prepare_start(e->ev, &e->turn.prepare);
	ev_cleanup_start(e->ev, &e->turn.cleanup);
	return begin_client(e);
}

static void
leave_cluster(struct redis_engine *e)
{
	struct node_session *s, *tmp;

	if (!e->turn.left) {
		e->turn.left = true;
		e->turn.leave_ns = sync_mono();
		e->grace_ns = evc__grace_within(e->grace_ns,
						evc_stop_left(e->scope));
		evc__redis_due(e, evc__after(e->turn.leave_ns, e->grace_ns));
	}
	EACH_SESSION(s, tmp, e) {
		if (!s->left_told && !s->ending)
			evc__session_tell_to_leave(s);
	}
	look_at_end(e);
}

static void
serve_asked(struct redis_engine *e, const struct asked *now)
{
	evc__redis_cancel(e, now->cancel_upto);
	evc__redis_cancel_ones(e, now->ones, now->n_ones);
	evc__redis_kill(e, &now->kills);
	evc__redis_ask_stacks(e, &now->stacks);
	evc__redis_forgets(e, now->forgets, now->n_forgets);
	evc__feed_woken(e, &now->wakes, now->wake_all);
	evc__redis_questions(e);
	notes_look(&e->notes);
	redis_feed_soon(e);
	if (now->leave)
		leave_cluster(e);
}

void
evc__redis_message(evc_message *m, evc_status why)
{
	struct redis_engine *e = LIST_OF(m, struct redis_engine, notes.message);
	struct asked now = evc__notes_asked(&e->notes);
	bool first = !e->turn.running;

	if (why == 0 && !e->turn.ended && (!first || begin_turns(e)))
		serve_asked(e, &now);
	else if (!e->turn.ended)
		lose_loop(e);
	evc__asked_free(&now);
	/* This call may free e. */
	if (e->turn.ended)
		finish_engine(e);
}
