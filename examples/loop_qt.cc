/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * loop_qt - a server on Qt; see loops.h.
 *
 *	loop_qt [--stuck]
 */
#include "loops.h"

#include <QCoreApplication>
#include <QTcpServer>
#include <QTcpSocket>
#include <QTimer>

#include <evcoord/qt.hpp>

static struct server server;

/* A child of its socket, which Qt deletes when the answer is over. */
class connection : public QObject {
	evc_task task;
	unsigned line;

	void
	send_line(QTcpSocket *socket)
	{
		char text[32];

		socket->write(text, (qint64)server_line(text, ++line));
		if (line < LINES)
			return;
		server.answers++;
		socket->disconnectFromHost(); /* when all is written */
	}

public:
	connection(QTcpSocket *socket, evc_qt *host)
		: QObject(socket), task(), line(0)
	{
		auto timer = new QTimer(this);

		connect(socket, &QTcpSocket::disconnected, socket,
			&QObject::deleteLater);
		connect(timer, &QTimer::timeout, [=] {
			if (line < LINES)
				send_line(socket);
		});
		/* After the stop no task begins, and the connection is
		   closed. */
		if (evc_task_begin(host->adapter.reactor, &task,
				   &server.connections) < 0)
			socket->disconnectFromHost();
		else
			timer->start(PAUSE_MS);
	}

	~connection() override
	{
		evc_task_end(&task);
	}
};

int
main(int argc, char **argv)
{
	QCoreApplication app(argc, argv);
	QTcpServer listener;
	evc_config cfg = {};
	evc_verdict v;
	evc_coord *c;
	evc_qt *host;
	evc_status st;

	server_options(&server, &cfg, "loop_qt", argc, argv);
	/* stop: */
	if (evc_new(NULL, &cfg, &c) < 0 ||
	    evc_qt_attach(c, "main", &host) < 0 ||
	    evc_signals_start(c, NULL) < 0 ||
	    /* :stop */
	    !server_members(&server, c))
		server_die(&server, evc_last_error());
	QObject::connect(&listener, &QTcpServer::newConnection, [&] {
		while (QTcpSocket *socket = listener.nextPendingConnection())
			new connection(socket, host);
	});
	if (!listener.listen(QHostAddress::LocalHost))
		server_die(&server, "no port");
	server_listens(listener.serverPort());
	/* stop: */
	st = evc_qt_exec(host, NULL, &v);
	/* :stop */
	server_end(&server, &v);
	/* stop: */
	evc_qt_detach(host);
	_exit(evc_finish(c, st)); /* no return: somebody late may still run */
	/* :stop */
}
