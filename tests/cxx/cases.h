/* SPDX-License-Identifier: BSD-2-Clause */
//
// What the programs of this folder share: a check that ends the process, an
// exception of their own, and a main whose argument is the name of a case.
#ifndef TESTS_CXX_CASES_H
#define TESTS_CXX_CASES_H

#include <ev.h>
#include <evcoord.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>

#define CHECK(x) \
	do { \
		if (!(x)) { \
			std::printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #x, \
				    evc_last_error()); \
			std::fflush(stdout); \
			std::_Exit(1); \
		} \
	} while (0)

struct thrown : std::runtime_error {
	thrown() : std::runtime_error("thrown") {}
};

inline struct ev_loop *
new_loop()
{
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);

	CHECK(loop != nullptr);
	return loop;
}

inline evc_coord *
new_coord(struct ev_loop *loop)
{
	evc_coord *c;

	CHECK(evc_new(loop, nullptr, &c) == 0);
	return c;
}

struct named_case {
	const char *name;
	void (*fn)();
};

// The case that argv[1] names; without a name all names are printed.
template <std::size_t N>
int
run_case(const named_case (&cases)[N], int argc, char **argv)
{
	for (auto &k : cases)
		if (argc < 2)
			std::puts(k.name);
		else if (std::strcmp(argv[1], k.name) == 0)
			return k.fn(), 0;
	return argc >= 2;
}

#endif
