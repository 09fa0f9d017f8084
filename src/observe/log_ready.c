/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions for evc_config.log: lines for a terminal or a file, and for syslog.
 * Only these functions of the library print, and only where a program asks.
 * Called by: the program, through evc_config.log.
 * Locks: none.
 */
#include <syslog.h>
#include <time.h>

#include "base/sync.h"
#include "base/text.h"
#include "core/core.h"
#include "observe/write_out.h"

/* The time of the event, "2026-01-31T12:00:00.123Z". */
static void
add_time(struct text *t)
{
	uint64_t ns = evc__log_event_ns();
	time_t s = (time_t)(ns / 1000000000u);
	struct tm tm;
	char day[32];

	if (gmtime_r(&s, &tm) == NULL ||
	    strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm) == 0)
		return;
	evc__text_fmt(t, "%s.%03uZ ", day, (unsigned)(ns / 1000000u % 1000u));
}

static const char *
level_name(int level)
{
	return level <= EVC_LOG_ERROR	? "error" :
	       level <= EVC_LOG_WARNING ? "warning" :
					  "info";
}

static const char *
kind_name(unsigned kind)
{
	static const char *const name[] = {
		[EVC_BY_REQUEST] = "request",
		[EVC_BY_ERROR] = "error",
		[EVC_BY_MEMBER_END] = "member-end",
		[EVC_BY_SIGNAL] = "signal",
		[EVC_BY_EMPTY] = "empty",
		[EVC_BY_LOOP_BROKEN] = "loop-broken",
		[EVC_BY_PARENT] = "parent",
	};

	return kind < sizeof name / sizeof name[0] ? name[kind] : "?";
}

/* A field with its value in quotes; a backslash stands before each quote and
   backslash of the value. */
static void
add_quoted(struct text *t, const char *key, const char *value)
{
	size_t n;

	evc__text_fmt(t, " %s=\"", key);
	for (;;) {
		n = strcspn(value, "\"\\");
		evc__text_fmt(t, "%.*s", (int)n, value);
		value += n;
		if (*value == '\0')
			break;
		evc__text_add(t, *value++ == '"' ? "\\\"" : "\\\\");
	}
	evc__text_add(t, "\"");
}

/* A field with quotes only where a reader could take the value for more than
   one. */
static void
add_plain(struct text *t, const char *key, const char *value)
{
	if (value[strcspn(value, " =\"\\[]")] != '\0')
		add_quoted(t, key, value);
	else
		evc__text_fmt(t, " %s=%s", key, value);
}

static void
add_fields(struct text *t, const evc_reason *r)
{
	char at[sizeof r->file + 16];
	struct text place = evc__text_in(at, sizeof at);

	evc__text_fmt(t, " [code=%s", evc_status_name(r->code));
	/* A line about late members has no reason. */
	if (r->kind != 0)
		evc__text_fmt(t, " kind=%s", kind_name(r->kind));
	evc__text_fmt(t, " round=%u", r->round);
	if (r->who[0] != '\0')
		add_quoted(t, "by", r->who);
	if (r->by != 0)
		evc__text_fmt(t, " id=%llu", (unsigned long long)r->by);
	if (r->tid != 0)
		evc__text_fmt(t, " tid=%d", r->tid);
	if (r->err != 0)
		evc__text_fmt(t, " errno=%d", r->err);
	if (r->file[0] != '\0') {
		evc__text_fmt(&place, "%s:%d", r->file, r->line);
		add_plain(t, "at", at);
	}
	if (r->func[0] != '\0')
		add_plain(t, "func", r->func);
	evc__text_add(t, "]");
}

/* Is standard error a stream of systemd's journal?  JOURNAL_STREAM has the
   device and the inode of that stream; standard error may be another file by
   now. */
static bool
to_journal(void)
{
	const char *s = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat now;
	char *end;
	bool yes;

	if (s == NULL || s[0] < '0' || s[0] > '9')
		return false;
	device = strtoull(s, &end, 10);
	yes = *end == ':' && end[1] >= '0' && end[1] <= '9';
	inode = yes ? strtoull(end + 1, &end, 10) : 0;
	yes = yes && *end == '\0' && sync_fd_stat(STDERR_FILENO, &now) == 0 &&
	      now.st_dev == device && now.st_ino == inode;
	return yes;
}

void
evc_log_stderr(int level, const char *line, const evc_reason *r, void *arg)
{
	char buf[1024];
	/* One byte is kept for the end of the line. */
	struct text t = evc__lines_in(buf, sizeof buf - 1);
	int e = errno;

	(void)arg;
	/* The journal has its own time, and reads the level from "<3>". */
	if (to_journal())
		evc__text_fmt(&t, "<%d>",
			      level < 0 ? 0 : level > 7 ? 7 : level);
	else
		add_time(&t);
	evc__text_fmt(&t, "evcoord[%d] %s: %s", (int)getpid(),
		      level_name(level), line);
	if (r != NULL)
		add_fields(&t, r);
	/* One write, so lines of several threads do not mix. */
	strcat(buf, "\n");
	evc__write_once(STDERR_FILENO, buf, strlen(buf));
	errno = e;
}

void
evc_log_syslog(int level, const char *line, const evc_reason *r, void *arg)
{
	int e = errno, old;
	char buf[1024];
	struct text t = evc__lines_in(buf, sizeof buf);

	(void)r;
	(void)arg;
	evc__text_add(&t, line != NULL ? line : "(null)");
	/* syslog is a cancellation point, and holds a lock of the C library. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	syslog(level, "%s", buf);
	pthread_setcancelstate(old, NULL);
	errno = e;
}
