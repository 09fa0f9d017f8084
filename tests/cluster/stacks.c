/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stacks of workers in a report, as an engine tells them: what is not asked for,
 * late, missing, garbage or too much; and how many busy workers are named.
 */
#include "../support/hand_engine.h"

#include <limits.h>

#ifdef HAVE_JANSSON
#include <jansson.h>
#endif

static evc_coord *c;
static evc_cluster *cl;
static evc_engine_ops ops;
static const evc_engine_ops *const engines[] = { &ops };
static atomic_int n_asked, answer; /* of the op */
static char text[1 << 20];
static evc_engine_task tasks[120];

static int
stack_of(evc_engine *e, unsigned worker)
{
	(void)e;
	(void)worker;
	atomic_fetch_add(&n_asked, 1);
	return atomic_load(&answer);
}

/* Each worker that there is has a function. */
static void
begin(const char *uri, int op_answers)
{
	evc_cluster_config k = { .engines = engines, .n_engines = 1 };
	unsigned i;

	ops = hand_ops;
	ops.stack = stack_of;
	atomic_store(&n_asked, 0);
	atomic_store(&answer, op_answers);
	c = new_coord(NULL);
	cl = open_with(c, uri, &k);
	for (i = 0; i < hand.n; i++) {
		hand_up(i);
		evc_remote_free(schedule(cl, "f"));
		ck_assert_uint_eq(hand_take(i, &tasks[i], 1), 1);
	}
}

/* Results of workers that have gone are dropped. */
static void
end(void)
{
	unsigned i;

	for (i = 0; i < hand.n; i++)
		hand_finish(i, &tasks[i], 0, NULL);
	hand_end_cluster(cl, c);
}

static void *
take(void *arg)
{
	(void)arg;
	evc_report(c, EVC_REPORT_TEXT | EVC_REPORT_STACKS, text, sizeof(text));
	return NULL;
}

/* A report, to which the worker answers this when it is asked. */
static void
report_with(const char *lines)
{
	int before = atomic_load(&n_asked);
	pthread_t t;

	OK(pthread_create(&t, NULL, take, NULL));
	UNTIL(atomic_load(&n_asked) > before);
	hand.sink->stack(hand.core, 0, lines);
	OK(pthread_join(t, NULL));
}

START_TEST(what_a_worker_answers)
{
	begin("hand://1", 0);
	/* Nobody has asked. */
	hand.sink->stack(hand.core, 0, "stack: out of the blue\n");
	hand.sink->stack(hand.core, 77, "stack: of nobody\n");
	report_with("kernel: S in read\nstack: f+0x1 (prog+0x2)\n"
		    "       main+0x3 (prog+0x4)\n");
	HAS(text, "f on worker 0 (by hand) for ");
	HAS(text, "\n         kernel: S in read\n"
		  "         stack: f+0x1 (prog+0x2)\n"
		  "                main+0x3 (prog+0x4)\n");
	ck_assert_ptr_null(strstr(text, "out of the blue"));
	/* A second answer to one question is dropped. */
	hand.sink->stack(hand.core, 0, "stack: twice\n");
	report_with("stack: again");
	HAS(text, "         stack: again\n");
	report_with(NULL);
	HAS(text, "stack: not available: the worker cannot be asked\n");
	report_with("");
	HAS(text, "stack: not available: the worker cannot be asked\n");
	end();
}
END_TEST

/* Controls, half characters, other lines' beginnings, without an end. */
START_TEST(garbage_stays_below_its_worker)
{
	static char much[100000];
	const char *at;
	unsigned n = 0;

	begin("hand://1", 0);
	report_with("stack: \x1b[2J\xc3\nmembers:\n\r\n\xe2\x80\xae" "foo");
	HAS(text, "stack: \\x1b[2J\\xc3\n         members:\n");
	ck_assert_ptr_null(strchr(text, '\x1b'));
	ck_assert_ptr_null(strchr(text, '\r'));
	memset(much, '\n', sizeof(much) - 1);
	report_with(much);
	ck_assert_uint_lt(strlen(text), 4000);
	memset(much, 'x', sizeof(much) - 1);
	report_with(much);
	for (at = text; (at = strchr(at, 'x')) != NULL; at++)
		n++;
	ck_assert_uint_gt(n, 500);
	ck_assert_uint_lt(n, 5000);
	end();
}
END_TEST

START_TEST(without_an_answer)
{
	begin("hand://2", 0);
	take(NULL);
	HAS(text, "stack: not available: it has not answered within ");
	ck_assert_int_eq(atomic_load(&n_asked), 2);
	/* They are not asked again as long as they owe an answer. */
	take(NULL);
	ck_assert_int_eq(atomic_load(&n_asked), 2);
	/* A late answer is dropped, and then it is asked again. */
	hand.sink->stack(hand.core, 0, "stack: too late\n");
	hand.sink->stack(hand.core, 1, "stack: too late\n");
	report_with("stack: now");
	HAS(text, "stack: now\n");
	ck_assert_ptr_null(strstr(text, "too late"));
	/* Another life owes nothing. */
	hand.sink->gone(hand.core, 1, "it fell", EVC_ENGINE_DIED);
	end();
}
END_TEST

/* A report waits for it, and hears that it has gone. */
START_TEST(one_that_goes_meanwhile)
{
	pthread_t t;

	begin("hand://1", 0);
	OK(pthread_create(&t, NULL, take, NULL));
	UNTIL(atomic_load(&n_asked) == 1);
	hand.sink->gone(hand.core, 0, "it fell", EVC_ENGINE_DIED);
	OK(pthread_join(t, NULL));
	HAS(text, "not available: the worker has ended meanwhile\n");
	end();
}
END_TEST

START_TEST(an_engine_that_cannot)
{
	begin("hand://1", -1);
	take(NULL);
	HAS(text, "not available: the worker cannot be asked\n");
	/* A thread that there is not. */
	atomic_store(&answer, INT_MAX);
	take(NULL);
	HAS(text, "f on worker 0 (by hand) for ");
	HAS(text, "kernel: not known");
	ops.stack = NULL;
	take(NULL);
	HAS(text, "not available: its engine cannot ask for it\n");
	end();
}
END_TEST

START_TEST(a_hundred_are_named)
{
	const char *at;
	unsigned n = 0;

	begin("hand://120", -1);
	take(NULL);
	for (at = text; (at = strstr(at, "\n    f on worker ")) != NULL; at++)
		n++;
	ck_assert_uint_eq(n, 100);
	HAS(text, "\n    20 more workers are busy\n");
	ck_assert_int_eq(atomic_load(&n_asked), 100);
	/* Without stacks, too. */
	evc_report(c, EVC_REPORT_TEXT, text, sizeof(text));
	HAS(text, "\n    20 more workers are busy\n");
	ck_assert_int_eq(atomic_load(&n_asked), 100);
	end();
}
END_TEST

#ifdef HAVE_JANSSON

static void *
take_json(void *arg)
{
	(void)arg;
	evc_report(c, EVC_REPORT_JSON | EVC_REPORT_STACKS, text, sizeof(text));
	return NULL;
}

START_TEST(in_JSON)
{
	json_t *o, *k;
	pthread_t t;

	begin("hand://1", 0);
	OK(pthread_create(&t, NULL, take_json, NULL));
	UNTIL(atomic_load(&n_asked) > 0);
	hand.sink->stack(hand.core, 0, "kernel: R\nstack: \"f\"\x01\xff\n"
				       "       g\n");
	OK(pthread_join(t, NULL));
	o = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	ck_assert_msg(o != NULL, "%s", text);
	k = json_object_get(json_object_get(o, "coordinator"), "scopes");
	k = json_object_get(json_array_get(k, 0), "described");
	k = json_object_get(json_object_get(k, "cluster"), "workers");
	k = json_array_get(k, 0);
	ck_assert(json_is_null(json_object_get(k, "no_stack")));
	k = json_object_get(k, "stack");
	ck_assert_uint_eq(json_array_size(k), 3);
	ck_assert_str_eq(json_string_value(json_array_get(k, 0)), "kernel: R");
	ck_assert_str_eq(json_string_value(json_array_get(k, 2)), "g");
	json_decref(o);
	end();
}
END_TEST

#define JSON_TESTS in_JSON,
#else
#define JSON_TESTS
#endif

API_MAIN("stacks", JSON_TESTS what_a_worker_answers,
	 garbage_stays_below_its_worker, without_an_answer,
	 one_that_goes_meanwhile, an_engine_that_cannot, a_hundred_are_named)
