/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * loop_glib - a server on GLib's main loop; see loops.h.
 *
 *	loop_glib [--stuck]
 */
#include "loops.h"

#include <evcoord/glib.h>
#include <gio/gio.h>

static struct server server;

struct connection {
	evc_task task;
	GSocketConnection *socket;
	unsigned line;
};

static gboolean
send_line(gpointer data)
{
	struct connection *conn = data;
	char text[32];
	gsize n = server_line(text, ++conn->line);

	if (g_output_stream_write_all(
		    g_io_stream_get_output_stream(G_IO_STREAM(conn->socket)),
		    text, n, NULL, NULL, NULL)) {
		if (conn->line < LINES)
			return G_SOURCE_CONTINUE;
		server.answers++;
	}
	g_object_unref(conn->socket);
	evc_task_end(&conn->task);
	g_free(conn);
	return G_SOURCE_REMOVE;
}

static gboolean
on_incoming(GSocketService *service, GSocketConnection *socket, GObject *source,
	    gpointer data)
{
	struct connection *conn = g_new0(struct connection, 1);
	evc_glib *host = data;

	(void)service;
	(void)source;
	if (evc_task_begin(host->adapter.reactor, &conn->task,
			   &server.connections) < 0) {
		g_free(conn); /* after the stop: GLib closes the socket */
		return TRUE;
	}
	conn->socket = g_object_ref(socket);
	g_timeout_add(PAUSE_MS, send_line, conn);
	return TRUE;
}

int
main(int argc, char **argv)
{
	GSocketService *service = g_socket_service_new();
	evc_config cfg = { 0 };
	evc_glib *host;
	evc_verdict v;
	evc_coord *c;
	guint16 port;
	evc_status st;

	server_options(&server, &cfg, "loop_glib", argc, argv);
	/* stop: */
	if (evc_new(NULL, &cfg, &c) < 0 ||
	    evc_glib_attach(c, "main", NULL, &host) < 0 ||
	    evc_signals_start(c, NULL) < 0 ||
	    /* :stop */
	    !server_members(&server, c))
		server_die(&server, evc_last_error());
	port = g_socket_listener_add_any_inet_port(G_SOCKET_LISTENER(service),
						   NULL, NULL);
	if (port == 0)
		server_die(&server, "no port");
	g_signal_connect(service, "incoming", G_CALLBACK(on_incoming), host);
	server_listens(port);
	/* stop: */
	st = evc_glib_run(host, NULL, NULL, &v);
	/* :stop */
	server_end(&server, &v);
	g_object_unref(service);
	/* stop: */
	evc_glib_detach(host);
	_exit(evc_finish(c, st)); /* no return: somebody late may still run */
	/* :stop */
}
