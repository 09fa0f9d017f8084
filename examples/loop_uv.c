/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * loop_uv - a server on libuv; see loops.h.
 *
 *	loop_uv [--stuck]
 */
#include "loops.h"

#include <evcoord/uv.h>
#include <netinet/in.h>

static struct server server;

struct connection {
	evc_task task;
	uv_tcp_t socket;
	uv_timer_t timer;
	unsigned line;
};

static void
on_timer_closed(uv_handle_t *timer)
{
	struct connection *conn = timer->data;

	evc_task_end(&conn->task);
	free(conn);
}

static void
on_closed(uv_handle_t *socket)
{
	struct connection *conn = socket->data;

	uv_close((uv_handle_t *)&conn->timer, on_timer_closed);
}

static void
send_line(uv_timer_t *timer)
{
	struct connection *conn = timer->data;
	char text[32];
	uv_buf_t buf = uv_buf_init(text, 0);

	buf.len = server_line(text, ++conn->line);
	if (uv_try_write((uv_stream_t *)&conn->socket, &buf, 1) ==
	    (int)buf.len) {
		if (conn->line < LINES)
			return;
		server.answers++;
	}
	uv_timer_stop(timer);
	uv_close((uv_handle_t *)&conn->socket, on_closed);
}

static void
on_connection(uv_stream_t *listener, int status)
{
	struct connection *conn = calloc(1, sizeof(*conn));
	evc_uv *host = listener->data;

	if (conn == NULL || status < 0)
		server_die(&server, "no connection");
	uv_tcp_init(listener->loop, &conn->socket);
	uv_timer_init(listener->loop, &conn->timer);
	conn->socket.data = conn->timer.data = conn;
	/* After the stop no task begins, and the connection is closed. */
	if (uv_accept(listener, (uv_stream_t *)&conn->socket) < 0 ||
	    evc_task_begin(host->adapter.reactor, &conn->task,
			   &server.connections) < 0)
		uv_close((uv_handle_t *)&conn->socket, on_closed);
	else
		uv_timer_start(&conn->timer, send_line, PAUSE_MS, PAUSE_MS);
}

static void
listen_anywhere(uv_tcp_t *listener, evc_uv *host)
{
	struct sockaddr_in addr;
	int size = sizeof(addr);

	uv_ip4_addr("127.0.0.1", 0, &addr);
	uv_tcp_init(uv_default_loop(), listener);
	listener->data = host;
	if (uv_tcp_bind(listener, (struct sockaddr *)&addr, 0) < 0 ||
	    uv_listen((uv_stream_t *)listener, 128, on_connection) < 0 ||
	    uv_tcp_getsockname(listener, (struct sockaddr *)&addr, &size) < 0)
		server_die(&server, "no port");
	server_listens(ntohs(addr.sin_port));
}

int
main(int argc, char **argv)
{
	evc_config cfg = { 0 };
	uv_tcp_t listener;
	evc_verdict v;
	evc_coord *c;
	evc_uv *host;
	evc_status st;

	server_options(&server, &cfg, "loop_uv", argc, argv);
	/* stop: */
	if (evc_new(NULL, &cfg, &c) < 0 ||
	    evc_uv_attach(c, "main", NULL, &host) < 0 ||
	    evc_signals_start(c, NULL) < 0 ||
	    /* :stop */
	    !server_members(&server, c))
		server_die(&server, evc_last_error());
	listen_anywhere(&listener, host);
	/* stop: */
	st = evc_uv_run(host, NULL, &v);
	evc_uv_detach(host);
	/* :stop */
	server_end(&server, &v);
	uv_close((uv_handle_t *)&listener, NULL);
	/* This frees the handles.  UV_RUN_DEFAULT would wait for a connection
	   that was late, for ever. */
	uv_run(uv_default_loop(), UV_RUN_NOWAIT);
	/* stop: */
	_exit(evc_finish(c, st)); /* no return: somebody late may still run */
	/* :stop */
}
