/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A service manager for tests: a socket that notifications are sent to, by path
 * or abstract, and all that has come in so far.
 */
#ifndef TESTS_SUPPORT_SYSTEMD_UTIL_H
#define TESTS_SUPPORT_SYSTEMD_UTIL_H

#include "api_util.h"

#include <dirent.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { MANAGER_MOST = 4096 };

struct manager {
	int fd;
	char dir[32]; /* "": abstract */
	char name[64];
	/* what was said: each datagram, and all of them */
	int n;
	char *said[MANAGER_MOST];
	char all[512 * 1024];
	size_t len;
};

/* Listen at the name, which there was before. */
static inline void
manager_listen(struct manager *m)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	size_t n = strlen(m->name);

	memcpy(a.sun_path, m->name, n);
	if (a.sun_path[0] == '@')
		a.sun_path[0] = '\0';
	m->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ck_assert_int_ge(m->fd, 0);
	OK(bind(m->fd, (struct sockaddr *)&a,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)));
}

static inline void
manager_begin(struct manager *m, bool abstract)
{
	static atomic_int number;

	memset(m, 0, sizeof(*m));
	if (abstract)
		snprintf(m->name, sizeof(m->name), "@evcoord-test-%d-%d",
			 (int)getpid(), atomic_fetch_add(&number, 1));
	else {
		snprintf(m->dir, sizeof(m->dir), "/tmp/evcoord-test-XXXXXX");
		ck_assert_ptr_nonnull(mkdtemp(m->dir));
		snprintf(m->name, sizeof(m->name), "%s/notify", m->dir);
	}
	manager_listen(m);
}

/* It dies; its name goes with it. */
static inline void
manager_die(struct manager *m)
{
	OK(close(m->fd));
	m->fd = -1;
	if (m->dir[0] != '\0')
		OK(unlink(m->name));
}

static inline void
manager_end(struct manager *m)
{
	int i;

	if (m->fd >= 0)
		manager_die(m);
	if (m->dir[0] != '\0')
		OK(rmdir(m->dir));
	for (i = 0; i < m->n; i++)
		free(m->said[i]);
}

/* Take in what has come; never waits.  How many datagrams there are by now. */
static inline int
manager_hear(struct manager *m)
{
	char buf[8192];
	ssize_t n;

	while ((n = recv(m->fd, buf, sizeof(buf) - 1, MSG_DONTWAIT)) >= 0) {
		buf[n] = '\0';
		ck_assert_int_lt(m->n, MANAGER_MOST);
		ck_assert_uint_lt(m->len + (size_t)n + 2, sizeof(m->all));
		m->said[m->n++] = strdup(buf);
		/* Each datagram begins a line. */
		m->len += (size_t)snprintf(m->all + m->len,
					   sizeof(m->all) - m->len, "\n%s",
					   buf);
	}
	ck_assert_int_eq(errno, EAGAIN);
	return m->n;
}

/* How often has it heard text, at the beginning of a line? */
static inline int
manager_count(struct manager *m, const char *text)
{
	const char *at = m->all;
	char line[600];
	int n = 0;

	manager_hear(m);
	snprintf(line, sizeof(line), "\n%s", text);
	while ((at = strstr(at, line)) != NULL) {
		n++;
		at += strlen(text);
	}
	return n;
}

static inline bool
manager_heard(struct manager *m, const char *text)
{
	return manager_count(m, text) > 0;
}

/* What it heard last that begins with that key, without it. */
static inline const char *
manager_last(struct manager *m, const char *key, char *buf, size_t n)
{
	const char *at = m->all, *last = NULL;
	char line[64];

	manager_hear(m);
	snprintf(line, sizeof(line), "\n%s", key);
	while ((at = strstr(at, line)) != NULL)
		last = at += strlen(line);
	snprintf(buf, n, "%.*s", last != NULL ? (int)strcspn(last, "\n") : 0,
		 last != NULL ? last : "");
	return buf;
}

/* A coordinator that tells it; everything that the test does not say is fit for
   a test: often, and no watchdog. */
static inline evc_coord *
manager_told(struct manager *m, struct ev_loop *loop, const evc_config *cfg,
	     const evc_systemd_opts *opts)
{
	evc_systemd_opts o = { 0 };
	evc_coord *c = new_coord_with(loop, cfg);

	if (opts != NULL)
		o = *opts;
	o.socket = m->name;
	if (o.status_every == 0)
		o.status_every = 0.01;
	if (o.watchdog == 0)
		o.watchdog = -1;
	OK(evc_systemd_start(c, &o));
	return c;
}

/* The thread of the library, 0 when it has not said yet that it is. */
static inline int
helper_tid(void)
{
	DIR *d = opendir("/proc/self/task");
	int tid, found = 0;
	struct dirent *e;
	char name[128];

	ck_assert_ptr_nonnull(d);
	while ((e = readdir(d)) != NULL) {
		tid = atoi(e->d_name);
		task_line(tid, "Name:", name, sizeof(name));
		if (strcmp(name, "\tevcoord\n") == 0)
			found = tid;
	}
	closedir(d);
	return found;
}

/* It has looked at what there was, and sleeps. */
static inline void
until_helper_rests(void)
{
	int tid;

	UNTIL((tid = helper_tid()) != 0);
	UNTIL(sleeps_on(tid, 0.02));
}

#endif
