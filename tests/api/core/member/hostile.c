/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names and texts that nobody expects - ends of lines, controls, bytes that are
 * no UTF-8, what looks like the format - through every output: a line of a text
 * for people stays one line, and each format of a machine is well-formed.
 */
#include "../../../support/report_util.h"
#include "../../../support/systemd_util.h"
#include "../../../support/trace_util.h"
#include "../../../support/workers_util.h"

static const char *const hostile[] = {
	"harmless",
	"a\nforged: line",
	"\n",
	"forged\n",
	"\r\nforged\r",
	"\t\x01\x0b\x1f\x7f",
	"\x1b[2J\x1b]0;forged\x07",
	"one\xc2\x85two\xc2\x9b""2J",
	"one\xe2\x80\xa8two\xe2\x80\xaethree",
	"\xff\xfe",
	"cut \xe2\x82",
	"\xc0\xaf \xed\xa0\x80 \xf4\x90\x80\x80",
	"\xef\xbf\xbd",
	"\"} 1\nforged\\",
	"{}[],:\"\\\"",
	"</text><script>&amp;]]>",
	"%s%n%1000d%",
	"READY=1\nforged=1",
	"a/b#2",
	"gr\xc3\xb6\xc3\x9f""e \xf0\x9f\x90\xa2",
	"a long one for a group \xe2\x82\xac",
};

enum { N_HOSTILE = sizeof(hostile) / sizeof(hostile[0]) };

static const char *name;

/* ---- what well-formed is ---- */

/* ck_assert writes its place to a pipe, which is slow for each character. */
#define SURE(ok, ...) \
	do { \
		if (!(ok)) \
			ck_abort_msg(__VA_ARGS__); \
	} while (0)

static size_t
utf8(const unsigned char *s)
{
	size_t n = s[0] < 0x80 ? 1 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4, i;

	if (s[0] >= 0x80 && (s[0] < 0xc2 || s[0] > 0xf4))
		return 0;
	for (i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

/* UTF-8; for people: no controls but the ends of lines that are ours, and none
   of the lines is one that a name began. */
static void
is_text(const char *text, const char *what, bool people)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t n;

	for (; *s != '\0'; s += n) {
		n = utf8(s);
		SURE(n > 0, "%s: no UTF-8 at \"%.30s\"", what, s);
		if (!people)
			continue;
		SURE(*s == '\n' || (*s >= ' ' && *s != 0x7f),
			      "%s: a control in \"%s\"", what, text);
		SURE(*s != 0xc2 || s[1] >= 0xa0,
			      "%s: a control in \"%s\"", what, text);
		SURE(memcmp(s, "\xe2\x80\xa8", n) != 0 &&
				      memcmp(s, "\xe2\x80\xae", n) != 0,
			      "%s: \"%s\"", what, text);
	}
	SURE(!people || strstr(text, "\nforged") == NULL,
		      "%s: forged: \"%s\"", what, text);
}

static void
is_line(const char *text, const char *what)
{
	is_text(text, what, true);
	SURE(strchr(text, '\n') == NULL, "%s: \"%s\"", what, text);
}

/* Strings end, brackets match, and nothing is in a string that may not be. */
static void
is_json(const char *text, const char *what)
{
	char open[64];
	int depth = 0;
	const char *s;

	is_text(text, what, false);
	for (s = text; *s != '\0'; s++) {
		if (*s == '{' || *s == '[') {
			SURE(depth < 64, "%s: \"%s\"", what, text);
			open[depth++] = *s == '{' ? '}' : ']';
		} else if (*s == '}' || *s == ']')
			SURE(depth > 0 && open[--depth] == *s,
				      "%s: \"%s\"", what, text);
		else if (*s == '"')
			for (s++; *s != '"'; s++) {
				SURE((unsigned char)*s >= ' ', "%s: %s",
					      what, text);
				s += *s == '\\';
			}
	}
	SURE(depth == 0, "%s: \"%s\"", what, text);
}

static int
by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Comments, and samples "NAME{LABEL="VALUE",...} NUMBER", none of them twice. */
static void
is_metrics(const char *text, const char *what)
{
	static char *sample[20000];
	char *copy = strdup(text), *line, *rest = copy, *s;
	size_t n = 0, i;

	is_text(text, what, false);
	while ((line = strsep(&rest, "\n")) != NULL) {
		if (line[0] == '#' || line[0] == '\0')
			continue;
		SURE(strncmp(line, "evcoord_", 8) == 0, "%s: \"%s\"",
			      what, line);
		s = line + strcspn(line, "{");
		while (*s == '{' || *s == ',') {
			s += 1 + strspn(s + 1, "abcdefghijklmnopqrstuvwxyz");
			SURE(strncmp(s, "=\"", 2) == 0, "%s: \"%s\"",
				      what, line);
			for (s += 2; *s != '"' && *s != '\0'; s++)
				s += *s == '\\' && s[1] != '\0';
			s += *s == '"';
		}
		SURE(strncmp(s, "} ", 2) == 0 && strlen(s + 2) > 0 &&
				      strspn(s + 2, "-+.0123456789eInfNa") ==
					      strlen(s + 2),
			      "%s: \"%s\"", what, line);
		*s = '\0';
		SURE(n < 20000, "%s: too long", what);
		sample[n++] = line;
	}
	qsort(sample, n, sizeof(sample[0]), by_text);
	for (i = 1; i < n; i++)
		SURE(strcmp(sample[i - 1], sample[i]) != 0,
			      "%s: twice: %s", what, sample[i]);
	free(copy);
}

/* ---- a coordinator in which everything is called that ---- */

struct all {
	struct ev_loop *loop;
	evc_coord *c, *scope, *twin, *below;
	struct guest guest;
	evc_task task;
	evc_task_class cls;
	evc_id hold, below_hold;
	struct manager manager;
	atomic_int running, lines;
};

static void
log_line(int level, const char *line, const evc_reason *r, void *arg)
{
	struct all *a = arg;

	(void)level;
	(void)r;
	is_line(line, "log");
	atomic_fetch_add(&a->lines, 1);
}

static bool
is_running(void *arg)
{
	return atomic_load(&((struct all *)arg)->running);
}

static void
describe(char *buf, size_t n, void *arg)
{
	(void)arg;
	snprintf(buf, n, "%s", name);
}

static evc_status
stay_somewhere(evc_coord *c, void *arg)
{
	pthread_setname_np(pthread_self(), "\n\xff""forged");
	evc_progress(name);
	return stay(c, arg);
}

static void
make(struct all *a)
{
	static const evc_runner_ops ops = { .is_running = is_running,
					    .describe = describe };
	evc_config cfg = { .name = name,
			   .log = log_line,
			   .arg = a };
	evc_member_opts own = { .flags = EVC_OWN_THREAD };
	evc_escalation_opts escalation = { .budget = 100, .hard_end = 200 };
	evc_systemd_opts sd = { .watchdog = -1, .status_every = 0.001 };

	atomic_store(&a->running, 1);
	a->loop = ev_loop_new(0);
	a->c = new_coord_with(a->loop, &cfg);
	a->cls.name = name;
	OK(evc_escalation_set(a->c, &escalation));
	manager_begin(&a->manager, true);
	sd.socket = a->manager.name;
	OK(evc_systemd_start(a->c, &sd));
	(void)evc_systemd_ready(a->c, name);
	OK(evc_trace_start(a->c, 0));
	OK(evc_thread_start(a->c, name, stay_somewhere, &a->guest, NULL, NULL));
	OK(evc_looper_start(a->c, name, 100, return_at_once, NULL, NULL, NULL));
	OK(evc_looper_start(a->c, name, 100, return_at_once, NULL, &own, NULL));
	OK(evc_runner_add(a->c, name, &ops, a, NULL, NULL));
	OK(evc_hold_begin(a->c, name, NULL, &a->hold));
	OK(evc_on_stop(a->c, name, return_at_once, NULL, NULL, NULL));
	OK(evc_task_begin(evc_home(a->c), &a->task, &a->cls));
	OK(evc_scope_new(a->c, name, NULL, &a->scope));
	OK(evc_scope_new(a->c, name, NULL, &a->twin));
	OK(evc_scope_new(a->scope, name, NULL, &a->below));
	OK(evc_scope_ready(a->below));
	OK(evc_scope_ready(a->scope));
	OK(evc_scope_ready(a->twin));
	OK(evc_hold_begin(a->below, name, NULL, &a->below_hold));
	UNTIL(atomic_load(&a->guest.in) == 1);
}

static void
all_outputs(struct all *a)
{
	is_text(whole(report_text, a->c), "report", true);
	is_line(whole(evc_explain, a->c), "explain");
	is_line(whole(evc_explain, a->below), "explain");
	is_json(whole(report_json, a->c), "json");
	is_metrics(whole(report_metrics, a->c), "metrics");
}

static void
trace_output(struct all *a)
{
	char *text = traced(a->c, EVC_TRACE_JSON);

	is_json(text, "trace");
	free(text);
	text = drawn(a->c, __func__);
	if (text != NULL) {
		is_text(text, "picture", false);
		ck_assert_ptr_null(strstr(text, "<script"));
	}
	free(text);
}

/* Datagrams of lines "KEY=...", none of which a name has begun. */
static void
service_manager(struct all *a)
{
	struct manager *m = &a->manager;
	int i;

	UNTIL(manager_heard(m, "STATUS=stopping: "));
	for (i = 0; i < m->n; i++)
		is_text(m->said[i], "service manager", true);
	/* It is our own last word. */
	ck_assert_int_eq(manager_count(m, "READY=1"),
			 strchr(name, '\n') == NULL);
	manager_end(m);
}

/* Told by a stop, kept, refused, extended, late; and at last gone. */
static void
stop_and_end(struct all *a)
{
	evc_join_opts short_one = { .grace = 0.01 };
	evc_reason r;
	evc_verdict v;

	all_outputs(a);
	OK(evc_request_stop_at(a->c, 0, name, name, 1, name));
	ck_assert_int_eq(evc_fail_at(a->c, EVC_DATA_LOSS, 5, name, 1, name,
				     "%s", name),
			 EVC_DATA_LOSS);
	OK(evc_extend_stop(a->c, a->hold, 0.001, name, NULL));
	all_outputs(a);
	ck_assert_int_eq(evc_join(a->c, &short_one, &v), EVC_DATA_LOSS);
	ck_assert_uint_gt(v.n_stragglers, 0);
	all_outputs(a);
	service_manager(a);
	REFUSED(EVC_FAILED_PRECONDITION, evc_free(a->c));
	is_line(evc_last_error(), "last error");
	REFUSED(EVC_FAILED_PRECONDITION, evc_clear_stop(a->c));
	is_line(evc_last_error(), "last error");
	/* What was said is given back as it was said. */
	OK(evc_reason_get(a->c, 0, &r));
	ck_assert_str_eq(r.text, name);
	atomic_store(&a->guest.open, 1);
	atomic_store(&a->running, 0);
	evc_task_end(&a->task);
	OK(evc_hold_end(a->c, a->hold));
	OK(evc_hold_end(a->below, a->below_hold));
	ck_assert_int_eq(evc_join(a->c, NULL, NULL), EVC_DATA_LOSS);
	trace_output(a);
	OK(evc_free(a->below));
	OK(evc_free(a->scope));
	OK(evc_free(a->twin));
	OK(evc_free(a->c));
	ck_assert_int_gt(atomic_load(&a->lines), 2);
	ev_loop_destroy(a->loop);
}

START_TEST(of_a_coordinator)
{
	struct all a = { 0 };

	name = hostile[_i];
	make(&a);
	stop_and_end(&a);
}
END_TEST

static const char *
of_registry(tell_fn *tell, evc_registry *reg)
{
	static char text[1 << 18];

	ck_assert_uint_lt(tell(evc_registry_coord(reg), text, sizeof(text)),
			  sizeof(text));
	return text;
}

static evc_status
fail_by_name(evc_group *group, unsigned id, void *arg)
{
	crew_enter(group, id, arg);
	return crew_leave(arg, evc_fail(evc_group_scope(group), EVC_DATA_LOSS,
					0, "%s", name));
}

START_TEST(of_a_registry)
{
	evc_registry *reg = new_registry(0);
	struct crew k[3] = { { .run = fail_by_name },
			     { .run = crew_obey },
			     { .run = crew_obey } };

	name = hostile[_i];
	crew_add(reg, name, &k[0], 2, NULL);
	crew_add(reg, name, &k[1], 1, NULL);
	crew_add(reg, "plain", &k[2], 1, NULL);
	OK(evc_group_put(k[1].group, name, 1, true));
	OK(evc_group_put(k[1].group, "plain", 2, true));
	OK(evc_registry_start(reg));
	STATE_COMES(k[0].group, EVC_GROUP_STOPPED);
	is_text(of_registry(report_text, reg), "report", true);
	is_json(of_registry(report_json, reg), "json");
	is_metrics(of_registry(report_metrics, reg), "metrics");
	end_registry(reg);
}
END_TEST

/* What programs hand to the ready functions is a line, too. */
START_TEST(of_the_log_on_standard_error)
{
	int ends[2], former = dup(STDERR_FILENO);
	evc_reason r = { .code = EVC_DATA_LOSS, .line = 1 };
	char text[4096];
	ssize_t n;

	name = hostile[_i];
	snprintf(r.who, sizeof(r.who), "%s", name);
	snprintf(r.text, sizeof(r.text), "%s", name);
	snprintf(r.file, sizeof(r.file), "%s", name);
	snprintf(r.func, sizeof(r.func), "%s", name);
	OK(pipe(ends));
	fflush(stderr);
	ck_assert_int_eq(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
	evc_log_stderr(EVC_LOG_ERROR, name, &r, NULL);
	ck_assert_int_eq(dup2(former, STDERR_FILENO), STDERR_FILENO);
	n = read(ends[0], text, sizeof(text) - 1);
	ck_assert_int_gt(n, 1);
	text[n - 1] = '\0';
	is_line(text, "standard error");
	close(ends[0]);
	close(ends[1]);
	close(former);
}
END_TEST

START_TEST(a_refusal_may_say_what_was_refused_before)
{
	char before[300];

	REFUSED(EVC_INVALID_ARGUMENT, evc_request_stop(NULL, 0, NULL));
	snprintf(before, sizeof(before), "again: %s", evc_last_error());
	evc_refuse(-EVC_UNKNOWN, "again: %s", evc_last_error());
	ck_assert_str_eq(evc_last_error(), before);
	evc_refuse(-EVC_UNKNOWN, "%s", evc_last_error());
	ck_assert_str_eq(evc_last_error(), before);
}
END_TEST

/* A text that is too long ends with a whole letter. */
START_TEST(what_is_cut_is_cut_between_letters)
{
	evc_coord *c = new_coord(NULL);
	char text[512] = "", *end = text;
	evc_reason r;
	int i;

	for (i = 0; i < 100; i++)
		end += sprintf(end, "\xe2\x82\xac");
	for (i = 0; i < 3; i++) {
		OK(evc_request_stop(c, 0, text));
		OK(evc_reason_get(c, 0, &r));
		is_text(r.text, "reason", true);
		ck_assert_uint_gt(strlen(r.text), 180);
		evc_refuse(-EVC_UNKNOWN, "%s", text);
		is_line(evc_last_error(), "last error");
		OK(evc_clear_stop(c));
		ck_assert_int_eq(evc_fail(c, EVC_UNKNOWN, 0, "%s", text),
				 EVC_UNKNOWN);
		OK(evc_reason_get(c, 0, &r));
		is_text(r.text, "reason", true);
		ck_assert_uint_gt(strlen(r.text), 180);
		OK(evc_clear_stop(c));
		memmove(text + 1, text, strlen(text) + 1);
		text[0] = 'x';
	}
	OK(evc_free(c));
}
END_TEST

T_MAIN("hostile", NULL, NULL,
       T_TIMES(of_a_coordinator, N_HOSTILE),
       T_TIMES(of_a_registry, N_HOSTILE),
       T_TIMES(of_the_log_on_standard_error, N_HOSTILE),
       T_ONCE(a_refusal_may_say_what_was_refused_before),
       T_ONCE(what_is_cut_is_cut_between_letters))
