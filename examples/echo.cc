/* SPDX-License-Identifier: BSD-2-Clause */
//
// echo - an echo server whose connections are tasks.
//
//	echo [PORT]	0, the default: any free port; it is printed
//
// A SIGINT or SIGTERM ends the listening, and each connection gets what it has
// sent so far: on_stop() shuts the reading side, so that the end of input comes
// like the peer's own.  A connection that does not take its bytes is cut 2 s
// later, on_late().
//
// The exit status is 0, also when on_late() has cut a connection: a program
// whose status should show that counts its cuts.  The exit status is 124 when a
// connection was still there at the end of the grace, and 1 after an error.
#include <ev.h>
#include <evcoord.hpp>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

// A watcher of libev whose callback is a member function.
template <class T, void (T::*ready)(int)>
struct io {
	ev_io w;
	struct ev_loop *loop;

	io(struct ev_loop *l, T *owner) : loop(l)
	{
		ev_init(&w, [](struct ev_loop *, ev_io *watcher, int events) {
			(static_cast<T *>(watcher->data)->*ready)(events);
		});
		w.data = owner;
	}
	io(const io &) = delete;
	~io() { ev_io_stop(loop, &w); }

	void
	wait(int fd, int events)
	{
		ev_io_stop(loop, &w);
		ev_io_set(&w, fd, events);
		ev_io_start(loop, &w);
	}
};

// A connection deletes itself: at the end of input, after an error, when late.
class connection : public evcoord::task<connection> {
public:
	static constexpr const char *task_name = "connection";
	static constexpr double task_grace = 2;

	connection(int socket, struct ev_loop *loop)
		: fd(socket), watcher(loop, this)
	{
		watcher.wait(fd, EV_READ);
	}
	~connection() { close(fd); }

	void
	on_stop() { shutdown(fd, SHUT_RD); }
	void
	on_late() { delete this; }
	void
	describe(char *text, std::size_t room) const
	{
		std::snprintf(text, room, "%zu bytes left", size);
	}

private:
	void
	ready(int)
	{
		ssize_t n = size == 0 ? recv(fd, data, sizeof data, 0)
				      : send(fd, data, size, MSG_NOSIGNAL);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			delete this;
			return;
		}
		if (size == 0) {
			size = static_cast<std::size_t>(n);
		} else {
			size -= static_cast<std::size_t>(n);
			std::memmove(data, data + n, size);
		}
		watcher.wait(fd, size == 0 ? EV_READ : EV_WRITE);
	}

	int fd;
	std::size_t size = 0; // bytes to be sent
	char data[4096];
	io<connection, &connection::ready> watcher;
};

// The listener closes its socket at a drain or a stop, so that nobody is taken
// whom the stop would cut.
class listener {
public:
	listener(evcoord::coord_ref c, unsigned short port)
		: reactor(c.home()), watcher(reactor.loop(), this),
		  ends(c, "listener", [this] { hang_up(); },
		       evcoord::hook_flag::on_drain)
	{
		sockaddr_in a{};
		socklen_t n = sizeof a;

		a.sin_family = AF_INET;
		a.sin_port = htons(port);
		a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
			    0);
		if (fd < 0 || bind(fd, reinterpret_cast<sockaddr *>(&a), n) ||
		    listen(fd, 128) ||
		    getsockname(fd, reinterpret_cast<sockaddr *>(&a), &n))
			throw std::system_error(errno, std::generic_category(),
						"cannot listen");
		std::printf("port %d\n", ntohs(a.sin_port));
		std::fflush(stdout);
		watcher.wait(fd, EV_READ);
	}
	~listener() { hang_up(); }

private:
	void
	ready(int)
	{
		int s = accept4(fd, nullptr, nullptr,
				SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (s < 0)
			return;
		auto *conn = new connection(s, reactor.loop());
		if (!conn->begin(reactor))
			delete conn; // the stop has come
	}
	void
	hang_up()
	{
		ev_io_stop(watcher.loop, &watcher.w);
		if (fd >= 0)
			close(std::exchange(fd, -1));
	}

	int fd = -1;
	evcoord::reactor_ref reactor;
	io<listener, &listener::ready> watcher;
	evcoord::hook ends;
};

} // namespace

int
main(int argc, char **argv)
{
	unsigned long port = argc == 2 ? std::strtoul(argv[1], nullptr, 10) : 0;
	evcoord::config config;
	evcoord::verdict v;

	if (argc > 1 && std::strcmp(argv[1], "--help") == 0)
		return std::puts("usage: echo_cc [PORT]") < 0;
	if (argc > 2 || port > 65535) {
		std::fputs("usage: echo_cc [PORT]\n", stderr);
		return 2;
	}
	config.name = "echo";
	config.grace = 5;
	evcoord::coordinator c(EV_DEFAULT, config);
	try {
		c.signals().value();
		listener l(c, static_cast<unsigned short>(port));
		evcoord::status st = c.run({}, &v);

		std::fprintf(stderr, "%s after %.3f s\n", v.stop.text, v.took);
		if (!st)
			std::fprintf(stderr, "%s: %s\n", st.name(),
				     v.error.text);
		return st.exit_code();
	} catch (const std::exception &e) {
		std::fprintf(stderr, "%s\n", e.what());
		return 1;
	}
}
