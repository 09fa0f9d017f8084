/* SPDX-License-Identifier: BSD-2-Clause */
//
// Exceptions that leave the functions given to evcoord.hpp, one kind of function
// in each case: each is an error of the right coordinator, with the name of its
// member.  And threads that end inside such functions.
#include "cases.h"

#include <evcoord.hpp>

#include <new>
#include <thread>

#include <pthread.h>
#include <unistd.h>

using namespace evcoord;

// How many allocations of this thread succeed before one fails; -1: all do.
static thread_local long n_allocations = -1;

// Inlined alone, one of them would not be the other's counterpart to g++.
__attribute__((noinline)) void *
operator new(std::size_t n)
{
	void *p = n_allocations < 0 || n_allocations-- > 0 ? std::malloc(n)
							   : nullptr;

	if (p == nullptr)
		throw std::bad_alloc();
	return p;
}

__attribute__((noinline)) void
operator delete(void *p) noexcept { std::free(p); }

__attribute__((noinline)) void
operator delete(void *p, std::size_t) noexcept { std::free(p); }

namespace {

struct broken : std::runtime_error {
	broken() : std::runtime_error("disk full") {}
};

[[noreturn]] void
fail()
{
	throw broken();
}

std::atomic<int> n_live{ 0 };

struct counted {
	counted() { ++n_live; }
	counted(const counted &) { ++n_live; }
	~counted() { --n_live; }
};

// Throws when it is destroyed, the last of its copies.
struct throws_at_end {
	bool armed = true;
	throws_at_end() = default;
	throws_at_end(throws_at_end &&o) noexcept
		: armed(std::exchange(o.armed, false)) {}
	~throws_at_end() noexcept(false)
	{
		if (armed)
			fail();
	}
};

struct throws_when_moved {
	throws_when_moved() = default;
	throws_when_moved(throws_when_moved &&) { fail(); }
};

struct ev_loop *
loop()
{
	static struct ev_loop *l = new_loop();

	return l;
}

// The first error of c is that exception, and NAME stands before it.
void
is_error(coord_ref c, const char *name, enum code k = code::aborted)
{
	auto r = c.first_error();
	std::string want = std::string(name) + ": ";

	CHECK(r);
	if (r->code != static_cast<int>(k) ||
	    std::strncmp(r->text, want.c_str(), want.size()) != 0 ||
	    (k == code::aborted &&
	     !std::strstr(r->text, "broken: disk full"))) {
		std::printf("%d: %s\n", r->code, r->text);
		CHECK(false);
	}
	CHECK(n_live == 0);
}

// After a join it is one of the reasons alone.
void
is_last_reason(coord_ref c, const char *begin)
{
	auto all = c.reasons();

	CHECK(!all.empty() && std::strstr(all.back().text, begin) ==
	      all.back().text);
	CHECK(std::strstr(all.back().text, "broken: disk full"));
}

// It is also the result of a run.
void
runs_to(coordinator &c, const char *name)
{
	CHECK(c.run() == code::aborted);
	is_error(c, name);
}

void
thread()
{
	coordinator c;

	c.thread("t", [own = counted()] { fail(); });
	CHECK(c.join() == code::aborted);
	is_error(c, "t");
	CHECK(c.first_error()->by != 0);
}

void
thread_end()
{
	coordinator c;

	c.thread("t", [own = throws_at_end()] {});
	CHECK(c.join() == code::aborted);
	is_error(c, "t");
}

struct plain {};

// A chain longer than any reason.
void
deep(int n)
{
	auto p = std::make_exception_ptr(broken());

	while (n-- > 0)
		try {
			try {
				std::rethrow_exception(p);
			} catch (...) {
				std::throw_with_nested(
					std::runtime_error("xxxx"));
			}
		} catch (...) {
			p = std::current_exception();
		}
	std::rethrow_exception(p);
}

// What the exception says more.
void
kinds()
{
	const struct {
		enum code code;
		int err;
		const char *text;
		void (*fn)();
	} kinds[] = {
		{ code::aborted, ENOSPC, "std::system_error: writing: No space",
		  [] { throw std::system_error(ENOSPC, std::generic_category(),
					       "writing"); } },
		{ code::resource_exhausted, 0, "std::bad_alloc: std::bad_alloc",
		  [] { throw std::bad_alloc(); } },
		{ code::aborted, 0, "int: not a std::exception",
		  [] { throw 7; } },
		{ code::unknown, 0, "evcoord::error: nothing wrong",
		  [] { throw error(code::ok, "nothing wrong"); } },
		{ code::not_found, 0, "evcoord::error: NOT_FOUND",
		  [] { status(code::not_found).value(); } },
		{ code::aborted, ENOSPC,
		  "t: std::logic_error: outer: inner: innermost: No space",
		  [] {
			try {
				try {
					throw std::system_error(
						ENOSPC, std::generic_category(),
						"innermost");
				} catch (...) {
					std::throw_with_nested(
						std::runtime_error("inner"));
				}
			} catch (...) {
				std::throw_with_nested(
					std::logic_error("outer"));
			}
		  } },
		// The outer one has no text; the inner one has, or has a type.
		{ code::aborted, EIO,
		  "plain: not a std::exception: cause: Input/output error",
		  [] {
			try {
				throw std::system_error(
					EIO, std::generic_category(), "cause");
			} catch (...) {
				std::throw_with_nested(plain());
			}
		  } },
		{ code::aborted, 0,
		  "t: std::logic_error: outer: int: not a std::exception",
		  [] {
			try {
				throw 7;
			} catch (...) {
				std::throw_with_nested(
					std::logic_error("outer"));
			}
		  } },
		// No end of input when something else is the cause of it.
		{ code::not_found, 0,
		  "evcoord::error: end: also: NOT_FOUND",
		  [] {
			try {
				try {
					status(code::not_found).value();
				} catch (...) {
					std::throw_with_nested(
						error(code::out_of_range,
						      "also"));
				}
			} catch (...) {
				std::throw_with_nested(
					error(code::out_of_range, "end"));
			}
		  } },
		{ code::aborted, 0, "xxxx", [] { deep(100); } },
	};

	for (auto &k : kinds) {
		coordinator c;

		c.thread("t", k.fn);
		CHECK(c.join() == k.code);
		auto r = c.first_error();
		std::printf("%s\n", r->text);
		CHECK(r->err == k.err && std::strstr(r->text, k.text));
	}
}

// The end of input and an obeyed stop are no errors.
void
clean_values()
{
	coordinator c;
	queue<int> q(c, "q");

	c.thread("t", [&] {
		for (;;)
			q.pop().value();
	});
	CHECK(q.close() && c.join());
	c.thread("s", [](coord_ref me) { me.sleep(60).value(); });
	c.request_stop();
	CHECK(c.join());
}

// value() of an error that is reported adds none; an error that says more does.
void
value_of_fail()
{
	auto fails = [](coord_ref me) {
		status(me.fail(code::data_loss, "shard 3")).value();
	};
	auto fails_twice = [](coord_ref me) {
		(void)me.fail(code::data_loss, "shard 3");
		throw error(code::data_loss, "shard 4");
	};

	for (int i = 0; i < 6; i++) {
		coordinator c(loop());
		verdict v;

		if (i == 0)
			c.thread("t", fails);
		if (i == 1)
			CHECK(c.guard("g", fails));
		if (i == 2)
			CHECK(c.home().post([&] { fails(c); }));
		if (i == 3)
			CHECK(c.home().post([&] { fails_twice(c); }));
#ifdef EVCOORD_COROUTINES
		if (i == 4)
			CHECK(spawn(c.home(), "co", [](coordinator &d)
				    -> co<> {
				status(d.fail(code::data_loss,
					      "shard 3")).value();
				co_return;
			}(c)));
		// Perhaps at the address of the last one.
		if (i == 5)
			CHECK(spawn(c.home(), "co", []() -> co<> {
				status(code::data_loss).value();
				co_return;
			}()));
#else
		if (i >= 4)
			break;
#endif
		CHECK(c.run({}, &v) == code::data_loss);
		CHECK(v.n_errors == (i == 3 ? 2u : 1u));
		CHECK(i == 5 || std::strcmp(v.error.text, "shard 3") == 0);
	}
}

void
looper_on_loop()
{
	coordinator c(loop());
	looper l(c, "l", 0, [own = counted()] { fail(); });

	runs_to(c, "l");
}

void
looper_on_thread()
{
	coordinator c;
	looper l(c, "l", 0, [own = counted()] { fail(); },
		 { looper_flag::own_thread });

	CHECK(c.join() == code::aborted);
	while (l.in_use())
		std::this_thread::yield();
	is_error(c, "l");
}

void
looper_end()
{
	coordinator c(loop());
	{
		looper l(c, "l", 60, [own = throws_at_end()] {});
	}
	CHECK(c.run() == code::aborted);
	is_error(c, "l");
}

void
hook()
{
	coordinator c(loop());
	evcoord::hook h(c, "h", [] { fail(); });

	c.request_stop();
	runs_to(c, "h");
}

void
guard()
{
	coordinator c;

	CHECK(c.guard("g", [own = counted()] { fail(); }));
	CHECK(c.join() == code::aborted);
	is_error(c, "g");
}

struct conn : evcoord::task<conn> {
	static constexpr const char *task_name = "conn";
	static constexpr double task_grace = EVC_NO_GRACE;
	bool late;
	explicit conn(bool l) : late(l) {}
	void
	on_stop()
	{
		if (!late) {
			end();
			fail();
		}
	}
	void
	on_late()
	{
		end();
		fail();
	}
	void
	describe(char *, std::size_t) const { fail(); }
};

void
on_stop(bool late)
{
	coordinator c(loop());
	conn t(late);

	CHECK(t.begin(c.home()));
	c.request_stop();
	runs_to(c, "conn");
}

void task_on_stop() { on_stop(false); }
void task_on_late() { on_stop(true); }

struct stays : evcoord::task<stays> {
	static constexpr const char *task_name = "stays";
	void
	describe(char *, std::size_t) const { fail(); }
};

void
task_describe()
{
	coordinator c(loop());
	stays t;

	CHECK(t.begin(c.home()));
	c.request_stop();
	verdict v;
	CHECK(c.run({ EVC_NO_GRACE }, &v).exit_code() != 0);
	is_error(c, "stays");
	// Once, although each look at the task asks again.
	looper turns(c, "turns", 0.005, [] {}, {
		looper_flag::after_stop | looper_flag::background });
	(void)c.run({ 0.06 }, &v);
	CHECK(v.n_errors == 1);
}

void
post()
{
	coordinator c(loop());

	CHECK(c.home().post([own = counted()] { fail(); }));
	runs_to(c, "post");
	coordinator d(loop());

	CHECK(d.home().post_after_stop([own = counted()] { fail(); }));
	runs_to(d, "post");
}

void
post_end()
{
	coordinator c(loop());

	CHECK(c.home().post([own = throws_at_end()] {}));
	runs_to(c, "post");
	coordinator d(loop());

	CHECK(d.home().post_after_stop([own = throws_at_end()] {}));
	runs_to(d, "post");
}

void
pool_work()
{
	coordinator c(loop());
	pool p(c, "p", { 1 });
	bool told = false;

	CHECK(p.submit(c.home(), "job", [own = counted()] { fail(); },
		       [&](status st) { told = st == code::aborted; }));
	CHECK(c.run() == code::aborted && told);
	is_error(c, "job");
}

// The error of a job or hook is not taken for that of an earlier one of its
// thread.
void
after_a_report()
{
	for (int i = 0; i < 3; i++) {
		coordinator c(loop());
		pool p(c, "p", { 1, 0, 0, 0, pool_flag::finish });
		evcoord::hook first, second;
		/* After the stop nothing is submitted. */
		std::atomic<bool> both{ false };
		auto fails = [&] {
			while (!both)
				std::this_thread::yield();
			(void)c.fail(code::data_loss, "one");
		};
		auto throws = [] { status(code::data_loss).value(); };
		verdict v;

		if (i == 0)
			CHECK(p.submit(c.home(), "1", fails, [] {}) &&
			      p.submit(c.home(), "2", throws, [] {}));
		if (i == 1) {
			first = evcoord::hook(c, "1", fails);
			second = evcoord::hook(c, "2", throws);
			c.request_stop();
		}
#ifdef EVCOORD_COROUTINES
		auto job = [](coordinator &d, pool &in, auto f) -> co<> {
			(void)co_await run_in(in, d.home(), "job", f);
		};
		if (i == 2)
			CHECK(spawn(c.home(), "1", job(c, p, fails)) &&
			      spawn(c.home(), "2", job(c, p, throws)));
#else
		if (i == 2)
			break;
#endif
		both = true;
		CHECK(c.run({}, &v) == code::data_loss);
		CHECK(v.n_errors == 2);
	}
}

// What the destructor of a callable throws when its call is refused.
struct ends_badly {
	throws_at_end own;
	void
	operator()() {}
};

void
refused_end()
{
	for (int i = 0; i < 7; i++) {
		config k;

		k.strict = false;
		coordinator c(loop(), k);
		pool p(c, "p");
		queue<int> q(c, "q");
		struct pops {
			throws_at_end own;
			void
			operator()(int) {}
		};
		struct joined {
			throws_at_end own;
			void
			operator()(coord_ref, const verdict &) {}
		};
		struct feeds {
			throws_at_end own;
			std::optional<int>
			operator()() { return 1; }
		};
		const char *name = "t";

		if (i != 6)
			c.request_stop();
		if (i == 0)
			CHECK(!c.thread("t", ends_badly()));
		if (i == 1)
			CHECK(!p.submit(c.home(), "t", ends_badly(), [] {}));
		if (i == 2)
			CHECK(!p.submit(loop_ref(c.home()), "t", ends_badly(),
					[] {}));
		if (i == 3)
			CHECK(!c.reactor("t", ends_badly(), [] {}));
		if (i == 4) {
			name = "q";
			CHECK(!q.watch(c.home(), pops()));
		}
		if (i == 5)
			CHECK(!q.feed("t", 1, feeds()));
		if (i == 6) {
			name = "join_start";
			CHECK(c.join_start(joined(), { -2 }).refused());
		}
		CHECK(c.run() == code::aborted);
		is_error(c, name);
	}
	coordinator c(loop());
	c.request_stop();
	CHECK(c.run() && c.home().post(ends_badly()) == code::cancelled);
	is_last_reason(c, "post: ");
}

// The callable of a feeder ends with the queue.
void
feed_end()
{
	coordinator c;
	{
		queue<int> q(c, "q");

		CHECK(q.feed("f", 1, [own = throws_at_end()]
			     () -> std::optional<int> { return {}; }));
	}
	// The queue has joined.
	is_last_reason(c, "f: ");
}

// Without memory nothing is lost, and nothing is freed that is used.
void
no_memory()
{
	struct feeds {
		counted own;
		std::optional<int>
		operator()() { return {}; }
	};
	int failed = 0;

	for (long n = 0; n < 20; n++) {
		coordinator c(loop());
		queue<int> q(c, "q");
		stop_and_join end(c);
		scope_options o;

		o.ended = [own = counted()](coord_ref, const verdict &) {};
		try {
			n_allocations = n;
			scope s(c, "s", o);
			n_allocations = -1;
			CHECK(s);
		} catch (const std::bad_alloc &) {
			failed++;
		}
		n_allocations = -1;
		o = {};
		CHECK(n_live == 0);
		try {
			n_allocations = n;
			CHECK(q.feed("f", 1, feeds()));
		} catch (const std::bad_alloc &) {
			failed++;
			CHECK(n_live == 0);
		}
		n_allocations = -1;
	}
	CHECK(failed > 3 && n_live == 0);
}

void
pool_done()
{
	coordinator c(loop());
	pool p(c, "p", { 1 });

	CHECK(p.submit(c.home(), nullptr, [] {},
		       [own = counted()] { fail(); }));
	runs_to(c, "job");
}

void
queue_feed()
{
	coordinator c;
	queue<counted> q(c, "q");

	CHECK(q.feed("f", 1, []() -> std::optional<counted> { fail(); }));
	CHECK(c.join() == code::aborted);
	is_error(c, "f");
}

void
queue_watch()
{
	coordinator c(loop());
	queue<counted> q(c, "q");

	CHECK(q.watch(c.home(), [](counted) { fail(); }));
	CHECK(q.push(counted(), 0));
	runs_to(c, "q");
}

// An item that cannot be made is the caller's matter, and the queue is whole.
void
queue_moves()
{
	coordinator c;
	queue<throws_when_moved> q(c, "q");

	try {
		(void)q.push(throws_when_moved());
		CHECK(false);
	} catch (const broken &) {
	}
	CHECK(q.size() == 0);
}

void
callable_moves()
{
	coordinator c(loop());
	int n = 0;
	auto count = [&](auto f) {
		try {
			f();
		} catch (const broken &) {
			n++;
		}
	};
	struct fn {
		counted own;
		throws_when_moved m;
		void
		operator()() {}
	};

	count([&] { c.thread("t", fn()); });
	count([&] { looper l(c, "l", 1, fn()); });
	count([&] { (void)c.home().post(fn()); });
	count([&] { (void)c.home().post_after_stop(fn()); });
	CHECK(n == 4 && n_live == 0 && evc_all_stopped(c.get()));
}

void
set_up()
{
	coordinator c;

	CHECK(!c.reactor("r", [own = counted()](reactor_ref) { fail(); }));
	CHECK(c.join() == code::aborted);
	is_error(c, "r");
}

void
tear_down()
{
	coordinator c;

	CHECK(c.reactor("r", [](reactor_ref) {}, [own = counted()] { fail(); }));
	c.request_stop();
	CHECK(c.join() == code::aborted);
	is_error(c, "r");
}

void
ended()
{
	coordinator c(loop());
	scope_options o;

	o.ended = [](coord_ref, const verdict &) { fail(); };
	scope s(c, "s", o);
	CHECK(s.ready());
	s.request_stop();
	runs_to(c, "s: ended");
}

// The error of a scope's member is the scope's, and so the parent's.
void
in_scope()
{
	coordinator c;
	scope_options o;

	o.on_error = on_error::report;
	scope s(c, "s", o);
	s.thread("t", [] { fail(); });
	CHECK(s.ready());
	CHECK(s.join() == code::aborted && !c.should_stop());
	is_error(s, "t");
}

void
log()
{
	static std::atomic<int> lines;
	config k;

	k.log = [](log_level, const char *, const reason *) {
		lines++;
		fail();
	};
	coordinator c(k);
	c.request_stop();
	while (!c.first_error())
		std::this_thread::yield();
	(void)c.join();
	is_error(c, "log");
}

void
is_clean()
{
	config k;

	k.is_clean = [](enum code) -> bool { fail(); };
	coordinator c(k);
	CHECK(c.should_stop());
	is_error(c, "is_clean");
}

void
join_start()
{
	coordinator c(loop());

	c.request_stop();
	CHECK(c.join_start([own = counted()](coord_ref, const verdict &) {
		fail();
	}));
	ev_run(loop(), 0);
	CHECK(n_live == 0);
	// The round is over, without an error, and has one reason more.
	auto all = c.reasons();
	CHECK(all.size() == 2 && !c.first_error() && c.join());
	CHECK(all[1].code == EVC_ABORTED &&
	      std::strstr(all[1].text, "join_start: ") &&
	      std::strstr(all[1].text, "broken: disk full"));

	coordinator d(loop());
	scope s(d, "s");
	CHECK(s.ready() && s.join_start([](coord_ref, const verdict &) {
		fail();
	}));
	s.request_stop();
	runs_to(d, "join_start");
}

void
unblock()
{
	coordinator c;

	c.thread("t", [&] {
		evcoord::unblock u(c, [] { fail(); });
		CHECK(c.wait_for_stop());
	});
	c.request_stop();
	(void)c.join();
}

// The predicate of a wait runs in its caller's frame, which may catch.
void
predicate()
{
	coordinator c;
	condition cond(c);
	std::mutex m;
	std::unique_lock<std::mutex> l(m);

	try {
		(void)cond.wait(l, []() -> bool { fail(); });
		CHECK(false);
	} catch (const broken &) {
		CHECK(l.owns_lock());
	}
}

void
block()
{
	coordinator c;

	try {
		stop_and_join end(c);

		fail();
	} catch (const broken &) {
		evc_reason r;

		CHECK(c.joined() && evc_reason_get(c.get(), 0, &r) == 0);
		CHECK(std::strcmp(r.text, "an exception leaves a block") == 0);
		CHECK(std::strcmp(r.func, __func__) == 0);
	}
	try {
		fail();
	} catch (const broken &) {
		coordinator d;
		{
			stop_and_join end(d);
		}
		evc_reason r;
		CHECK(evc_reason_get(d.get(), 0, &r) == 0);
		CHECK(std::strcmp(r.text, "the end of a block") == 0);
	}
}

#ifdef EVCOORD_COROUTINES
co<>
inner(reactor_ref r, bool first)
{
	counted own;

	if (!first)
		(void)co_await evcoord::sleep(r, 0.001);
	fail();
}

co<>
outer(reactor_ref r, bool first)
{
	counted own;

	co_await inner(r, first);
	CHECK(false);
}

void
coroutine()
{
	for (bool first : { true, false }) {
		coordinator c(loop());

		CHECK(spawn(c.home(), "co", outer(c.home(), first)));
		runs_to(c, "co");
		if (!first)
			CHECK(std::strcmp(c.first_error()->who, "co") == 0);
	}
}

// There is nothing to await in a coroutine that was moved from or has ended.
co<int>
number()
{
	co_return 1;
}

void
coroutine_gone()
{
	for (bool moved : { true, false }) {
		coordinator c(loop());

		CHECK(spawn(c.home(), "co", [](bool from) -> co<> {
			co<int> a = number();

			if (from)
				co<int> b(std::move(a));
			else
				CHECK(co_await std::move(a) == 1);
			(void)co_await std::move(a);
			CHECK(false);
		}(moved)));
		CHECK(c.run() == code::invalid_argument);
		is_error(c, "co", code::invalid_argument);
	}
}

void
coroutine_work()
{
	coordinator c(loop());
	pool p(c, "p", { 1 });

	CHECK(spawn(c.home(), "co", [](coordinator &d, pool &in) -> co<> {
		auto r = co_await run_in(in, d.home(), "work", []() -> int * {
			fail();
		});
		CHECK(!r && r.status() == code::aborted);
	}(c, p)));
	runs_to(c, "work");
}
#endif

// ---- threads that end

void
exits_thread()
{
	coordinator c;
	auto t = c.thread("t", [own = counted()] { pthread_exit(nullptr); });

	CHECK(*t.wait() == code::aborted);
	CHECK(c.join() == code::aborted);
	CHECK(std::strstr(c.first_error()->text, "disk full") == nullptr);
	CHECK(n_live == 0);
}

#ifdef __SANITIZE_ADDRESS__
extern "C" void
__asan_handle_no_return();
#define frames_may_go __asan_handle_no_return
#else
void
frames_may_go()
{
}
#endif

void
cancelled_thread()
{
	coordinator c;
	std::atomic<pthread_t> self{ 0 };

	auto t = c.thread("t", [&, own = counted()] {
		self = pthread_self();
		// No blocking call: under tsan its frame would stay.  Asan is told
		// that the frames go, as it hears by itself of pthread_exit.
		for (;;) {
			frames_may_go();
			pthread_testcancel();
		}
	});
	while (self == 0)
		std::this_thread::yield();
	pthread_cancel(self);
	CHECK(*t.wait() == code::aborted && n_live == 0);
}

void
exits_guard()
{
	coordinator c;
	std::atomic<bool> after{ false };
	auto t = c.thread("t", [&] {
		(void)c.guard("g", [own = counted()] { pthread_exit(nullptr); });
		after = true;
	});

	CHECK(*t.wait() == code::aborted && !after && n_live == 0);
}

void
exits_pool()
{
	coordinator c(loop());
	pool p(c, "p", { 1 });
	status got;

	CHECK(p.submit(c.home(), "job", [own = counted()] {
		pthread_exit(nullptr);
	}, [&](status st) {
		got = st;
		c.request_stop();
	}));
	CHECK(c.run() && got == code::aborted && n_live == 0);
}

// A watcher of the program's own: it throws, and at its next turns it asks for
// the stop.
struct own_watcher {
	ev_timer timer;
	coord_ref c;
	int turns = 0;

	own_watcher(struct ev_loop *loop, coord_ref to) : c(to)
	{
		ev_timer_init(&timer, on_timer, 0.001, 0.001);
		timer.data = this;
		ev_timer_start(loop, &timer);
	}

	static void
	on_timer(struct ev_loop *, ev_timer *w, int)
	{
		auto *me = static_cast<own_watcher *>(w->data);

		if (me->turns++ == 0)
			fail();
		me->c.request_stop();
	}
};

// What f, which runs the loop, throws the first time.
template <class F>
void
passes_once(F f)
{
	bool passed = false;

	try {
		(void)f();
	} catch (const broken &) {
		passed = true;
	}
	CHECK(passed);
	CHECK(f());
}

void
watcher()
{
	struct ev_loop *home = new_loop(), *other = new_loop();

	{
		coordinator c(home);
		own_watcher w(home, c);

		passes_once([&] { return c.run(); });
		ev_timer_stop(home, &w.timer);
	}
	{
		coordinator c(home);
		hold h(c, "work");
		own_watcher w(home, c);

		passes_once([&] {
			if (w.turns > 0)
				h.end();
			return c.join();
		});
		ev_timer_stop(home, &w.timer);
	}
	{
		coordinator c(home);
		reactor_ref r = c.attach("other", other).value();
		own_watcher w(other, c);

		passes_once([&] { return r.run(); });
		ev_timer_stop(other, &w.timer);
	}
	ev_loop_destroy(other);
	ev_loop_destroy(home);
}

#define CASE(name) { #name, name }
const named_case cases[] = {
	CASE(thread), CASE(thread_end), CASE(kinds), CASE(clean_values),
	CASE(value_of_fail),
	CASE(looper_on_loop), CASE(looper_on_thread), CASE(looper_end),
	CASE(hook), CASE(guard), CASE(task_on_stop), CASE(task_on_late),
	CASE(task_describe), CASE(post), CASE(post_end), CASE(pool_work),
	CASE(after_a_report), CASE(refused_end), CASE(feed_end), CASE(no_memory),
	CASE(pool_done), CASE(queue_feed), CASE(queue_watch),
	CASE(queue_moves), CASE(callable_moves), CASE(set_up),
	CASE(tear_down), CASE(ended), CASE(in_scope), CASE(log),
	CASE(is_clean), CASE(join_start), CASE(unblock), CASE(predicate),
	CASE(watcher),
	CASE(block),
#ifdef EVCOORD_COROUTINES
	CASE(coroutine), CASE(coroutine_gone), CASE(coroutine_work),
#endif
	CASE(exits_thread), CASE(cancelled_thread), CASE(exits_guard),
	CASE(exits_pool),
};

} // namespace

int
main(int argc, char **argv)
{
	return run_case(cases, argc, argv);
}
