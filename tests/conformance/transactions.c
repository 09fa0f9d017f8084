/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Transactional functions are serializable: what becomes of them is what would
 * have become of them one after the other, on any number of workers, whatever
 * they read, and whoever is killed.
 *
 * A file has a byte for each run of a function that notes its runs: its updates
 * cannot say that, because those of a run that was overtaken are not made.
 */
#include "steps.h"

#include <fcntl.h>

enum { TIMES = 2000, ACCOUNTS = 100, MONEY = 100, OVERTAKEN = 8 };

static const evc_schedule_opts whole = { .flags = EVC_TRANSACTIONAL };

/* ---- functions ---- */

/* How many runs there were with this one, as the file says. */
static int
note_run(const char *file)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	struct stat st = { 0 };

	if (fd < 0 || write(fd, "x", 1) != 1 || fstat(fd, &st) < 0)
		abort();
	close(fd);
	return (int)st.st_size;
}


static int64_t
read_loosely(evc_exec *x, const char *name)
{
	evc_value v = { NULL, 0 };
	int64_t n = 0;

	if (evc_exec_variable_get_loose(x, name, &v) == 0 &&
	    evc_unpack(&v, "I", &n) < 0)
		n = -1;
	evc_value_free(&v);
	return n;
}

/* Until somebody has changed it; true: a stop was first. */
static bool
wait_for_change(evc_exec *x, const char *name, int64_t from)
{
	while (read_loosely(x, name) == from)
		if (evc_exec_wait_for_stop(x, 0.001))
			return true;
	return false;
}

/* [name, file, n]: a step, that others overtake in its first n runs; -> as it */
static evc_status
fn_overtaken(evc_exec *x, void *arg)
{
	char name[64], file[100];
	int64_t n;
	int times;

	(void)arg;
	if (evc_exec_unpack(x, "[ssi]", name, sizeof(name), file, sizeof(file),
			    &times) < 0 ||
	    read_number(x, name, &n) < 0)
		return refused(x);
	if (note_run(file) <= times && wait_for_change(x, name, n))
		return EVC_CANCELLED;
	if (set_number(x, name, n + 1) < 0)
		return refused(x);
	return evc_exec_return(x, "I", n + 1);
}

/* [name, file, n]: overtaken in the first n runs; later runs last longer than the
   first patience */
static evc_status
fn_long(evc_exec *x, void *arg)
{
	char name[64], file[100];
	int64_t n;
	int quick;

	(void)arg;
	if (evc_exec_unpack(x, "[ssi]", name, sizeof(name), file, sizeof(file),
			    &quick) < 0 ||
	    read_number(x, name, &n) < 0)
		return refused(x);
	if (note_run(file) > quick)
		t_sleep(1.2);
	else if (wait_for_change(x, name, n))
		return EVC_CANCELLED;
	return set_number(x, name, n + 1) < 0 ? refused(x) : 0;
}

/* [name, file, n]: n bytes, each the number of the variable; overtaken in the
   first run */
static evc_status
fn_bytes(evc_exec *x, void *arg)
{
	char name[64], file[100], *bytes;
	int64_t is;
	int n;
	evc_status st;

	(void)arg;
	if (evc_exec_unpack(x, "[ssi]", name, sizeof(name), file, sizeof(file),
			    &n) < 0 ||
	    read_number(x, name, &is) < 0)
		return refused(x);
	if (note_run(file) == 1 && wait_for_change(x, name, is))
		return EVC_CANCELLED;
	bytes = malloc((size_t)n);
	memset(bytes, (int)is, (size_t)n);
	st = evc_exec_return(x, "B", bytes, (size_t)n);
	free(bytes);
	return st < 0 ? refused(x) : 0;
}

/* [bytes]: the first of them */
static evc_status
fn_first_byte(evc_exec *x, void *arg)
{
	const void *bytes;
	size_t n;

	(void)arg;
	if (evc_exec_unpack(x, "[B]", &bytes, &n) < 0)
		return refused(x);
	return evc_exec_return(x, "I", (int64_t)*(const char *)bytes);
}

/* [name]: a step that takes a while */
static evc_status
fn_slow(evc_exec *x, void *arg)
{
	char name[64];
	int64_t n;

	(void)arg;
	if (evc_exec_unpack(x, "[s]", name, sizeof(name)) < 0 ||
	    read_number(x, name, &n) < 0)
		return refused(x);
	t_sleep(0.02);
	return set_number(x, name, n + 1) < 0 ? refused(x) : 0;
}

/* [name, file]: the same in its first run; then what it has read is an error */
static evc_status
fn_overtaken_fails(evc_exec *x, void *arg)
{
	char name[64], file[100];
	int64_t n;

	(void)arg;
	if (evc_exec_unpack(x, "[ss]", name, sizeof(name), file,
			    sizeof(file)) < 0 ||
	    read_number(x, name, &n) < 0)
		return refused(x);
	if (note_run(file) == 1 && wait_for_change(x, name, n))
		return EVC_CANCELLED;
	return evc_exec_fail(x, EVC_DATA_LOSS, "%lld", (long long)n);
}

/* [name, file]: reads it loosely, until it is another, and counts that */
static evc_status
fn_loose(evc_exec *x, void *arg)
{
	char name[64], file[100];
	int64_t from;

	(void)arg;
	if (evc_exec_unpack(x, "[ss]", name, sizeof(name), file,
			    sizeof(file)) < 0)
		return refused(x);
	from = read_loosely(x, name);
	/* The test changes it from here on. */
	note_run(file);
	if (wait_for_change(x, name, from))
		return EVC_CANCELLED;
	return evc_exec_variable_add(x, "loose", 1, NULL) < 0 ? refused(x) : 0;
}

/* Read a vector in one of three ways: its size, 10 when it has five elements, or
   the status. */
static int
look_at_vector(evc_exec *x, int way)
{
	static const uint32_t fourth = 4;
	double is[5];
	evc_elements e = { .doubles = is, .n = 5 };
	size_t n = 0;
	evc_status st;

	if (way == 0)
		st = evc_exec_vector_size(x, "v", &n);
	else if (way == 1)
		st = evc_exec_vector_get(x, "v", &e);
	else {
		e.at = &fourth;
		e.n = 1;
		st = evc_exec_vector_get(x, "v", &e);
	}
	return st < 0 ? st : way == 0 ? (int)n : 10;
}

/* [way, file]: looks, waits until it was overtaken, looks again; -> both */
static evc_status
fn_look_twice(evc_exec *x, void *arg)
{
	int way, first;
	char file[100];

	(void)arg;
	if (evc_exec_unpack(x, "[is]", &way, file, sizeof(file)) < 0)
		return refused(x);
	first = look_at_vector(x, way);
	note_run(file);
	if (wait_for_change(x, "changed", 0))
		return EVC_CANCELLED;
	return evc_exec_return(x, "[ii]", first, look_at_vector(x, way));
}

/* [name]: one letter more; -> how many */
static evc_status
fn_grow(evc_exec *x, void *arg)
{
	evc_value v = { NULL, 0 };
	char name[64], text[1000] = "";
	size_t n = 0;
	evc_status st;

	(void)arg;
	if (evc_exec_unpack(x, "[s]", name, sizeof(name)) < 0)
		return refused(x);
	st = evc_exec_variable_get(x, name, &v);
	if (st == 0)
		st = evc_unpack(&v, "s", text, sizeof(text));
	evc_value_free(&v);
	if (st < 0 && st != -EVC_NOT_FOUND)
		return refused(x);
	n = strlen(text);
	text[n] = (char)('a' + n % 26);
	text[n + 1] = '\0';
	if (evc_pack(&v, "s", text) < 0)
		return refused(x);
	st = evc_exec_variable_set(x, name, &v);
	evc_value_free(&v);
	return st < 0 ? refused(x) : evc_exec_return(x, "I", (int64_t)n + 1);
}

/* [name]: makes the variable, unless there is one; -> 1: it did */
static evc_status
fn_create(evc_exec *x, void *arg)
{
	evc_value one = { NULL, 0 };
	char name[64];
	evc_status st;

	(void)arg;
	if (evc_exec_unpack(x, "[s]", name, sizeof(name)) < 0 ||
	    evc_pack(&one, "i", 1) < 0)
		return refused(x);
	st = evc_exec_variable_compare_set(x, name, NULL, &one);
	evc_value_free(&one);
	if (st < 0 && st != -EVC_ABORTED)
		return refused(x);
	return evc_exec_return(x, "i", st == 0);
}

/* [name]: a step by numbers; -> x */
static evc_status
fn_number(evc_exec *x, void *arg)
{
	char name[64];
	double n;

	(void)arg;
	if (evc_exec_unpack(x, "[s]", name, sizeof(name)) < 0 ||
	    evc_exec_variable_number(x, name, &n) < 0 ||
	    set_number(x, name, (int64_t)n + 1) < 0)
		return refused(x);
	return evc_exec_return(x, "I", (int64_t)n + 1);
}

/* [mine, other]: of two on duty, one may leave */
static evc_status
fn_leave(evc_exec *x, void *arg)
{
	char mine[64], other[64];
	int64_t a, b;

	(void)arg;
	if (evc_exec_unpack(x, "[ss]", mine, sizeof(mine), other,
			    sizeof(other)) < 0 ||
	    read_number(x, mine, &a) < 0 || read_number(x, other, &b) < 0)
		return refused(x);
	t_sleep(0.001);
	if (a + b == 2 && set_number(x, mine, 0) < 0)
		return refused(x);
	return 0;
}

/* [from, to, amount]: as much as there is */
static evc_status
fn_transfer(evc_exec *x, void *arg)
{
	char from[64], to[64];
	int64_t a, b, amount;

	(void)arg;
	if (evc_exec_unpack(x, "[ssI]", from, sizeof(from), to, sizeof(to),
			    &amount) < 0 ||
	    read_number(x, from, &a) < 0)
		return refused(x);
	amount = amount < a ? amount : a;
	if (set_number(x, from, a - amount) < 0 ||
	    read_number(x, to, &b) < 0 || set_number(x, to, b + amount) < 0)
		return refused(x);
	return 0;
}

static void
account(int i, char name[64])
{
	snprintf(name, 64, "account.%d", i);
}

/* []: all accounts */
static evc_status
fn_open(evc_exec *x, void *arg)
{
	char name[64];
	int i;

	(void)arg;
	for (i = 0; i < ACCOUNTS; i++) {
		account(i, name);
		if (set_number(x, name, MONEY) < 0)
			return refused(x);
	}
	return 0;
}

/* []: an error, if the sum of all is wrong; -> the sum */
static evc_status
fn_audit(evc_exec *x, void *arg)
{
	int64_t n, sum = 0;
	char name[64];
	int i;

	(void)arg;
	for (i = 0; i < ACCOUNTS; i++) {
		account(i, name);
		if (read_number(x, name, &n) < 0)
			return refused(x);
		sum += n;
	}
	if (sum != ACCOUNTS * MONEY)
		return evc_exec_fail(x, EVC_DATA_LOSS, "the sum is %lld",
				     (long long)sum);
	return evc_exec_return(x, "I", sum);
}

/* ---- what is read is so ---- */

/* So many times, or fewer where each is slow: how many. */
static int
all_differ(const char *function, int most)
{
	int times = t_many(most);
	static evc_remote *r[TIMES];
	static bool seen[TIMES + 1];
	int64_t n;
	int i;

	memset(seen, 0, sizeof(seen));
	for (i = 0; i < times; i++)
		r[i] = strcmp(function, "count") == 0 ?
			       SCHEDULE_WITH(&whole, function, "[sd]", "x",
					     1.0) :
			       SCHEDULE_WITH(&whole, function, "[s]", "x");
	for (i = 0; i < times; i++) {
		n = take_number(r[i]);
		ck_assert_msg(n >= 1 && n <= times && !seen[n],
			      "%lld is the result of two functions",
			      (long long)n);
		seen[n] = true;
	}
	OK(join());
	ck_assert_uint_eq(evc_cluster_finished(on.cl), (unsigned)times);
	ck_assert_uint_eq(numbers().n_done, (unsigned)times);
	/* Runs that were overtaken have no result. */
	ck_assert_uint_eq(numbers().n_executions, (unsigned)times);
	return times;
}

START_TEST(no_step_is_lost_with_one_worker)
{
	begin(_i, 1);
	ck_assert_int_eq(all_differ("step", TIMES), (int)variable("x"));
	ck_assert_uint_eq(numbers().n_conflicts, 0);
}
END_TEST

START_TEST(no_step_is_lost_with_four_workers)
{
	begin(_i, 4);
	ck_assert_int_eq(all_differ("step", TIMES), (int)variable("x"));
}
END_TEST

START_TEST(nor_is_one_by_comparison)
{
	begin(_i, 4);
	ck_assert_int_eq(all_differ("compare", 500), (int)variable("x"));
}
END_TEST

START_TEST(nor_is_the_result_of_an_addition)
{
	begin(_i, 4);
	ck_assert_int_eq(all_differ("count", 500), (int)variable("x"));
}
END_TEST

START_TEST(nor_is_one_by_numbers)
{
	double n = -1;
	int times;

	begin(_i, 4);
	times = all_differ("number", 500);
	ck_assert(variable("x") == times);
	OK(evc_variable_number(on.cl, "x", &n));
	ck_assert(n == times);
	OK(evc_variable_number(on.cl, "y", &n));
	ck_assert(n == 0);
	REFUSED(EVC_INVALID_ARGUMENT, evc_variable_number(on.cl, "x", NULL));
	OK(evc_variable_set(on.cl, "y", &(evc_value){ "\xa1y", 2 }));
	REFUSED(EVC_INVALID_ARGUMENT, evc_variable_number(on.cl, "y", &n));
}
END_TEST

START_TEST(a_comparison_with_what_is_missing)
{
	const evc_value nil = { NULL, 0 }, one = { "\x01", 1 };
	evc_value v;

	begin(_i, 1);
	OK(evc_variable_compare_set(on.cl, "m", NULL, &nil));
	REFUSED(EVC_NOT_FOUND, evc_variable_get(on.cl, "m", &v));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_variable_compare_set(on.cl, "m", NULL, NULL));
	OK(evc_variable_compare_set(on.cl, "m", &nil, &one));
	REFUSED(EVC_ABORTED, evc_variable_compare_set(on.cl, "m", NULL, &nil));
	OK(evc_variable_compare_set(on.cl, "m", &one, &nil));
	REFUSED(EVC_NOT_FOUND, evc_variable_get(on.cl, "m", &v));
}
END_TEST

START_TEST(a_long_value_is_read_too)
{
	begin(_i, 4);
	all_differ("grow", 300);
}
END_TEST

START_TEST(additions_alone_are_never_overtaken)
{
	int i, times = t_many(TIMES);

	begin(_i, 4);
	for (i = 0; i < times; i++)
		OK(evc_schedule_pack(on.cl, "bare", &whole, NULL, "[sd]", "x",
				     1.0));
	OK(join());
	ck_assert(variable("x") == times);
	ck_assert_uint_eq(numbers().n_conflicts, 0);
	ck_assert_uint_eq(numbers().n_executions, (unsigned)times);
}
END_TEST

START_TEST(what_is_missing_is_read_too)
{
	enum { ROUNDS = 50, EACH = 4 };
	evc_remote *r[EACH];
	char name[32];
	int i, k;

	begin(_i, 4);
	for (i = 0; i < ROUNDS; i++) {
		int64_t made = 0;

		snprintf(name, sizeof(name), "only.%d", i);
		for (k = 0; k < EACH; k++)
			r[k] = SCHEDULE_WITH(&whole, "create", "[s]", name);
		for (k = 0; k < EACH; k++)
			made += take_number(r[k]);
		IS(made, 1);
	}
	OK(join());
}
END_TEST

START_TEST(there_is_no_write_skew)
{
	enum { PAIRS = 100 };
	evc_value one = PACKED("i", 1);
	char a[32], b[32];
	int i;

	begin(_i, 4);
	for (i = 0; i < PAIRS; i++) {
		snprintf(a, sizeof(a), "a.%d", i);
		snprintf(b, sizeof(b), "b.%d", i);
		OK(evc_schedule_pack(on.cl, "set", NULL, NULL, "[sv]", a, &one));
		OK(evc_schedule_pack(on.cl, "set", NULL, NULL, "[sv]", b, &one));
	}
	evc_value_free(&one);
	OK(join());
	for (i = 0; i < PAIRS; i++) {
		snprintf(a, sizeof(a), "a.%d", i);
		snprintf(b, sizeof(b), "b.%d", i);
		OK(evc_schedule_pack(on.cl, "leave", &whole, NULL, "[ss]", a,
				     b));
		OK(evc_schedule_pack(on.cl, "leave", &whole, NULL, "[ss]", b,
				     a));
	}
	OK(join());
	for (i = 0; i < PAIRS; i++) {
		snprintf(a, sizeof(a), "a.%d", i);
		snprintf(b, sizeof(b), "b.%d", i);
		ck_assert(variable(a) + variable(b) == 1);
	}
}
END_TEST

/* ---- the bank ---- */

START_TEST(every_audit_finds_all_the_money)
{
	enum { AUDITS = 20, TRANSFERS = 1500, EACH = TRANSFERS / AUDITS };
	evc_schedule_opts sure = { .flags = EVC_TRANSACTIONAL, .deaths = 255 };
	evc_remote *audit[AUDITS];
	unsigned seed = (unsigned)from_environment("EVC_SEED",
						   (int)(t_now() * 1000));
	char from[64], to[64];
	int i, killed = 0;

	printf("bank: EVC_SEED=%u\n", seed);
	fflush(stdout);
	begin(_i, 4);
	OK(evc_schedule(on.cl, "open", NULL, NULL, &sure, NULL));
	OK(join());
	for (i = 0; i < TRANSFERS; i++) {
		account(rand_r(&seed) % ACCOUNTS, from);
		account(rand_r(&seed) % ACCOUNTS, to);
		OK(evc_schedule_pack(on.cl, "transfer", &sure, NULL, "[ssI]",
				     from, to,
				     (int64_t)(rand_r(&seed) % MONEY)));
		if (i % EACH == 0)
			OK(evc_schedule(on.cl, "audit", NULL, NULL, &sure,
					&audit[i / EACH]));
	}
	for (i = 0; can(DIES) && i < 8; i++) {
		UNTIL(all_done() || numbers().n_done >
					    (unsigned)(TRANSFERS / 10 * i));
		if (all_done())
			break;
		replace_worker((unsigned)rand_r(&seed) % 4);
		killed++;
	}
	for (i = 0; i < AUDITS; i++)
		IS(take_number(audit[i]), ACCOUNTS * MONEY);
	OK(join());
	ck_assert_uint_eq(evc_cluster_finished(on.cl), 1 + TRANSFERS + AUDITS);
	ck_assert(!can(DIES) || killed > 0);
}
END_TEST

/* ---- those that are overtaken ---- */

static char runs[64];

static void
runs_begin(void)
{
	int fd;

	snprintf(runs, sizeof(runs), "/tmp/evc-runs-XXXXXX");
	fd = mkstemp(runs);
	ck_assert_int_ge(fd, 0);
	close(fd);
}

static void
runs_end(void)
{
	OK(unlink(runs));
}

static int
n_runs(void)
{
	struct stat st;

	OK(stat(runs, &st));
	return (int)st.st_size;
}

/* By the program itself. */
static void
change(void)
{
	char name[] = "x";

	OK(aside(add_aside, name));
}

START_TEST(a_run_that_was_overtaken_is_no_attempt)
{
	evc_remote *r;

	begin(_i, 2);
	runs_begin();
	r = SCHEDULE_WITH(&whole, "overtaken", "[ssi]", "x", runs, 3);
	/* What the program itself changes counts as well. */
	UNTIL(n_runs() == 1);
	change();
	UNTIL(n_runs() == 2);
	OK(evc_schedule_pack(on.cl, "count", NULL, NULL, "[sd]", "x", 1.0));
	UNTIL(n_runs() == 3);
	OK(evc_schedule_pack(on.cl, "step", &whole, NULL, "[s]", "x"));
	IS(number_of(r), 4);
	IS(n_runs(), 4);
	ck_assert_uint_eq(info_of(r).attempts, 1);
	ck_assert_uint_eq(info_of(r).deaths, 0);
	evc_remote_free(r);
	OK(join());
	ck_assert_uint_eq(numbers().n_conflicts, 3);
	ck_assert_uint_eq(numbers().n_retries, 0);
	runs_end();
}
END_TEST

START_TEST(an_error_of_what_was_never_so_is_none)
{
	evc_schedule_opts again = whole;
	evc_remote *r;

	begin(_i, 2);
	runs_begin();
	again.retry = (evc_backoff){ .times = 1, .first = 0.001 };
	r = SCHEDULE_WITH(&again, "overtaken fails", "[ss]", "x", runs);
	UNTIL(n_runs() == 1);
	change();
	IS(code_of(r), EVC_DATA_LOSS);
	ck_assert_str_eq(info_of(r).text, "1");
	/* The first run; that of the error, and its retry. */
	IS(n_runs(), 3);
	ck_assert_uint_eq(info_of(r).attempts, 2);
	ck_assert_uint_eq(numbers().n_conflicts, 1);
	evc_remote_free(r);
	IS(join(), EVC_DATA_LOSS);
	runs_end();
}
END_TEST

/* Steps, one after the other, until that is done: so something changes all the
   time, as long as others run. */
static int
step_until_done(evc_remote *r)
{
	evc_remote *step = NULL;
	int n = 0;

	UNTIL(step == NULL || info_of(step).state == EVC_REMOTE_DONE ?
		      (evc_remote_free(step), step = NULL,
		       info_of(r).state == EVC_REMOTE_DONE ||
			       (step = SCHEDULE_WITH(&whole, "step", "[s]",
						     "x"),
				n++, false)) :
		      false);
	return n;
}

START_TEST(after_eight_times_it_runs_alone)
{
	evc_remote *r;
	int n;

	begin(_i, 2);
	runs_begin();
	r = SCHEDULE_WITH(&whole, "overtaken", "[ssi]", "x", runs, OVERTAKEN);
	n = step_until_done(r);
	OK(code_of(r));
	evc_remote_free(r);
	OK(join());
	ck_assert(variable("x") == n + 1);
	IS(n_runs(), OVERTAKEN + 1);
	ck_assert_uint_ge(numbers().n_conflicts, OVERTAKEN);
	runs_end();
}
END_TEST

/* The function that runs alone waits for a change by another.  If others waited
   for each of these runs, the row would take longer than a test may. */
START_TEST(nobody_waits_for_ever)
{
	evc_remote *r;

	begin(_i, 2);
	runs_begin();
	r = SCHEDULE_WITH(&whole, "overtaken", "[ssi]", "x", runs,
			  OVERTAKEN + 5);
	step_until_done(r);
	OK(code_of(r));
	evc_remote_free(r);
	OK(join());
	/* Beside the others it may be overtaken once more, or more often. */
	ck_assert_int_ge(n_runs(), OVERTAKEN + 6);
	runs_end();
}
END_TEST

/* It waits to run alone for one that does not end. */
START_TEST(nor_does_one_that_cannot_be_alone)
{
	evc_remote *r, *held;

	begin(_i, 3);
	runs_begin();
	held = SCHEDULE("hold", "[s]", "gate");
	UNTIL(are_in("gate", 1));
	r = SCHEDULE_WITH(&whole, "overtaken", "[ssi]", "x", runs,
			  OVERTAKEN);
	step_until_done(r);
	OK(code_of(r));
	evc_remote_free(r);
	ck_assert_uint_eq(info_of(held).state, EVC_REMOTE_RUNNING);
	let_go("gate");
	IS(take_number(held), 1);
	OK(join());
	runs_end();
}
END_TEST

/* The patience grows, also with a run that ends behind a whole rest. */
START_TEST(nor_does_one_that_lasts_longer)
{
	evc_remote *r;

	begin(_i, 2);
	runs_begin();
	r = SCHEDULE_WITH(&whole, "long", "[ssi]", "x", runs, OVERTAKEN + 1);
	step_until_done(r);
	OK(code_of(r));
	evc_remote_free(r);
	OK(join());
	runs_end();
}
END_TEST

/* A worker keeps results for functions with these inputs. */
START_TEST(an_input_is_the_result_that_counts)
{
	static const int sizes[] = { 100, 8192, 200000 };
	evc_remote *r, *first;
	size_t i;

	begin(_i, 1);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		runs_begin();
		r = SCHEDULE_WITH(&whole, "bytes", "[ssi]", "x", runs,
				  sizes[i]);
		first = SCHEDULE("first byte", "[r]", r);
		UNTIL(n_runs() == 1);
		change();
		IS(take_number(first), (int)i + 1);
		IS(n_runs(), 2);
		evc_remote_free(r);
		runs_end();
	}
	OK(join());
}
END_TEST

/* Another step begins when the last one has ended. */
static bool
a_step_waits(evc_remote **step)
{
	char text[4000];

	if (*step == NULL || info_of(*step).state == EVC_REMOTE_DONE) {
		evc_remote_free(*step);
		*step = SCHEDULE_WITH(&whole, "step", "[s]", "x");
	}
	own_report(evc_cluster_scope(on.cl), text, sizeof(text));
	return strstr(text, "1 queued until overtaken has run alone, which "
			    "others have overtaken") != NULL;
}

/* It is overtaken whenever others run, and they wait for it again and again. */
START_TEST(a_report_says_for_whom_others_wait)
{
	evc_remote *r, *step = NULL;

	begin(_i, 2);
	runs_begin();
	r = SCHEDULE_WITH(&whole, "overtaken", "[ssi]", "x", runs, 1000);
	UNTIL(a_step_waits(&step));
	evc_remote_cancel(r);
	IS(code_of(r), EVC_CANCELLED);
	OK(code_of(step));
	evc_remote_free(r);
	evc_remote_free(step);
	join();
	runs_end();
}
END_TEST

/* Here it is the program that overtakes, and goes on until another function has
   had its turn. */
START_TEST(nobody_waits_for_what_the_program_does)
{
	evc_remote *r, *other;

	begin(_i, 2);
	r = SCHEDULE_WITH(&whole, "slow", "[s]", "x");
	UNTIL((change(), numbers().n_conflicts >= OVERTAKEN));
	other = SCHEDULE("add", "[II]", (int64_t)1, (int64_t)2);
	UNTIL((change(), info_of(other).state == EVC_REMOTE_DONE));
	IS(take_number(other), 3);
	OK(code_of(r));
	evc_remote_free(r);
	OK(join());
}
END_TEST

START_TEST(it_can_be_cancelled)
{
	evc_remote *r, *held;
	int i;

	begin(_i, 3);
	runs_begin();
	held = SCHEDULE("hold", "[s]", "gate");
	UNTIL(are_in("gate", 1));
	r = SCHEDULE_WITH(&whole, "overtaken", "[ssi]", "x", runs, 1000);
	for (i = 1; i <= OVERTAKEN; i++) {
		UNTIL(n_runs() == i);
		change();
	}
	/* Queued or running alone: the others go on. */
	evc_remote_cancel(r);
	IS(code_of(r), EVC_CANCELLED);
	evc_remote_free(r);
	IS(take_number(SCHEDULE("add", "[II]", (int64_t)1, (int64_t)2)), 3);
	let_go("gate");
	IS(take_number(held), 1);
	join();
	runs_end();
}
END_TEST

START_TEST(the_stop_finds_it)
{
	evc_remote *r;
	int i;

	begin(_i, 2);
	runs_begin();
	r = SCHEDULE_WITH(&whole, "overtaken", "[ssi]", "x", runs, 1000);
	for (i = 1; i <= OVERTAKEN; i++) {
		UNTIL(n_runs() == i);
		change();
	}
	OK(evc_request_stop(evc_cluster_scope(on.cl), 0, "that is all"));
	IS(code_of(r), EVC_CANCELLED);
	evc_remote_free(r);
	runs_end();
}
END_TEST

START_TEST(a_loose_read_is_not_checked)
{
	evc_remote *r;

	begin(_i, 2);
	runs_begin();
	r = SCHEDULE_WITH(&whole, "loose", "[ss]", "x", runs);
	UNTIL(n_runs() == 1);
	OK(evc_schedule_pack(on.cl, "step", &whole, NULL, "[s]", "x"));
	OK(code_of(r));
	evc_remote_free(r);
	OK(join());
	IS(n_runs(), 1);
	ck_assert(variable("loose") == 1);
	ck_assert_uint_eq(numbers().n_conflicts, 0);
	runs_end();
}
END_TEST

static void
make_vector(int kind)
{
	static double zeros[10];
	evc_value nil = { NULL, 0 }, seven = PACKED("i", 7);

	if (kind == 0)
		OK(evc_variable_set(on.cl, "v", &nil));
	else if (kind == 1)
		OK(evc_variable_set(on.cl, "v", &seven));
	else
		OK(evc_vector_set(on.cl, "v",
				  &(evc_elements){ .doubles = zeros,
						   .n = kind == 2 ? 1 : 10 }));
	evc_value_free(&seven);
}

/* A vector is missing, no vector, too short, or all right, and then another of
   these: no function succeeds that has seen both. */
START_TEST(why_a_read_has_failed_is_read_too)
{
	evc_value zero = PACKED("i", 0), one = PACKED("i", 1), v;
	int way, from, to, first, second;
	evc_remote *r;

	begin(_i, 1);
	for (way = 0; way < 3; way++)
		for (from = 0; from < 4; from++)
			for (to = 0; to < 4; to++) {
				if (from == to)
					continue;
				runs_begin();
				make_vector(from);
				OK(evc_variable_set(on.cl, "changed", &zero));
				r = SCHEDULE_WITH(&whole, "look twice", "[is]",
						  way, runs);
				UNTIL(n_runs() == 1);
				make_vector(to);
				OK(evc_variable_set(on.cl, "changed", &one));
				OK(evc_remote_fetch(r, T_LIMIT, &v));
				OK(evc_unpack(&v, "[ii]", &first, &second));
				ck_assert_int_eq(first, second);
				IS(n_runs(), 2);
				evc_remote_free(r);
				runs_end();
			}
	evc_value_free(&zero);
	evc_value_free(&one);
	OK(join());
}
END_TEST

/* [name, by]: adds, and reads nothing */
static evc_status
fn_bare(evc_exec *x, void *arg)
{
	char name[64];
	double by;

	(void)arg;
	if (evc_exec_unpack(x, "[sd]", name, sizeof(name), &by) < 0 ||
	    evc_exec_variable_add(x, name, by, NULL) < 0)
		return refused(x);
	return 0;
}

/* [name, value] */
static evc_status
fn_set(evc_exec *x, void *arg)
{
	char name[64];
	evc_value v;

	(void)arg;
	if (evc_exec_unpack(x, "[sv]", name, sizeof(name), &v) < 0 ||
	    evc_exec_variable_set(x, name, &v) < 0)
		return refused(x);
	return 0;
}

/* [how, name]: a read of which the function makes nothing, and then a change */
static evc_status
fn_careless(evc_exec *x, void *arg)
{
	double number = 0;
	evc_elements one = { .doubles = &number, .n = 1 };
	evc_value v = { NULL, 0 };
	char name[64];
	int how;

	(void)arg;
	if (evc_exec_unpack(x, "[is]", &how, name, sizeof(name)) < 0)
		return refused(x);
	switch (how) {
	case 0:
		(void)evc_exec_variable_get(x, name, &v);
		break;
	case 1:
		(void)evc_exec_variable_number(x, name, &number);
		break;
	case 2:
		(void)evc_exec_variable_add(x, name, 1, &number);
		break;
	case 3:
		(void)evc_exec_variable_compare_set(x, name, NULL, &v);
		break;
	case 4:
		(void)evc_exec_vector_get(x, name, &one);
		break;
	default:
		(void)evc_exec_variable_get_loose(x, name, &v);
	}
	evc_value_free(&v);
	return evc_exec_variable_add(x, "done", 1, NULL) < 0 ? refused(x) : 0;
}

enum { HOWS = 5 };

/* A variable that no message holds cannot be compared at the end; a function
   that reads it must not succeed.  Workers that are threads read it. */
START_TEST(a_read_that_is_impossible_is_no_success)
{
	evc_cluster_config k = { .max_frame = 1 << 18 };
	size_t size = 1 << 20;
	char *bytes = calloc(1, size);
	evc_value big;
	evc_remote *r;
	int i;

	ck_assert_ptr_nonnull(bytes);
	OK(evc_pack(&big, "B", bytes, size));
	free(bytes);
	begin_with(_i, 1, &k);
	OK(evc_variable_set(on.cl, "big", &big));
	evc_value_free(&big);
	for (i = 0; i < HOWS + 1; i++) {
		/* A loose read is not compared. */
		bool fails = !can(CALLS) && i < HOWS;

		r = SCHEDULE_WITH(&whole, "careless", "[is]", i, "big");
		IS(code_of(r), fails ? EVC_RESOURCE_EXHAUSTED : 0);
		evc_remote_free(r);
		if (fails)
			IS(evc_cluster_join(on.cl, T_LIMIT),
			   EVC_RESOURCE_EXHAUSTED);
	}
	OK(join());
	ck_assert(variable("done") == (can(CALLS) ? HOWS + 1 : 1));
}
END_TEST

static const evc_function functions[] = {
	COMMON_FUNCTIONS,
	STEP_FUNCTIONS,
	{ .name = "audit", .fn = fn_audit },
	{ .name = "bare", .fn = fn_bare },
	{ .name = "careless", .fn = fn_careless },
	{ .name = "create", .fn = fn_create },
	{ .name = "grow", .fn = fn_grow },
	{ .name = "leave", .fn = fn_leave },
	{ .name = "look twice", .fn = fn_look_twice },
	{ .name = "loose", .fn = fn_loose },
	{ .name = "number", .fn = fn_number },
	{ .name = "open", .fn = fn_open },
	{ .name = "overtaken", .fn = fn_overtaken },
	{ .name = "overtaken fails", .fn = fn_overtaken_fails },
	{ .name = "set", .fn = fn_set },
	{ .name = "slow", .fn = fn_slow },
	{ .name = "long", .fn = fn_long },
	{ .name = "bytes", .fn = fn_bytes },
	{ .name = "first byte", .fn = fn_first_byte },
	{ .name = "transfer", .fn = fn_transfer },
};

CONFORMANCE_MAIN("transactions", functions,
		 ROW(no_step_is_lost_with_one_worker),
		 ROW(no_step_is_lost_with_four_workers),
		 ROW(nor_is_one_by_comparison),
		 ROW(nor_is_the_result_of_an_addition),
		 ROW(nor_is_one_by_numbers),
		 ROW(a_comparison_with_what_is_missing),
		 ROW(a_long_value_is_read_too),
		 ROW(additions_alone_are_never_overtaken),
		 ROW(what_is_missing_is_read_too),
		 ROW(why_a_read_has_failed_is_read_too), ROW(there_is_no_write_skew),
		 ROW(every_audit_finds_all_the_money),
		 ROW(a_run_that_was_overtaken_is_no_attempt),
		 ROW(an_error_of_what_was_never_so_is_none),
		 ROW(after_eight_times_it_runs_alone),
		 ROW(nobody_waits_for_ever),
		 ROW(nor_does_one_that_cannot_be_alone),
		 ROW(a_report_says_for_whom_others_wait),
		 ROW(nor_does_one_that_lasts_longer),
		 ROW(an_input_is_the_result_that_counts),
		 ROW(nobody_waits_for_what_the_program_does),
		 ROW(it_can_be_cancelled), ROW(the_stop_finds_it),
		 ROW(a_loose_read_is_not_checked),
		 ROW(a_read_that_is_impossible_is_no_success))
