/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flags have a bit each, whatever they are for: so one that stands in the wrong
 * struct is refused, and nothing has happened.
 */
#include "../../../support/api_util.h"

#include <ev.h>
#include <signal.h>

static evc_coord *c;

static evc_status
looks(evc_coord *coord, void *arg)
{
	(void)coord;
	(void)arg;
	return 0;
}

static evc_status
works(evc_group *group, unsigned id, void *arg)
{
	(void)group;
	(void)id;
	(void)arg;
	return 0;
}

static evc_status
with_flag(int place, unsigned f)
{
	evc_config config = { .flags = f };
	evc_scope_opts scope = { .config.flags = f };
	evc_member_opts member = { .flags = f };
	evc_join_opts join = { .flags = f };
	evc_signals_opts signals = { .flags = f };
	evc_queue_opts queue = { .flags = f };
	evc_pool_opts pool = { .flags = f }, pool_threads = { .thread_flags = f };
	evc_group_opts workers = { .flags = f },
		       threads = { .member.flags = f };
	evc_task_class cls = { .name = "task", .flags = f };
	static evc_task task;
	evc_queue *q;
	evc_pool *p;
	evc_coord *other;
	evc_id id;

	switch (place) {
	case 0:
		return evc_new(NULL, &config, &other);
	case 1:
		return evc_scope_new(c, "s", &scope, &other);
	case 2:
		return evc_thread_start(c, "t", looks, NULL, &member, NULL);
	case 3:
		return evc_looper_start(c, "l", 1, looks, NULL, &member, NULL);
	case 4:
		return evc_hold_begin(c, "h", &member, NULL);
	case 5:
		return evc_on_stop(c, "h", looks, NULL, &member, NULL);
	case 6:
		return evc_guard(c, "g", looks, NULL, &member);
	case 7:
		return evc_register_thread(c, "r", pthread_self(), &member,
					   NULL);
	case 8:
		return evc_join(c, &join, NULL);
	case 9:
		return evc_signals_start(c, &signals);
	case 10:
		return evc_queue_new(c, "q", 1, &queue, &q);
	case 11:
		return evc_pool_new(c, "p", &pool, &p);
	case 12:
		return evc_pool_new(c, "p", &pool_threads, &p);
	case 13:
		return evc_group_init(NULL, "w", works, NULL, &workers, NULL,
				      NULL);
	case 14:
		return evc_group_init(NULL, "w", works, NULL, &threads, NULL,
				      NULL);
	case 15:
		return evc_cancel_push(c, free, NULL, f, &id);
	case 16:
		return evc_dump(c, STDERR_FILENO, EVC_REPORT_TEXT | f);
	case 17:
		return evc_dump_signal(c, SIGUSR1, STDERR_FILENO,
				       EVC_REPORT_TEXT | f);
	case 18:
		return evc_trace_write(c, STDERR_FILENO, EVC_TRACE_JSON | f);
	case 19:
		return evc_task_begin(evc_home(c), &task, &cls);
	default:
		return 0;
	}
}

START_TEST(a_flag_for_something_else_is_refused)
{
	static const unsigned config = EVC_STRICT_SETUP | EVC_NO_CLEAN_CODES |
				       EVC_KICK_RESTORE,
			      guard = EVC_BACKGROUND | EVC_END_STOPS |
				      EVC_AFTER_STOP,
			      member = guard | EVC_MAY_BE_REFUSED;
	static const unsigned its_own[] = {
		config,
		config | EVC_NO_HOME,
		member | EVC_WATCHED | EVC_KICK | EVC_OWN_SCOPE,
		member | EVC_OWN_THREAD | EVC_PAUSED | EVC_FLUSH,
		member,
		member | EVC_ON_DRAIN,
		guard | EVC_KICK,
		member | EVC_KICK | EVC_NOT_JOINED,
		EVC_JOIN_STOP_FIRST | EVC_JOIN_IGNORE_LIVE | EVC_JOIN_STRICT |
			EVC_JOIN_UNTIL_STOP,
		EVC_SIGNALS_THIRD_EXITS | EVC_SIGNALS_IGNORED_TOO |
			EVC_SIGNALS_AT_JOIN,
		EVC_QUEUE_DRAIN,
		EVC_POOL_FINISH,
		EVC_KICK,
		EVC_GROUP_ASIDE,
		EVC_KICK | EVC_WATCHED,
		EVC_CANCEL_REPEAT,
		EVC_REPORT_STACKS | 3,
		EVC_REPORT_STACKS | 3,
		3,
		EVC_AFTER_STOP | EVC_TELL_AFTER_STOP
	};
	struct ev_loop *loop = ev_loop_new(0);
	int place, bit;

	c = new_coord(loop);
	for (place = 0; place < (int)(sizeof(its_own) / sizeof(its_own[0]));
	     place++)
		for (bit = 0; bit < 32; bit++) {
			evc_status st;

			if (its_own[place] & 1u << bit)
				continue;
			st = with_flag(place, 1u << bit);
			ck_assert_msg(st == -EVC_INVALID_ARGUMENT,
				      "place %d, bit %d: %d", place, bit, st);
		}
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

API_MAIN("flags", a_flag_for_something_else_is_refused)
