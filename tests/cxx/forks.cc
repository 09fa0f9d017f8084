// SPDX-License-Identifier: BSD-2-Clause
//
// A fork inside a call of ours, and an exception that leaves the call in the child:
// the child catches it further out and goes on, by itself or with the loop, and the
// parent has seen nothing.  The name of a case is the argument.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"

namespace {

// In the child it throws; in the parent the child has ended well.
void
fork_and_throw()
{
	pid_t pid = fork();
	int status = -1;

	CHECK(pid >= 0);
	if (pid == 0) {
		alarm(60);
		throw thrown();
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(status == 0);
}

// true: f threw, so this is the child.
template <class F>
bool
throws(F f)
{
	try {
		f();
		return false;
	} catch (const thrown &) {
		return true;
	}
}

// A watcher of the program's own that forks.
struct forker {
	ev_timer timer;
	struct ev_loop *loop;
	evc_coord *c = nullptr;
	void (*then)(forker *) = nullptr;

	static void
	on_timer(struct ev_loop *, ev_timer *w, int)
	{
		auto *t = static_cast<forker *>(w->data);

		fork_and_throw();
		t->then(t);
	}

	explicit forker(struct ev_loop *l) : loop(l)
	{
		ev_timer_init(&timer, on_timer, 0.001, 0);
		timer.data = this;
		ev_timer_start(loop, &timer);
	}

	~forker()
	{
		ev_timer_stop(loop, &timer);
	}
};

void
ask(forker *t)
{
	CHECK(evc_request_stop(t->c, EVC_OK, "the parent goes on") == 0);
}

bool
refused(evc_status st)
{
	return st == -EVC_FAILED_PRECONDITION && evc_last_error()[0] != '\0';
}

evc_status
count(evc_coord *, void *arg)
{
	++*static_cast<int *>(arg);
	return EVC_OK;
}

// A coordinator of the child's own, which runs the loop twice.
void
own(struct ev_loop *loop)
{
	evc_coord *c = new_coord(loop);
	evc_verdict v;
	int n = 0;

	CHECK(evc_on_stop(c, "hook", count, &n, nullptr, nullptr) == 0);
	for (int i = 0; i < 2; i++) {
		CHECK(evc_request_stop(c, EVC_OK, "own") == 0);
		CHECK(evc_run(c, nullptr, &v) == 0);
		CHECK(v.n_errors == 0 && n == i + 1);
		CHECK(evc_clear_stop(c) == 0);
	}
	CHECK(evc_join(c, nullptr, &v) == 0);
	CHECK(evc_free(c) == 0);
}

// What a child does that has caught it outside of all loops.
[[noreturn]] void
go_on(evc_coord *c, struct ev_loop *loop)
{
	evc_verdict v;
	int n = 0;

	CHECK(refused(evc_request_stop(c, EVC_OK, "no")));
	CHECK(refused(evc_guard(c, "no", count, &n, nullptr)) && n == 0);
	CHECK(refused(evc_join(c, nullptr, &v)));
	CHECK(refused(evc_free(c)));
	CHECK(!evc_should_stop(c));
	own(new_loop());
	if (loop != nullptr) {
		CHECK(refused(evc_run(c, nullptr, &v)));
		ev_loop_fork(loop);
		CHECK(ev_run(loop, 0) == 0);
		own(loop);
		ev_loop_destroy(loop);
	}
	std::_Exit(0);
}

void
finish(evc_coord *c, struct ev_loop *loop)
{
	evc_verdict v;

	CHECK(evc_clear_stop(c) == 0);
	CHECK(evc_join(c, nullptr, &v) == 0);
	CHECK(evc_free(c) == 0);
	CHECK(ev_run(loop, 0) == 0);
	ev_loop_destroy(loop);
}

void
run()
{
	struct ev_loop *loop = new_loop();
	evc_coord *c = new_coord(loop);
	bool child;

	{
		forker t(loop);
		evc_verdict v;

		t.c = c;
		t.then = ask;
		child = throws([&] {
			CHECK(evc_run(c, nullptr, &v) == 0);
			CHECK(v.n_errors == 0);
		});
	}
	if (child)
		go_on(c, loop);
	finish(c, loop);
}

// The child does not keep the loop.
void
run_and_destroy()
{
	struct ev_loop *loop = new_loop();
	evc_coord *c = new_coord(loop);
	bool child;

	{
		forker t(loop);

		t.c = c;
		t.then = ask;
		child = throws([&] { CHECK(evc_run(c, nullptr, nullptr) == 0); });
	}
	if (child) {
		ev_loop_destroy(loop);
		own(new_loop());
		std::_Exit(0);
	}
	finish(c, loop);
}

void
join()
{
	struct ev_loop *loop = new_loop();
	evc_coord *c = new_coord(loop);
	static evc_id hold;
	bool child;

	CHECK(evc_hold_begin(c, "work", nullptr, &hold) == 0);
	{
		forker t(loop);

		t.c = c;
		t.then = [](forker *me) { CHECK(evc_hold_end(me->c, hold) == 0); };
		child = throws([&] { CHECK(evc_join(c, nullptr, nullptr) == 0); });
	}
	if (child)
		go_on(c, loop);
	CHECK(evc_free(c) == 0);
	ev_loop_destroy(loop);
}

void
reactor_run()
{
	struct ev_loop *home = new_loop(), *loop = new_loop();
	evc_coord *c = new_coord(home);
	evc_reactor *r;
	bool child;

	CHECK(evc_reactor_attach(c, "second", loop, &r) == 0);
	{
		forker t(loop);

		t.c = c;
		t.then = ask;
		child = throws([&] { CHECK(evc_reactor_run(r) == 0); });
	}
	if (child) {
		CHECK(refused(evc_reactor_run(r)));
		go_on(c, loop);
	}
	CHECK(evc_join(c, nullptr, nullptr) == 0);
	CHECK(evc_free(c) == 0);
	ev_loop_destroy(loop);
	ev_loop_destroy(home);
}

// An ev_run of the program's own, and one of its own inside one of ours.
void
plain_ev_run()
{
	struct ev_loop *loop = new_loop();
	evc_coord *c = new_coord(loop);
	bool child;

	{
		forker t(loop);

		t.c = c;
		t.then = ask;
		child = throws([&] { ev_run(loop, 0); });
	}
	if (child)
		go_on(c, loop);
	CHECK(evc_run(c, nullptr, nullptr) == 0);
	finish(c, loop);
}

void
nested()
{
	struct ev_loop *loop = new_loop();
	evc_coord *c = new_coord(loop);
	static bool child;
	ev_timer outer;

	ev_timer_init(
		&outer,
		[](struct ev_loop *l, ev_timer *w, int) {
			forker t(l);

			t.c = static_cast<evc_coord *>(w->data);
			t.then = ask;
			child = throws([&] { ev_run(l, EVRUN_ONCE); });
			// A child that has caught it here goes on with the run
			// outside.
			if (child)
				ev_loop_fork(l);
		},
		0.001, 0);
	outer.data = c;
	ev_timer_start(loop, &outer);
	if (!throws([&] {
		    evc_status st = evc_run(c, nullptr, nullptr);

		    CHECK(child ? refused(st) : st == 0);
	    }) && child)
		go_on(c, loop);
	finish(c, loop);
}

// It ends in the guard, as the parent's would, and is nobody's error.
evc_status
guarded(evc_coord *, void *)
{
	fork_and_throw();
	return EVC_OK;
}

void
guard()
{
	evc_coord *c = new_coord(nullptr);
	evc_member_opts o{};
	pid_t parent = getpid();
	evc_status st;
	evc_verdict v;

	o.unblock = [](void *) {};
	o.flags = EVC_KICK;
	CHECK(!throws([&] { st = evc_guard(c, "parser", guarded, nullptr, &o); }));
	if (getpid() != parent) {
		CHECK(refused(st));
		std::_Exit(0);
	}
	CHECK(st == 0);
	CHECK(evc_join(c, nullptr, &v) == 0);
	CHECK(v.n_errors == 0);
	CHECK(evc_free(c) == 0);
}

evc_status
guards(evc_coord *c, void *arg)
{
	pid_t parent = getpid();
	evc_status st = evc_guard(c, "inner", guarded, arg, nullptr);

	CHECK(getpid() != parent ? refused(st) : st == 0);
	if (getpid() != parent)
		throw thrown();
	return EVC_OK;
}

void
guard_in_a_guard()
{
	evc_coord *c = new_coord(nullptr);
	pid_t parent = getpid();
	evc_status st;
	evc_verdict v;

	CHECK(!throws([&] {
		st = evc_guard(c, "outer", guards, nullptr, nullptr);
	}));
	if (getpid() != parent) {
		CHECK(refused(st));
		std::_Exit(0);
	}
	CHECK(st == 0);
	CHECK(evc_join(c, nullptr, &v) == 0);
	CHECK(v.n_errors == 0);
	CHECK(evc_free(c) == 0);
}

// On a thread of ours.
evc_status
member(evc_coord *c, void *)
{
	pid_t parent = getpid();
	evc_status st = evc_guard(c, "parser", guarded, nullptr, nullptr);

	CHECK(getpid() != parent ? refused(st) : st == 0);
	CHECK(throws([] { throw thrown(); }));
	if (getpid() != parent || throws(fork_and_throw))
		std::_Exit(getpid() == parent);
	return EVC_OK;
}

void
guard_in_a_thread()
{
	evc_coord *c = new_coord(nullptr);
	evc_verdict v;

	CHECK(evc_thread_start(c, "worker", member, nullptr, nullptr,
			       nullptr) == 0);
	CHECK(evc_join(c, nullptr, &v) == 0);
	CHECK(v.n_errors == 0);
	CHECK(evc_free(c) == 0);
}

bool
is_true(void *)
{
	fork_and_throw();
	return true;
}

void
wait_until()
{
	evc_coord *c = new_coord(nullptr);
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	evc_cond *cond;
	int state;

	CHECK(evc_cond_new(c, &cond) == 0);
	pthread_mutex_lock(&m);
	if (throws([&] {
		    CHECK(evc_cond_wait(cond, &m, is_true, nullptr, 60) == 0);
	    })) {
		// It is held, as in the parent.
		CHECK(pthread_mutex_trylock(&m) != 0);
		pthread_mutex_unlock(&m);
		pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
		CHECK(state == PTHREAD_CANCEL_ENABLE);
		CHECK(refused(evc_cond_free(cond)));
		go_on(c, nullptr);
	}
	pthread_mutex_unlock(&m);
	CHECK(evc_cond_free(cond) == 0);
	CHECK(evc_free(c) == 0);
}

const named_case cases[] = {
	{ "run", run },
	{ "run_and_destroy", run_and_destroy },
	{ "join", join },
	{ "reactor_run", reactor_run },
	{ "plain_ev_run", plain_ev_run },
	{ "nested", nested },
	{ "guard", guard },
	{ "guard_in_a_guard", guard_in_a_guard },
	{ "guard_in_a_thread", guard_in_a_thread },
	{ "wait_until", wait_until },
};

} // namespace

int
main(int argc, char **argv)
{
	return run_case(cases, argc, argv);
}
