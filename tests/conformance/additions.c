/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Additions of plain functions that do not want the sum.  Nobody waits for them,
 * and yet they are made in the order of what the function does, soon, also when
 * the function fails; an impossible one fails its function at the end.
 */
#include "conformance.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "calls.h"
#include "steps.h"

#define NAMES 100

/* [name]: 2 + 3, then a read; a set to 10, 4 more, a read; and 1 -> both */
static evc_status
fn_ordered(evc_exec *x, void *arg)
{
	char name[64];
	int64_t first, second;

	(void)arg;
	if (evc_exec_unpack(x, "[s]", name, sizeof(name)) < 0 ||
	    evc_exec_variable_add(x, name, 2, NULL) < 0 ||
	    evc_exec_variable_add(x, name, 3, NULL) < 0 ||
	    read_number(x, name, &first) < 0 ||
	    evc_exec_variable_add(x, name, 100, NULL) < 0 ||
	    set_number(x, name, 10) < 0 ||
	    evc_exec_variable_add(x, name, 4, NULL) < 0 ||
	    read_number(x, name, &second) < 0 ||
	    evc_exec_variable_add(x, name, 1, NULL) < 0)
		return refused(x);
	return evc_exec_return(x, "I", first * 100 + second);
}

/* [code]: adds to "fine", to a text, and to "also"; then says that code */
static evc_status
fn_spoiled(evc_exec *x, void *arg)
{
	int code;

	(void)arg;
	if (evc_exec_unpack(x, "[i]", &code) < 0 ||
	    evc_exec_variable_add(x, "fine", 1, NULL) < 0 ||
	    evc_exec_variable_add(x, "text", 1, NULL) < 0)
		return refused(x);
	return code != 0 ? evc_exec_fail(x, code, "said by the function") : 0;
}

/* The same, but it waits until the addition is made. */
static evc_status
fn_asks_behind(evc_exec *x, void *arg)
{
	int64_t n;

	(void)arg;
	if (evc_exec_variable_add(x, "text", 1, NULL) < 0 ||
	    read_number(x, "fine", &n) < 0)
		return refused(x);
	return evc_exec_return(x, "I", n);
}

/* [name]: adds, and fails */
static evc_status
fn_adds_and_fails(evc_exec *x, void *arg)
{
	char name[64];

	(void)arg;
	if (evc_exec_unpack(x, "[s]", name, sizeof(name)) < 0 ||
	    evc_exec_variable_add(x, name, 1, NULL) < 0)
		return refused(x);
	return evc_exec_fail(x, EVC_ABORTED, "after its addition");
}

/* [times]: adds to NAMES variables, so many times, each by its number */
static evc_status
fn_many(evc_exec *x, void *arg)
{
	char name[16];
	int i, times;

	(void)arg;
	if (evc_exec_unpack(x, "[i]", &times) < 0)
		return refused(x);
	for (; times > 0; times--)
		for (i = 0; i < NAMES; i++) {
			snprintf(name, sizeof(name), "v%d", i);
			if (evc_exec_variable_add(x, name, i, NULL) < 0)
				return refused(x);
		}
	return 0;
}

/* [file]: says that it is here, and waits until the file is there, without a
   call of the library */
static evc_status
fn_arrives(evc_exec *x, void *arg)
{
	char file[100];
	struct stat st;

	(void)arg;
	if (evc_exec_unpack(x, "[s]", file, sizeof(file)) < 0 ||
	    evc_exec_variable_add(x, "here", 1, NULL) < 0 ||
	    evc_exec_variable_add(x, "also", 1, NULL) < 0)
		return refused(x);
	while (stat(file, &st) < 0)
		t_sleep(0.001);
	return evc_exec_variable_add(x, "went", 1, NULL) < 0 ? refused(x) : 0;
}

/* [file]: adds to many variables, until the file is there; how many times */
static evc_status
fn_keeps_adding(evc_exec *x, void *arg)
{
	char file[100], name[16];
	struct stat st;
	int64_t n = 0;
	int i;

	(void)arg;
	if (evc_exec_unpack(x, "[s]", file, sizeof(file)) < 0)
		return refused(x);
	for (; stat(file, &st) < 0; n++) {
		for (i = 0; i < 200; i++) {
			snprintf(name, sizeof(name), "k%d", i);
			if (evc_exec_variable_add(x, name, 1, NULL) < 0)
				return refused(x);
		}
		t_sleep(0.001);
	}
	return evc_exec_return(x, "I", n);
}

/* [n, bytes]: adds to n variables, and returns so many bytes */
static evc_status
fn_adds_and_returns(evc_exec *x, void *arg)
{
	char name[64], *bytes;
	evc_status st;
	int i, n, size;

	(void)arg;
	if (evc_exec_unpack(x, "[ii]", &n, &size) < 0)
		return refused(x);
	for (i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "room %050d", i);
		if (evc_exec_variable_add(x, name, 1, NULL) < 0)
			return refused(x);
	}
	bytes = calloc(1, (size_t)size);
	st = evc_exec_return(x, "B", bytes, (size_t)size);
	free(bytes);
	return st < 0 ? refused(x) : 0;
}

/* ---- rows ---- */

START_TEST(additions_keep_their_place)
{
	int i;

	begin(_i, 2);
	for (i = 0; i < 50; i++) {
		char name[16];

		snprintf(name, sizeof(name), "n%d", i);
		IS(take_number(SCHEDULE("ordered", "[s]", name)), 514);
		ck_assert(variable(name) == 15);
	}
	OK(join());
}
END_TEST

static void
set_text(const char *name)
{
	evc_value v;

	OK(evc_pack(&v, "s", "no number"));
	OK(evc_variable_set(on.cl, name, &v));
	evc_value_free(&v);
}

/* The function fails so, and the cluster says it once. */
static void
fails(evc_remote *r, evc_status code, const char *text)
{
	IS(code_of(r), code);
	HAS(info_of(r).text, text);
	evc_remote_free(r);
	IS(join(), code);
}

START_TEST(an_impossible_addition_fails_its_function)
{
	begin(_i, 1);
	set_text("text");
	fails(SCHEDULE("spoiled", "[i]", 0), EVC_INVALID_ARGUMENT,
	      "variable text is no number");
	/* What the function says itself comes first. */
	fails(SCHEDULE("spoiled", "[i]", EVC_DATA_LOSS), EVC_DATA_LOSS,
	      "said by the function");
	fails(SCHEDULE("asks behind", "[]"), EVC_INVALID_ARGUMENT,
	      "variable text is no number");
	/* The worker goes on, and remembers nothing of it. */
	IS(take_number(SCHEDULE("ordered", "[s]", "x")), 514);
	OK(join());
}
END_TEST

START_TEST(a_function_that_fails_has_added)
{
	int i;

	begin(_i, 1);
	for (i = 1; i <= 20; i++) {
		fails(SCHEDULE("adds and fails", "[s]", "x"), EVC_ABORTED,
		      "after its addition");
		ck_assert(variable("x") == i);
	}
	OK(join());
}
END_TEST

START_TEST(many_variables_and_many_additions)
{
	char name[16];
	int i, n = t_many(40);

	begin(_i, 2);
	for (i = 0; i < n; i++)
		OK(evc_schedule_pack(on.cl, "many", NULL, NULL, "[i]", 5));
	OK(join());
	for (i = 0; i < NAMES; i++) {
		snprintf(name, sizeof(name), "v%d", i);
		ck_assert(variable(name) == 5 * n * i);
	}
	ck_assert_uint_eq(evc_cluster_finished(on.cl), (unsigned)n);
}
END_TEST

START_TEST(an_addition_is_seen_while_its_function_goes_on)
{
	char there[] = "/tmp/evc-there-XXXXXX", later[] = "/tmp/evc-later-XXXXXX";
	evc_remote *r;
	int i, fd = mkstemp(there);

	ck_assert_int_ge(fd, 0);
	close(fd);
	fd = mkstemp(later);
	ck_assert_int_ge(fd, 0);
	close(fd);
	OK(unlink(later));
	begin(_i, 1);
	/* Most runs are quick. */
	for (i = 0; i < 100; i++)
		OK(evc_schedule_pack(on.cl, "arrives", NULL, NULL, "[s]",
				     there));
	OK(join());
	ck_assert(variable("went") == 100);
	r = SCHEDULE("arrives", "[s]", later);
	UNTIL(variable("here") == 101 && variable("also") == 101);
	ck_assert(variable("went") == 100);
	OK(rename(there, later));
	IS(code_of(r), 0);
	ck_assert(variable("went") == 101);
	evc_remote_free(r);
	OK(join());
	OK(unlink(later));
}
END_TEST

/* There are thousands of answers. */
START_TEST(a_function_adds_for_as_long_as_it_likes)
{
	char file[] = "/tmp/evc-later-XXXXXX";
	evc_remote *r;
	int64_t n;
	int fd = mkstemp(file);

	ck_assert_int_ge(fd, 0);
	close(fd);
	OK(unlink(file));
	begin(_i, 1);
	r = SCHEDULE("keeps adding", "[s]", file);
	UNTIL(variable("k0") >= t_many(60));
	fd = open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	close(fd);
	n = number_of(r);
	ck_assert(variable("k0") == n && variable("k199") == n);
	ck_assert_uint_eq(info_of(r).attempts, 1);
	evc_remote_free(r);
	OK(join());
	OK(unlink(file));
}
END_TEST

/* Additions without room in the frame of a result go by themselves. */
START_TEST(a_small_frame)
{
	evc_cluster_config k = { .max_frame = 4096 };

	begin_with(_i, 1, &k);
	DO("adds and returns", "[ii]", 200, 10);
	DO("adds and returns", "[ii]", 3, 3900);
	OK(join());
	ck_assert(variable("room 00000000000000000000000000000000000000000000"
			   "000000") == 2);
	ck_assert(variable("room 00000000000000000000000000000000000000000000"
			   "000199") == 1);
}
END_TEST

static const evc_function functions[] = {
	COMMON_FUNCTIONS,
	{ .name = "keeps adding", .fn = fn_keeps_adding },
	{ .name = "adds and returns", .fn = fn_adds_and_returns },
	{ .name = "ordered", .fn = fn_ordered },
	{ .name = "spoiled", .fn = fn_spoiled },
	{ .name = "asks behind", .fn = fn_asks_behind },
	{ .name = "adds and fails", .fn = fn_adds_and_fails },
	{ .name = "many", .fn = fn_many },
	{ .name = "arrives", .fn = fn_arrives },
};

CONFORMANCE_MAIN("additions", functions,
		 ROW(additions_keep_their_place),
		 ROW(an_impossible_addition_fails_its_function),
		 ROW(a_function_that_fails_has_added),
		 ROW(many_variables_and_many_additions),
		 ROW(an_addition_is_seen_while_its_function_goes_on),
		 ROW(a_function_adds_for_as_long_as_it_likes),
		 ROW(a_small_frame))
