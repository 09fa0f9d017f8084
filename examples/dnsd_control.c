/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control socket: one command on each connection, one answer, the end.  It
 * lives on the home loop and is no member: it is there as long as that loop
 * runs, so that a stop that hangs can be asked why.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "dnsd.h"

#define CLIENTS 16 /* at once */
#define RETRY 0.1  /* seconds, when there is no descriptor to be had, or somebody
		      else has the lock of the folder */
#define TRIES 100  /* for that lock */

struct client {
	ev_io io;
	struct server *server;
	unsigned long number;     /* of those that came */
	size_t in_len;
	char in[256];
	char *out;                /* the answer, or NULL: not asked yet */
	size_t out_len, sent;
};

static ev_io door;
static ev_timer later;
static int spare = -1;            /* a descriptor that is given up for a client
				     when TCP's have all others */
static struct client clients[CLIENTS];
static unsigned long n_came;
static struct stat own;           /* the socket, as we have made it */
static atomic_bool held;          /* control -> signal handlers */

/* What tells about the coordinator: an explanation, or a report. */
struct tell {
	const char *command;
	size_t (*explain)(const evc_coord *c, char *buf, size_t n);
	size_t (*report)(const evc_coord *c, unsigned format, char *buf,
			 size_t n);
	unsigned format;          /* of the report */
};

static const struct tell tells[] = {
	{ "why", evc_explain, NULL, 0 },
	{ "report", NULL, evc_report, EVC_REPORT_TEXT },
	{ "dump json", NULL, evc_report, EVC_REPORT_JSON },
	{ "dump metrics", NULL, evc_report, EVC_REPORT_METRICS },
};

static size_t
tell(const struct tell *t, const evc_coord *c, char *buf, size_t n)
{
	return t->report != NULL ? t->report(c, t->format, buf, n) :
				   t->explain(c, buf, n);
}

/* The whole text, which may have become longer since it was asked how long. */
static char *
told_by(const struct tell *t, const evc_coord *c)
{
	size_t n = 0, need = tell(t, c, NULL, 0);
	char *text = NULL, *more;

	while (need + 1 >= n) { /* room for a line's end */
		n = need + 256;
		more = realloc(text, n);
		if (more == NULL) {
			free(text);
			return NULL;
		}
		text = more;
		need = tell(t, c, text, n);
	}
	if (need > 0 && text[need - 1] != '\n')
		strcpy(text + need, "\n");
	return text;
}

/* Somebody has to come by and see that it should be stuck: one UDP thread, for
   the kernel gives this datagram to one, and it says nothing. */
static void
stick(struct server *s, enum stick how)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)s->port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	atomic_store_explicit(&s->stick, how, memory_order_relaxed);
	if (fd < 0 ||
	    sendto(fd, "", 1, 0, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		perror("dnsd: stick");
	if (fd >= 0)
		close(fd);
}

/* Do what a line says; the answer. */
static char *
obey(struct server *s, const char *line)
{
	for (size_t i = 0; i < sizeof(tells) / sizeof(tells[0]); i++)
		if (strcmp(line, tells[i].command) == 0)
			return told_by(&tells[i], s->coord);
	if (strcmp(line, "reload") == 0) {
		reload_ask(s);
		return strdup("it is read again\n");
	}
	if (strcmp(line, "stick") == 0 || strcmp(line, "stick deaf") == 0) {
		stick(s, line[5] == 0 ? STICK : STICK_DEAF);
		return strdup("one UDP thread will be stuck\n");
	}
	if (strncmp(line, "stop", 4) == 0 && strchr(" ", line[4]) != NULL) {
		line += line[4] == 0 ? 4 : 5;
		/* stop: */
		evc_request_stop(s->coord, 0, *line ? line : "control socket");
		/* :stop */
		return strdup("it stops\n");
	}
	if (strcmp(line, "hold") == 0 || strcmp(line, "unhold") == 0) {
		atomic_store(&held, *line == 'h');
		return strdup(*line == 'h' ? "no signal stops it\n" :
			      "signals stop it\n");
	}
	return strdup("commands: stop [TEXT], why, report, dump json, "
		      "dump metrics, reload, hold, unhold, stick, "
		      "stick deaf\n");
}

bool
unheld(UNUSED int signo, UNUSED void *unused)
{
	return !atomic_load(&held);
}

static void
client_close(struct ev_loop *ev, struct client *k)
{
	char rest[sizeof(k->in)];

	ev_io_stop(ev, &k->io);
	/* What is left unread would reset the answer. */
	for (int i = 0; i < CLIENTS; i++)
		if (recv(k->io.fd, rest, sizeof(rest), 0) <= 0)
			break;
	if (spare >= 0)
		close(k->io.fd);
	else
		spare = dup3(door.fd, k->io.fd, O_CLOEXEC);
	free(k->out);
	k->out = NULL;
	k->server = NULL; /* this place is free */
}

static void
client_write(struct ev_loop *ev, struct client *k)
{
	ssize_t n = send(k->io.fd, k->out + k->sent, k->out_len - k->sent,
			 MSG_NOSIGNAL);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	k->sent += n > 0 ? (size_t)n : 0;
	if (n < 0 || k->sent == k->out_len)
		client_close(ev, k);
}

static void
client_read(struct ev_loop *ev, struct client *k)
{
	ssize_t n = recv(k->io.fd, k->in + k->in_len,
			 sizeof(k->in) - 1 - k->in_len, 0);
	char *end;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		client_close(ev, k);
		return;
	}
	k->in_len += (size_t)n;
	end = memchr(k->in, '\n', k->in_len);
	if (end == NULL && k->in_len < sizeof(k->in) - 1)
		return;
	if (end != NULL)
		*end = 0;
	/* With a 0 byte in it, it is none. */
	k->out = end == NULL ? strdup("the command is too long\n") :
		 obey(k->server, k->in + strlen(k->in) == end ? k->in : "");
	if (k->out == NULL) {
		client_close(ev, k);
		return;
	}
	k->out_len = strlen(k->out);
	ev_io_stop(ev, &k->io);
	ev_io_set(&k->io, k->io.fd, EV_WRITE);
	ev_io_start(ev, &k->io);
}

static void
on_client(struct ev_loop *ev, ev_io *w, UNUSED int events)
{
	struct client *k = w->data;

	if (k->out != NULL)
		client_write(ev, k);
	else
		client_read(ev, k);
}

/* The oldest client, one that is silent before one that is answered; NULL: there
   is none. */
static struct client *
client_oldest(void)
{
	struct client *old = NULL;

	for (struct client *k = clients; k < clients + CLIENTS; k++)
		if (k->server != NULL &&
		    (old == NULL || ((k->out != NULL) != (old->out != NULL) ?
				     k->out == NULL : k->number < old->number)))
			old = k;
	return old;
}

/* A place: when none is free that of the oldest client. */
static struct client *
client_place(struct ev_loop *ev)
{
	struct client *k = clients;

	while (k < clients + CLIENTS && k->server != NULL)
		k++;
	if (k == clients + CLIENTS) {
		k = client_oldest();
		client_close(ev, k);
	}
	return k;
}

/* Accept one, be it by what the oldest has.  -1: nobody is there, or there is no
   descriptor. */
static int
accept_one(struct ev_loop *ev)
{
	int fd = accept4(door.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd >= 0 || errno != EMFILE)
		return fd;
	if (spare < 0 && client_oldest() != NULL)
		client_close(ev, client_oldest());
	if (spare >= 0)
		close(spare);
	spare = -1;
	return accept4(door.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

static void
on_door(struct ev_loop *ev, ev_io *w, UNUSED int events)
{
	int fd = accept_one(ev);
	struct client *k;

	if (fd < 0) {
		/* The socket may stay readable: do not spin on it. */
		ev_io_stop(ev, &door);
		ev_timer_set(&later, RETRY, 0.);
		ev_timer_start(ev, &later);
		return;
	}
	k = client_place(ev);
	k->server = w->data;
	k->number = n_came++;
	k->in_len = k->sent = 0;
	ev_io_init(&k->io, on_client, fd, EV_READ);
	k->io.data = k;
	ev_io_start(ev, &k->io);
}

static void
on_later(struct ev_loop *ev, UNUSED ev_timer *w, UNUSED int events)
{
	if (spare < 0)
		spare = dup(door.fd);
	ev_io_start(ev, &door);
}

static bool
address(struct sockaddr_un *addr, const char *path)
{
	*addr = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (strlen(path) >= sizeof(addr->sun_path)) {
		errno = ENAMETOOLONG;
		return false;
	}
	strcpy(addr->sun_path, path);
	return true;
}

/* Take away the socket of one that was killed.  NULL, or what there is. */
static const char *
clear(const char *path, const struct sockaddr_un *addr)
{
	struct stat st;
	int fd, err;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? NULL : strerror(errno);
	if (!S_ISSOCK(st.st_mode))
		return "it is there, and is no socket";
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return strerror(errno);
	err = connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) < 0 ?
	      errno : 0;
	close(fd);
	if (err == 0 || err == EAGAIN)
		return "somebody answers there";
	if (err != ECONNREFUSED)
		return strerror(err);
	return unlink(path) < 0 ? strerror(errno) : NULL;
}

/* Make the socket that s listens at.  NULL, or why there is none. */
static const char *
door_open(struct server *s, struct ev_loop *ev, const char *path,
	  const struct sockaddr_un *addr)
{
	const char *why = clear(path, addr);
	mode_t mask;
	int fd, st;

	if (why != NULL)
		return why;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	mask = umask(0177); /* there are no threads yet */
	st = fd < 0 ? -1 : bind(fd, (const struct sockaddr *)addr, sizeof(*addr));
	umask(mask);
	if (st < 0 || listen(fd, CLIENTS) < 0 || lstat(path, &own) < 0) {
		why = strerror(errno);
		if (fd >= 0)
			close(fd);
		return why;
	}
	spare = dup(fd);
	ev_timer_init(&later, on_later, 0., 0.);
	ev_io_init(&door, on_door, fd, EV_READ);
	door.data = s;
	ev_io_start(ev, &door);
	return NULL;
}

/* The lock of a folder, or -1 and errno.  Whoever may read the folder can have it
   for ever: so it is not waited for that long. */
static int
folder_lock(const char *folder)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), err;

	for (int i = 0; fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0; i++) {
		if (errno == EWOULDBLOCK && i < TRIES) {
			ev_sleep(RETRY);
			continue;
		}
		err = errno;
		close(fd);
		fd = -1;
		errno = err;
	}
	return fd;
}

const char *
control_start(struct server *s, struct ev_loop *ev, const char *path)
{
	struct sockaddr_un addr, folder;
	const char *why;
	int lock;

	if (!address(&addr, path))
		return strerror(errno);
	/* Of two servers that start at once, where a third was killed, each
	   could take the other's socket for the dead one: one at a time, from
	   the look until the new socket listens. */
	folder = addr;
	lock = folder_lock(dirname(folder.sun_path));
	if (lock < 0)
		return errno == EWOULDBLOCK ? "its folder is locked" :
		       strerror(errno);
	why = door_open(s, ev, path, &addr);
	close(lock);
	return why;
}

void
control_stop(struct ev_loop *ev, const char *path)
{
	struct stat st;

	for (struct client *k = clients; k < clients + CLIENTS; k++)
		if (k->server != NULL)
			client_close(ev, k);
	ev_io_stop(ev, &door);
	ev_timer_stop(ev, &later);
	/* Somebody may have put something else there. */
	if (lstat(path, &st) == 0 && st.st_dev == own.st_dev &&
	    st.st_ino == own.st_ino)
		unlink(path);
	close(spare);
	close(door.fd); /* last: no other file gets its inode before */
}

int
control_send(const char *path, const char *command)
{
	struct sockaddr_un addr;
	char buf[4096];
	int len = snprintf(buf, sizeof(buf), "%s\n", command);
	ssize_t n = -1;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (len >= (int)sizeof(buf))
		errno = E2BIG;
	else if (fd >= 0 && address(&addr, path) &&
	    connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0 &&
	    send(fd, buf, (size_t)len, MSG_NOSIGNAL) == len)
		while ((n = read(fd, buf, sizeof(buf))) > 0)
			fwrite(buf, 1, (size_t)n, stdout);
	if (n < 0)
		fprintf(stderr, "dnsd: %s: %s\n", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return n < 0;
}
