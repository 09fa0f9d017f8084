/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * loop_asio - a server on asio; see loops.h.
 *
 *	loop_asio [--stuck]
 */
#include "loops.h"

#include <asio.hpp>
#include <evcoord/asio.hpp>

#include <chrono>
#include <memory>

static struct server server;

/* Lives as long as a handler has it. */
class connection : public std::enable_shared_from_this<connection> {
	evc_task task;
	asio::ip::tcp::socket socket;
	asio::steady_timer timer;
	char text[32];
	unsigned line;

	void
	write_line()
	{
		auto self = shared_from_this();

		asio::async_write(
			socket, asio::buffer(text, server_line(text, ++line)),
			[self](const asio::error_code &error, size_t) {
				if (error)
					return;
				if (self->line < LINES)
					self->next_line();
				else
					server.answers++;
			});
	}

	void
	next_line()
	{
		auto self = shared_from_this();

		timer.expires_after(std::chrono::milliseconds(PAUSE_MS));
		timer.async_wait([self](const asio::error_code &error) {
			if (!error)
				self->write_line();
		});
	}

public:
	explicit connection(asio::ip::tcp::socket s)
		: task(), socket(std::move(s)), timer(socket.get_executor()),
		  line(0)
	{
	}

	~connection()
	{
		evc_task_end(&task);
	}

	void
	begin(evc_asio *host)
	{
		/* After the stop no task begins, and the connection is
		   closed. */
		if (evc_task_begin(host->adapter.reactor, &task,
				   &server.connections) >= 0)
			next_line();
	}
};

static void
accept_next(asio::ip::tcp::acceptor &listener, evc_asio *host)
{
	listener.async_accept([&listener, host](const asio::error_code &error,
						asio::ip::tcp::socket socket) {
		if (error)
			return;
		std::make_shared<connection>(std::move(socket))->begin(host);
		accept_next(listener, host);
	});
}

int
main(int argc, char **argv)
{
	asio::io_context context(1);
	asio::ip::tcp::acceptor listener(
		context, { asio::ip::address_v4::loopback(), 0 });
	evc_config cfg = {};
	evc_asio *host;
	evc_verdict v;
	evc_coord *c;
	evc_status st;

	server_options(&server, &cfg, "loop_asio", argc, argv);
	/* stop: */
	if (evc_new(NULL, &cfg, &c) < 0 ||
	    evc_asio_attach(c, "main", context, &host) < 0 ||
	    evc_signals_start(c, NULL) < 0 ||
	    /* :stop */
	    !server_members(&server, c))
		server_die(&server, evc_last_error());
	accept_next(listener, host);
	server_listens(listener.local_endpoint().port());
	/* stop: */
	st = evc_asio_run(host, NULL, &v);
	/* :stop */
	server_end(&server, &v);
	/* stop: */
	evc_asio_detach(host);
	_exit(evc_finish(c, st)); /* no return: somebody late may still run */
	/* :stop */
}
