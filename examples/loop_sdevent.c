/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * loop_sdevent - a server on sd-event of systemd; see loops.h.
 *
 *	loop_sdevent [--stuck]
 */
#define _GNU_SOURCE
#include "loops.h"

#include <evcoord/sdevent.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>

static struct server server;

struct connection {
	evc_task task;
	sd_event_source *timer;
	int fd;
	unsigned line;
};

static void
end_connection(struct connection *conn)
{
	close(conn->fd);
	sd_event_source_disable_unref(conn->timer);
	evc_task_end(&conn->task);
	free(conn);
}

static int
send_line(sd_event_source *timer, uint64_t usec, void *arg)
{
	struct connection *conn = arg;
	char text[32];
	ssize_t n = (ssize_t)server_line(text, ++conn->line);

	if (send(conn->fd, text, (size_t)n, MSG_NOSIGNAL) == n) {
		if (conn->line < LINES) {
			sd_event_source_set_time(timer,
						 usec + PAUSE_MS * 1000);
			return sd_event_source_set_enabled(timer,
							   SD_EVENT_ONESHOT);
		}
		server.answers++;
	}
	end_connection(conn);
	return 0;
}

static int
on_connection(sd_event_source *listener, int fd, uint32_t revents, void *arg)
{
	sd_event *event = sd_event_source_get_event(listener);
	struct connection *conn = calloc(1, sizeof(*conn));
	evc_sdevent *host = arg;

	(void)revents;
	if (conn == NULL)
		server_die(&server, "no memory");
	conn->fd = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	/* After the stop no task begins, and the connection is closed. */
	if (conn->fd < 0 ||
	    evc_task_begin(host->adapter.reactor, &conn->task,
			   &server.connections) < 0 ||
	    sd_event_add_time_relative(event, &conn->timer, CLOCK_MONOTONIC,
				       PAUSE_MS * 1000, 1000, send_line,
				       conn) < 0)
		end_connection(conn);
	return 0;
}

static void
listen_anywhere(sd_event *event, evc_sdevent *host)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	socklen_t size = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, size) < 0 ||
	    listen(fd, 128) < 0 ||
	    getsockname(fd, (struct sockaddr *)&addr, &size) < 0 ||
	    sd_event_add_io(event, NULL, fd, EPOLLIN, on_connection, host) < 0)
		server_die(&server, "no port");
	server_listens(ntohs(addr.sin_port));
}

int
main(int argc, char **argv)
{
	evc_config cfg = { 0 };
	sd_event *event = NULL;
	evc_sdevent *host;
	evc_verdict v;
	evc_coord *c;
	evc_status st;

	server_options(&server, &cfg, "loop_sdevent", argc, argv);
	if (sd_event_default(&event) < 0)
		server_die(&server, "no event loop");
	/* stop: */
	if (evc_new(NULL, &cfg, &c) < 0 ||
	    evc_sdevent_attach(c, "main", event, &host) < 0 ||
	    evc_signals_start(c, NULL) < 0 ||
	    /* :stop */
	    !server_members(&server, c))
		server_die(&server, evc_last_error());
	listen_anywhere(event, host);
	/* stop: */
	st = evc_sdevent_run(host, NULL, &v);
	evc_sdevent_detach(host);
	/* :stop */
	server_end(&server, &v);
	sd_event_unref(event);
	/* stop: */
	_exit(evc_finish(c, st)); /* no return: somebody late may still run */
	/* :stop */
}
