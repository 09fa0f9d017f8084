// SPDX-License-Identifier: BSD-2-Clause
//
// Functions that we call must not throw.  One that does ends the program by
// std::terminate, where it throws: with its frame in place, and not in one that
// is gone, though somebody further out would catch it.  The name of a case is
// the argument; with a second one the function forks, and throws in both processes.
#include <atomic>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"

namespace {

std::atomic<bool> in_place;
bool forks;

struct local {
	local() { in_place = true; }
	~local() { in_place = false; }
};

[[noreturn]] void
fail()
{
	local l;
	int status = -1;
	pid_t pid;

	if (forks && (pid = fork()) != 0) {
		CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
		CHECK(status == 0);
	}
	throw std::runtime_error("thrown");
}

void
on_terminate()
{
	std::_Exit(in_place ? 0 : 3);
}

evc_status fn(evc_coord *, void *) { fail(); }
evc_status good(evc_coord *, void *) { return 0; }
void with_arg(void *) { fail(); }
bool is(void *) { fail(); }
bool is_not(void *) { return false; }
evc_status status(void *) { fail(); }
int number(void *) { fail(); }
int no_number(void *) { return 0; }
void call_ended(evc_reactor *, evc_status, int, void *) { fail(); }
void on_task(evc_task *, void *) { fail(); }
void posted(evc_reactor *, evc_status, void *) { fail(); }
void joined(evc_coord *, const evc_verdict *, void *) { fail(); }
void log(int, const char *, const evc_reason *, void *) { fail(); }
uint64_t now(void *) { fail(); }
evc_status work(evc_job *) { fail(); }
evc_status no_work(evc_job *) { return 0; }
void done(evc_job *, evc_status) { fail(); }
void popped(evc_queue *, void *, evc_status, void *) { fail(); }
evc_status worker(evc_group *, unsigned, void *) { fail(); }
evc_status
sleeper(evc_group *g, unsigned, void *)
{
	return evc_sleep(evc_group_scope(g), 1e6) < 0 ? EVC_CANCELLED : 0;
}
evc_status init(evc_group *, evc_registry *, void *) { fail(); }
void shut_down(evc_group *, void *) { fail(); }
bool see(const evc_member_info *, void *) { fail(); }
evc_status set_up(evc_reactor *, void *) { fail(); }

struct ev_loop *loop;
evc_coord *c;

void looper() { CHECK(evc_looper_start(c, "l", 0.001, fn, 0, 0, 0) == 0); }

void
looper_own()
{
	evc_member_opts o{};

	o.flags = EVC_OWN_THREAD;
	CHECK(evc_looper_start(c, "l", 0.001, fn, 0, &o, 0) == 0);
}

void
looper_hook(bool first)
{
	evc_member_opts o{};

	(first ? o.start : o.stop) = fn;
	CHECK(evc_looper_start(c, "l", 0.001, good, 0, &o, 0) == 0);
	ev_run(loop, EVRUN_ONCE);
	evc_request_stop(c, EVC_OK, "enough");
}

void looper_start() { looper_hook(true); }
void looper_stop() { looper_hook(false); }

void
hook()
{
	CHECK(evc_on_stop(c, "h", fn, 0, 0, 0) == 0);
	evc_request_stop(c, EVC_OK, "enough");
}

void
on_stop()
{
	static evc_task_class cls{};
	static evc_task t{};

	cls.on_stop = on_task;
	CHECK(evc_task_begin(evc_home(c), &t, &cls) == 0);
	evc_request_stop(c, EVC_OK, "enough");
}

void post() { CHECK(evc_post(evc_loop_of(evc_home(c)), posted, 0) == 0); }

// Nobody waits in it: the loop is the program's own.
void
plain_loop()
{
	post();
	ev_run(loop, 0);
}

void
post_to_nobody()
{
	evc_reactor *r;

	CHECK(evc_reactor_attach(c, "other", ev_loop_new(0), &r) == 0);
	CHECK(evc_post(evc_loop_of(r), posted, 0) == 0);
	ev_loop_destroy(evc_reactor_loop(r));
}

void
join_done()
{
	evc_request_stop(c, EVC_OK, "enough");
	CHECK(evc_join_start(c, joined, 0, 0) == 0);
}

void
ended()
{
	evc_scope_opts o{};
	evc_coord *s;

	o.ended = joined;
	CHECK(evc_scope_new(c, "s", &o, &s) == 0);
	CHECK(evc_scope_ready(s) == 0);
	evc_request_stop(c, EVC_OK, "enough");
}

void
logs()
{
	evc_config k{};
	evc_coord *d;

	k.log = log;
	CHECK(evc_new(0, &k, &d) == 0);
	evc_fail(d, EVC_INTERNAL, 0, "an error");
	(void)!evc_join(d, 0, 0);
}

bool
clean(evc_status, void *)
{
	fail();
	return true;
}

void
is_clean()
{
	evc_config k{};
	evc_coord *d;

	k.is_clean = clean;
	(void)!evc_new(0, &k, &d);
}

void
clock_of_a_join()
{
	evc_config k{};
	evc_coord *d;

	k.clock = now;
	CHECK(evc_new(0, &k, &d) == 0);
	(void)!evc_join(d, 0, 0);
}

void
runner(bool (*running)(void *), void (*stop)(void *),
       evc_status (*join)(void *))
{
	static evc_runner_ops ops{};

	ops.is_running = running;
	ops.stop = stop;
	ops.join = join;
	CHECK(evc_runner_add(c, "r", &ops, 0, 0, 0) == 0);
	evc_request_stop(c, EVC_OK, "enough");
}

void runner_is_running() { runner(is, 0, 0); }
void runner_stop() { runner(is_not, with_arg, 0); }
void runner_join() { runner(is_not, 0, status); }

void
runner_of_a_join()
{
	CHECK(evc_new(0, 0, &c) == 0);
	runner_is_running();
	(void)!evc_join(c, 0, 0);
}

void thread() { CHECK(evc_thread_start(c, "t", fn, 0, 0, 0) == 0); }

void
reactor()
{
	(void)!evc_reactor_start(c, "r", set_up, 0, 0, 0);
}

void
call()
{
	(void)!evc_call_detached(c, "c", number, 0, 0, 60, 0);
}

void
call_release()
{
	evc_request_stop(c, EVC_OK, "enough");
	(void)!evc_call_detached(c, "c", number, 0, with_arg, 60, 0);
}

void
call_left(int (*f)(void *), void (*release)(void *), bool completes)
{
	evc_call_opts o{};

	o.no_wait = true;
	o.release = release;
	o.reactor = completes ? evc_home(c) : 0;
	o.done = completes ? call_ended : 0;
	CHECK(evc_call_detached_with(c, f, 0, 0, &o, 0) == 0);
}

void call_no_wait() { call_left(number, 0, false); }
void call_no_wait_release() { call_left(no_number, with_arg, false); }
void call_no_wait_done() { call_left(no_number, with_arg, true); }

void
unblock()
{
	evc_member_opts o{};

	o.unblock = with_arg;
	CHECK(evc_hold_begin(c, "hold", &o, 0) == 0);
	evc_request_stop(c, EVC_OK, "enough");
}

void
cancel_hook()
{
	evc_id id;

	CHECK(evc_cancel_push(c, with_arg, 0, 0, &id) == 0);
	CHECK(evc_hold_begin(c, "hold", 0, 0) == 0);
	evc_request_stop(c, EVC_OK, "enough");
}

void
pool(evc_status (*w)(evc_job *))
{
	static evc_job job{};
	evc_pool *p;

	CHECK(evc_pool_new(c, "p", 0, &p) == 0);
	job.work = w;
	job.done = done;
	CHECK(evc_pool_submit(p, evc_home(c), &job) == 0);
}

void pool_work() { pool(work); }
void pool_done() { pool(no_work); }

void
queue_watch()
{
	evc_queue *q;

	CHECK(evc_queue_new(c, "q", 4, 0, &q) == 0);
	CHECK(evc_queue_watch(q, evc_home(c), popped, 0, 0, 0) == 0);
	CHECK(evc_queue_push(q, q, 0) == 0);
}

void
group(evc_group_opts &o)
{
	evc_group *g;

	o.coord = c;
	CHECK(evc_group_init(0, "g", sleeper, 0, &o, &g, 0) == 0);
	(void)!evc_group_start(g);
	evc_group_stop(g, 0);
}

void
workers()
{
	evc_group *g;

	CHECK(evc_group_init(0, "g", worker, 0, 0, &g, 0) == 0);
	CHECK(evc_group_start(g) == 0);
	evc_group_wait_finish(g, 60);
}

void
workers_init()
{
	evc_group_opts o{};

	o.init = init;
	group(o);
}

void
workers_start()
{
	evc_group_opts o{};

	o.state.start = status;
	group(o);
}

void
workers_shutdown()
{
	evc_group_opts o{};

	o.shutdown = shut_down;
	group(o);
}

void
workers_state_stop()
{
	evc_group_opts o{};

	o.state.stop = with_arg;
	group(o);
}

void
each()
{
	CHECK(evc_hold_begin(c, "hold", 0, 0) == 0);
	evc_member_each(c, see, 0);
}

#define CASE(name) { #name, name }
const struct {
	const char *name;
	void (*fn)();
} cases[] = {
	CASE(looper), CASE(looper_own), CASE(looper_start), CASE(looper_stop),
	CASE(hook), CASE(on_stop), CASE(post), CASE(plain_loop), CASE(post_to_nobody),
	CASE(join_done), CASE(ended), CASE(logs), CASE(is_clean),
	CASE(clock_of_a_join),
	CASE(runner_is_running), CASE(runner_stop), CASE(runner_join),
	CASE(runner_of_a_join), CASE(thread), CASE(reactor), CASE(call),
	CASE(call_release), CASE(call_no_wait), CASE(call_no_wait_release),
	CASE(call_no_wait_done), CASE(unblock), CASE(cancel_hook), CASE(pool_work),
	CASE(pool_done), CASE(queue_watch), CASE(workers),
	CASE(workers_init), CASE(workers_start), CASE(workers_shutdown),
	CASE(workers_state_stop), CASE(each),
};

} // namespace

int
main(int argc, char **argv)
{
	std::set_terminate(on_terminate);
	for (auto &k : cases) {
		if (argc < 2)
			std::puts(k.name);
		else if (std::strcmp(argv[1], k.name) == 0) {
			forks = argc > 2;
			loop = ev_loop_new(EVFLAG_AUTO);
			CHECK(evc_new(loop, 0, &c) == 0);
			try {
				k.fn();
				(void)!evc_run(c, 0, 0);
			} catch (const std::exception &) {
				return 4;
			}
			return 5;
		}
	}
	return argc >= 2;
}
