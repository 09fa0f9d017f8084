/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a person reads of a tree: verdicts, refusals, evc_explain, evc_report
 * and evc_member_each of the parent name what lives below.
 */
#include "../../../support/scope_util.h"

static const char *
text_of(size_t (*fn)(const evc_coord *, char *, size_t), evc_coord *c)
{
	static char text[16384];
	size_t n = fn(c, text, sizeof(text));

	ck_assert_uint_lt(n, sizeof(text));
	ck_assert_uint_eq(n, strlen(text));
	return text;
}

/* The line of a text that holds part. */
static const char *
line_with(const char *text, const char *part)
{
	static char line[1024];
	const char *at = strstr(text, part), *from = at, *to;

	ck_assert_msg(at != NULL, "no \"%s\" in \"%s\"", part, text);
	while (from > text && from[-1] != '\n')
		from--;
	to = strchr(at, '\n');
	snprintf(line, sizeof(line), "%.*s",
		 (int)(to != NULL ? (size_t)(to - from) : strlen(from)), from);
	return line;
}

static size_t
indent_of(const char *text, const char *part)
{
	return strspn(line_with(text, part), " \t");
}

struct tree {
	evc_coord *c, *db, *pool, *web;
	evc_id in_c, in_db, in_pool[2];
};

/* c: a hold, and two scopes, of which one has a scope below. */
static struct tree
tree_make(void)
{
	evc_config cfg = { .name = "host" };
	struct tree t;

	t.c = new_coord_with(NULL, &cfg);
	t.db = ready_scope(t.c, "db", NULL);
	t.pool = ready_scope(t.db, "pool", NULL);
	t.web = ready_scope(t.c, "web", NULL);
	t.in_c = hold(t.c, "open-file");
	t.in_db = hold(t.db, "journal");
	t.in_pool[0] = hold(t.pool, "query-1");
	t.in_pool[1] = hold(t.pool, "query-2");
	return t;
}

static void
tree_end(struct tree *t)
{
	OK(evc_hold_end(t->c, t->in_c));
	OK(evc_hold_end(t->db, t->in_db));
	OK(evc_hold_end(t->pool, t->in_pool[0]));
	OK(evc_hold_end(t->pool, t->in_pool[1]));
	OK(evc_free(t->pool));
	OK(evc_free(t->db));
	OK(evc_free(t->web));
	OK(evc_free(t->c));
}

START_TEST(stragglers_below_stand_in_the_parents_verdict)
{
	struct tree t = tree_make();
	evc_join_opts opts = { .grace = MOMENT };
	evc_verdict v;

	OK(evc_request_stop(t.c, 0, NULL));
	ck_assert_int_eq(evc_join(t.c, &opts, &v), EVC_DEADLINE_EXCEEDED);
	ck_assert_uint_eq(v.n_stragglers, 4);
	HAS(v.error.text, "open-file");
	HAS(v.error.text, "journal");
	HAS(v.error.text, "query-1");
	HAS(v.error.text, "query-2");
	/* a name alone would not say where to look */
	HAS(v.error.text, "db");
	HAS(v.error.text, "pool");
	/* the one that is empty is nobody's business */
	ck_assert_ptr_null(strstr(v.error.text, "web"));

	/* a join of the scope speaks of what lives there */
	ck_assert_int_eq(evc_join(t.db, &opts, &v), EVC_DEADLINE_EXCEEDED);
	ck_assert_uint_eq(v.n_stragglers, 3);
	HAS(v.error.text, "journal");
	HAS(v.error.text, "query-1");
	ck_assert_ptr_null(strstr(v.error.text, "open-file"));
	tree_end(&t);
}
END_TEST

START_TEST(J7_stragglers_below_are_named_beside_an_error)
{
	struct tree t = tree_make();
	evc_join_opts opts = { .grace = MOMENT };
	evc_verdict v;

	evc_fail(t.pool, EVC_DATA_LOSS, 0, "the error");
	ck_assert_int_eq(evc_join(t.c, &opts, &v), EVC_DATA_LOSS);
	ck_assert_uint_eq(v.n_stragglers, 4);
	HAS(v.error.text, "the error");
	HAS(v.error.text, "query-2");
	tree_end(&t);
}
END_TEST

START_TEST(refusals_name_who_lives_below)
{
	struct tree t = tree_make();

	OK(evc_request_stop(t.c, 0, NULL));
	REFUSED(EVC_FAILED_PRECONDITION, evc_clear_stop(t.db));
	HAS(evc_last_error(), "journal");
	OK(evc_hold_end(t.db, t.in_db));
	REFUSED(EVC_FAILED_PRECONDITION, evc_clear_stop(t.db));
	HAS(evc_last_error(), "query-1");
	OK(evc_hold_end(t.c, t.in_c));
	REFUSED(EVC_FAILED_PRECONDITION, evc_clear_stop(t.c));
	HAS(evc_last_error(), "query-2");
	OK(evc_hold_end(t.pool, t.in_pool[0]));
	OK(evc_hold_end(t.pool, t.in_pool[1]));
	OK(evc_clear_stop(t.c));
	FREE_ALL(t.pool, t.db, t.web, t.c);
}
END_TEST

START_TEST(a_report_shows_the_tree)
{
	struct tree t = tree_make();
	const char *text = text_of(report_text, t.c);

	HAS(text, "open-file");
	HAS(text, "db");
	HAS(text, "journal");
	HAS(text, "pool");
	HAS(text, "query-1");
	HAS(text, "query-2");
	/* as a tree: what lives below stands below, and further in */
	ck_assert(strstr(text, "journal") < strstr(text, "query-1"));
	ck_assert_uint_gt(indent_of(text, "query-1"),
			  indent_of(text, "journal"));
	ck_assert_uint_gt(indent_of(text, "journal"),
			  indent_of(text, "open-file"));
	ck_assert_uint_eq(indent_of(text, "query-1"),
			  indent_of(text, "query-2"));
	/* a scope's own report is about itself */
	text = text_of(report_text, t.db);
	HAS(text, "query-1");
	ck_assert_ptr_null(strstr(text, "open-file"));
	tree_end(&t);
}
END_TEST

START_TEST(an_explanation_tells_who_lives_below_and_whose_error_it_was)
{
	struct tree t = tree_make();
	const char *text = text_of(evc_explain, t.c);

	HAS(text, "host");
	HAS(text, "journal");
	HAS(text, "query-1");
	evc_fail(t.pool, EVC_DATA_LOSS, 0, "disk is full");
	text = text_of(evc_explain, t.c);
	HAS(text, "disk is full");
	HAS(text, "DATA_LOSS");
	/* the sibling was stopped by the host, and says so */
	text = text_of(evc_explain, t.web);
	HAS(text, "web");
	HAS(text, "host");
	tree_end(&t);
}
END_TEST

START_TEST(a_set_up_that_is_not_finished_is_shown)
{
	evc_coord *c = new_coord(NULL), *s = new_scope(c, "half-made", NULL);

	HAS(text_of(report_text, c), "half-made");
	HAS(text_of(report_text, c), "set-up not finished");
	HAS(text_of(evc_explain, c), "set-up not finished");
	OK(evc_scope_ready(s));
	ck_assert_ptr_null(
		strstr(text_of(report_text, c), "set-up not finished"));
	ck_assert_ptr_null(
		strstr(text_of(evc_explain, c), "set-up not finished"));
	FREE_ALL(s, c);
}
END_TEST

struct walk {
	evc_member_info scope[8];
	int n_scopes, n_others;
};

static bool
keep_scope(const evc_member_info *m, void *arg)
{
	struct walk *w = arg;

	if (m->kind == EVC_SCOPE && w->n_scopes < 8)
		w->scope[w->n_scopes++] = *m;
	else
		w->n_others++;
	return true;
}

static const evc_member_info *
scope_named(struct walk *w, const char *name)
{
	int i;

	for (i = 0; i < w->n_scopes; i++)
		if (strcmp(w->scope[i].name, name) == 0)
			return &w->scope[i];
	return NULL;
}

START_TEST(a_walk_shows_a_scope_with_what_is_alive_in_it)
{
	struct tree t = tree_make();
	const evc_member_info *db;
	struct walk w = { .n_scopes = 0 };

	OK(evc_member_each(t.c, keep_scope, &w));
	db = scope_named(&w, "db");
	ck_assert_ptr_nonnull(db);
	ck_assert_uint_eq(db->id, 0);
	ck_assert_uint_eq(db->state, EVC_LIVE);
	ck_assert_uint_eq(db->round, 1);
	ck_assert_uint_eq(db->ticks, 3);
	ck_assert_double_ge(db->age, 0);
	memset(&w, 0, sizeof(w));
	OK(evc_member_each(t.db, keep_scope, &w));
	ck_assert_ptr_nonnull(scope_named(&w, "pool"));
	ck_assert_uint_eq(scope_named(&w, "pool")->ticks, 2);
	ck_assert_int_eq(w.n_others, 1);
	tree_end(&t);
}
END_TEST

START_TEST(a_walk_tells_the_phase)
{
	evc_coord *c = new_coord(NULL), *s, *t;
	evc_id a, b;
	struct walk w = { .n_scopes = 0 };

	s = phase_scope(c, "first", 0, 0);
	t = phase_scope(c, "later", 7, 0);
	a = hold(s, "a");
	b = hold(t, "b");
	OK(evc_member_each(c, keep_scope, &w));
	ck_assert_ptr_nonnull(scope_named(&w, "first"));
	ck_assert_ptr_nonnull(scope_named(&w, "later"));
	HAS(scope_named(&w, "later")->where, "phase 7");
	HAS(line_with(text_of(report_text, c), "later"), "phase 7");
	OK(evc_hold_end(s, a));
	OK(evc_hold_end(t, b));
	FREE_ALL(s, t, c);
}
END_TEST

static const evc_task_class conn = { .name = "conn" };

static void *
read_report(void *arg)
{
	static char text[8192];

	evc_report(arg, EVC_REPORT_TEXT, text, sizeof(text));
	return text;
}

START_TEST(tasks_and_hooks_below_are_named)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop), *s = ready_scope(c, "web", NULL);
	evc_join_opts opts = { .grace = MOMENT };
	evc_task task[3] = { { 0 }, { 0 }, { 0 } };
	void *text;
	evc_verdict v;
	pthread_t th;
	int i;

	for (i = 0; i < 3; i++)
		OK(evc_task_begin(evc_home(s), &task[i], &conn));
	HAS(text_of(report_text, c), "conn");
	HAS(text_of(evc_explain, c), "conn");
	OK(pthread_create(&th, NULL, read_report, c));
	OK(pthread_join(th, &text));
	HAS(text, "conn");
	HAS(text, "3");
	OK(evc_request_stop(c, 0, NULL));
	ck_assert_int_eq(evc_run(c, &opts, &v), EVC_DEADLINE_EXCEEDED);
	ck_assert_uint_eq(v.n_stragglers, 3);
	HAS(v.error.text, "web");
	HAS(v.error.text, "conn");
	for (i = 0; i < 3; i++)
		evc_task_end(&task[i]);
	OK(evc_run(c, NULL, NULL));
	FREE_ALL(s, c);
	ev_loop_destroy(loop);
}
END_TEST

struct late {
	atomic_int n;
	char line[512];
};

static void
keep_late(int level, const char *line, const evc_reason *r, void *arg)
{
	struct late *l = arg;

	(void)level;
	(void)r;
	if (strstr(line, "journal") != NULL && atomic_fetch_add(&l->n, 1) == 0)
		snprintf(l->line, sizeof(l->line), "%s", line);
}

START_TEST(the_log_of_a_late_join_names_who_lives_below)
{
	struct late late = { 0 };
	evc_config cfg = { .log = keep_late, .arg = &late };
	evc_join_opts opts = { .grace = MOMENT };
	evc_coord *c = new_coord_with(NULL, &cfg), *s;
	evc_id id;

	s = ready_scope(c, "db", NULL);
	id = hold(s, "journal");
	OK(evc_request_stop(c, 0, NULL));
	ck_assert_int_eq(evc_join(c, &opts, NULL), EVC_DEADLINE_EXCEEDED);
	ck_assert_int_ge(late.n, 1);
	HAS(late.line, "db");
	OK(evc_hold_end(s, id));
	FREE_ALL(s, c);
}
END_TEST

API_MAIN("scope_texts", stragglers_below_stand_in_the_parents_verdict,
	 J7_stragglers_below_are_named_beside_an_error,
	 refusals_name_who_lives_below, a_report_shows_the_tree,
	 an_explanation_tells_who_lives_below_and_whose_error_it_was,
	 a_set_up_that_is_not_finished_is_shown,
	 a_walk_shows_a_scope_with_what_is_alive_in_it, a_walk_tells_the_phase,
	 tasks_and_hooks_below_are_named,
	 the_log_of_a_late_join_names_who_lives_below)
