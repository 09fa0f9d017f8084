/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The timeline as a picture, drawn by evc-trace: rendered by rsvg-convert, and
 * read by an XML parser for its lanes and their times.
 */
#include "../../support/trace_util.h"
#include "../../support/scope_util.h"

/* ---- tools ---- */

/* The command for a tool that configure has looked for; NULL: it is not
   there. */
static const char *
tool(const char *variable, const char *name)
{
	const char *path = getenv(variable);
	char look[128];

	if (path != NULL)
		return path[0] != '\0' ? path : NULL;
	snprintf(look, sizeof(look), "command -v %s >/dev/null", name);
	return system(look) == 0 ? name : NULL;
}

static const char *
xmllint(void)
{
	return tool("XMLLINT", "xmllint");
}

/* What xmllint answers to an XPath expression. */
static void
ask(const char *path, char *to, size_t room, const char *xpath)
{
	char line[1024];
	size_t n;
	FILE *f;

	ck_assert_ptr_null(strchr(xpath, '\''));
	snprintf(line, sizeof(line), "%s --nonet --xpath '%s' %s", xmllint(),
		 xpath, path);
	f = popen(line, "r");
	ck_assert_ptr_nonnull(f);
	n = fread(to, 1, room - 1, f);
	to[n] = '\0';
	ck_assert_msg(pclose(f) == 0, "%s: %s", line, to);
}

static uint64_t
ask_number(const char *path, const char *xpath)
{
	char text[64];

	ask(path, text, sizeof(text), xpath);
	ck_assert_msg(text[0] >= '0' && text[0] <= '9', "%s is no number: %s",
		      xpath, text);
	return strtoull(text, NULL, 10);
}

/* An attribute of the lane of that name. */
static uint64_t
lane_number(const char *path, const char *name, const char *attribute)
{
	char xpath[256];

	snprintf(xpath, sizeof(xpath),
		 "string(//*[@class=\"lane\"][@data-name=\"%s\"]/@data-%s)",
		 name, attribute);
	return ask_number(path, xpath);
}

static unsigned
count(const char *path, const char *what)
{
	char xpath[256];

	snprintf(xpath, sizeof(xpath), "count(%s)", what);
	return (unsigned)ask_number(path, xpath);
}

/* ---- what is drawn ---- */

/* Every bar stands where its times say, to a pixel. */
static void
bars_stand_right(const char *path)
{
	static char all[1 << 20];
	uint64_t from = ask_number(path, "string(/*/@data-from)");
	uint64_t to = ask_number(path, "string(/*/@data-to)");
	double px = 740.0 / (double)(to - from), x, w;
	unsigned long long a, b;
	const char *at = all;
	unsigned n = 0;

	ask(path, all, sizeof(all), "//*[@data-from][@x]");
	while ((at = strstr(at, "data-from=")) != NULL) {
		double left, right;

		ck_assert_int_eq(sscanf(at, "data-from=\"%llu\" data-to=\"%llu\""
					" x=\"%lf\" y=\"%*d\" width=\"%lf\"",
					&a, &b, &x, &w), 4);
		left = a < from ? 250 : 250 + (double)(a - from) * px;
		right = b > to ? 990 : 250 + (double)(b - from) * px;
		ck_assert_msg(fabs(x - left) < 0.2, "%f, not %f", x, left);
		/* At least a pixel; who runs on runs out of the picture. */
		ck_assert_msg(fabs(x + w - right) < 1.2 ||
				      fabs(x + w - 990) < 0.2,
			      "%f, not %f", x + w, right);
		at++;
		n++;
	}
	ck_assert_uint_gt(n, 0);
}

/* A PNG of the width and height that the picture has. */
static void
renders(const char *path)
{
	const char *rsvg = tool("RSVG_CONVERT", "rsvg-convert");
	unsigned char head[24] = { 0 };
	char line[512];
	unsigned width, height;
	FILE *f;

	if (rsvg == NULL)
		return;
	snprintf(line, sizeof(line), "%s -f png %s", rsvg, path);
	f = popen(line, "r");
	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fread(head, 1, sizeof(head), f), sizeof(head));
	while (fread(line, 1, sizeof(line), f) > 0)
		;
	ck_assert_int_eq(pclose(f), 0);
	ck_assert_int_eq(memcmp(head, "\x89PNG\r\n\x1a\n", 8), 0);
	width = (unsigned)head[18] << 8 | head[19];
	height = (unsigned)head[22] << 8 | head[23];
	ck_assert_uint_eq(width, 1200);
	if (xmllint() != NULL)
		ck_assert_uint_eq(height,
				  ask_number(path, "string(/*/@height)"));
}

START_TEST(a_picture_is_rendered)
{
	evc_coord *c = new_coord(NULL);
	char path[64];

	if (tool("RSVG_CONVERT", "rsvg-convert") == NULL)
		T_SKIP("rsvg-convert is not installed");
	OK(evc_trace_start(c, 0));
	OK(evc_thread_start(c, "worker", obey, NULL, NULL, NULL));
	draw(c, path);
	renders(path);
	unlink(path);
	OK(evc_request_stop(c, 0, "enough"));
	OK(evc_join(c, NULL, NULL));
	draw(c, path);
	renders(path);
	unlink(path);
	OK(evc_free(c));
}
END_TEST

/* ---- lanes and times ---- */

START_TEST(lanes_and_times_of_a_stop_with_one_who_is_late)
{
	evc_join_opts opts = { .grace = 0.1, .flags = EVC_JOIN_STOP_FIRST };
	evc_config cfg = { .name = "server" };
	evc_coord *c = new_coord_with(NULL, &cfg), *s;
	struct guest g = { 0 };
	uint64_t before = mono_ns(), began, stop, joined, gave_up;
	char path[64], text[4096];

	if (xmllint() == NULL)
		T_SKIP("xmllint is not installed");
	OK(evc_trace_start(c, 0));
	s = ready_scope(c, "database", NULL);
	OK(evc_thread_start(c, "worker", obey, NULL, NULL, NULL));
	OK(evc_thread_start(c, "straggler", stay, &g, NULL, NULL));
	OK(evc_thread_start(s, "writer", obey, NULL, NULL, NULL));
	UNTIL(atomic_load(&g.in) == 1);
	began = mono_ns();
	ck_assert_int_eq(evc_join(c, &opts, NULL), EVC_DEADLINE_EXCEEDED);
	joined = mono_ns();
	draw(c, path);
	renders(path);
	bars_stand_right(path);
	stop = ask_number(path, "string(/*/@data-stop)");
	IN_ORDER(before, lane_number(path, "worker", "begin"), began, stop,
		 lane_number(path, "worker", "end"), joined);
	IN_ORDER(before, lane_number(path, "writer", "begin"), began, stop,
		 lane_number(path, "writer", "end"), joined);
	ck_assert_uint_eq(lane_number(path, "straggler", "alive"), 1);
	/* The stop is a line, and so is the join that gave up. */
	ck_assert_uint_eq(ask_number(path, "string(//*[@class=\"mark stop\"]"
				     "/@data-ns)"), stop);
	gave_up = ask_number(path, "string(//*[@class=\"mark verdict late\"]"
			     "/@data-ns)");
	IN_ORDER(stop, gave_up, joined);
	/* Before it blue, then amber, then red: the states are the colours. */
	ck_assert_uint_eq(ask_number(path,
				     "string(//*[@data-name=\"worker\"]"
				     "/*[@class=\"after\"]/@data-from)"),
			  stop);
	IN_ORDER(stop, ask_number(path, "string(//*[@data-name=\"straggler\"]"
				  "/*[@class=\"late\"]/@data-from)"),
		 gave_up);
	ck_assert_uint_eq(count(path, "//*[@data-name=\"worker\"]"
				"/*[@class=\"late\"]"), 0);
	/* Who is late stands above the others of its scope. */
	ask(path, text, sizeof(text),
	    "string((//*[@data-scope=\"server\"])[1]/@data-name)");
	HAS(text, "straggler");
	ask(path, text, sizeof(text), "string(/*)");
	HAS(text, "a join that stops first");
	HAS(text, "DEADLINE_EXCEEDED");
	HAS(text, "server / database");
	HAS(text, "still running");
	unlink(path);
	atomic_store(&g.open, 1);
	OK(evc_join(c, NULL, NULL));
	draw(c, path);
	bars_stand_right(path);
	IN_ORDER(gave_up, lane_number(path, "straggler", "end"), mono_ns());
	unlink(path);
	OK(evc_free(s));
	OK(evc_free(c));
}
END_TEST

START_TEST(lanes_end_in_their_order)
{
	static const char *const name[] = { "first", "second", "third" };
	evc_coord *c = new_coord(NULL);
	char path[64], text[64];
	evc_id id[3];
	int i;

	if (xmllint() == NULL)
		T_SKIP("xmllint is not installed");
	OK(evc_trace_start(c, 0));
	for (i = 0; i < 3; i++)
		id[i] = hold(c, name[i]);
	OK(evc_request_stop(c, 0, NULL));
	for (i = 0; i < 3; i++)
		OK(evc_hold_end(c, id[i]));
	draw(c, path);
	for (i = 0; i < 3; i++) {
		char xpath[64];

		snprintf(xpath, sizeof(xpath),
			 "string((//*[@class=\"lane\"])[%d]/@data-name)", i + 1);
		ask(path, text, sizeof(text), xpath);
		HAS(text, name[2 - i]);
	}
	unlink(path);
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}
END_TEST

START_TEST(of_many_lanes_the_latest_are_shown)
{
	evc_coord *c = new_coord(NULL);
	evc_id id[300];
	char path[64], name[32], text[4096];
	int i;

	if (xmllint() == NULL)
		T_SKIP("xmllint is not installed");
	OK(evc_trace_start(c, 0));
	for (i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "hold-%d", i);
		id[i] = hold(c, name);
	}
	OK(evc_request_stop(c, 0, NULL));
	for (i = 0; i < 299; i++)
		OK(evc_hold_end(c, id[i]));
	draw(c, path);
	renders(path);
	ck_assert_uint_eq(count(path, "//*[@class=\"lane\"]"), 200);
	ck_assert_uint_eq(ask_number(path, "string(/*/@data-hidden)"), 100);
	ck_assert_uint_eq(count(path, "//*[@data-name=\"hold-99\"]"), 0);
	ck_assert_uint_eq(count(path, "//*[@data-name=\"hold-100\"]"), 1);
	ck_assert_uint_eq(count(path, "//*[@data-name=\"hold-299\"]"), 1);
	ask(path, text, sizeof(text), "string((//*[@class=\"note\"])[last()-1])");
	HAS(text, "100 more lanes");
	unlink(path);
	OK(evc_hold_end(c, id[299]));
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}
END_TEST

START_TEST(without_a_stop_all_of_the_time_is_shown)
{
	evc_coord *c = new_coord(NULL);
	char path[64], text[4096];
	uint64_t before = mono_ns();
	evc_id id;

	if (xmllint() == NULL)
		T_SKIP("xmllint is not installed");
	OK(evc_trace_start(c, 0));
	id = hold(c, "one");
	draw(c, path);
	renders(path);
	bars_stand_right(path);
	IN_ORDER(before, ask_number(path, "string(/*/@data-from)"),
		 lane_number(path, "one", "begin"),
		 ask_number(path, "string(/*/@data-to)"), mono_ns());
	ck_assert_uint_eq(count(path, "/*/@data-stop"), 0);
	ask(path, text, sizeof(text), "string(/*)");
	HAS(text, "No stop was requested");
	unlink(path);
	OK(evc_hold_end(c, id));
	OK(evc_free(c));
}
END_TEST

/* ---- names ---- */

static const char *const names[] = {
	"plain",
	"<svg> & \"quotes\" 'too' ]]>",
	"tab\tand\nline",
	"\x01\x0b\x1f\x7f",
	"gr\303\266\303\237e \xf0\x9f\x90\xa2",
	"bad \xff\xfe \xc0\xaf \xed\xa0\x80",
	"no character \xef\xbf\xbe\xef\xbf\xbf",
	"cut \xe2\x82",
};

START_TEST(any_name_makes_xml)
{
	evc_config cfg = { .name = names[_i] };
	evc_coord *c = new_coord_with(NULL, &cfg), *s;
	char path[64], text[256];

	if (xmllint() == NULL)
		T_SKIP("xmllint is not installed");
	OK(evc_trace_start(c, 0));
	s = ready_scope(c, names[_i], NULL);
	OK(evc_request_stop(c, 0, names[_i]));
	OK(evc_free(s));
	OK(evc_clear_stop(c));
	s = ready_scope(c, names[_i], NULL);
	OK(evc_hold_end(s, hold(s, names[_i])));
	OK(evc_request_stop(c, 0, names[_i]));
	draw(c, path);
	renders(path);
	ask(path, text, sizeof(text),
	    "string(//*[local-name()=\"text\"][@class=\"title\"])");
	if (_i < 2)
		ck_assert_int_eq(strncmp(text, names[_i], strlen(names[_i])),
				 0);
	else
		ck_assert_uint_gt(strlen(text), 1);
	unlink(path);
	OK(evc_free(s));
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}
END_TEST

int
main(void)
{
	Suite *suite;
	TCase *tc;

	if (trace_tool() == NULL) {
		puts("SKIP tests/api/trace_svg: evc-trace is not built without "
		     "jansson");
		return 77;
	}
	suite = suite_create("trace_svg");
	tc = tcase_create("trace_svg");
	tcase_add_test(tc, a_picture_is_rendered);
	tcase_add_test(tc, lanes_and_times_of_a_stop_with_one_who_is_late);
	tcase_add_test(tc, lanes_end_in_their_order);
	tcase_add_test(tc, of_many_lanes_the_latest_are_shown);
	tcase_add_test(tc, without_a_stop_all_of_the_time_is_shown);
	tcase_add_loop_test(tc, any_name_makes_xml, 0,
			    (int)(sizeof(names) / sizeof(names[0])));
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
