/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * loop_event - a server on libevent; see loops.h.
 *
 *	loop_event [--stuck]
 */
#include "loops.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <evcoord/event.h>
#include <netinet/in.h>

static struct server server;

struct connection {
	evc_task task;
	struct bufferevent *socket;
	struct event *timer;
	unsigned line;
};

static void
end_connection(struct connection *conn)
{
	bufferevent_free(conn->socket);
	event_free(conn->timer);
	evc_task_end(&conn->task);
	free(conn);
}

/* The output is empty: after the last line the answer is whole. */
static void
on_written(struct bufferevent *socket, void *arg)
{
	struct connection *conn = arg;

	(void)socket;
	if (conn->line < LINES)
		return;
	server.answers++;
	end_connection(conn);
}

static void
on_broken(struct bufferevent *socket, short what, void *arg)
{
	(void)socket;
	(void)what;
	end_connection(arg);
}

static void
send_line(evutil_socket_t fd, short what, void *arg)
{
	struct connection *conn = arg;
	char text[32];
	size_t n = server_line(text, ++conn->line);

	(void)fd;
	(void)what;
	if (conn->line == LINES)
		event_del(conn->timer);
	bufferevent_write(conn->socket, text, n);
}

static void
on_connection(struct evconnlistener *listener, evutil_socket_t fd,
	      struct sockaddr *addr, int size, void *arg)
{
	struct event_base *base = evconnlistener_get_base(listener);
	const struct timeval pause = { 0, PAUSE_MS * 1000 };
	struct connection *conn = calloc(1, sizeof(*conn));
	evc_event *host = arg;

	(void)addr;
	(void)size;
	if (conn == NULL)
		server_die(&server, "no memory");
	conn->socket = bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE);
	conn->timer = event_new(base, -1, EV_PERSIST, send_line, conn);
	bufferevent_setcb(conn->socket, NULL, on_written, on_broken, conn);
	/* After the stop no task begins, and the connection is closed. */
	if (evc_task_begin(host->adapter.reactor, &conn->task,
			   &server.connections) < 0) {
		end_connection(conn);
		return;
	}
	bufferevent_enable(conn->socket, EV_READ | EV_WRITE);
	event_add(conn->timer, &pause);
}

static struct evconnlistener *
listen_anywhere(struct event_base *base, evc_event *host)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	socklen_t size = sizeof(addr);
	struct evconnlistener *listener;

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener = evconnlistener_new_bind(base, on_connection, host,
					   LEV_OPT_CLOSE_ON_FREE, -1,
					   (struct sockaddr *)&addr, size);
	if (listener == NULL ||
	    getsockname(evconnlistener_get_fd(listener),
			(struct sockaddr *)&addr, &size) < 0)
		server_die(&server, "no port");
	server_listens(ntohs(addr.sin_port));
	return listener;
}

int
main(int argc, char **argv)
{
	struct event_base *base = event_base_new();
	struct evconnlistener *listener;
	evc_config cfg = { 0 };
	evc_verdict v;
	evc_event *host;
	evc_coord *c;
	evc_status st;

	server_options(&server, &cfg, "loop_event", argc, argv);
	/* stop: */
	if (evc_new(NULL, &cfg, &c) < 0 ||
	    evc_event_attach(c, "main", base, &host) < 0 ||
	    evc_signals_start(c, NULL) < 0 ||
	    /* :stop */
	    !server_members(&server, c))
		server_die(&server, evc_last_error());
	listener = listen_anywhere(base, host);
	/* stop: */
	st = evc_event_run(host, NULL, &v);
	evc_event_detach(host);
	/* :stop */
	server_end(&server, &v);
	evconnlistener_free(listener);
	event_base_free(base);
	/* stop: */
	_exit(evc_finish(c, st)); /* no return: somebody late may still run */
	/* :stop */
}
