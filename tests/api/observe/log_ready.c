/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ready functions for evc_config.log: what a line to standard error looks
 * like, that it is one write, and that lines to syslog have their level.
 *
 * Standard error is a socket meanwhile that keeps the bounds of writes.
 */
#include "../../support/api_util.h"

#include <regex.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <syslog.h>

/* Where standard error went, and what comes out of it. */
struct capture {
	int former, from;
};

static void
capture_begin(struct capture *k)
{
	int s[2];

	OK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s));
	fflush(stderr);
	k->former = dup(STDERR_FILENO);
	ck_assert_int_ge(k->former, 0);
	ck_assert_int_eq(dup2(s[1], STDERR_FILENO), STDERR_FILENO);
	OK(close(s[1]));
	k->from = s[0];
}

static void
capture_end(struct capture *k)
{
	/* The former one may be closed to us: it must not be lost. */
	ck_assert_int_eq(dup2(k->former, STDERR_FILENO), STDERR_FILENO);
	OK(close(k->former));
	OK(close(k->from));
}

/* What the next write wrote; "" when there was none. */
static const char *
written(struct capture *k, char *buf, size_t n)
{
	ssize_t got = recv(k->from, buf, n - 1, MSG_DONTWAIT);

	buf[got > 0 ? got : 0] = '\0';
	return buf;
}

static void
looks_like(const char *text, const char *pattern)
{
	regex_t r;
	int no;

	OK(regcomp(&r, pattern, REG_EXTENDED | REG_NOSUB));
	no = regexec(&r, text, 0, NULL, 0);
	regfree(&r);
	ck_assert_msg(no == 0, "\"%s\" does not look like %s", text, pattern);
}

#define TIME "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z"

static evc_reason
some_reason(void)
{
	evc_reason r = { .code = EVC_DATA_LOSS,
			 .err = EIO,
			 .line = 12,
			 .tid = 34,
			 .kind = EVC_BY_ERROR,
			 .round = 5,
			 .by = 6 };

	strcpy(r.who, "the \"writer\"");
	strcpy(r.file, "disk.c");
	strcpy(r.func, "flush");
	return r;
}

START_TEST(a_line_has_time_level_and_fields)
{
	evc_reason r = some_reason(), bare = { .kind = EVC_BY_SIGNAL };
	struct capture k;
	char buf[2048], want[512];

	capture_begin(&k);
	evc_log_stderr(EVC_LOG_ERROR, "c: error", &r, NULL);
	snprintf(want, sizeof(want),
		 "^" TIME " evcoord\\[%d\\] error: c: error \\[code=DATA_LOSS "
		 "kind=error round=5 by=\"the \\\\\"writer\\\\\"\" id=6 tid=34 errno=%d "
		 "at=disk.c:12 func=flush\\]\n$",
		 (int)getpid(), EIO);
	looks_like(written(&k, buf, sizeof(buf)), want);
	/* What is not known is not there. */
	evc_log_stderr(EVC_LOG_INFO, "c: begun", &bare, NULL);
	looks_like(written(&k, buf, sizeof(buf)),
		   "^" TIME " evcoord\\[[0-9]+\\] info: c: begun \\[code=OK "
		   "kind=signal round=0\\]\n$");
	evc_log_stderr(EVC_LOG_WARNING, "c: late", NULL, NULL);
	looks_like(written(&k, buf, sizeof(buf)),
		   "^" TIME " evcoord\\[[0-9]+\\] warning: c: late\n$");
	ck_assert_str_eq(written(&k, buf, sizeof(buf)), "");
	capture_end(&k);
}
END_TEST

/* Names and places may come from anywhere. */
START_TEST(no_value_of_a_field_looks_like_another_field)
{
	evc_reason r = { .code = EVC_OK, .line = 1, .kind = EVC_BY_REQUEST };
	struct capture k;
	char buf[2048];

	strcpy(r.who, "x\" code=\\OK\n");
	strcpy(r.file, "f.c\" by=\"root");
	strcpy(r.func, "g h=1");
	capture_begin(&k);
	evc_log_stderr(EVC_LOG_ERROR, "c: error", &r, NULL);
	HAS(written(&k, buf, sizeof(buf)),
	    " by=\"x\\\" code=\\\\OK\\n\" at=\"f.c\\\" by=\\\"root:1\" "
	    "func=\"g h=1\"]\n");
	capture_end(&k);
}
END_TEST

/* JOURNAL_STREAM, with so much added to the inode. */
static void
name_journal(int add, const char *end)
{
	char value[128];
	struct stat st;

	OK(fstat(STDERR_FILENO, &st));
	snprintf(value, sizeof(value), "%llu:%llu%s",
		 (unsigned long long)st.st_dev,
		 (unsigned long long)st.st_ino + (unsigned)add, end);
	OK(setenv("JOURNAL_STREAM", value, 1));
}

START_TEST(the_journal_gets_the_level_and_no_time)
{
	static const char *const other[] = { "", "x", "1", "1:", ":1", "1:2",
					     "-1:-1" };
	evc_reason r = some_reason();
	struct capture k, l;
	char buf[2048];
	size_t i;

	capture_begin(&k);
	name_journal(0, "");
	errno = 77;
	evc_log_stderr(EVC_LOG_ERROR, "c: error", &r, NULL);
	ck_assert_int_eq(errno, 77);
	looks_like(written(&k, buf, sizeof(buf)),
		   "^<3>evcoord\\[[0-9]+\\] error: c: error \\[code=.*\n$");
	evc_log_stderr(EVC_LOG_WARNING, "a", NULL, NULL);
	looks_like(written(&k, buf, sizeof(buf)), "^<4>evcoord.* a\n$");
	evc_log_stderr(EVC_LOG_INFO, "a", NULL, NULL);
	looks_like(written(&k, buf, sizeof(buf)), "^<6>evcoord.* a\n$");
	evc_log_stderr(99, "a", NULL, NULL);
	looks_like(written(&k, buf, sizeof(buf)), "^<7>evcoord.* a\n$");
	evc_log_stderr(-99, "a", NULL, NULL);
	looks_like(written(&k, buf, sizeof(buf)), "^<0>evcoord.* a\n$");

	/* Standard error goes elsewhere by now. */
	capture_begin(&l);
	evc_log_stderr(EVC_LOG_ERROR, "a", NULL, NULL);
	looks_like(written(&l, buf, sizeof(buf)), "^" TIME " evcoord.* a\n$");
	capture_end(&l);
	name_journal(1, "");
	evc_log_stderr(EVC_LOG_ERROR, "a", NULL, NULL);
	looks_like(written(&k, buf, sizeof(buf)), "^" TIME " evcoord");
	name_journal(0, "0x");
	evc_log_stderr(EVC_LOG_ERROR, "a", NULL, NULL);
	looks_like(written(&k, buf, sizeof(buf)), "^" TIME " evcoord");
	for (i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
		OK(setenv("JOURNAL_STREAM", other[i], 1));
		evc_log_stderr(EVC_LOG_ERROR, "a", NULL, NULL);
		looks_like(written(&k, buf, sizeof(buf)), "^" TIME " evcoord");
	}
	unsetenv("JOURNAL_STREAM");
	capture_end(&k);
}
END_TEST

START_TEST(a_line_is_one_line_however_long_it_is)
{
	char line[4096], buf[8192];
	evc_reason r = some_reason();
	struct capture k;
	size_t n;

	capture_begin(&k);
	evc_log_stderr(EVC_LOG_ERROR, "two\nlines\x7f\x01", NULL, NULL);
	looks_like(written(&k, buf, sizeof(buf)), ": two\\\\nlines\\\\x7f\\\\x01\n$");
	memset(line, 'l', sizeof(line));
	line[sizeof(line) - 1] = '\0';
	evc_log_stderr(EVC_LOG_ERROR, line, &r, NULL);
	n = strlen(written(&k, buf, sizeof(buf)));
	ck_assert_uint_gt(n, 512);
	ck_assert_int_eq(buf[n - 1], '\n');
	ck_assert_ptr_eq(strchr(buf, '\n'), buf + n - 1);
	ck_assert_str_eq(written(&k, line, sizeof(line)), "");
	capture_end(&k);
}
END_TEST

enum { N_THREADS = 4, N_LINES = 25 };

static void *
log_some(void *arg)
{
	char line[64];
	int i;

	for (i = 0; i < N_LINES; i++) {
		snprintf(line, sizeof(line), "thread %d line %d end",
			 *(int *)arg, i);
		evc_log_stderr(EVC_LOG_INFO, line, NULL, NULL);
	}
	return NULL;
}

/* Each write is one line, so no two can mix.  A pipe holds them all. */
START_TEST(lines_of_several_threads_do_not_mix)
{
	int number[N_THREADS], next[N_THREADS] = { 0 }, i, who, line, p[2];
	pthread_t t[N_THREADS];
	struct capture k;
	char *at;
	char buf[N_THREADS * N_LINES * 128];
	size_t len = 0;
	ssize_t n;

	capture_begin(&k);
	OK(pipe(p));
	ck_assert_int_eq(dup2(p[1], STDERR_FILENO), STDERR_FILENO);
	OK(close(p[1]));
	for (i = 0; i < N_THREADS; i++) {
		number[i] = i;
		OK(pthread_create(&t[i], NULL, log_some, &number[i]));
	}
	for (i = 0; i < N_THREADS; i++)
		OK(pthread_join(t[i], NULL));
	capture_end(&k);
	while ((n = read(p[0], buf + len, sizeof(buf) - 1 - len)) > 0)
		len += (size_t)n;
	OK(close(p[0]));
	buf[len] = '\0';
	at = strtok(buf, "\n");
	for (i = 0; i < N_THREADS * N_LINES; i++) {
		ck_assert_ptr_nonnull(at);
		looks_like(at, "^" TIME " evcoord\\[[0-9]+\\] info: "
			       "thread [0-9] line [0-9]+ end$");
		ck_assert_int_eq(sscanf(strstr(at, "thread"),
					"thread %d line %d", &who, &line),
				 2);
		ck_assert(who >= 0 && who < N_THREADS);
		ck_assert_int_eq(line, next[who]++);
		at = strtok(NULL, "\n");
	}
	ck_assert_ptr_null(at);
}
END_TEST

/* A program that is to stop because its terminal has gone must not die of the
   line that says so. */
START_TEST(a_reader_that_is_gone_kills_nobody)
{
	struct capture k;
	sigset_t pending;
	int p[2];

	capture_begin(&k);
	OK(pipe(p));
	OK(close(p[0]));
	ck_assert_int_eq(dup2(p[1], STDERR_FILENO), STDERR_FILENO);
	OK(close(p[1]));
	signal(SIGPIPE, SIG_DFL);
	errno = 77;
	evc_log_stderr(EVC_LOG_INFO, "nobody reads this", NULL, NULL);
	ck_assert_int_eq(errno, 77);
	OK(sigpending(&pending));
	ck_assert(!sigismember(&pending, SIGPIPE));
	capture_end(&k);
}
END_TEST

/* And one that does not read holds up nobody, whether the descriptor blocks or
   not. */
START_TEST(a_reader_that_is_slow_loses_lines)
{
	struct capture k;
	int i, blocks;

	for (blocks = 0; blocks < 2; blocks++) {
		capture_begin(&k);
		if (!blocks)
			OK(fcntl(STDERR_FILENO, F_SETFL, O_NONBLOCK));
		for (i = 0; i < 4000; i++)
			evc_log_stderr(EVC_LOG_INFO, "many", NULL, NULL);
		capture_end(&k);
	}
}
END_TEST

START_TEST(syslog_gets_the_level_and_the_line_as_it_is)
{
	struct capture k;
	char buf[512];

	capture_begin(&k);
	/* The C library says it on standard error, too. */
	openlog("evcoord-test", LOG_PERROR, LOG_USER);
	evc_log_syslog(EVC_LOG_ERROR, "100%s of %n", NULL, NULL);
	HAS(written(&k, buf, sizeof(buf)), "evcoord-test: 100%s of %n");
	while (written(&k, buf, sizeof(buf))[0] != '\0')
		;
	setlogmask(LOG_UPTO(LOG_WARNING));
	evc_log_syslog(EVC_LOG_INFO, "not this one", NULL, NULL);
	ck_assert_str_eq(written(&k, buf, sizeof(buf)), "");
	evc_log_syslog(EVC_LOG_WARNING, "but this one", NULL, NULL);
	HAS(written(&k, buf, sizeof(buf)), "but this one");
	while (written(&k, buf, sizeof(buf))[0] != '\0')
		;
	setlogmask(LOG_UPTO(LOG_ERR));
	evc_log_syslog(EVC_LOG_WARNING, "not this one", NULL, NULL);
	ck_assert_str_eq(written(&k, buf, sizeof(buf)), "");
	setlogmask(LOG_UPTO(LOG_DEBUG));
	errno = 77;
	evc_log_syslog(EVC_LOG_INFO, "any", NULL, NULL);
	ck_assert_int_eq(errno, 77);
	closelog();
	capture_end(&k);
}
END_TEST

START_TEST(a_coordinator_speaks_by_it)
{
	evc_config cfg = { .name = "speaker", .log = evc_log_stderr };
	struct capture k;
	char buf[2048];
	evc_coord *c;

	capture_begin(&k);
	c = new_coord_with(NULL, &cfg);
	OK(evc_request_stop(c, EVC_INTERNAL, "it broke"));
	ck_assert_int_eq(evc_join(c, NULL, NULL), EVC_INTERNAL);
	OK(evc_free(c));
	HAS(written(&k, buf, sizeof(buf)), "info: stop of speaker requested");
	HAS(buf, "[code=INTERNAL kind=error round=1 by=\"");
	HAS(written(&k, buf, sizeof(buf)), "error: speaker: error INTERNAL");
	HAS(written(&k, buf, sizeof(buf)), "info: stop of speaker ended after ");
	ck_assert_str_eq(written(&k, buf, sizeof(buf)), "");
	capture_end(&k);
}
END_TEST

API_MAIN("log_ready", a_line_has_time_level_and_fields,
	 no_value_of_a_field_looks_like_another_field,
	 the_journal_gets_the_level_and_no_time,
	 a_line_is_one_line_however_long_it_is,
	 lines_of_several_threads_do_not_mix,
	 a_reader_that_is_gone_kills_nobody, a_reader_that_is_slow_loses_lines,
	 syslog_gets_the_level_and_the_line_as_it_is,
	 a_coordinator_speaks_by_it)
