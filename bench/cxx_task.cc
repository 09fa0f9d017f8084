/* SPDX-License-Identifier: BSD-2-Clause */
//
// The task of evcoord.hpp, for bench/taskcost.c.  Without exceptions, so that the
// benchmarks need no library of C++.
#include <evcoord.hpp>

namespace {

struct piece : evcoord::task<piece> {
	static constexpr const char *task_name = "bench";
};

}

// n tasks begin and end; the result is 0, or a refusal.
extern "C" evc_status
bench_cxx_tasks(evc_reactor *r, unsigned n);

extern "C" __attribute__((aligned(64))) evc_status
bench_cxx_tasks(evc_reactor *r, unsigned n)
{
	piece p;
	evc_status st = 0;

	for (unsigned i = 0; i < n; i++) {
		st |= p.begin(r).get();
		p.end();
	}
	return st;
}
