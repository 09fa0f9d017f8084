/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What reports say of parts (evc_part), and the end of parts while reports are
 * being written.
 */
#include "../../support/report_util.h"
#include "../../support/metrics_util.h"

/* A part of the test's, and how its function behaves. */
struct teller {
	evc_part part;
	const char *text;
	atomic_int in, open, out;
	bool stays, leaves;      /* the function waits for open; ends the thread */
	struct teller *ends;     /* whose end the function asks for */
	evc_status st;           /* the answer */
};

static size_t
tell(unsigned format, char *buf, size_t n, void *arg)
{
	struct teller *t = arg;

	atomic_fetch_add(&t->in, 1);
	if (t->ends != NULL)
		t->st = evc_part_remove(&t->ends->part);
	if (t->leaves)
		pthread_exit(NULL);
	while (t->stays && !atomic_load(&t->open))
		t_sleep(0.0005);
	atomic_fetch_add(&t->out, 1);
	if (format == EVC_REPORT_TEXT)
		return (size_t)snprintf(buf, n, "%s\nmore\n", t->text);
	if (format == EVC_REPORT_JSON)
		return (size_t)snprintf(buf, n, "\"%s\"", t->text);
	return (size_t)snprintf(buf, n,
				"# HELP evcoord_said Things said.\n"
				"# TYPE evcoord_said gauge\n"
				"evcoord_said{text=\"%s\"} 1\n", t->text);
}

/* No coordinator is finished here. */
static evc_status
not_called(evc_part *p)
{
	(void)p;
	abort();
}

static evc_status
add_teller(evc_coord *c, const char *kind, const char *name, struct teller *t)
{
	t->part.may_free = t->part.free_object = not_called;
	t->part.describe = tell;
	t->part.arg = t;
	t->part.kind = kind;
	t->part.name = name;
	return evc_part_add(c, &t->part);
}

static void
begin_named(evc_coord *c, const char *kind, const char *name, const char *text,
	    struct teller *t)
{
	memset(t, 0, sizeof(*t));
	t->text = text;
	OK(add_teller(c, kind, name, t));
}

static evc_coord *
named(const char *name)
{
	evc_config cfg = { .name = name };

	return new_coord_with(NULL, &cfg);
}

START_TEST(parts_in_each_format)
{
	evc_coord *c = named("c"), *s = NULL;
	struct teller t[4];
	const char *text;

	OK(evc_scope_new(c, "s", NULL, &s));
	begin_named(c, "store", "disk", "one", &t[0]);
	begin_named(c, "store", "disk", "two", &t[1]);
	begin_named(c, "cache_of", NULL, "three", &t[2]);
	begin_named(s, "store", "disk#2", "four", &t[3]);
	text = report(c);
	HAS(text, "0 ended\n  one\n  more\n  two\n  more\n  three\n  more\n"
		  "reasons");
	HAS(text, "\n    four\n    more\n");
	text = whole(report_json, c);
	HAS(text, "\"described\":null,\"parts\":["
		  "{\"kind\":\"store\",\"name\":\"disk\",\"described\":\"one\"},"
		  "{\"kind\":\"store\",\"name\":\"disk\",\"described\":\"two\"},"
		  "{\"kind\":\"cache_of\",\"name\":\"cache_of\","
		  "\"described\":\"three\"}]");
	text = whole(report_metrics, c);
	read_metrics(text);
	ck_assert(value("evcoord_said", "coordinator=\"c\",store=\"disk\","
					"text=\"one\"") == 1);
	ck_assert(value("evcoord_said", "coordinator=\"c\",store=\"disk#2\","
					"text=\"two\"") == 1);
	ck_assert(value("evcoord_said", "coordinator=\"c\","
					"cache_of=\"cache_of\","
					"text=\"three\"") == 1);
	ck_assert(value("evcoord_said", "coordinator=\"c\",scope=\"s\","
					"store=\"disk#2#1\",text=\"four\"") ==
		  1);
	ask_promtool(text);
	OK(evc_part_remove(&t[0].part));
	OK(evc_part_remove(&t[0].part));
	read_metrics(whole(report_metrics, c));
	ck_assert(value("evcoord_said", "coordinator=\"c\",store=\"disk\","
					"text=\"two\"") == 1);
	/* The others end with their coordinators. */
	OK(evc_free(s));
	OK(evc_free(c));
}
END_TEST

START_TEST(kinds_that_are_no_words)
{
	static const char *const wrong[] = {
		NULL, "", "Queue", "queue1", "a b", "coordinator", "scope",
		"sixteen_letters_",
	};
	evc_coord *c = named("c");
	struct teller t = { 0 };
	evc_coord *s;
	size_t i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		REFUSED(EVC_INVALID_ARGUMENT,
			add_teller(c, wrong[i], "n", &t));
	REFUSED(EVC_INVALID_ARGUMENT, add_teller(NULL, "k", "n", &t));
	/* A scope says it by evc_scope_opts. */
	OK(evc_scope_new(c, "s", NULL, &s));
	t.part.scope = s;
	REFUSED(EVC_INVALID_ARGUMENT, add_teller(c, "k", "n", &t));
	OK(evc_free(s));
	begin_named(c, "fifteen_letters", "n", "text", &t);
	HAS(whole(report_metrics, c), ",fifteen_letters=\"n\",");
	OK(evc_free(c));
}
END_TEST

static void *
report_once(void *arg)
{
	static char buf[1 << 14];

	evc_report(arg, EVC_REPORT_TEXT, buf, sizeof(buf));
	return NULL;
}

struct end {
	struct teller *t;
	atomic_int done;
};

static void *
end_it(void *arg)
{
	struct end *e = arg;

	OK(evc_part_remove(&e->t->part));
	atomic_store(&e->done, 1);
	return NULL;
}

/* Only the describer that ends is waited for. */
START_TEST(the_end_waits_for_its_own_function)
{
	evc_coord *c = named("c");
	struct teller t, other;
	struct end e = { .t = &t };
	pthread_t reporter, ender;

	begin_named(c, "k", "stays", "text", &t);
	begin_named(c, "k", "other", "text", &other);
	t.stays = true;
	OK(pthread_create(&reporter, NULL, report_once, c));
	UNTIL(atomic_load(&t.in) == 1);
	OK(evc_part_remove(&other.part));
	OK(pthread_create(&ender, NULL, end_it, &e));
	NOT_YET(atomic_load(&e.done));
	atomic_store(&t.open, 1);
	OK(pthread_join(ender, NULL));
	ck_assert_int_eq(atomic_load(&t.out), 1);
	OK(pthread_join(reporter, NULL));
	ck_assert_int_eq(atomic_load(&other.in), 0);
	OK(evc_free(c));
}
END_TEST

START_TEST(an_end_inside_a_function)
{
	evc_coord *c = named("c");
	struct teller t, other;

	begin_named(c, "k", "first", "text", &t);
	begin_named(c, "k", "other", "text", &other);
	t.ends = &t;
	(void)report(c);
	ck_assert_int_eq(t.st, -EVC_FAILED_PRECONDITION);
	t.ends = &other;
	atomic_store(&other.in, 0);
	(void)report(c);
	ck_assert_int_eq(atomic_load(&other.in), 0);
	t.ends = NULL;
	OK(evc_part_remove(&t.part));
	OK(evc_free(c));
}
END_TEST

/* A thread that ends inside keeps nobody from the end. */
START_TEST(the_function_ends_its_thread)
{
	struct teller t;
	pthread_t reporter;
	evc_coord *c;

	if (t_under_asan() || t_under_valgrind())
		T_SKIP("what the report had in hand is lost");
	c = named("c");
	begin_named(c, "k", "leaves", "text", &t);
	t.leaves = true;
	OK(pthread_create(&reporter, NULL, report_once, c));
	OK(pthread_join(reporter, NULL));
	ck_assert_int_eq(atomic_load(&t.in), 1);
	OK(evc_part_remove(&t.part));
	OK(evc_free(c));
}
END_TEST

/* ---- others come and go while reports are written ---- */

START_TEST(queues_come_and_go_while_others_report)
{
	struct reporting k = { .c = named("c") };
	evc_queue *q[8];
	pthread_t t[2];
	int i, n, before;

	for (i = 0; i < 2; i++)
		OK(pthread_create(&t[i], NULL, report_again_and_again, &k));
	for (n = 0; n < 100; n++) {
		before = atomic_load(&k.turns);
		for (i = 0; i < 8; i++)
			OK(evc_queue_new(k.c, "q", 4, NULL, &q[i]));
		UNTIL(n % 10 != 0 || atomic_load(&k.turns) > before);
		for (i = 0; i < 8; i++)
			OK(evc_queue_free(q[i]));
	}
	atomic_store(&k.leave, 1);
	for (i = 0; i < 2; i++)
		OK(pthread_join(t[i], NULL));
	OK(evc_free(k.c));
}
END_TEST

API_MAIN("parts", parts_in_each_format, kinds_that_are_no_words,
	 the_end_waits_for_its_own_function, an_end_inside_a_function,
	 the_function_ends_its_thread, queues_come_and_go_while_others_report)
