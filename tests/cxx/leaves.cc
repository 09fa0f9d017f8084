// SPDX-License-Identifier: BSD-2-Clause
//
// Exceptions of the program's own that leave a call of ours: the call has left
// nothing behind, and can be made again.  The name of a case is the argument.
#include <pthread.h>

#include "cases.h"

namespace {

// A watcher of the program's own that throws a number of times, then asks for
// the stop.
struct thrower {
	ev_timer timer;
	struct ev_loop *loop;
	evc_coord *c = nullptr;
	int left;
	bool (*before)(thrower *) = nullptr;

	static void
	on_timer(struct ev_loop *, ev_timer *w, int)
	{
		auto *t = static_cast<thrower *>(w->data);

		if (t->before != nullptr && t->before(t))
			return;
		if (t->left-- > 0)
			throw thrown();
		evc_request_stop(t->c, EVC_OK, "enough");
	}

	thrower(struct ev_loop *l, int n) : loop(l), left(n)
	{
		ev_timer_init(&timer, on_timer, 0.001, 0.001);
		timer.data = this;
		ev_timer_start(loop, &timer);
	}

	~thrower()
	{
		ev_timer_stop(loop, &timer);
	}
};

// f throws what the thrower throws; returns how often.
template <class F>
int
catches(F f)
{
	int n = 0;

	for (;;)
		try {
			f();
			return n;
		} catch (const thrown &) {
			n++;
		}
}

void
run()
{
	struct ev_loop *loop = new_loop();
	evc_coord *c = new_coord(loop);
	evc_verdict v;

	{
		thrower t(loop, 3);

		t.c = c;
		CHECK(catches([&] {
			      CHECK(evc_run(c, nullptr, &v) == 0);
		      }) == 3);
		CHECK(v.code == 0 && v.n_stragglers == 0);
	}
	// As if nothing had been: what waits for joins and loops agrees.
	CHECK(evc_clear_stop(c) == 0);
	CHECK(evc_join(c, nullptr, &v) == 0);
	CHECK(evc_free(c) == 0);
	CHECK(ev_run(loop, 0) == 0);
	ev_loop_destroy(loop);
}

void
join()
{
	struct ev_loop *loop = new_loop();
	evc_coord *c = new_coord(loop);
	evc_id hold;
	evc_verdict v;

	CHECK(evc_hold_begin(c, "work", nullptr, &hold) == 0);
	{
		thrower t(loop, 2);

		t.c = c;
		CHECK(catches([&] {
			      if (t.left == 0) {
				      CHECK(evc_hold_end(c, hold) == 0);
				      t.left--;
			      }
			      CHECK(evc_join(c, nullptr, &v) == 0);
		      }) == 2);
	}
	CHECK(evc_free(c) == 0);
	ev_loop_destroy(loop);
}

void
reactor_run()
{
	struct ev_loop *home = new_loop(), *loop = new_loop();
	evc_coord *c = new_coord(home);
	evc_reactor *r;

	CHECK(evc_reactor_attach(c, "second", loop, &r) == 0);
	{
		thrower t(loop, 2);

		t.c = c;
		CHECK(catches([&] { CHECK(evc_reactor_run(r) == 0); }) == 2);
	}
	CHECK(evc_join(c, nullptr, nullptr) == 0);
	CHECK(evc_free(c) == 0);
	ev_loop_destroy(loop);
	ev_loop_destroy(home);
}

// However often a call is made again, the stop has one grace.
void
one_grace()
{
	struct ev_loop *loop = new_loop();
	evc_config k = {};
	evc_coord *c;
	evc_id hold;
	evc_verdict v;

	k.grace = 0.2;
	CHECK(evc_new(loop, &k, &c) == 0);
	CHECK(evc_hold_begin(c, "late", nullptr, &hold) == 0);
	CHECK(evc_request_stop(c, EVC_OK, "enough") == 0);
	{
		thrower t(loop, 1 << 30);

		t.c = c;
		CHECK(catches([&] {
			      CHECK(evc_run(c, nullptr, &v) ==
				    EVC_DEADLINE_EXCEEDED);
		      }) > 0);
	}
	CHECK(v.n_stragglers == 1);
	CHECK(evc_hold_end(c, hold) == 0);
	CHECK(evc_join(c, nullptr, nullptr) == 0);
	CHECK(evc_free(c) == 0);
	ev_loop_destroy(loop);
}

// libev counts one level too many for ever; we do not.
void
plain_ev_run()
{
	struct ev_loop *loop = new_loop();
	evc_coord *c = new_coord(loop);

	{
		thrower t(loop, 2);

		t.c = c;
		for (int i = 0; i < 2; i++)
			CHECK(catches([&] {
				      if (t.left == 1 - i)
					      return;
				      ev_run(loop, 0);
			      }) == 1);
		CHECK(ev_depth(loop) == 2);
		CHECK(evc_run(c, nullptr, nullptr) == 0);
	}
	CHECK(evc_join(c, nullptr, nullptr) == 0);
	CHECK(evc_free(c) == 0);
	ev_loop_destroy(loop);
}

// Also when that was before the loop was ours.
void
before_the_attach()
{
	struct ev_loop *loop = new_loop();
	evc_coord *c;

	{
		thrower t(loop, 1);

		CHECK(catches([&] {
			      if (t.left > 0)
				      ev_run(loop, 0);
		      }) == 1);
		CHECK(ev_depth(loop) == 1);
		c = t.c = new_coord(loop);
		CHECK(evc_run(c, nullptr, nullptr) == 0);
	}
	CHECK(evc_clear_stop(c) == 0);
	CHECK(evc_join(c, nullptr, nullptr) == 0);
	CHECK(evc_free(c) == 0);
	ev_loop_destroy(loop);
}

// One that is attached inside ev_run is inside.
void
attached_inside()
{
	struct ev_loop *loop = new_loop();

	{
		thrower t(loop, 0);

		t.before = [](thrower *me) {
			me->c = new_coord(me->loop);
			CHECK(evc_run(me->c, nullptr, nullptr) ==
			      -EVC_FAILED_PRECONDITION);
			ev_timer_stop(me->loop, &me->timer);
			return true;
		};
		ev_run(loop, 0);
		CHECK(evc_join(t.c, nullptr, nullptr) == 0);
		CHECK(evc_free(t.c) == 0);
	}
	ev_loop_destroy(loop);
}

// And inside it is still inside.
void
refused_inside()
{
	struct ev_loop *loop = new_loop();
	evc_coord *c = new_coord(loop);

	{
		thrower t(loop, 1);

		t.c = c;
		t.before = [](thrower *me) {
			if (me->left > 0)
				return false;
			CHECK(ev_depth(me->loop) == 2);
			CHECK(evc_run(me->c, nullptr, nullptr) ==
			      -EVC_FAILED_PRECONDITION);
			CHECK(evc_join(me->c, nullptr, nullptr) ==
			      -EVC_FAILED_PRECONDITION);
			return false;
		};
		CHECK(catches([&] { CHECK(evc_run(c, nullptr, nullptr) == 0); }) ==
		      1);
	}
	CHECK(evc_free(c) == 0);
	ev_loop_destroy(loop);
}

// A watcher runs the loop, and catches what another one throws in there: the
// run outside ends at its stop all the same.
void
nested()
{
	struct ev_loop *loop = new_loop();
	evc_coord *c = new_coord(loop);

	{
		thrower outer(loop, 1);

		outer.c = c;
		outer.before = [](thrower *me) {
			if (me->left-- <= 0)
				return false;
			ev_timer_stop(me->loop, &me->timer);

			thrower inner(me->loop, 1);

			CHECK(catches([&] {
				      if (inner.left > 0)
					      ev_run(me->loop, 0);
			      }) == 1);
			ev_timer_start(me->loop, &me->timer);
			return true;
		};
		CHECK(evc_run(c, nullptr, nullptr) == 0);
	}
	CHECK(evc_free(c) == 0);
	ev_loop_destroy(loop);
}

// A run of a loop may be inside that of another one.
void
two_loops()
{
	static evc_coord *second;
	struct ev_loop *loop = new_loop(), *other = new_loop();
	evc_coord *c = new_coord(loop);

	second = new_coord(other);
	{
		thrower outer(loop, 0);

		outer.c = c;
		outer.before = [](thrower *me) {
			if (me->left++ > 0)
				return false;

			thrower inner(evc_reactor_loop(evc_home(second)), 1);

			inner.c = second;
			CHECK(catches([&] {
				      CHECK(evc_run(second, nullptr, nullptr) ==
					    0);
			      }) == 1);
			me->left = 0;
			me->before = nullptr;
			return true;
		};
		CHECK(evc_run(c, nullptr, nullptr) == 0);
	}
	CHECK(evc_free(second) == 0);
	CHECK(evc_free(c) == 0);
	ev_loop_destroy(other);
	ev_loop_destroy(loop);
}

// What a guard's function says of its frame is not looked at any more.
void
wake(void *arg)
{
	auto *alive = static_cast<int *>(arg);

	if (__atomic_load_n(alive, __ATOMIC_SEQ_CST) == 0) {
		std::puts("called for a frame that is gone");
		std::_Exit(1);
	}
}

evc_status
guarded(evc_coord *c, void *)
{
	CHECK(!evc_should_stop(c));
	throw thrown();
}

void
guard()
{
	evc_coord *c = new_coord(nullptr);
	evc_member_opts o{};
	static int alive = 1;
	evc_verdict v;

	o.unblock = wake;
	o.flags = EVC_KICK;
	// It ends there.
	CHECK(evc_guard(c, "parser", guarded, &alive, &o) == 0);
	CHECK(!std::uncaught_exception());
	__atomic_store_n(&alive, 0, __ATOMIC_SEQ_CST);
	CHECK(evc_should_stop(c));
	// Time enough for what would call it again and again.
	for (int i = 0; i < 20; i++)
		ev_sleep(0.005);
	CHECK(evc_join(c, nullptr, &v) == EVC_ABORTED);
	CHECK(v.error.code == EVC_ABORTED && v.n_errors == 1);
	CHECK(std::strcmp(v.error.who, "parser") == 0);
	CHECK(std::strstr(v.error.text, "exception") != nullptr);
	CHECK(evc_free(c) == 0);
}

evc_status
guards(evc_coord *c, void *arg)
{
	CHECK(evc_guard(c, "inner", guarded, arg, nullptr) == 0);
	evc_fail(c, EVC_INTERNAL, 0, "of the outer one");
	throw thrown();
}

void
guard_in_a_guard()
{
	evc_coord *c = new_coord(nullptr);
	evc_verdict v;

	CHECK(evc_guard(c, "outer", guards, nullptr, nullptr) == 0);
	CHECK(evc_join(c, nullptr, &v) == EVC_ABORTED);
	CHECK(v.n_errors == 3 && std::strcmp(v.error.who, "inner") == 0);
	CHECK(evc_free(c) == 0);
}

// pthread_exit in a guard is no exception.
evc_status
exits(evc_coord *, void *)
{
	pthread_exit(nullptr);
}

evc_status
member(evc_coord *c, void *arg)
{
	evc_member_opts o{};

	o.unblock = wake;
	return evc_guard(c, "parser", exits, arg, &o);
}

void
guard_exit()
{
	evc_coord *c = new_coord(nullptr);
	static int alive = 1;
	evc_verdict v;

	CHECK(evc_thread_start(c, "worker", member, &alive, nullptr, nullptr) ==
	      0);
	CHECK(evc_wait_for_stop(c, 60));
	CHECK(evc_join(c, nullptr, &v) == EVC_ABORTED);
	CHECK(v.n_errors == 1 && std::strcmp(v.error.who, "worker") == 0);
	CHECK(std::strstr(v.error.text, "exception") == nullptr);
	CHECK(evc_free(c) == 0);
}

bool
never(void *)
{
	throw thrown();
}

void
wait_until()
{
	evc_coord *c = new_coord(nullptr);
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	evc_cond *cond;
	int n = 0, state;

	CHECK(evc_cond_new(c, &cond) == 0);
	pthread_mutex_lock(&m);
	CHECK(catches([&] {
		      if (n++ == 0)
			      (void)evc_cond_wait(cond, &m, never, nullptr, 60);
	      }) == 1);
	// It is held, as when the wait returns.
	pthread_mutex_unlock(&m);
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
	CHECK(state == PTHREAD_CANCEL_ENABLE);
	CHECK(evc_cond_free(cond) == 0);
	CHECK(evc_free(c) == 0);
}

const named_case cases[] = {
	{ "run", run },
	{ "join", join },
	{ "reactor_run", reactor_run },
	{ "one_grace", one_grace },
	{ "plain_ev_run", plain_ev_run },
	{ "before_the_attach", before_the_attach },
	{ "attached_inside", attached_inside },
	{ "refused_inside", refused_inside },
	{ "nested", nested },
	{ "two_loops", two_loops },
	{ "guard", guard },
	{ "guard_in_a_guard", guard_in_a_guard },
	{ "guard_exit", guard_exit },
	{ "wait_until", wait_until },
};

} // namespace

int
main(int argc, char **argv)
{
	return run_case(cases, argc, argv);
}
