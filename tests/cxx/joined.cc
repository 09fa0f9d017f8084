/* SPDX-License-Identifier: BSD-2-Clause */
//
// A std::thread, which its owner joins or detaches, as a member: its end is
// noticed, and the owner's call works as ever.
#include "cases.h"

#include <atomic>
#include <thread>

namespace
{

const evc_member_opts *
not_joined()
{
	static evc_member_opts opts;

	opts.flags = EVC_NOT_JOINED;
	return &opts;
}

// What the thread has of its own ends before the thread counts as ended.
struct last {
	evc_coord *c = nullptr;
	evc_id id = 0;
	std::atomic<bool> *lived = nullptr;

	~last()
	{
		evc_member_info info;

		if (lived != nullptr)
			*lived = evc_member_get(c, id, &info) == 0 &&
				 info.state == EVC_LIVE;
	}
};

thread_local last of_thread;

void
work(evc_coord *c, std::atomic<bool> *in, std::atomic<bool> *lived)
{
	evc_id id;

	CHECK(evc_register_thread(c, "std", pthread_self(), not_joined(),
				  &id) == 0);
	of_thread.c = c;
	of_thread.id = id;
	of_thread.lived = lived;
	*in = true;
	CHECK(evc_wait_for_stop(c, 60));
}

void
run(void (*owner)(std::thread &t), bool before_join)
{
	evc_coord *c = new_coord(nullptr);
	std::atomic<bool> in{ false }, lived{ false };
	evc_verdict v;
	std::thread t(work, c, &in, &lived);

	while (!in)
		std::this_thread::yield();
	if (!before_join)
		CHECK(evc_free(c) == -EVC_FAILED_PRECONDITION);
	CHECK(evc_request_stop(c, 0, nullptr) == 0);
	if (before_join)
		owner(t);
	CHECK(evc_join(c, nullptr, &v) == 0);
	CHECK(v.n_ended == 1 && v.n_stragglers == 0);
	if (!before_join)
		owner(t);
	CHECK(!t.joinable());
	CHECK(lived);
	CHECK(evc_free(c) == 0);
}

void
join(std::thread &t)
{
	t.join();
}

void
detach(std::thread &t)
{
	t.detach();
}

void
joined_first()
{
	run(join, true);
}

void
joined_last()
{
	run(join, false);
}

void
detached()
{
	run(detach, true);
}

const named_case cases[] = {
	{ "joined_first", joined_first },
	{ "joined_last", joined_last },
	{ "detached", detached },
};

}

int
main(int argc, char **argv)
{
	return run_case(cases, argc, argv);
}
