/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * JSON of evc_report, read back by a library: every field is there with its
 * type, says what the text says, and whatever bytes a name has it is JSON.
 */
#include "../../support/report_util.h"

#ifdef HAVE_JANSSON

#include <jansson.h>
#include <locale.h>
#include <signal.h>
#include <sys/socket.h>

/* ---- reading ---- */

/* Kept until the next one. */
static json_t *
parsed(const evc_coord *c)
{
	static json_t *last;
	json_error_t why;
	const char *text = whole(report_json, c);

	json_decref(last);
	last = json_loads(text, JSON_REJECT_DUPLICATES, &why);
	ck_assert_msg(last != NULL, "%s at %d in %s", why.text, why.position,
		      text);
	return last;
}

static json_t *
at(json_t *o, const char *key)
{
	json_t *v = json_object_get(o, key);

	ck_assert_msg(v != NULL, "no \"%s\"", key);
	return v;
}

static json_t *
coordinator(const evc_coord *c)
{
	return at(parsed(c), "coordinator");
}

static const char *
string_at(json_t *o, const char *key)
{
	ck_assert_msg(json_is_string(at(o, key)), "\"%s\" is no string", key);
	return json_string_value(at(o, key));
}

static double
number_at(json_t *o, const char *key)
{
	ck_assert_msg(json_is_number(at(o, key)), "\"%s\" is no number", key);
	return json_number_value(at(o, key));
}

/* The element of an array whose name is that; NULL: none. */
static json_t *
named(json_t *array, const char *name)
{
	json_t *v;
	size_t i;

	json_array_foreach(array, i, v)
		if (strcmp(string_at(v, "name"), name) == 0)
			return v;
	return NULL;
}

static json_t *
member(const evc_coord *c, const char *name)
{
	json_t *m = named(at(coordinator(c), "members"), name);

	ck_assert_msg(m != NULL, "no member \"%s\"", name);
	return m;
}

/* ---- every key, with its type ---- */

/* A key and what it may be: s string, n number, b boolean, a array, o object,
   0 null. */
struct field {
	const char *key, *types;
};

static char
type_of(const json_t *v)
{
	switch (json_typeof(v)) {
	case JSON_OBJECT:
		return 'o';
	case JSON_ARRAY:
		return 'a';
	case JSON_STRING:
		return 's';
	case JSON_INTEGER:
	case JSON_REAL:
		return 'n';
	case JSON_TRUE:
	case JSON_FALSE:
		return 'b';
	default:
		return '0';
	}
}

static void
has_fields(json_t *o, const struct field *f, size_t n, const char *what)
{
	size_t i;

	ck_assert(json_is_object(o));
	for (i = 0; i < n; i++) {
		json_t *v = json_object_get(o, f[i].key);

		ck_assert_msg(v != NULL, "%s has no %s", what, f[i].key);
		ck_assert_msg(strchr(f[i].types, type_of(v)) != NULL,
			      "%s.%s is %c, not of %s", what, f[i].key,
			      type_of(v), f[i].types);
	}
	/* and none that nobody knows of */
	ck_assert_msg(json_object_size(o) == n, "%s has %zu keys", what,
		      json_object_size(o));
}

#define FIELDS(o, f, what) \
	has_fields((o), (f), sizeof(f) / sizeof((f)[0]), (what))

static void
check_thread(json_t *t)
{
	static const struct field fields[] = {
		{ "tid", "n" },   { "state", "s0" },
		{ "state_name", "s0" }, { "wchan", "s0" },
		{ "syscall", "s0" },    { "blocks_signal", "b0" },
		{ "stack", "a" },       { "no_stack", "s0" },
	};
	json_t *frame;
	size_t i;

	if (json_is_null(t))
		return;
	FIELDS(t, fields, "thread");
	json_array_foreach(at(t, "stack"), i, frame)
		ck_assert(json_is_string(frame));
}

static void
check_checkpoint(json_t *p)
{
	static const struct field fields[] = { { "text", "s" },
					       { "age", "n" } };

	if (!json_is_null(p))
		FIELDS(p, fields, "progress");
}

static void
check_member(json_t *m)
{
	static const struct field fields[] = {
		{ "id", "n" },         { "kind", "s" },     { "name", "s" },
		{ "state", "s" },      { "where", "s" },    { "age", "n0" },
		{ "round", "n" },      { "flags", "a" },    { "tid", "n0" },
		{ "runs", "n0" },      { "missed", "n0" },  { "count", "n0" },
		{ "progress", "o0" },  { "unblocks", "n" }, { "kicks", "n" },
		{ "extension", "o0" }, { "thread", "o0" },
	};
	static const struct field extension[] = { { "granted", "n" },
						  { "reason", "s" } };
	json_t *flag;
	size_t i;

	FIELDS(m, fields, "member");
	json_array_foreach(at(m, "flags"), i, flag)
		ck_assert(json_is_string(flag));
	check_checkpoint(at(m, "progress"));
	if (!json_is_null(at(m, "extension")))
		FIELDS(at(m, "extension"), extension, "extension of a member");
	check_thread(at(m, "thread"));
}

static void
check_loop(json_t *l)
{
	static const struct field fields[] = {
		{ "name", "s" },      { "tid", "n" },     { "state", "s" },
		{ "since", "n0" },    { "at_least", "b" }, { "in", "s0" },
		{ "in_name", "s0" },
		{ "tasks", "n" },     { "loopers", "n" }, { "runners", "n" },
		{ "turns", "n" },     { "longest_turn", "n" },
		{ "posts", "n" },     { "progress", "o0" },
		{ "thread", "o0" },
	};

	FIELDS(l, fields, "loop");
	check_checkpoint(at(l, "progress"));
	check_thread(at(l, "thread"));
}

static void
check_parts(json_t *c)
{
	static const struct field escalation[] = {
		{ "told", "n0" },      { "hooks", "n0" },
		{ "kicks", "n0" },     { "ending", "n0" },
		{ "abandoned", "n0" }, { "hook_calls", "n" },
		{ "kick_calls", "n" }, { "kicks_lost", "s0" },
	};
	static const struct field reason[] = {
		{ "at", "n" },	 { "time", "n" },  { "kind", "s" },
		{ "code", "n" }, { "code_name", "s" }, { "who", "s" },
		{ "by", "n" },	 { "tid", "n" },   { "errno", "n" },
		{ "text", "s" }, { "file", "s" },  { "func", "s" },
		{ "line", "n" },
	};
	static const struct field extension[] = { { "id", "n" },
						  { "name", "s" },
						  { "granted", "n" },
						  { "reason", "s" } };
	static const struct field counters[] = {
		{ "stops", "n" },      { "kicks", "n" },
		{ "unblocks", "n" },   { "stragglers", "n" },
		{ "missed", "n" },     { "stop_seconds", "n" },
	};
	static const struct field lost[] = {
		{ "reasons", "n" }, { "extensions", "n" }, { "loops", "n" },
		{ "scopes", "n" },  { "members", "b" },	   { "threads", "b" },
		{ "described", "b" },
	};
	json_t *v;
	size_t i;

	json_array_foreach(at(c, "reasons"), i, v)
		FIELDS(v, reason, "reason");
	if (!json_is_null(at(c, "escalation")))
		FIELDS(at(c, "escalation"), escalation, "escalation");
	json_array_foreach(at(c, "extensions"), i, v)
		FIELDS(v, extension, "extension");
	json_array_foreach(at(c, "members"), i, v)
		check_member(v);
	json_array_foreach(at(c, "loops"), i, v)
		check_loop(v);
	FIELDS(at(c, "counters"), counters, "counters");
	FIELDS(at(c, "lost"), lost, "lost");
}

static void
check_coordinator(json_t *c)
{
	static const struct field fields[] = {
		{ "name", "s" },        { "path", "s" },
		{ "scope", "b" },       { "phase", "n0" },
		{ "round", "n" },       { "state", "s" },
		{ "joined", "b" },      { "set_up", "b" },
		{ "ended", "n" },       { "not_joined", "n" },
		{ "errors", "n" },
		{ "stop_age", "n0" },   { "reasons", "a" },
		{ "escalation", "o0" }, { "extensions", "a" },
		{ "members", "a" },     { "loops", "a" },
		{ "scopes", "a" },      { "counters", "o" },
		{ "lost", "o" },        { "described", "0" },
		{ "parts", "a" },
	};
	json_t *s;
	size_t i;

	FIELDS(c, fields, "coordinator");
	check_parts(c);
	json_array_foreach(at(c, "scopes"), i, s)
		check_coordinator(s);
}

static void
check_all(json_t *o)
{
	static const struct field fields[] = {
		{ "evcoord", "s" },	 { "pid", "n" },
		{ "time", "n" },	 { "stack_signal", "n" },
		{ "stacks_left", "n" },	 { "coordinator", "o" },
	};

	FIELDS(o, fields, "report");
	check_coordinator(at(o, "coordinator"));
}

START_TEST(every_field_is_there_with_its_type)
{
	struct zoo z;

	STACKS_BY(0);
	zoo_make(&z, "zoo");
	check_all(parsed(z.c));
	evc_fail(z.c, EVC_INTERNAL, EIO, "why");
	check_all(parsed(z.c));
	check_all(parsed(z.scope));
	zoo_end(&z);
}
END_TEST

/* ---- what they say ---- */

START_TEST(the_object_itself)
{
	evc_coord *c = new_coord(NULL);
	json_t *o = parsed(c);
	int signo;

	ck_assert_str_eq(string_at(o, "evcoord"), evc_version());
	ck_assert_int_eq((int)number_at(o, "pid"), getpid());
	ck_assert_double_lt(fabs(number_at(o, "time") - (double)time(NULL)),
			    60);
	ck_assert_int_eq((int)number_at(o, "stack_signal"), 0);
	ck_assert_int_eq((int)number_at(o, "stacks_left"), 0);
	NEEDS_BACKTRACE();
	for (signo = SIGRTMIN; evc_stack_signal(signo) != 0;)
		ck_assert_int_lt(signo++, SIGRTMAX);
	ck_assert_int_eq((int)number_at(parsed(c), "stack_signal"), signo);
	OK(evc_free(c));
}
END_TEST

START_TEST(each_kind_of_member)
{
	struct zoo z;

	zoo_make(&z, "zoo");
#define IS(name, key, value) \
	ck_assert_str_eq(string_at(member(z.c, (name)), (key)), (value))
	IS("a-thread", "kind", "thread");
	IS("a-registered", "kind", "registered thread");
	IS("a-looper", "kind", "looper");
	IS("an-own-looper", "kind", "looper");
	IS("a-runner", "kind", "runner");
	IS("a-hold", "kind", "hold");
	IS("a-hook", "kind", "hook");
	IS("upload", "kind", "task");
	IS("a-thread", "state", "live");
	IS("a-runner", "where", "behind the counter");
	IS("a-looper", "where", "on home");
	ck_assert_uint_eq((evc_id)number_at(member(z.c, "a-hold"), "id"),
			  z.hold);
	ck_assert_uint_eq((evc_id)number_at(member(z.c, "upload"), "id"), 0);
	ck_assert_int_eq((int)number_at(member(z.c, "upload"), "count"), 1);
	ck_assert_int_eq((int)number_at(member(z.c, "a-hold"), "round"), 1);
	ck_assert_double_ge(number_at(member(z.c, "a-looper"), "runs"), 0);
	ck_assert_double_ge(number_at(member(z.c, "a-looper"), "missed"), 0);
	ck_assert(json_is_null(at(member(z.c, "a-hold"), "runs")));
	ck_assert_int_gt((int)number_at(member(z.c, "a-thread"), "tid"), 1);
	ck_assert(json_is_null(at(member(z.c, "a-hold"), "tid")));
	ck_assert_str_eq(json_string_value(json_array_get(
				 at(member(z.c, "an-own-looper"), "flags"), 0)),
			 "own_thread");
	/* scopes have objects of their own */
	ck_assert_ptr_null(named(at(coordinator(z.c), "members"), "a-scope"));
	ck_assert_ptr_nonnull(named(at(coordinator(z.c), "scopes"), "a-scope"));
	zoo_end(&z);
}
END_TEST

START_TEST(a_hook_that_was_called)
{
	evc_coord *c = new_coord(NULL);

	OK(evc_on_stop(c, "hook", return_at_once, NULL, NULL, NULL));
	ck_assert_str_eq(string_at(member(c, "hook"), "state"), "live");
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, NULL));
	ck_assert_str_eq(string_at(member(c, "hook"), "state"), "called");
	OK(evc_free(c));
}
END_TEST

START_TEST(ages_go_by_the_clock)
{
	evc_config cfg = { .clock = scripted_clock };
	evc_coord *c = new_coord_with(NULL, &cfg);
	evc_id id = 0;

	OK(evc_hold_begin(c, "old", NULL, &id));
	scripted_advance(12.25);
	ck_assert_double_eq(number_at(member(c, "old"), "age"), 12.25);
	ck_assert(json_is_null(at(coordinator(c), "stop_age")));
	OK(evc_request_stop(c, 0, NULL));
	scripted_advance(0.5);
	ck_assert_double_eq(number_at(coordinator(c), "stop_age"), 0.5);
	OK(evc_hold_end(c, id));
	OK(evc_free(c));
}
END_TEST

START_TEST(state_round_and_counts_of_a_coordinator)
{
	evc_config cfg = { .name = "host" };
	evc_coord *c = new_coord_with(NULL, &cfg), *s = NULL, *t = NULL;
	evc_scope_opts later = { .phase = 3 };
	evc_id id = 0;
	json_t *k;

	OK(evc_scope_new(c, "db", &later, &s));
	OK(evc_scope_new(s, "pool", NULL, &t));
	OK(evc_scope_ready(t));
	k = coordinator(c);
	ck_assert_str_eq(string_at(k, "name"), "host");
	ck_assert_str_eq(string_at(k, "path"), "");
	ck_assert(json_is_false(at(k, "scope")));
	ck_assert(json_is_null(at(k, "phase")));
	ck_assert_str_eq(string_at(k, "state"), "running");
	ck_assert(json_is_true(at(k, "set_up")));
	k = json_array_get(at(k, "scopes"), 0);
	ck_assert_str_eq(string_at(k, "path"), "db");
	ck_assert(json_is_true(at(k, "scope")));
	ck_assert_int_eq((int)number_at(k, "phase"), 3);
	ck_assert(json_is_false(at(k, "set_up")));
	k = json_array_get(at(k, "scopes"), 0);
	ck_assert_str_eq(string_at(k, "path"), "db/pool");
	OK(evc_free(t));
	OK(evc_free(s));
	OK(evc_hold_begin(c, "h", NULL, &id));
	OK(evc_request_drain(c, 60, NULL));
	ck_assert_str_eq(string_at(coordinator(c), "state"), "draining");
	OK(evc_hold_end(c, id));
	evc_fail(c, EVC_DATA_LOSS, EIO, "why");
	ck_assert_int_eq(evc_join(c, NULL, NULL), EVC_DATA_LOSS);
	k = coordinator(c);
	ck_assert_str_eq(string_at(k, "state"), "stopping");
	ck_assert(json_is_true(at(k, "joined")));
	ck_assert_int_eq((int)number_at(k, "ended"), 1);
	ck_assert_int_eq((int)number_at(k, "errors"), 1);
	OK(evc_clear_stop(c));
	k = coordinator(c);
	ck_assert_int_eq((int)number_at(k, "round"), 2);
	ck_assert_int_eq((int)number_at(at(k, "counters"), "stops"), 1);
	ck_assert_double_ge(number_at(at(k, "counters"), "stop_seconds"), 0);
	OK(evc_free(c));
}
END_TEST

START_TEST(reasons_with_all_that_came_with_them)
{
	evc_coord *c = new_coord(NULL);
	json_t *list, *r;
	int line;

	OK(evc_request_stop(c, 0, "by hand"));
	line = __LINE__ + 1;
	evc_fail(c, EVC_DATA_LOSS, ENOSPC, "shard %d", 3);
	list = at(coordinator(c), "reasons");
	ck_assert_uint_eq(json_array_size(list), 2);
	r = json_array_get(list, 0);
	ck_assert_str_eq(string_at(r, "kind"), "request");
	ck_assert_str_eq(string_at(r, "text"), "by hand");
	ck_assert_double_eq(number_at(r, "at"), 0);
	r = json_array_get(list, 1);
	ck_assert_double_ge(number_at(r, "at"), 0);
	ck_assert_double_lt(fabs(number_at(r, "time") - (double)time(NULL)),
			    60);
	ck_assert_str_eq(string_at(r, "kind"), "error");
	ck_assert_int_eq((int)number_at(r, "code"), EVC_DATA_LOSS);
	ck_assert_str_eq(string_at(r, "code_name"), "DATA_LOSS");
	ck_assert_str_eq(string_at(r, "text"), "shard 3");
	ck_assert_int_eq((int)number_at(r, "errno"), ENOSPC);
	ck_assert_int_eq((int)number_at(r, "tid"), own_tid());
	ck_assert_int_eq((int)number_at(r, "by"), 0);
	ck_assert_str_ne(string_at(r, "who"), "");
	HAS(string_at(r, "file"), "report_json.c");
	ck_assert_str_ne(string_at(r, "func"), "");
	ck_assert_int_eq((int)number_at(r, "line"), line);
	OK(evc_free(c));
}
END_TEST

static void
do_nothing(void *arg)
{
	(void)arg;
}

static evc_status
say_and_stay(evc_coord *c, void *arg)
{
	evc_progress("at a \"place\"");
	return stay(c, arg);
}

START_TEST(the_ladder_and_what_it_did_to_a_member)
{
	evc_escalation_opts escalation = { .budget = 0.3 };
	evc_member_opts opts = { .unblock = do_nothing, .flags = EVC_KICK };
	evc_coord *c = new_coord(NULL);
	struct guest g = { 0 };
	json_t *l, *m;

	OK(evc_escalation_set(c, &escalation));
	OK(evc_thread_start(c, "deaf", say_and_stay, &g, &opts, NULL));
	UNTIL(atomic_load(&g.in) == 1);
	ck_assert(json_is_null(at(coordinator(c), "escalation")));
	m = member(c, "deaf");
	ck_assert_int_eq((int)number_at(m, "unblocks"), 0);
	ck_assert_int_eq((int)number_at(m, "kicks"), 0);
	ck_assert_str_eq(string_at(at(m, "progress"), "text"),
			 "at a \"place\"");
	ck_assert_double_ge(number_at(at(m, "progress"), "age"), 0);
	OK(evc_request_stop(c, 0, NULL));
	ck_assert(json_is_null(
		at(at(coordinator(c), "escalation"), "abandoned")));
	ck_assert_int_eq(evc_join(c, NULL, NULL), EVC_DEADLINE_EXCEEDED);
	UNTIL(!json_is_null(at(at(coordinator(c), "escalation"), "ending")) &&
	      !json_is_null(at(at(coordinator(c), "escalation"), "abandoned")));
	l = at(coordinator(c), "escalation");
	ck_assert_double_ge(number_at(l, "told"), 0);
	ck_assert_double_ge(number_at(l, "hooks"), 0);
	ck_assert_double_ge(number_at(l, "kicks"), 0.001);
	ck_assert_double_ge(number_at(l, "ending"), 0.269);
	ck_assert_double_ge(number_at(l, "abandoned"), 0.299);
	ck_assert_double_ge(number_at(l, "hook_calls"), 1);
	ck_assert_double_ge(number_at(l, "kick_calls"), 1);
	m = member(c, "deaf");
	ck_assert_double_ge(number_at(m, "unblocks"), 1);
	ck_assert_double_ge(number_at(m, "kicks"), 1);
	ck_assert_double_ge(
		number_at(at(coordinator(c), "counters"), "stragglers"), 1);
	ck_assert_double_ge(number_at(at(coordinator(c), "counters"), "kicks"),
			    1);
	ck_assert_double_ge(
		number_at(at(coordinator(c), "counters"), "unblocks"), 1);
	atomic_store(&g.open, 1);
	UNTIL(evc_join(c, NULL, NULL) == 0);
	OK(evc_free(c));
}
END_TEST

START_TEST(a_veto_with_its_member_and_by_itself)
{
	evc_escalation_opts escalation = { .budget = 10, .hard_end = 100 };
	evc_coord *c = new_coord(NULL);
	evc_id id = 0;
	json_t *v;

	OK(evc_escalation_set(c, &escalation));
	OK(evc_hold_begin(c, "writer", NULL, &id));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_extend_stop(c, id, 3, "flushing", NULL));
	v = at(member(c, "writer"), "extension");
	ck_assert_double_lt(fabs(number_at(v, "granted") - 3), 1e-6);
	ck_assert_str_eq(string_at(v, "reason"), "flushing");
	OK(evc_hold_end(c, id));
	v = json_array_get(at(coordinator(c), "extensions"), 0);
	ck_assert_uint_eq((evc_id)number_at(v, "id"), id);
	ck_assert_str_eq(string_at(v, "name"), "writer");
	ck_assert_str_eq(string_at(v, "reason"), "flushing");
	ck_assert_double_lt(fabs(number_at(v, "granted") - 3), 1e-6);
	OK(evc_free(c));
}
END_TEST

struct receiver {
	int fd[2];
	atomic_int tid;
};

static evc_status
receive(evc_coord *c, void *arg)
{
	struct receiver *r = arg;
	char byte;

	(void)c;
	atomic_store(&r->tid, own_tid());
	while (read(r->fd[0], &byte, 1) != 1)
		;
	return 0;
}

START_TEST(the_thread_of_a_member)
{
	struct receiver r = { .tid = 0 };
	evc_coord *c;
	json_t *t;

	if (t_under_tsan())
		T_SKIP("to it, a handler runs when a call returns");
	STACKS_BY(0);
	c = new_coord(NULL);
	OK(socketpair(AF_UNIX, SOCK_STREAM, 0, r.fd));
	OK(evc_thread_start(c, "receiver", receive, &r, NULL, NULL));
	UNTIL(atomic_load(&r.tid) != 0);
	until_asleep(atomic_load(&r.tid));
	ck_assert(json_is_null(at(member(c, "receiver"), "thread")));
	OK(evc_request_stop(c, 0, NULL));
	t = at(member(c, "receiver"), "thread");
	ck_assert_int_eq((int)number_at(t, "tid"), atomic_load(&r.tid));
	ck_assert_str_eq(string_at(t, "state"), "S");
	ck_assert_str_eq(string_at(t, "state_name"), "sleeping");
	ck_assert_str_eq(string_at(t, "syscall"), "read");
	ck_assert(json_is_false(at(t, "blocks_signal")));
	ck_assert_uint_gt(json_array_size(at(t, "stack")), 1);
	ck_assert(json_is_null(at(t, "no_stack")));
	ck_assert_int_eq(send(r.fd[1], "x", 1, 0), 1);
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
	close(r.fd[0]);
	close(r.fd[1]);
}
END_TEST

START_TEST(loops_and_what_lives_on_them)
{
	struct zoo z;
	json_t *l;

	zoo_make(&z, "zoo");
	l = named(at(coordinator(z.c), "loops"), "home");
	ck_assert_ptr_nonnull(l);
	ck_assert_int_eq((int)number_at(l, "tid"), own_tid());
	ck_assert_str_eq(string_at(l, "state"), "turning");
	ck_assert(json_is_null(at(l, "since"))); /* nobody has run it */
	ck_assert(json_is_null(at(l, "in"))); /* it turns */
	ck_assert(json_is_null(at(l, "in_name")));
	ck_assert_int_eq((int)number_at(l, "tasks"), 1);
	ck_assert_int_eq((int)number_at(l, "loopers"), 1);
	ck_assert(json_is_null(at(l, "progress")));
	ck_assert(json_is_null(at(l, "thread")));
	ev_run(z.loop, EVRUN_NOWAIT);
	OK(evc_request_stop(z.c, 0, NULL));
	l = named(at(coordinator(z.c), "loops"), "home");
	ck_assert_str_eq(string_at(l, "state"), "silent");
	ck_assert_double_ge(number_at(l, "since"), 0);
	ck_assert_int_eq(json_is_true(at(l, "at_least")), t_on_epoll());
	zoo_end(&z);
}
END_TEST

/* ---- it is JSON, whatever bytes there are ---- */

static void
name_reads_as(const char *name, const char *read)
{
	evc_config cfg = { .name = name };
	evc_coord *c = new_coord_with(NULL, &cfg);
	evc_id id = 0;

	OK(evc_hold_begin(c, name, NULL, &id));
	ck_assert_str_eq(string_at(coordinator(c), "name"), read);
	ck_assert_ptr_nonnull(named(at(coordinator(c), "members"), read));
	OK(evc_hold_end(c, id));
	OK(evc_request_stop(c, 0, name));
	ck_assert_str_eq(string_at(json_array_get(at(coordinator(c), "reasons"),
						  0),
				   "text"),
			 read);
	OK(evc_free(c));
}

#define WRONG "\xef\xbf\xbd" /* U+FFFD */

START_TEST(names_come_back_as_they_are)
{
	name_reads_as("plain", "plain");
	name_reads_as("a \"quoted\" one", "a \"quoted\" one");
	name_reads_as("back\\slash/", "back\\slash/");
	name_reads_as("lines\nand\ttabs\r\b\f", "lines\nand\ttabs\r\b\f");
	name_reads_as("\x01\x1f\x7f", "\x01\x1f\x7f");
	name_reads_as("gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f");
	name_reads_as("\xe2\x82\xac \xf0\x9f\x98\x80",
		      "\xe2\x82\xac \xf0\x9f\x98\x80");
}
END_TEST

START_TEST(what_is_no_UTF_8_is_replaced)
{
	name_reads_as("a\xff" "b", "a" WRONG "b");
	name_reads_as("\x80", WRONG);
	name_reads_as("cut \xc3", "cut " WRONG);
	name_reads_as("cut \xe2\x82", "cut " WRONG WRONG);
	name_reads_as("\xe2\x82" "x", WRONG WRONG "x");
	/* longer than need be: a slash in two bytes, and in three */
	name_reads_as("\xc0\xaf", WRONG WRONG);
	name_reads_as("\xe0\x80\xaf", WRONG WRONG WRONG);
	name_reads_as("\xf0\x80\x80\xaf", WRONG WRONG WRONG WRONG);
	/* half of a pair of UTF-16, and beyond the end */
	name_reads_as("\xed\xa0\x80", WRONG WRONG WRONG);
	name_reads_as("\xf4\x90\x80\x80", WRONG WRONG WRONG WRONG);
	name_reads_as("\xf8\x88\x80\x80\x80", WRONG WRONG WRONG WRONG WRONG);
}
END_TEST

START_TEST(numbers_have_a_point_in_every_locale)
{
	static const char *const comma[] = { "de_DE.UTF-8", "de_DE.utf8",
					     "fr_FR.UTF-8", "de_DE" };
	evc_coord *c = new_coord(NULL);
	size_t i;

	for (i = 0; i < sizeof(comma) / sizeof(comma[0]); i++)
		if (setlocale(LC_NUMERIC, comma[i]) != NULL)
			break;
	if (i == sizeof(comma) / sizeof(comma[0])) {
		OK(evc_free(c));
		T_SKIP("no locale with a comma is installed");
	}
	ck_assert_str_eq(localeconv()->decimal_point, ",");
	check_all(parsed(c));
	ck_assert_ptr_null(strstr(whole(report_metrics, c), "0,"));
	OK(evc_free(c));
}
END_TEST

API_MAIN("report_json", every_field_is_there_with_its_type, the_object_itself,
	 each_kind_of_member, a_hook_that_was_called, ages_go_by_the_clock,
	 state_round_and_counts_of_a_coordinator,
	 reasons_with_all_that_came_with_them,
	 the_ladder_and_what_it_did_to_a_member,
	 a_veto_with_its_member_and_by_itself, the_thread_of_a_member,
	 loops_and_what_lives_on_them, names_come_back_as_they_are,
	 what_is_no_UTF_8_is_replaced, numbers_have_a_point_in_every_locale)

#else

int
main(void)
{
	printf("SKIP report_json: built without jansson\n");
	return 77;
}

#endif
