/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that are no workers, or bad ones: what they do wrong is said, they
 * are tried again, and the coordinator survives all of it.
 *
 * With an argument this program is a worker that lies.
 */
#include "../support/old_kernel.h"
#include "../support/processes_util.h"

#include <limits.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* A function that calls the main function of its worker. */
static evc_status
fn_again(evc_exec *x, void *arg)
{
	const evc_function one = { .name = "add", .fn = f_add };
	evc_status st = evc_worker_main(&one, 1, NULL);

	(void)arg;
	return evc_exec_return(x, "i",
			       st == -EVC_FAILED_PRECONDITION &&
				       strstr(evc_last_error(),
					      "has called it before") != NULL);
}

/* Over its deadline: it stays for a while. */
static evc_status
fn_lingers(evc_exec *x, void *arg)
{
	(void)arg, (void)x;
	t_sleep(1);
	_exit(8);
}

static const evc_function functions[] = { P_FUNCTIONS,
					  { .name = "again",
					    .fn = fn_again },
					  { .name = "lingers",
					    .fn = fn_lingers } };

/* ---- liars: they get the streams, and say something ---- */

#define FRAME(type, n, body) "\xe5\xc1\x02" type "\0\0\0" n body
#define HELLO FRAME("\x07", "\x0a", "\0\0\0\x01" "\0\x03" "pid\0")

/* The variable "v" is one more, and its value is asked for. */
#define QUESTION \
	FRAME("\x0c", "\x15", \
	      "\x01" "\x3f\xf0\0\0\0\0\0\0" "\0\x01" "v\0" \
	      "\0\0\0\0" "\0\0\0\0")

struct lie {
	const char *name; /* the argument */
	const char *bytes;
	size_t n;
	bool control;     /* on that stream */
	const char *why;  /* what is said about it */
};

#define LIE(name, bytes, control, why) \
	{ (name), (bytes), sizeof(bytes) - 1, (control), (why) }

static const struct lie lies[] = {
	LIE("version", "\xe5\xc1\x09\x07\0\0\0\0", false,
	    "a frame of version 9, and only version 2 is known here"),
	LIE("text", "Hello, world!\n", false, "bytes that begin no frame"),
	LIE("huge", "\xe5\xc1\x02\x07\xff\xff\xff\xff", false, "4294967295"),
	LIE("early", FRAME("\x09", "\x08", "\0\0\0\0\0\0\0\x01"), false,
	    "before its hello"),
	LIE("names", FRAME("\x07", "\x04", "\xff\xff\xff\xff"), false,
	    "fewer names"),
	LIE("twice", HELLO HELLO, false, "a second hello"),
	LIE("begun", HELLO FRAME("\x09", "\x08", "\0\0\0\0\0\0\0\x01"), false,
	    "does not have"),
	LIE("result",
	    HELLO FRAME("\x0a", "\x21",
			"\0\0\0\0\0\0\0\x01" "\0\0\0\0\0\0\0\0" "\0\0\0\0"
			"\0\0" "\0\0\0\0" "\0\0\0" "\0\0\0\0"),
	    false, "the result of a function that it does not have"),
	LIE("behind",
	    HELLO FRAME("\x0a", "\x22",
			"\0\0\0\0\0\0\0\x01" "\0\0\0\0\0\0\0\0" "\0\0\0\0"
			"\0\0" "\0\0\0\0" "\0\0\0" "\0\0\0\0" "!"),
	    false, "something behind it"),
	LIE("mine", HELLO FRAME("\x06", "\0", ""), false, "for workers alone"),
	LIE("control", FRAME("\x06", "\0", ""), true, "no answer"),
	LIE("stack",
	    FRAME("\x1e", "\x0b", "\0\0\0\0\0\0\0\0" "\0\0\0"), true,
	    "no answer"),
	LIE("garbage", "\0\0\0\0\0\0\0\0\0\0\0\0", true, "begin no frame"),
};

static void
get(int fd, void *to, size_t n)
{
	if (n > 0 && recv(fd, to, n, MSG_WAITALL) != (ssize_t)n)
		_exit(92);
}

/* A frame: its type, and the beginning of its body. */
static int
next_frame(int fd, unsigned char *body, size_t room)
{
	unsigned char head[8];
	size_t n;

	get(fd, head, sizeof(head));
	n = (size_t)head[6] << 8 | head[7];
	if (n > room)
		_exit(93);
	get(fd, body, n);
	return head[3];
}

/* It takes a function, and closes its data stream; it answers all the same. */
static void
close_with_one(int data, int control)
{
	unsigned char body[4096];

	send(data, HELLO, sizeof(HELLO) - 1, MSG_NOSIGNAL);
	while (next_frame(data, body, sizeof(body)) != 2)
		;
	shutdown(data, SHUT_RDWR);
	for (;;)
		if (next_frame(control, body, sizeof(body)) == 13)
			send(control, "\xe5\xc1\x02\x10\0\0\0\0", 8,
			     MSG_NOSIGNAL);
}

/* It gives back whatever it gets. */
static void
give_back(int data)
{
	unsigned char body[4096];
	char result[] = FRAME("\x0a", "\x21",
			    "\0\0\0\0\0\0\0\0" "\xbf\xf0\0\0\0\0\0\0"
			    "\0\0\0\0" "\0\0" "\0\0\0\0" "\0\0\0"
			    "\0\0\0\0");

	send(data, HELLO, sizeof(HELLO) - 1, MSG_NOSIGNAL);
	for (;;)
		if (next_frame(data, body, sizeof(body)) == 2) {
			memcpy(result + 8, body, 8);
			send(data, result, sizeof(result) - 1, MSG_NOSIGNAL);
		}
}

/* It answers a large function when it has read no more than its number. */
static void
answer_unread(int data)
{
	unsigned char head[8], n[8], body[4096];
	char result[] = FRAME("\x0a", "\x21",
			    "\0\0\0\0\0\0\0\0" "\0\0\0\0\0\0\0\0"
			    "\0\0\0\0" "\0\0" "\0\0\0\0" "\0\0\0"
			    "\0\0\0\0");

	if (next_frame(data, body, sizeof(body)) != 1) /* the welcome */
		_exit(94);
	send(data, HELLO, sizeof(HELLO) - 1, MSG_NOSIGNAL);
	get(data, head, sizeof(head));
	get(data, n, sizeof(n));
	memcpy(result + 8, n, sizeof(n));
	send(data, result, sizeof(result) - 1, MSG_NOSIGNAL);
}

/* It reads no more behind a function, asks, and sends the result: no answer
   can be written, and the result comes all the same. */
static void
answer_deaf(int data)
{
	unsigned char body[4096];
	char last[] = QUESTION QUESTION
		FRAME("\x0a", "\x21",
		      "\0\0\0\0\0\0\0\0" "\0\0\0\0\0\0\0\0" "\0\0\0\0" "\0\0"
		      "\0\0\0\0" "\0\0\0" "\0\0\0\0");

	send(data, HELLO, sizeof(HELLO) - 1, MSG_NOSIGNAL);
	while (next_frame(data, body, sizeof(body)) != 2)
		;
	memcpy(last + 2 * (sizeof(QUESTION) - 1) + 8, body, 8);
	shutdown(data, SHUT_RD);
	send(data, last, sizeof(last) - 1, MSG_NOSIGNAL);
	_exit(7);
}

/* It prints numbers without end, more than the log takes. */
static void
print_numbers(void)
{
	unsigned i, n = 0;

	for (;;) {
		for (i = 0; i < 5; i++)
			printf("%u\n", n++);
		fflush(stdout);
		t_sleep(0.005);
	}
}

/* As one that is started, says it, and stays. */
static int
be_liar(const char *name)
{
	int version, data, control, parent;
	size_t i;

	if (sscanf(getenv("EVCOORD_WORKER"), "%d %d %d %d", &version, &data,
		   &control, &parent) != 4)
		return 90;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (strcmp(name, "closes") == 0)
		close_with_one(data, control);
	if (strcmp(name, "back") == 0)
		give_back(data);
	if (strcmp(name, "unread") == 0)
		answer_unread(data);
	if (strcmp(name, "deaf") == 0)
		answer_deaf(data);
	if (strcmp(name, "prints") == 0)
		print_numbers();
	for (i = 0; i < sizeof(lies) / sizeof(lies[0]); i++)
		if (strcmp(name, lies[i].name) == 0)
			if (send(lies[i].control ? control : data,
				 lies[i].bytes, lies[i].n,
				 MSG_NOSIGNAL) != (ssize_t)lies[i].n)
				return 91;
	for (;;)
		pause();
}

static void
one_lie(const struct lie *lie)
{
	struct before b = begin_test();
	evc_coord *c = coord_of(NULL);
	evc_cluster *cl;
	char uri[64];

	snprintf(uri, sizeof(uri), "processes://1?arg=%s", lie->name);
	cl = open_with(c, uri, NULL);
	TEXT_SAYS(cl, 0, lie->why);
	HAS(worker_info(cl, 0).text, "worker 0 (pid ");
	HAS(worker_info(cl, 0).text, "sent garbage: ");
	evc_cluster_close(cl);
	end_test(&b, c);
}

START_TEST(a_worker_that_lies_is_fenced_and_named)
{
	one_lie(&lies[_i]);
}
END_TEST

/* It has taken a function, and answers for another one. */
START_TEST(a_function_goes_from_a_liar_to_others)
{
	const evc_cluster_config config = { .deaths = 2 };
	struct before b = begin_test();
	evc_coord *c = coord_of(NULL);
	evc_cluster *cl = open_with(c, "processes://1?arg=begun", &config);
	evc_remote *r = schedule(cl, "pid");
	evc_remote_info info;
	evc_value v;

	/* The lie comes with the hello: it was never taken there, or is
	   lost. */
	if (evc_remote_fetch(r, 1, &v) > 0) {
		OK(evc_remote_get(r, &info));
		HAS(info.text, "sent garbage");
		ck_assert_int_eq(info.code, EVC_ABORTED);
	}
	TEXT_SAYS(cl, 0, "sent garbage");
	evc_remote_free(r);
	evc_cluster_close(cl);
	end_test(&b, c);
}
END_TEST

/* Its arguments are the cluster's again when it has a result: they are not
   sent on. */
START_TEST(a_function_that_was_not_read_has_no_result)
{
	enum { SIZE = 4 << 20 };
	const evc_cluster_config config = { .deaths = 1 };
	struct before b = begin_test();
	evc_coord *c = coord_of(NULL);
	evc_cluster *cl = open_with(c, "processes://1?arg=unread", &config);
	char *bytes = calloc(1, SIZE);
	evc_remote_info info;
	evc_remote *r;

	OK(evc_schedule_pack(cl, "pid", NULL, &r, "[B]", bytes, (size_t)SIZE));
	free(bytes);
	ck_assert_int_eq(evc_cluster_join(cl, T_LIMIT), EVC_ABORTED);
	OK(evc_remote_get(r, &info));
	HAS(info.text, "sent garbage: the result of a function that it does "
		       "not have");
	evc_remote_free(r);
	evc_cluster_close(cl);
	end_test(&b, c);
}
END_TEST

/* The worker has died, and a write has failed before the result is read. */
START_TEST(a_result_counts_although_no_word_can_be_written)
{
	const evc_cluster_config config = { .deaths = 1 };
	struct before b = begin_test();
	evc_coord *c = coord_of(NULL);
	evc_cluster *cl = open_with(c, "processes://1?arg=deaf", &config);
	evc_remote *r = schedule(cl, "pid");
	evc_remote_info info;
	evc_status st = evc_cluster_join(cl, T_LIMIT);
	double n = 0;

	OK(evc_remote_get(r, &info));
	ck_assert_msg(st == 0, "%s", info.text);
	ck_assert_uint_eq(info.attempts, 1);
	OK(evc_variable_add(cl, "v", 0, &n));
	ck_assert(n == 2);
	evc_remote_free(r);
	TEXT_SAYS(cl, 0, "exit status 7");
	evc_cluster_close(cl);
	end_test(&b, c);
}
END_TEST

/* Functions are not lost in one that answers and has nothing to say. */
START_TEST(a_function_goes_from_who_does_nothing)
{
	static const struct {
		const char *uri, *why;
	} who[] = {
		{ "processes://1?arg=closes", "closed its streams" },
		{ "processes://1?arg=back", "a function back" },
	};
	const evc_cluster_config config = { .lease = 0.4, .deaths = 1 };
	struct before b = begin_test();
	evc_coord *c = coord_of(NULL);
	evc_cluster *cl = open_with(c, who[_i].uri, &config);
	evc_remote *r = schedule(cl, "pid");
	evc_remote_info info;

	ck_assert_int_eq(evc_cluster_join(cl, T_LIMIT), EVC_ABORTED);
	OK(evc_remote_get(r, &info));
	HAS(info.text, who[_i].why);
	evc_remote_free(r);
	evc_cluster_close(cl);
	end_test(&b, c);
}
END_TEST

/* ---- programs that are none ---- */

static const struct {
	const char *uri, *why[2];
} programs[] = {
	/* this one is not even started: its interpreter is not there */
	{ "processes://1?program=no-interpreter",
	  { "no-interpreter", "No such file" } },
	{ "processes://1?program=/bin/false",
	  { "exit status 1", "before it was up" } },
	{ "processes://1?program=/bin/sh&arg=-c&arg=echo%20one;echo%20two%20"
	  ">%262;exit%203",
	  { "exit status 3", "its last words: one two" } },
	{ "processes://1?program=/bin/sh&arg=-c&arg=kill%20-9%20$$",
	  { "killed by signal 9 (SIGKILL)", "before it was up" } },
	/* its pidfd would be that of the shell */
	{ "processes://1?program=/bin/sh&arg=-c&arg=%22$SELF%22;exit%206",
	  { "could not be a worker", "did not exec this" } },
	/* main has forgotten evc_worker_main, and opens a cluster itself */
	{ "processes://1?arg=forgets",
	  { "exit status 42", "call evc_worker_main first" } },
};

#define N_NOT_STARTED 1

/* How often the log was told of a death. */
static atomic_uint n_deaths, n_rest;

static void
count_deaths(int level, const char *line, const evc_reason *r, void *arg)
{
	(void)r, (void)arg;
	if (level != EVC_LOG_WARNING)
		return;
	if (strstr(line, "before it was up") != NULL)
		atomic_fetch_add(&n_deaths, 1);
	else if (strstr(line, "more workers have died") != NULL)
		atomic_fetch_add(&n_rest, 1);
}

/* Eight workers that die at once, again and again. */
START_TEST(the_log_hears_of_deaths_and_not_too_often)
{
	const evc_cluster_config config = { .worker_wait = 0.2 };
	const evc_config log = { .log = count_deaths };
	struct before b = begin_test();
	evc_cluster *cl;
	evc_remote *r;
	evc_coord *c;
	double began = t_now();

	OK(evc_new(NULL, &log, &c));
	atomic_store(&n_deaths, 0);
	atomic_store(&n_rest, 0);
	cl = open_with(c, "processes://8?program=/bin/false", &config);
	r = schedule(cl, "pid");
	ck_assert_int_eq(evc_cluster_join(cl, T_LIMIT), EVC_UNAVAILABLE);
	UNTIL(atomic_load(&n_deaths) > 4 && atomic_load(&n_rest) > 0);
	ck_assert_double_le(atomic_load(&n_deaths),
			    4 * (1 + (t_now() - began)));
	evc_remote_free(r);
	evc_cluster_close(cl);
	end_test(&b, c);
}
END_TEST

#define PRINTED 5000

static atomic_uint n_lines, n_left_out, n_left_out_lines;

static void
count_lines(int level, const char *line, const evc_reason *r, void *arg)
{
	const char *last = strrchr(line, ':');
	unsigned n;
	int end = 0;

	(void)r, (void)arg;
	if (last == NULL || sscanf(last, ": %u%n", &n, &end) != 1)
		return;
	if (level == EVC_LOG_INFO && last[end] == '\0')
		atomic_fetch_add(&n_lines, 1);
	else if (strcmp(last + end, " more lines were left out") == 0) {
		atomic_fetch_add(&n_left_out, n);
		atomic_fetch_add(&n_left_out_lines, 1);
	}
}

/* It prints without end, dies, and does so again. */
START_TEST(the_log_does_not_hear_all_that_a_worker_prints)
{
	const evc_config log = { .log = count_lines };
	struct before b = begin_test();
	double began = t_now();
	evc_cluster *cl;
	evc_coord *c;

	OK(evc_new(NULL, &log, &c));
	atomic_store(&n_lines, 0);
	atomic_store(&n_left_out, 0);
	cl = open_with(c, "processes://1?program=/usr/bin/seq&arg=5000", NULL);
	UNTIL(atomic_load(&n_lines) + atomic_load(&n_left_out) >= 2 * PRINTED);
	ck_assert_uint_ge(atomic_load(&n_lines), 100);
	ck_assert_double_le(atomic_load(&n_lines),
			    100 * (1 + (t_now() - began)));
	evc_cluster_close(cl);
	end_test(&b, c);
}
END_TEST

/* Seconds go by: each of them has one line that counts the others. */
START_TEST(the_log_counts_what_it_does_not_hear_once_a_second)
{
	const evc_config log = { .log = count_lines };
	struct before b = begin_test();
	double began = t_now();
	evc_cluster *cl;
	evc_coord *c;

	OK(evc_new(NULL, &log, &c));
	atomic_store(&n_lines, 0);
	atomic_store(&n_left_out_lines, 0);
	cl = open_with(c, "processes://1?arg=prints", NULL);
	UNTIL(atomic_load(&n_lines) > 350);
	ck_assert_double_ge(t_now() - began, 3);
	ck_assert_uint_ge(atomic_load(&n_left_out_lines), 2);
	ck_assert_double_le(atomic_load(&n_left_out_lines),
			    1 + (t_now() - began));
	evc_cluster_close(cl);
	end_test(&b, c);
}
END_TEST

static atomic_uint n_failed;

static void
count_failed(int level, const char *line, const evc_reason *r, void *arg)
{
	unsigned more;

	(void)level, (void)r, (void)arg;
	if (strstr(line, "could not be started") != NULL)
		atomic_fetch_add(&n_failed, 1);
	else if (sscanf(line, "%*[^:]: %u more workers have died", &more) == 1)
		atomic_fetch_add(&n_failed, more);
}

/* The worker had been of use before its program went. */
START_TEST(a_program_that_goes_is_tried_less_and_less_often)
{
	const evc_cluster_config config = { .worker_wait = 2 };
	const evc_config log = { .log = count_failed };
	struct before b = begin_test();
	double began, wait = 0.1, all = 0;
	unsigned most = 2;
	evc_cluster *cl;
	evc_remote *r;
	evc_coord *c;

	if (t_under_valgrind())
		T_SKIP("there an exec that fails is known by the exit status "
		       "alone");
	atomic_store(&n_failed, 0);
	OK(evc_new(NULL, &log, &c));
	OK(symlink(getenv("SELF"), "goes"));
	cl = open_with(c, "processes://1?program=goes", &config);
	r = schedule(cl, "pid");
	OK(evc_cluster_join(cl, T_LIMIT));
	evc_remote_free(r);
	OK(unlink("goes"));
	began = t_now();
	OK(kill(pid_of(cl, 0), SIGKILL));
	r = schedule(cl, "pid");
	ck_assert_int_eq(evc_cluster_join(cl, T_LIMIT), EVC_UNAVAILABLE);
	UNTIL(atomic_load(&n_failed) > 0);
	evc_remote_free(r);
	evc_cluster_close(cl);
	/* 0.1 s, 0.2 s, 0.4 s ... lie between them. */
	for (; all < t_now() - began; wait *= 2, most++)
		all += wait;
	ck_assert_uint_le(atomic_load(&n_failed), most);
	end_test(&b, c);
}
END_TEST

static void
one_program(int i)
{
	const evc_cluster_config config = { .worker_wait = 0.2 };
	struct before b = begin_test();
	evc_coord *c = coord_of(NULL);
	evc_cluster *cl = open_with(c, programs[i].uri, &config);
	evc_remote *r = schedule(cl, "pid");
	evc_remote_info info;

	TEXT_SAYS(cl, 0, programs[i].why[0]);
	TEXT_SAYS(cl, 0, programs[i].why[1]);
	ck_assert_uint_eq(worker_info(cl, 0).lives, 0);
	ck_assert_int_eq(evc_cluster_join(cl, T_LIMIT), EVC_UNAVAILABLE);
	OK(evc_remote_get(r, &info));
	ck_assert_uint_eq(info.state, EVC_REMOTE_DONE);
	evc_remote_free(r);
	evc_cluster_close(cl);
	end_test(&b, c);
}

START_TEST(a_program_that_cannot_be_started)
{
	FILE *f;

	if (t_under_valgrind())
		T_SKIP("there an exec that fails is known by the exit status "
		       "alone");
	f = fopen("no-interpreter", "w");
	ck_assert_ptr_nonnull(f);
	fputs("#!/no/such/interpreter\n", f);
	ck_assert_int_eq(fchmod(fileno(f), 0755), 0);
	ck_assert_int_eq(fclose(f), 0);
	one_program(_i);
	OK(unlink("no-interpreter"));
}
END_TEST

START_TEST(a_program_that_is_no_worker)
{
	one_program(_i);
}
END_TEST

static int
forget(void)
{
	evc_coord *c;
	evc_cluster *cl;

	if (evc_new(NULL, NULL, &c) < 0)
		return 1;
	if (evc_cluster_open(c, "processes://1", NULL, &cl) !=
	    -EVC_FAILED_PRECONDITION)
		return 2;
	fprintf(stderr, "%s\n", evc_last_error());
	return evc_free(c) == 0 ? 42 : 3;
}

/* A table with mistakes: the worker says so. */
static const evc_function wrong_table[] = { { .name = "pid", .fn = fn_pid },
					    { .name = "pid", .fn = fn_pid } };

START_TEST(a_table_with_mistakes)
{
	struct before b = begin_test();
	evc_coord *c = coord_of(NULL);
	evc_cluster *cl = open_with(c, "processes://1?arg=table", NULL);

	TEXT_SAYS(cl, 0, "could not be a worker");
	HAS(worker_info(cl, 0).text, "INVALID_ARGUMENT");
	evc_cluster_close(cl);
	end_test(&b, c);
}
END_TEST

/* ---- calls that a filter refuses ---- */

/* The call number nr has this errno value, or is 0 for 0; first: the first
   argument, or -1 for all. */
static void
refuse_call(unsigned nr, int first, unsigned error)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, OLD_LOW(nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, OLD_LOW(args[0])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)first, 0, 1),
		OLD_FAIL(error), OLD_PASS
	};
	struct sock_fprog prog = { sizeof(filter) / sizeof(filter[0]), filter };

	if (first < 0)
		filter[1].jt = 2;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) != 0)
		_exit(95);
}

static const struct {
	const char *name; /* the argument */
	unsigned nr;
	int first;
	unsigned error;
	const char *why;
} refused[] = {
	{ "no-death-signal", SYS_prctl, PR_SET_PDEATHSIG, EPERM,
	  "the parent-death signal cannot be set: Operation not permitted" },
	/* as behind unshare --pid --fork */
	{ "no-parent", SYS_getppid, -1, 0, "is in another pid namespace" },
};

#define N_REFUSED (int)(sizeof(refused) / sizeof(refused[0]))

START_TEST(a_worker_that_cannot_watch_its_coordinator)
{
	struct before b;
	evc_cluster *cl;
	char uri[64];
	evc_coord *c;

	if (!kernel_can_be_old())
		T_SKIP("no seccomp filters are allowed here");
	if (t_under_asan())
		T_SKIP("its search for leaks, at exit, needs getppid");
	b = begin_test();
	c = coord_of(NULL);
	snprintf(uri, sizeof(uri), "processes://1?arg=%s", refused[_i].name);
	cl = open_with(c, uri, NULL);
	TEXT_SAYS(cl, 0, "could not be a worker (FAILED_PRECONDITION)");
	HAS(worker_info(cl, 0).text, refused[_i].why);
	evc_cluster_close(cl);
	end_test(&b, c);
}
END_TEST

/* Last, because a filter stays. */
START_TEST(a_worker_that_cannot_be_killed)
{
	const evc_schedule_opts late = { .deadline = 0.1 };
	struct before b;
	evc_cluster *cl;
	evc_coord *c;

	if (!kernel_can_be_old())
		T_SKIP("no seccomp filters are allowed here");
	b = begin_test();
	c = coord_of(NULL);
	refuse_call(SYS_kill, -1, EPERM);
	refuse_call(SYS_pidfd_send_signal, -1, EPERM);
	cl = open_with(c, "processes://1", NULL);
	OK(evc_schedule(cl, "lingers", NULL, NULL, &late, NULL));
	ck_assert_int_eq(evc_cluster_join(cl, T_LIMIT), EVC_DEADLINE_EXCEEDED);
	TEXT_SAYS(cl, 0, "could not be killed (Operation not permitted): its "
			 "function took longer than its deadline");
	ck_assert_int_eq(n_said("was killed", NULL, NULL), 0);
	UNTIL(IS_UP(cl, 0));
	ck_assert_uint_eq(worker_info(cl, 0).lives, 2);
	evc_cluster_close(cl);
	end_test(&b, c);
}
END_TEST

/* Last, because a filter stays; the calls of a start from its end on. */
static const struct {
	unsigned nr;
	int first;
	const char *why;
} starts[] = {
	{ SYS_setpgid, -1, "setpgid or the exec of /" },
	{ SYS_pipe2, -1,
	  "could not be started: pipe2: Operation not permitted" },
#ifdef SYS_socketcall
	{ SYS_socketcall, 8 /* SYS_SOCKETPAIR of linux/net.h */,
#else
	{ SYS_socketpair, -1,
#endif
	  "could not be started: socketpair: Operation not permitted" },
};

START_TEST(a_start_whose_call_is_refused_names_it)
{
	struct before b;
	evc_cluster *cl;
	evc_coord *c;

	if (!kernel_can_be_old())
		T_SKIP("no seccomp filters are allowed here");
	if (t_under_valgrind())
		T_SKIP("to it, vfork is a fork");
	b = begin_test();
	c = coord_of(NULL);
	refuse_call(starts[_i].nr, starts[_i].first, EPERM);
	cl = open_with(c, "processes://1", NULL);
	TEXT_SAYS(cl, 0, starts[_i].why);
	HAS(worker_info(cl, 0).text, ": Operation not permitted");
	evc_cluster_close(cl);
	end_test(&b, c);
}
END_TEST

/* ---- addresses ---- */

START_TEST(addresses_that_are_refused)
{
	static const char *const bad[] = {
		"processes://0",
		"processes://1025",
		"processes://-1",
		"processes://four",
		"processes://1 ",
		"processes://1?program=",
		"processes://1?program=/a&program=/b",
		"processes://1?speed=9",
	};
	static const struct {
		const char *uri, *why;
		evc_status st;
	} none[] = {
		{ "processes://1?program=/no/such/program",
		  "/no/such/program cannot be executed: No such file",
		  -EVC_NOT_FOUND },
		{ "processes://1?program=/dev/null",
		  "/dev/null cannot be executed: Permission denied",
		  -EVC_PERMISSION_DENIED },
		{ "processes://1?program=/usr",
		  "/usr cannot be executed: Is a directory",
		  -EVC_PERMISSION_DENIED },
	};
	struct before b = begin_test();
	evc_coord *c = coord_of(NULL);
	evc_cluster *cl = NULL;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		REFUSED(EVC_INVALID_ARGUMENT,
			evc_cluster_open(c, bad[i], NULL, &cl));
		ck_assert_ptr_null(cl);
	}
	for (i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		ck_assert_int_eq(evc_cluster_open(c, none[i].uri, NULL, &cl),
				 none[i].st);
		HAS(evc_last_error(), none[i].why);
		ck_assert_ptr_null(cl);
	}
	end_test(&b, c);
}
END_TEST

/* A program does not find its own file. */
START_TEST(without_proc_an_open_is_refused)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		evc_cluster *cl = NULL;
		evc_coord *c = NULL;

		if (unshare(CLONE_NEWNS) < 0 ||
		    mount("none", "/", "none", MS_REC | MS_PRIVATE, "") < 0 ||
		    mount("none", "/proc", "tmpfs", 0, "") < 0)
			_exit(77);
		if (evc_new(NULL, NULL, &c) < 0 ||
		    evc_cluster_open(c, "processes://1", NULL, &cl) !=
			    -EVC_NOT_FOUND ||
		    strstr(evc_last_error(),
			   "the program /proc/self/exe cannot be executed: No "
			   "such file") == NULL)
			_exit(1);
		_exit(evc_free(c) != 0);
	}
	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		T_SKIP("no mount namespace to be had");
	ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(no_worker_without_a_coordinator)
{
	ck_assert(!evc_worker_is());
	REFUSED(EVC_FAILED_PRECONDITION,
		evc_worker_main(functions, 1, NULL));
}
END_TEST

START_TEST(worker_that_is_one_already)
{
	struct before b = begin_test();
	evc_coord *c = coord_of(NULL);
	evc_cluster *cl = open_with(c, "processes://1", NULL);

	ck_assert_int_eq(number_of(schedule(cl, "again")), 1);
	evc_cluster_close(cl);
	end_test(&b, c);
}
END_TEST

/* No descriptors left: tried again until there are. */
START_TEST(without_descriptors)
{
	struct before b = begin_test();
	evc_coord *c = coord_of(NULL);
	evc_cluster *cl = open_with(c, "processes://1", NULL);
	struct rlimit usual, few;
	int fd;

	UNTIL(IS_UP(cl, 0));
	getrlimit(RLIMIT_NOFILE, &usual);
	fd = dup(0);
	few = usual;
	few.rlim_cur = (rlim_t)fd + 1;
	OK(setrlimit(RLIMIT_NOFILE, &few));
	OK(kill(pid_of(cl, 0), SIGKILL));
	/* Its own descriptors are free again, and a few less than are needed
	   can be taken. */
	TEXT_SAYS(cl, 0, "SIGKILL");
	OK(setrlimit(RLIMIT_NOFILE, &usual));
	close(fd);
	UNTIL(IS_UP(cl, 0));
	ck_assert_uint_eq(worker_info(cl, 0).lives, 2);
	evc_cluster_close(cl);
	end_test(&b, c);
}
END_TEST

int
main(int argc, char **argv)
{
	char self[PATH_MAX] = "";
	Suite *suite;
	TCase *tcase;
	int i;

	for (i = 0; argc > 1 && i < N_REFUSED; i++)
		if (strcmp(argv[1], refused[i].name) == 0) {
			refuse_call(refused[i].nr, refused[i].first,
				    refused[i].error);
			argc = 1;
		}

	if (argc > 1 && strcmp(argv[1], "forgets") == 0)
		return forget();
	if (argc > 1 && strcmp(argv[1], "table") == 0)
		return evc_worker_main(wrong_table, 2, NULL) != 0;
	if (argc > 1 && evc_worker_is())
		return be_liar(argv[1]);
	if (evc_worker_is())
		return evc_worker_main(functions, sizeof(functions) /
							  sizeof(functions[0]),
				       NULL) != 0;
	/* For a shell, also where /proc/PID/exe is a tool's. */
	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0 ||
	    setenv("SELF", self, 1) != 0)
		return 1;
	suite = suite_create("processes_wrong");
	tcase = tcase_create("processes_wrong");
	suite_add_tcase(suite, tcase);
	tcase_add_loop_test(tcase, a_worker_that_lies_is_fenced_and_named, 0,
			    (int)(sizeof(lies) / sizeof(lies[0])));
	tcase_add_loop_test(tcase, a_program_that_cannot_be_started, 0,
			    N_NOT_STARTED);
	tcase_add_loop_test(tcase, a_program_that_is_no_worker, N_NOT_STARTED,
			    (int)(sizeof(programs) / sizeof(programs[0])));
	tcase_add_test(tcase, the_log_hears_of_deaths_and_not_too_often);
	tcase_add_test(tcase, the_log_does_not_hear_all_that_a_worker_prints);
	tcase_add_test(tcase,
		       the_log_counts_what_it_does_not_hear_once_a_second);
	tcase_add_test(tcase, a_program_that_goes_is_tried_less_and_less_often);
	tcase_add_test(tcase, a_function_goes_from_a_liar_to_others);
	tcase_add_loop_test(tcase, a_function_goes_from_who_does_nothing, 0, 2);
	tcase_add_test(tcase, a_function_that_was_not_read_has_no_result);
	tcase_add_test(tcase, a_result_counts_although_no_word_can_be_written);
	tcase_add_test(tcase, a_table_with_mistakes);
	tcase_add_loop_test(tcase, a_worker_that_cannot_watch_its_coordinator,
			    0, N_REFUSED);
	tcase_add_test(tcase, addresses_that_are_refused);
	tcase_add_test(tcase, without_proc_an_open_is_refused);
	tcase_add_test(tcase, no_worker_without_a_coordinator);
	tcase_add_test(tcase, worker_that_is_one_already);
	tcase_add_test(tcase, without_descriptors);
	tcase_add_test(tcase, a_worker_that_cannot_be_killed);
	tcase_add_loop_test(tcase, a_start_whose_call_is_refused_names_it, 0,
			    (int)(sizeof(starts) / sizeof(starts[0])));
	return run_suite(suite);
}
