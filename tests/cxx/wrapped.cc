/* SPDX-License-Identifier: BSD-2-Clause */
//
// The types of evcoord.hpp: what they return, moves, destructors in each order
// and at each time, callables that are moved and destroyed once.  The name of a
// case is the argument.
#include "cases.h"

#include <evcoord.hpp>

#include <thread>

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace evcoord;

namespace {

// A callable's own: counts those that live.
std::atomic<int> n_live{ 0 };

struct counted {
	counted() { ++n_live; }
	counted(counted &&) noexcept { ++n_live; }
	counted(const counted &) { ++n_live; }
	~counted() { --n_live; }
};

void
await(const std::atomic<bool> &b)
{
	while (!b)
		std::this_thread::yield();
}

struct ev_loop *
loop()
{
	static struct ev_loop *l = new_loop();

	return l;
}

#ifdef EVCOORD_EXCEPTIONS
[[maybe_unused]] constexpr bool throws = true;
#else // status::value ends the process
[[maybe_unused]] constexpr bool throws = false;
#endif

// ---- status, flags, results

template <class S, class F>
constexpr bool takes = std::is_assignable_v<decltype((std::declval<S &>().flags)),
					    F>;

static_assert(takes<thread_options, thread_flag>);
static_assert(!takes<thread_options, looper_flag>);
static_assert(!takes<thread_options, unsigned>);
static_assert(!takes<join_options, thread_flag>);
static_assert(!takes<config, join_flag>);
static_assert(!takes<pool_options, queue_flag>);
static_assert(!takes<looper_options, task_flag>);
static_assert((thread_flag::kick | thread_flag::watched) & thread_flag::kick);
static_assert(!std::is_constructible_v<status, bool>);
static_assert(!std::is_copy_constructible_v<coordinator>);
static_assert(std::is_nothrow_move_constructible_v<coordinator>);
static_assert(!std::is_copy_constructible_v<queue<int>>);
static_assert(std::is_nothrow_move_constructible_v<queue<int>>);
static_assert(std::is_nothrow_move_assignable_v<looper>);
static_assert(std::is_nothrow_destructible_v<coordinator>);
static_assert(sizeof(coord_ref) == sizeof(evc_coord *));
static_assert(static_cast<unsigned>(missed_at_most(3)) ==
	      EVC_MISSED_AT_MOST(3));

void
statuses()
{
	coordinator c;
	status st = c.clear_stop();
	result<int> r(7), none(code::not_found);
	scope empty(coord_ref(), "empty");

	CHECK(st && st.ok() && st.exit_code() == 0);
	st = evc_status(-EVC_NOT_FOUND);
	CHECK(!st && st.refused() && st == code::not_found &&
	      st.exit_code() == 1);
	CHECK(status(code::deadline_exceeded).exit_code() == 124);
	CHECK(std::strcmp(status(code::cancelled).name(), "CANCELLED") == 0);
	CHECK(*r == 7 && r && !none && none.status() == code::not_found);
	// A refused object is empty, and says why.
	CHECK(!empty && empty.made().refused() && empty.ready().refused());
	CHECK(empty.ready().message()[0] != '\0');
#ifdef EVCOORD_EXCEPTIONS
	try {
		none.value();
		CHECK(false);
	} catch (const error &e) {
		CHECK(e.code() == code::not_found);
	}
#endif
	CHECK(c.report().find("coord") != std::string::npos);
}

// A set-up whose refusal nobody looks at is an error.
void
strict()
{
	coordinator c;

	looper(c, "nowhere", 1, [] {}).detach();
	CHECK(c.should_stop());
	CHECK(c.join() == code::failed_precondition);
	config k;
	k.strict = false;
	coordinator d(k);
	looper(d, "nowhere", 1, [] {}).detach();
	CHECK(!d.should_stop());
	coordinator e;
	looper_options o;
	o.flags = looper_flag::may_be_refused;
	looper(e, "nowhere", 1, [] {}, o).detach();
	CHECK(!e.should_stop());
}

// ---- threads

void
threads()
{
	coordinator c;
	std::atomic<bool> in{ false };
	int got = 0;
	verdict v;
	{
		auto p = std::make_unique<int>(7);
		auto t = c.thread("moved", [p = std::move(p), n = counted(),
					    &got] {
			got = *p;
		});
		auto r = t.wait();

		CHECK(t && r && *r == code::ok && got == 7);
	}
	auto own = c.thread("own", [&](coord_ref me) {
		in = true;
		return me.wait_for_stop() ? code::cancelled : code::internal;
	}, { thread_flag::own_scope });

	await(in);
	CHECK(own.stop(code::ok, "alone"));
	CHECK(*own.wait() == code::cancelled && !c.should_stop());
	auto app = c.thread("app", [] { return static_cast<code>(17); });
	CHECK(*app.wait() == static_cast<code>(17));
	CHECK(c.join({}, &v) == static_cast<code>(17));
	CHECK(n_live == 0);
}

void
after_the_stop()
{
	coordinator c;

	c.request_stop("before");
	auto t = c.thread("late", [n = counted()] {});
	CHECK(!t && t.made() == code::cancelled && n_live == 0);
	CHECK(!looper(c, "late", 1, [n = counted()] {},
		      { looper_flag::own_thread }));
	CHECK(n_live == 0);
	CHECK(c.sleep(60) == code::cancelled);
	CHECK(c.join());
}

void
registered()
{
	coordinator c;
	std::atomic<bool> in{ false };
	verdict v;
	std::thread t([&] {
		CHECK(c.register_this_thread("std"));
		in = true;
		CHECK(c.wait_for_stop());
	});

	await(in);
	c.request_stop();
	CHECK(c.join({}, &v) && v.n_ended == 1);
	t.join();
}

void
unblocks()
{
	coordinator c;
	std::atomic<bool> in{ false };
	int fd[2];

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fd) == 0);
	c.thread("reader", [&] {
		unblock u(c, [&] { shutdown(fd[0], SHUT_RDWR); },
			  cancel_flag::repeat);
		char b;

		CHECK(u);
		in = true;
		CHECK(read(fd[0], &b, 1) == 0);
	});
	await(in);
	c.request_stop();
	CHECK(c.join());
}

void
conditions()
{
	coordinator c;
	condition cond(c);
	std::mutex m;
	bool ready = false;
	std::atomic<bool> woken{ false };
	c.thread("waits", [&] {
		std::unique_lock<std::mutex> l(m);

		CHECK(cond.wait(l, [&] { return ready; }));
		CHECK(cond.wait(l, [] { return false; }, 0.001) ==
		      code::deadline_exceeded);
		woken = true;
		CHECK(cond.wait(l, [] { return false; }) == code::cancelled);
	});

	{
		std::lock_guard<std::mutex> l(m);
		ready = true;
	}
	cond.notify_all();
	await(woken);
	c.request_stop();
	CHECK(c.join());
}

// ---- loopers, hooks, holds

void
loopers()
{
	coordinator c(loop());
	int n = 0, stops = 0;
	counted own;
	{
		looper l(c, "l", forever, [&n, own] { n++; });
		looper other = std::move(l), third;

		CHECK(!l && other && other.in_use());
		third = std::move(other);
		CHECK(third.trigger() && third.interval(60) && third.pause() &&
		      third.resume());
		while (n == 0)
			ev_run(loop(), EVRUN_ONCE);
	}
	CHECK(n_live == 1);
	hook h(c, "h", [&](coord_ref) { stops++; });
	{
		hook early(c, "early", [&] { stops += 100; });
	}
	looper ends(c, "ends", 0, [&] {
		return ++n > 10 ? code::out_of_range : code::ok;
	});
	while (ends.in_use())
		ev_run(loop(), EVRUN_ONCE);
	CHECK(ends.trigger() == code::not_found && !c.should_stop());
	c.request_stop();
	CHECK(c.run() && stops == 1);
}

// A handle that its own function destroys.
void
looper_in_itself()
{
	coordinator c(loop());
	std::optional<looper> l;
	int n = 0;

	l.emplace(c, "l", 0, [&, own = counted()] {
		n++;
		l.reset();
		c.request_stop();
	});
	CHECK(c.run() && n == 1 && n_live == 0);
}

void
holds()
{
	coordinator c;
	hold a(c, "a"), b = std::move(a);

	CHECK(!a && b);
	b = hold(c, "c");
	CHECK(evc_all_stopped(c.get()) == false);
	{
		std::thread t([h = std::move(b)] {});
		t.join();
	}
	CHECK(evc_all_stopped(c.get()));
	c.request_stop();
	CHECK(!hold(c, "late") && hold(c, "late", hold_flag::after_stop));
}

// ---- tasks

struct conn : evcoord::task<conn> {
	static constexpr const char *task_name = "conn";
	static constexpr double task_grace = EVC_NO_GRACE;
	counted own;
	bool obeys;
	static int n_told;

	explicit conn(bool o) : obeys(o) {}
	void
	on_stop()
	{
		n_told++;
		if (obeys)
			delete this;
	}
	void
	on_late() { delete this; }
	void
	describe(char *buf, std::size_t n) const
	{
		std::snprintf(buf, n, "peer");
	}
};
int conn::n_told;

struct holder {
	bool told = false;

	void
	stop()
	{
		told = true;
		in_flight.end();
	}
	member_task<holder, &holder::stop> in_flight{ *this };
};

struct answers_stop {
	code
	stop() noexcept
	{
		in_flight.end();
		return code::internal;
	}
	void
	late() const {}
	member_task<answers_stop, &answers_stop::stop, &answers_stop::late>
		in_flight{ *this };
};

void
tasks()
{
	coordinator c(loop());
	auto *a = new conn(true), *b = new conn(false);
	holder h;

	CHECK(a->begin(c.home()) && b->begin(c.home()) &&
	      h.in_flight.begin(c.home()));
	CHECK(a->begin(c.home()) == code::already_exists);
	CHECK(a->in_flight() && a->coord().get() == c.get());
	{
		conn gone(true);
		CHECK(gone.begin(c.home()));
	}
	CHECK(c.report().find("conn") != std::string::npos);
	c.request_stop();
	CHECK(c.run());
	CHECK(n_live == 0 && conn::n_told == 2 && h.told);
	conn late(true);
	CHECK(late.begin(c.home()) == code::cancelled);

	coordinator d(loop());
	answers_stop own;
	CHECK(own.in_flight.begin(d.home()));
	d.request_stop();
	CHECK(d.run() == code::internal);
}

// ---- posts and pools

void
posts()
{
	auto *l = new_loop();
	int n = 0;
	{
		coordinator c(l);
		loop_ref r(c.home());
		auto p = std::make_unique<int>(1);

		CHECK(r.post([&n, p = std::move(p)] { n += *p; }));
		CHECK(c.home().post([&](reactor_ref here) {
			n += here.is_here();
		}));
		std::thread([&] {
			CHECK(r.post([&](reactor_ref, status why) {
				n += why.ok();
				c.request_stop();
			}));
		}).join();
		CHECK(c.run() && n == 3);
		CHECK(r.post([own = counted()] {}) == code::cancelled);
		CHECK(n_live == 0);
	}
	coordinator c(l);
	loop_ref r(c.home());

	CHECK(r.post([&, own = counted()] { n = -1; }));
	CHECK(r.post([&](reactor_ref, status why) {
		CHECK(why == code::cancelled);
		n = 9;
	}));
	ev_loop_destroy(l);
	CHECK(n == 9 && n_live == 0);
	CHECK(r.post([] {}) == code::not_found);
}

// A thread answers on a loop during the stop.
void
posts_after_stop()
{
	auto *l = new_loop();
	int n = 0;
	{
		coordinator c(l);
		loop_ref r(c.home());
		verdict v;

		CHECK(c.thread("request", [&](coord_ref t) {
			(void)t.wait_for_stop(forever);
			CHECK(r.post([own = counted()] {}) == code::cancelled);
			CHECK(r.post_after_stop([&, own = counted()] { n++; }));
			CHECK(r.post_after_stop([&, p = std::make_unique<int>(1)]
						(reactor_ref here) {
				n += here.is_here() && here.loop() == l && *p;
			}));
			CHECK(c.home().post_after_stop(
				[&, own = counted()](reactor_ref here,
						     status why) {
				n += here.is_here() && why.ok();
				return code::aborted;
			}));
		}));
		CHECK(c.home().post([&] { c.request_stop(); }));
		CHECK(c.run({}, &v) == code::aborted && v.n_errors == 1);
		CHECK(n == 3 && n_live == 0);
	}
	coordinator c(l);
	loop_ref r(c.home());

	CHECK(r.post_after_stop([&, own = counted()] { n = -1; }));
	CHECK(r.post_after_stop([&](reactor_ref here, status why) {
		CHECK(!here && why == code::cancelled);
		n = 9;
	}));
	ev_loop_destroy(l);
	CHECK(n == 9 && n_live == 0);
	CHECK(r.post_after_stop([own = counted()] {}) == code::not_found);
	CHECK(loop_ref().post_after_stop([own = counted()] {}).refused());
	CHECK(n_live == 0);
}

// A post whose loop is gone returns what it was told: there is nobody to hear.
void
posts_gone()
{
	coordinator c;
	auto *l = new_loop();
	auto other = c.attach("other", l);
	bool told = false;

	CHECK(other->post([&](reactor_ref r, status why) {
		told = !r;
		return why;
	}));
	CHECK(other->detach() && told && !c.should_stop());
	ev_loop_destroy(l);
}

void
pools()
{
	coordinator c(loop());
	pool p(c, "p", { 2 }), q = std::move(p);
	int n = 0;

	CHECK(!p && q);
	for (int i = 0; i < 10; i++)
		CHECK(q.submit(c.home(), "square", [i, own = counted()](job_ref j) {
			return j.should_stop() ? code::internal
					       : static_cast<code>(17 + i);
		}, [&, own = counted()](status st) {
			n += st.get();
			if (n == 17 * 10 + 45)
				c.request_stop();
		}));
	loop_ref l(c.home());
	CHECK(q.submit(l, nullptr, [] {}, [] {}));
	CHECK(c.run());
	CHECK(n == 215 && n_live == 0);
	CHECK(!q.submit(l, "late", [own = counted()] {}, [](status) {}));
	CHECK(n_live == 0);
}

// What a function without a member returns is heard; once, when it has reported
// that itself.
void
answers()
{
	for (int i = 0; i < 6; i++) {
		coordinator c(loop());
		pool p(c, "p", { 1 });
		queue<int> q(c, "q");
		verdict v;

		if (i == 0)
			CHECK(c.home().post([] { return code::aborted; }));
		if (i == 1)
			CHECK(c.home().post([](reactor_ref, status) {
				return status(evc_status(-EVC_ABORTED));
			}));
		if (i == 2)
			CHECK(p.submit(c.home(), nullptr, [] {},
				       [] { return code::aborted; }));
		if (i == 3)
			CHECK(q.watch(c.home(), [](int) {
				return code::aborted;
			}) && q.push(1, 0));
		if (i == 4) {
			unblock u(c, [] { return code::aborted; });

			CHECK(u);
			c.request_stop();
			while (!c.first_error())
				std::this_thread::yield();
		}
		if (i == 5)
			CHECK(p.submit(c.home(), "j", [] {}, [&] {
				return c.fail(code::aborted, "j: by hand");
			}));
		CHECK(c.run({}, &v) == code::aborted && v.n_errors == 1);
	}
	// A clean code is none.
	coordinator c(loop());
	CHECK(c.home().post([] { return code::out_of_range; }));
	ev_run(loop(), EVRUN_NOWAIT);
	CHECK(!c.should_stop());
}

// A pool that is destroyed in use has its jobs completed.
void
pool_in_use()
{
	coordinator c(loop());
	int n = 0;
	{
		pool p(c, "p", { 1 });

		for (int i = 0; i < 3; i++)
			CHECK(p.submit(c.home(), nullptr, [] {}, [&] { n++; }));
	}
	CHECK(n == 3 && c.should_stop());
}

// A join has given up on a job: the destructors do not wait once more.
void
pool_left()
{
	static std::atomic<bool> in{ false }, go{ false };
	{
		coordinator c(loop());
		pool p(c, "p", { 1 });

		CHECK(p.submit(c.home(), "stays", [] {
			in = true;
			await(go);
		}, [] {}));
		await(in);
		c.request_stop();
		CHECK(c.join({ EVC_NO_GRACE }).exit_code() == 124);
	}
	go = true;
	std::_Exit(0);
}

void
reactors()
{
	coordinator c;
	std::atomic<int> order{ 0 };
	std::unique_ptr<looper> l;
	auto r = c.reactor("side", [&, own = counted()](reactor_ref me) {
		looper_options o;

		o.reactor = me;
		l.reset(new looper(me.coord(), "l", 0, [&] {
			order = 1;
			c.request_stop();
		}, o));
	}, [&] { order = order == 1 ? 2 : 3; });

	CHECK(r);
	CHECK(c.join() && order == 2 && n_live == 0);
	auto failed = c.reactor("after", [](reactor_ref) {});
	CHECK(!failed && failed.status() == code::cancelled);
}

// ---- queues

void
queues()
{
	coordinator c;
	queue<std::unique_ptr<int>> q(c, "q", { 3 });
	std::atomic<int> sum{ 0 };

	for (int i = 0; i < 2; i++)
		c.thread("pops", [&] {
			while (auto x = q.pop())
				sum += **x;
			return q.pop().status();
		});
	std::atomic<int> n{ 0 };
	CHECK(q.feed("feeds", 2, [&](unsigned)
		     -> std::optional<std::unique_ptr<int>> {
		int i = n++;

		if (i >= 100)
			return std::nullopt;
		return std::make_unique<int>(i);
	}));
	(void)c.join();
	CHECK(sum == 4950 && !c.should_stop());
}

// An item that cannot be assigned, and items that look like a status or like no
// item at all.
void
queue_items()
{
	struct fixed {
		const int n;
	};
	coordinator c;
	queue<fixed> q(c, "q");
	queue<status> s(c, "s");
	queue<std::shared_ptr<int>> p(c, "p");
	queue<std::vector<int>> v(c, "v");

	CHECK(q.feed("f", 1, [n = 0]() mutable -> std::optional<fixed> {
		if (n == 2)
			return std::nullopt;
		return fixed{ n++ };
	}));
	const auto first = q.pop();
	CHECK(first.value().n == 0 && q.pop().value().n == 1);
	CHECK(q.pop().status() == code::out_of_range);
	CHECK(s.push(code::aborted) && s.push(code::ok));
	CHECK(s.pop().value() == code::aborted && s.pop().value().ok());
	CHECK(s.pop(0).status() == code::deadline_exceeded);
	CHECK(p.push(nullptr) && !p.pop().value());
	CHECK(v.push({}) && v.push({ 1, 2 }) && v.pop().value().empty());

	struct base {
		virtual ~base() = default;
	};
	struct derived : base {};
	queue<base> b(c, "b");
	CHECK(b.push(std::make_unique<derived>()) && b.pop(0));
}

void
queue_left()
{
	coordinator c;
	queue<counted> q(c, "q", { 4 });

	for (int i = 0; i < 4; i++)
		CHECK(q.push(counted(), 0));
	auto mine = std::make_unique<counted>();
	CHECK(q.push(mine, 0) == code::deadline_exceeded && mine);
	CHECK(q.push(std::move(mine), 0) == code::deadline_exceeded && mine);
	mine.reset();
	CHECK(q.size() == 4 && n_live == 4);
	queue<counted> other = std::move(q);
	CHECK(other.pop(0) && other.try_pop());
	CHECK(n_live == 2);
	{
		queue<counted> last(c, "last");
		other = std::move(last);
	}
	CHECK(n_live == 0 && !c.should_stop());
	CHECK(other.close());
	CHECK(other.push(counted()) == code::out_of_range);
	CHECK(other.pop().status() == code::out_of_range && n_live == 0);
}

void
queue_watched()
{
	coordinator c(loop());
	queue<int> q(c, "q");
	int sum = 0, ends = 0;

	CHECK(q.watch(c.home(), [&, own = counted()](int *i, status why) {
		if (i != nullptr)
			sum += *i;
		else
			ends += why == code::out_of_range;
	}));
	CHECK(q.push(3, 0) && q.push(4, 0) && q.close());
	CHECK(c.join() && sum == 7 && ends == 1 && n_live == 0);
	CHECK(q.reopen() && q.watch(c.home(), [&](int i) {
		sum += i;
		c.request_stop();
	}) && q.push(1, 0));
	CHECK(c.run() && sum == 8);
}

// A queue that is destroyed while threads wait in it: they end first.
void
queue_in_use()
{
	coordinator c;
	std::atomic<bool> ended{ false };
	{
		queue<int> q(c, "q");

		c.thread("pops", [&] {
			CHECK(q.pop().status() == code::cancelled);
			ended = true;
		});
		evc_queue_info i;
		do
			CHECK(evc_queue_get(q.get(), &i) == 0);
		while (i.n_popping == 0);
	}
	CHECK(ended);
}

// On the loop nobody can wait for the members: an error of the program.
void
in_use_on_loop()
{
	for (bool is_pool : { false, true }) {
		coordinator c(loop());
		auto q = std::make_unique<queue<counted>>(c, "q");
		auto p = std::make_unique<pool>(c, "p");
		std::atomic<bool> go{ false };
		bool done = false;

		if (!is_pool)
			CHECK(q->watch(c.home(), [](counted) {}));
		else
			CHECK(p->submit(c.home(), "job", [&] { await(go); },
					[&] { done = true; }));
		CHECK(c.home().post([&] {
			q.reset();
			p.reset();
			go = true;
		}));
		CHECK(c.run() == code::failed_precondition && done == is_pool);
		CHECK(std::strstr(c.first_error()->text, is_pool
				  ? "a pool is destroyed in use: "
				  : "a queue is destroyed in use: "));
	}
}

// ---- the end of a coordinator

void
destructor_joins()
{
	std::atomic<bool> in{ false }, out{ false };
	{
		coordinator c;

		c.thread("t", [&, own = counted()](coord_ref me) {
			in = true;
			me.wait_for_stop();
			out = true;
		});
		await(in);
	}
	CHECK(out && n_live == 0);
	CHECK(!coord_ref());
}

void
moved()
{
	coordinator a, b = std::move(a);
	int stops = 0;
	hook h(b, "h", [&] { stops++; });

	CHECK(!a && b && a.join().refused());
	CHECK(b.is_clean(code::ok) && !a.is_clean(code::ok));
	a = std::move(b);
	CHECK(a && !b);
	// The one that is assigned over ends, and its hook is called.
	a = coordinator();
	CHECK(stops == 1 && !h.in_use());
	coordinator &same = a;
	a = std::move(same);
	CHECK(a && !a.should_stop());
}

// Handles that outlive their coordinator know that it is gone.
void
handles_last()
{
	looper l;
	hook h;
	std::optional<loop_ref> r;
	{
		coordinator c(loop());

		l = looper(c, "l", 60, [own = counted()] {});
		h = hook(c, "h", [own = counted()] {});
		r.emplace(c.home());
	}
	CHECK(!l.in_use() && l.trigger() == code::not_found);
	CHECK(!h.in_use());
	CHECK(n_live == 0);
	CHECK(r->post([] {}).refused());
}

// And queues and pools keep their coordinator until they go.
void
queues_last()
{
	auto q = std::unique_ptr<queue<counted>>();
	auto p = std::unique_ptr<pool>();
	{
		coordinator c(loop());

		q.reset(new queue<counted>(c, "q"));
		p.reset(new pool(c, "p"));
		CHECK(q->push(counted(), 0));
	}
	CHECK(n_live == 1 && q->push(counted(), 0) == code::cancelled);
	q.reset();
	CHECK(n_live == 0);
}

// And their scope, and what the scope calls.
void
scope_kept()
{
	for (struct ev_loop *home : { static_cast<struct ev_loop *>(nullptr),
				      loop() })
		for (int last = 0; last < 3; last++) {
			std::unique_ptr<queue<counted>> q;
			std::unique_ptr<pool> p;
			scope_options o;
			config k;

			k.log = [own = counted()](log_level, const char *,
						  const reason *) {};
			auto c = std::make_unique<coordinator>(home, k);
			o.ended = [own = counted()](coord_ref,
						    const verdict &) {};
			auto s = std::make_unique<scope>(*c, "s", o);
			o = {};
			k = {};
			CHECK(s->ready());
			q.reset(new queue<counted>(*s, "q"));
			p.reset(new pool(*s, "p"));
			CHECK(q->push(counted(), 0));
			if (last == 2)
				c.reset();
			s.reset();
			if (last == 1)
				c.reset();
			CHECK(q->push(counted(), 0) == code::cancelled);
			q.reset();
			CHECK(n_live > 0 && p->coord().should_stop());
			p.reset();
			c.reset();
			CHECK(n_live == 0);
		}
}

void
scopes()
{
	coordinator c(loop());
	int ended = 0;
	{
		scope_options o;

		o.ended = [&, own = counted()](coord_ref, const verdict &v) {
			ended += v.n_ended == 1;
		};
		o.on_error = on_error::ignore;
		scope s(c, "s", o), t = std::move(s);

		CHECK(!s && t.parent().get() == c.get());
		t.thread("fails", [](coord_ref me) {
			return me.fail(code::internal, "on purpose");
		});
		CHECK(t.ready());
		CHECK(t.join() == code::internal && !c.should_stop());
		while (ended == 0)
			ev_run(loop(), EVRUN_ONCE);
	}
	scope unready(c, "unready");
	unready.thread("t", [](coord_ref me) { me.wait_for_stop(); });
	unready.destroy();
	CHECK(!unready && !c.should_stop() && n_live == 0);
}

// What a scope says of itself may be longer each time: its report is whole.
void
reports()
{
	static std::size_t n;
	coordinator c;
	evc_scope_opts o{};
	evc_coord *s;

	n = 100;
	o.describe = [](unsigned, char *buf, std::size_t room,
			void *) -> std::size_t {
		std::string text(n += 1000, 'x');

		text += " the end\n";
		if (room > 0)
			buf[text.copy(buf, room - 1)] = '\0';
		return text.size();
	};
	CHECK(evc_scope_new(c.get(), "grows", &o, &s) == 0);
	for (int i = 0; i < 3; i++, n += 50000) {
		std::string text = c.report();

		CHECK(text.find(" the end\n") != std::string::npos &&
		      text.find('\0') == std::string::npos);
	}
	CHECK(evc_scope_ready(s) == 0);
}

// A member that does not leave keeps what it uses, and the destructor returns.
void
straggler()
{
	static std::atomic<bool> in{ false }, go{ false };
	static std::atomic<int> lines{ 0 };
	{
		config k;

		k.grace = 0.02;
		k.log = [own = counted()](log_level, const char *,
					  const reason *) { lines++; };
		coordinator c(k);

		c.thread("stays", [](coord_ref me) {
			in = true;
			await(go);
			CHECK(me.should_stop());
		});
		await(in);
		CHECK(n_live > 0);
	}
	CHECK(lines > 0);
	go = true;
}

// Inside its own loop a coordinator is freed when the members are gone.
void
destroyed_inside()
{
	std::unique_ptr<coordinator> c(new coordinator(loop()));
	std::atomic<bool> in{ false };
	bool done = false;
	loop_ref r(c->home());

	c->thread("t", [&, own = counted()](coord_ref me) {
		in = true;
		me.wait_for_stop();
	});
	await(in);
	CHECK(r.post([&] {
		c.reset();
		done = true;
	}));
	ev_run(loop(), 0);
	CHECK(done && n_live == 0 && r.post([] {}).refused());
}

// Inside a run it is freed when the run returns.
void
destroyed_in_run()
{
	for (int how = 0; how < 3; how++) {
		config k;

		k.log = [own = counted()](log_level, const char *,
					  const reason *) {};
		auto *c = new coordinator(loop(), k);
		auto *s = new scope(*c, "s");
		coord_ref r = *c;

		k = {};
		CHECK(s->ready());
		c->thread("t", [own = counted()](coord_ref me) {
			me.wait_for_stop();
		});
		CHECK(c->home().post([=] {
			delete s;
			delete c;
		}));
		if (how == 0)
			CHECK(r.run());
		else if (how == 1)
			CHECK(r.join());
		else
			CHECK(r.home().run());
		CHECK(n_live == 0);
	}
}

// Another thread asks for the stop while the destructor runs.
void
destroyed_beside()
{
	for (int i = 0; i < 50; i++) {
		std::atomic<bool> in{ false };
		coordinator c;

		c.thread("asks", [&](coord_ref me) {
			in = true;
			me.request_stop("beside");
		});
		if (i % 2)
			await(in);
	}
}

// A coordinator waits for the objects of its scopes.
void
scope_outlives()
{
	for (struct ev_loop *home : { static_cast<struct ev_loop *>(nullptr),
				      loop() }) {
		auto *c = new coordinator(home);
		auto *s = new scope(*c, "s");
		auto *below = new scope(*s, "below");

		CHECK(s->ready() && below->ready());
		delete c;
		// A turn of the helper thread would have freed them.
		usleep(60000);
		CHECK(s->should_stop() && below->should_stop());
		delete s;
		CHECK(below->should_stop());
		delete below;
	}
}

// A fork child may leave a block, too.
void
in_child()
{
	std::atomic<bool> in{ false };
	int status = -1;
	pid_t pid;
	{
		coordinator c(loop());
		queue<int> q(c, "q");
		pool p(c, "p");
		hook h(c, "h", [] { CHECK(false); });
		stop_and_join end(c);

		c.thread("t", [&] {
			in = true;
			while (q.pop())
				;
		});
		await(in);
		CHECK(q.push(7));
		h.remove();
		pid = fork();
	}
	if (pid == 0)
		std::_Exit(0);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

void
block_ends()
{
	coordinator c;
	queue<int> q(c, "q");
	std::vector<int> got;
	{
		stop_and_join end(c);

		c.thread("pops", [&] {
			while (auto i = q.pop())
				got.push_back(*i);
		});
		CHECK(q.push(1) && q.drain());
	}
	CHECK(c.joined() && got.size() == 1);
	evc_reason r;
	CHECK(evc_reason_get(c.get(), 0, &r) == 0);
	CHECK(std::strcmp(r.text, "the end of a block") == 0);
	CHECK(std::strstr(r.file, "wrapped.cc") && r.line > 0 &&
	      std::strcmp(r.func, __func__) == 0);
}

void
guards()
{
	coordinator c;
	counted own;

	CHECK(c.guard("fine", [own] {}) && !c.should_stop());
	CHECK(c.guard("ends", [](coord_ref) { return code::out_of_range; }));
	CHECK(c.should_stop() && !c.first_error());
	CHECK(c.join() && n_live == 1);
}

void
joins()
{
	coordinator c(loop());
	int n = 0;

	c.request_stop();
	CHECK(c.join_start([&, own = counted()](coord_ref, const verdict &v) {
		n += v.n_errors == 0;
		c.destroy();
	}));
	ev_run(loop(), 0);
	CHECK(n == 1 && !c && n_live == 0);
}

void
signalled()
{
	coordinator c(loop());

	CHECK(c.signals({ { SIGUSR1 }, 0, signals_flag::at_join }));
	CHECK(c.signals().refused());
	raise(SIGUSR1);
	verdict v;
	CHECK(c.run({}, &v).ok() == false || v.stop.signo == SIGUSR1);
}

// The list of the options is theirs.
void
signals_kept()
{
	coordinator c;
	signals_options o;
	volatile int first = SIGUSR1;

	o.stop = { first, SIGUSR2 };
	CHECK(o.stop.size() == 2 && !std::is_trivially_copyable_v<
		decltype(o.stop)>);
	CHECK(c.signals(o));
	raise(SIGUSR2);
	verdict v;
	CHECK(c.join({}, &v) && v.stop.signo == SIGUSR2);
}

#ifdef __cpp_lib_jthread
void
stop_tokens()
{
	coordinator c;
	stop_source_of s(c);
	std::atomic<int> n{ 0 };
	std::jthread other([&](std::stop_token t) {
		while (!t.stop_requested())
			std::this_thread::yield();
		n++;
	});
	stop_source_of theirs(c, other.get_stop_source());
	std::stop_source from;
	stop_on_token to(c, from.get_token(), "from a token");

	c.thread("takes", [&](std::stop_token t) {
		while (!t.stop_requested())
			std::this_thread::yield();
		n++;
	});
	CHECK(!s.token().stop_requested());
	from.request_stop();
	CHECK(c.should_stop());
	verdict v;
	CHECK(c.join({}, &v));
	CHECK(std::strcmp(v.stop.text, "from a token") == 0);
	other.join();
	CHECK(s.token().stop_requested() && n == 2);
	// The thread begins after the stop.
	thread_options o;
	o.flags = thread_flag::after_stop;
	c.thread("late", [&](std::stop_token t) {
		n += t.stop_requested();
	}, o);
	CHECK(c.join() || true);
}

// As evcoord-cxx(7) has it: the hold keeps joins until the thread is a member, and
// the guard hears of an exception.
void
jthreads()
{
	for (bool fails : { false, true }) {
#ifndef EVCOORD_EXCEPTIONS
		fails = false;
#endif
		coordinator c;
		std::atomic<bool> go{ false }, in{ false }, ended{ false };
		verdict v;
		std::jthread other([&, begins = hold(c, "other")]
				   (std::stop_token t) mutable {
			await(go);
			CHECK(c.register_this_thread("other"));
			begins.end();
			in = true;
			(void)c.guard("other", [&] {
#ifdef EVCOORD_EXCEPTIONS
				if (fails)
					throw thrown();
#endif
				while (!t.stop_requested())
					std::this_thread::yield();
			});
			ended = true;
		});
		stop_source_of tells(c, other.get_stop_source());
		stop_and_join end(c);

		CHECK(!evc_all_stopped(c.get()));
		go = true;
		await(in);
		if (!fails)
			c.request_stop();
		else
			CHECK(c.wait_for_stop());
		CHECK(c.join({}, &v).ok() == !fails && v.n_ended >= 1 && ended);
	}
}

// A token whose source is there longer than the coordinator, or is stopped while
// that one goes.
void
token_outlives()
{
	std::stop_source from;
	std::optional<stop_on_token> to;
	{
		coordinator c(loop());

		to.emplace(c, from.get_token());
		CHECK(to->made());
		// In later rounds, too.
		c.request_stop();
		CHECK(c.run() && c.clear_stop());
	}
	CHECK(from.request_stop());
	to.reset();
	for (int i = 0; i < 50; i++) {
		std::stop_source beside;
		std::atomic<bool> in{ false };
		auto c = std::make_unique<coordinator>();
		stop_on_token t(*c, beside.get_token());
		std::thread other([&] {
			in = true;
			beside.request_stop();
		});

		await(in);
		c.reset();
		other.join();
	}
}
#endif

#ifdef EVCOORD_COROUTINES
co<int>
add(reactor_ref r, int a, int b)
{
	counted own;

	CHECK(co_await evcoord::sleep(r, 0.001));
	co_return a + b;
}

co<std::unique_ptr<int>>
boxed(reactor_ref r)
{
	co_return std::make_unique<int>(co_await add(r, 1, 2));
}

void
coroutines()
{
	coordinator c(loop());
	pool p(c, "p");
	loop_ref home(c.home());
	int n = 0;

	CHECK(spawn(c.home(), "sums", [](coordinator &d, pool &in,
					loop_ref &back, int &m) -> co<> {
		reactor_ref r = d.home();

		m = *co_await boxed(r);
		CHECK(co_await run_in(in, r, "work", [] {
			return static_cast<code>(17);
		}) == static_cast<code>(17));
		auto text = co_await run_in(in, r, "text", [](job_ref j) {
			return std::string(j.should_stop() ? "no" : "here");
		});
		CHECK(text && *text == "here" && r.is_here());
		result<int> number = co_await run_in(in, r, "number", [] {
			return 7;
		});
		CHECK(number && *number == 7);
		CHECK(co_await resume_on(back) && r.is_here());
		CHECK(co_await evcoord::sleep(r, 0));
		d.request_stop();
		CHECK(co_await evcoord::sleep(r, 60) == code::cancelled);
		CHECK(co_await resume_on(back));
		CHECK(co_await run_in(in, r, "late", [] {}) == code::cancelled);
		m++;
	}(c, p, home, n)));
	CHECK(c.run() && n == 4 && n_live == 0);
	CHECK(spawn(c.home(), "late", [](int &m) -> co<> {
		m = -1;
		co_return;
	}(n)) == code::cancelled && n == 4);
}

// What coroutines wait for.
enum { FOR_STOP, FOR_TIME, FOR_INPUT, FOR_ITEM, FOR_ROOM, WAITS };

struct places {
	int fd[2];
	queue<counted> empty, full;

	explicit places(coord_ref c) : empty(c, "empty"), full(c, "full", { 1 })
	{
		CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fd) == 0);
		CHECK(full.push(counted(), 0));
	}
	~places() { close(fd[0]), close(fd[1]); }
};

co<status>
wait_for(int what, reactor_ref r, places &p)
{
	switch (what) {
	case FOR_STOP:
		co_return co_await until_stop(r);
	case FOR_TIME:
		co_return co_await evcoord::sleep(r, 3600);
	case FOR_INPUT:
		co_return co_await readable(r, p.fd[0]);
	case FOR_ITEM:
		co_return (co_await pop_from(p.empty, r)).status();
	default:
		co_return co_await push_to(p.full, r, counted());
	}
}

co<>
waits(int what, reactor_ref r, places &p, std::atomic<int> &n)
{
	counted own;

	CHECK(co_await wait_for(what, r, p) == code::cancelled);
	n++;
}

// Suspended coroutines at the stop, before the first turn and later.
void
coroutines_stopped()
{
	for (int turns = 0; turns < 3; turns++) {
		coordinator c(loop());
		places p(c);
		std::atomic<int> n{ 0 };

		for (int i = 0; i < WAITS * 2; i++)
			CHECK(spawn(c.home(), "waits", waits(i % WAITS, c.home(),
							    p, n)));
		for (int i = 0; i < turns; i++)
			ev_run(loop(), EVRUN_NOWAIT);
		CHECK(c.report().find("task \"waits\"") != std::string::npos);
		c.request_stop();
		CHECK(c.run() && n == WAITS * 2 && n_live == 1);
	}
	CHECK(n_live == 0);
}

// And when their loop goes; then one may go on on another thread.
void
coroutines_loop_gone()
{
	for (int turns = 0; turns < 2; turns++) {
		auto *l = new_loop();
		coordinator c(l);
		places p(c);
		std::atomic<int> n{ 0 };

		for (int what = 0; what < WAITS; what++)
			CHECK(spawn(c.home(), "waits", waits(what, c.home(), p,
							    n)));
		for (int i = 0; i < turns; i++)
			ev_run(l, EVRUN_NOWAIT);
		ev_loop_destroy(l);
		c.destroy();
		CHECK(n == WAITS && n_live == 1);
	}
	CHECK(n_live == 0);
}

// A coroutine of the program's own kind, which it may destroy at any time.
struct own_kind {
	struct promise_type {
		own_kind
		get_return_object()
		{
			return { std::coroutine_handle<promise_type>::
				 from_promise(*this) };
		}
		std::suspend_never
		initial_suspend() const noexcept { return {}; }
		std::suspend_always
		final_suspend() const noexcept { return {}; }
		void
		return_void() {}
		void unhandled_exception() { std::terminate(); }
	};
	std::coroutine_handle<> h;
};

own_kind
of_own_kind(int what, reactor_ref r, places &p, bool &ends)
{
	counted own;

	CHECK(co_await wait_for(what, r, p) == code::cancelled);
	CHECK(ends);
}

void
coroutines_destroyed()
{
	for (int what = 0; what < WAITS; what++)
		for (int turns = 0; turns < 3; turns++) {
			coordinator c(loop());
			places p(c);
			bool ends = false;
			own_kind co = of_own_kind(what, c.home(), p, ends);

			for (int i = 0; i < turns; i++)
				ev_run(loop(), EVRUN_NOWAIT);
			// The stop is on its way to the coroutine.
			if (turns == 2)
				c.request_stop();
			co.h.destroy();
			CHECK(write(p.fd[1], "x", 1) == 1);
			(void)p.empty.push(counted(), 0);
			ev_run(loop(), EVRUN_NOWAIT);
			c.request_stop();
			CHECK(c.run() && !c.first_error());
		}
	CHECK(n_live == 0);
}

// It is no task, but has ended when its coordinator is gone.
void
coroutines_freed()
{
	for (int what = 0; what < WAITS; what++)
		for (int turns = 0; turns < 2; turns++) {
			coordinator c(loop());
			places p(c);
			bool ends = true;
			own_kind co = of_own_kind(what, c.home(), p, ends);

			for (int i = 0; i < turns; i++)
				ev_run(loop(), EVRUN_NOWAIT);
			c.destroy();
			CHECK(co.h.done());
			co.h.destroy();
		}
	CHECK(n_live == 0);
}

void
descriptors()
{
	coordinator c(loop());
	places p(c);
	int n = 0;

	CHECK(spawn(c.home(), "reads", [](reactor_ref r, places &q,
					 int &m) -> co<> {
		char b;

		CHECK(co_await writable(r, q.fd[0]) && r.is_here());
		for (double limit : { 0., 0.001 })
			CHECK(co_await readable(r, q.fd[0], limit) ==
			      code::deadline_exceeded);
		CHECK(write(q.fd[1], "x", 1) == 1);
		for (double limit : { 0., 60., forever })
			CHECK(co_await readable(r, q.fd[0], limit));
		CHECK(read(q.fd[0], &b, 1) == 1 && b == 'x');
		CHECK((co_await readable(r, -1)).refused());
		int closed = dup(q.fd[0]);
		close(closed);
		CHECK((co_await readable(r, closed)).refused());
		m++;
	}(c.home(), p, n)));
	CHECK(spawn(c.home(), "writes", [](coordinator &d, int &m) -> co<> {
		while (m == 0)
			CHECK(co_await evcoord::sleep(d.home(), 0));
		d.request_stop();
	}(c, n)));
	CHECK(c.run() && n == 1);

	coordinator hosted;
	evc_reactor *r;
	int fd;
	CHECK(evc_reactor_foreign(hosted.get(), "host", &fd, &r) == 0);
	CHECK(spawn(r, "reads", [](reactor_ref at, places &q,
				  int &m) -> co<> {
		CHECK(co_await readable(at, q.fd[0]) ==
		      code::failed_precondition);
		m++;
	}(r, p, n)));
	CHECK(n == 2);
}

// Two coroutines and a thread at one queue, which is full most of the time.
void
coroutine_queues()
{
	coordinator c(loop());
	queue<int> q(c, "q", { 2 });
	std::atomic<int> sum{ 0 };
	int n = 0;

	c.thread("pops", [&] {
		while (auto i = q.pop())
			sum += *i;
	});
	CHECK(spawn(c.home(), "pops", [](reactor_ref r, queue<int> &from,
					std::atomic<int> &to,
					int &m) -> co<> {
		for (;;) {
			auto i = co_await pop_from(from, r);

			CHECK(r.is_here());
			if (i.status() == code::out_of_range)
				break;
			to += *i;
		}
		m++;
	}(c.home(), q, sum, n)));
	CHECK(spawn(c.home(), "pushes", [](reactor_ref r, queue<int> &to,
					  int &m) -> co<> {
		for (int i = 1; i <= 1000; i++)
			CHECK(co_await push_to(to, r, i) && r.is_here());
		CHECK(to.close());
		CHECK(co_await push_to(to, r, 1) == code::out_of_range);
		m++;
	}(c.home(), q, n)));
	while (n < 2)
		ev_run(loop(), EVRUN_ONCE);
	CHECK(c.join() && sum == 500500 && !c.should_stop());
}

// After the stop of its loop a coroutine finishes by a scope of a later phase,
// on the loop of that scope.
void
coroutine_answers()
{
	coordinator c(loop());
	scope_options later;

	later.phase = 1;
	scope work(c, "work", later);
	queue<int> q(work, "q", { 1 });
	places p(c);
	int n = 0;

	CHECK(work.ready());
	CHECK(spawn(c.home(), "answers", [](coordinator &d, reactor_ref w,
					   places &to, queue<int> &jobs,
					   int &m) -> co<> {
		int fd = to.fd[0];

		CHECK(co_await until_stop(d.home()) == code::cancelled);
		CHECK(co_await writable(d.home(), fd) == code::cancelled);
		CHECK(co_await push_to(jobs, w, 1));
		CHECK(co_await evcoord::sleep(w, 0.001));
		CHECK(*co_await pop_from(jobs, w) == 1);
		CHECK(co_await writable(w, fd) && d.home().is_here());
		m++;
		const status st = co_await until_stop(d.home());
		CHECK(st == code::cancelled);
		if (throws)
			st.value();
	}(c, work.home(), p, q, n)));
	// Only a join in progress drives the order of phases.
	CHECK(c.home().post([&] { c.request_stop(); }));
	CHECK(c.run() && n == 1 && work.should_stop());

	// Another coordinator's loop has no items of the queue.
	coordinator d(loop());
	scope s(d, "s");
	queue<int> of_scope(s, "q");
	CHECK(s.ready());
	CHECK(spawn(d.home(), "pops", [](reactor_ref r, queue<int> &from,
					int &m) -> co<> {
		auto i = co_await pop_from(from, r);

		CHECK(i.status() == code::invalid_argument);
		m++;
	}(d.home(), of_scope, n)));
	CHECK(d.run() == code::invalid_argument && n == 2);
}

// A coroutine that always finds an item lets others run; and after the stop it
// gets what a queue that is drained has.
void
coroutine_shares()
{
	coordinator c(loop());
	queue<int> q(c, "q", { 100, queue_flag::drain });
	int n = 0, turns = 0;

	looper l(c, "l", 0, [&] {
		if (++turns == 3) {
			CHECK(q.push(-1, 0));
			c.request_stop();
		}
	});
	for (int i = 0; i < 3; i++)
		CHECK(q.push(i, 0));
	CHECK(spawn(c.home(), "both", [](reactor_ref r, queue<int> &both,
					int &m) -> co<> {
		for (;;) {
			auto i = co_await pop_from(both, r);

			if (!i) {
				CHECK(i.status() == code::cancelled);
				break;
			}
			m += *i < 0;
			if (!co_await push_to(both, r, 1))
				continue;
		}
	}(c.home(), q, n)));
	CHECK(c.run() && n == 1 && turns == 3 && q.size() == 0);
}

// Eight names have a class of tasks each; tasks with others have a common one.
void
coroutine_names()
{
	coordinator c(loop());
	places p(c);
	std::atomic<int> n{ 0 };
	std::string report;

	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 20; i++)
			CHECK(spawn(c.home(), ("co " + std::to_string(i))
				    .c_str(), waits(FOR_ITEM, c.home(), p, n)));
	CHECK(spawn(c.home(), nullptr, waits(FOR_STOP, c.home(), p, n)));
	report = c.report();
	for (const char *each : { "task \"co 0\"", "task \"co 7\"",
				  "task \"coroutine\"" })
		CHECK(report.find(each) != std::string::npos);
	CHECK(report.find("task \"co 8\"") == std::string::npos);
	c.request_stop();
	CHECK(c.run() && n == 41 && n_live == 1);
}

void
coroutine_fails()
{
	coordinator c(loop());

	CHECK(spawn(c.home(), "fails", [](reactor_ref r) -> co<code> {
		CHECK(co_await evcoord::sleep(r, 0.001));
		co_return code::internal;
	}(c.home())));
	CHECK(c.run() == code::internal);
	CHECK(std::strstr(c.first_error()->text, "fails: INTERNAL"));
}

// A coroutine of the program's own kind, whose promise has a name of its own.
struct named_kind {
	struct promise_type {
		std::string name;
		named_kind get_return_object() { return {}; }
		std::suspend_never initial_suspend() { return {}; }
		std::suspend_never final_suspend() noexcept { return {}; }
		void return_void() {}
		void unhandled_exception() { std::terminate(); }
	};
};

named_kind
waits_named(coord_ref c)
{
	status st = co_await evcoord::sleep(c.home(), 0.001);
	CHECK(st);
	c.request_stop();
}

// Results in braces, and work that has a constant for a result.
co<std::pair<int, int>>
two()
{
	co_return { 1, 2 };
}

void
coroutine_kinds()
{
	coordinator c(loop());
	pool p(c, "p", { 1 });

	CHECK(spawn(c.home(), "co", [](coordinator &d, pool &in) -> co<> {
		auto n = co_await two();
		CHECK(n.first == 1 && n.second == 2);
		auto s = co_await run_in(in, d.home(), "work",
					 []() -> const std::string {
			return "text";
		});
		CHECK(*s == "text");
		waits_named(d);
	}(c, p)));
	CHECK(c.run());
}

// Two loops: a coroutine goes over, and comes back.
void
coroutine_moves()
{
	coordinator c(loop());
	loop_ref side;
	auto r = c.reactor("side", [&](reactor_ref me) { side = loop_ref(me); });
	loop_ref home(c.home());

	CHECK(r);
	CHECK(spawn(c.home(), "moves", [](coordinator &d, loop_ref &back,
					 loop_ref &there) -> co<> {
		CHECK(d.home().is_here());
		CHECK(co_await resume_on(there));
		CHECK(!d.home().is_here());
		CHECK(co_await evcoord::sleep(d.home(), 0.001));
		CHECK(d.home().is_here());
		CHECK(co_await resume_on(there) && co_await resume_on(back));
		CHECK(d.home().is_here());
		d.request_stop();
	}(c, home, side)));
	CHECK(c.run());
}

// A coroutine that ends on another thread is a task of its own loop to the end;
// one that was moved from is refused.
void
coroutine_ends_elsewhere()
{
	coordinator c(loop());
	loop_ref side;
	auto r = c.reactor("side", [&](reactor_ref me) { side = loop_ref(me); });
	bool there = false;

	CHECK(r);
	CHECK(spawn(c.home(), "hop", [](coordinator &d, loop_ref &other,
				       bool &gone) -> co<> {
		counted own;

		CHECK(co_await resume_on(other));
		gone = !d.home().is_here();
		d.request_stop();
	}(c, side, there)));
	CHECK(c.run() && there && n_live == 0);

	coordinator d(loop());
	places p(d);
	std::atomic<int> n{ 0 };
	co<> from = waits(FOR_STOP, c.home(), p, n), to = std::move(from);
	CHECK(!from && to);
	CHECK(spawn(c.home(), "gone", std::move(from)) ==
	      code::invalid_argument);
}

// A stop ends although a coroutine does not look at the answer of sleep.
void
coroutine_does_not_look()
{
	config k;
	k.grace = 0.05;
	k.strict = false;
	coordinator c(loop(), k);
	places p(c);
	bool quit = false;

	CHECK(spawn(c.home(), "deaf", [](reactor_ref r, bool &end) -> co<> {
		while (!end)
			(void)co_await evcoord::sleep(r, 0.001);
	}(c.home(), quit)));
	CHECK(spawn(c.home(), "dumb", [](reactor_ref r, places &q,
					bool &end) -> co<> {
		while (!end) {
			(void)co_await pop_from(q.empty, r);
			(void)co_await push_to(q.full, r, counted());
			(void)co_await readable(r, q.fd[0]);
		}
	}(c.home(), p, quit)));
	c.request_stop();
	CHECK(c.run() == code::deadline_exceeded);
	quit = true;
	CHECK(c.run());
}
#endif

#define CASE(name) { #name, name }
const named_case cases[] = {
	CASE(statuses), CASE(strict), CASE(threads), CASE(after_the_stop),
	CASE(registered), CASE(unblocks), CASE(conditions), CASE(loopers),
	CASE(looper_in_itself), CASE(holds), CASE(tasks), CASE(posts),
	CASE(posts_gone), CASE(posts_after_stop), CASE(queue_items),
	CASE(pools), CASE(answers), CASE(pool_in_use), CASE(pool_left), CASE(reactors), CASE(queues),
	CASE(queue_left), CASE(queue_watched), CASE(queue_in_use),
	CASE(in_use_on_loop),
	CASE(destructor_joins), CASE(moved), CASE(handles_last), CASE(queues_last),
	CASE(scope_kept), CASE(scopes),
	CASE(reports),
	CASE(straggler), CASE(destroyed_inside), CASE(destroyed_in_run),
	CASE(destroyed_beside),
	CASE(scope_outlives), CASE(in_child), CASE(block_ends), CASE(guards), CASE(joins),
	CASE(signalled), CASE(signals_kept),
#ifdef __cpp_lib_jthread
	CASE(stop_tokens), CASE(jthreads), CASE(token_outlives),
#endif
#ifdef EVCOORD_COROUTINES
	CASE(coroutines), CASE(coroutines_stopped), CASE(coroutines_loop_gone),
	CASE(coroutine_fails), CASE(coroutine_moves), CASE(coroutine_kinds),
	CASE(coroutine_ends_elsewhere), CASE(coroutine_does_not_look),
	CASE(coroutines_destroyed), CASE(coroutines_freed), CASE(descriptors),
	CASE(coroutine_queues), CASE(coroutine_answers),
	CASE(coroutine_names),
	CASE(coroutine_shares),
#endif
};

} // namespace

int
main(int argc, char **argv)
{
	return run_case(cases, argc, argv);
}
