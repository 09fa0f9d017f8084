/* SPDX-License-Identifier: BSD-2-Clause */
//
// pipeline - count the lines of files on several threads.
//
//	pipeline [FILE...]
//
//   feeder -> names -> 4 threads count -> counts -> printer adds up
//
// Each arrow is a queue.  The end of input goes down the line by itself: the
// feeder ends, which closes the first queue; the last counter closes the second.
// A SIGINT or SIGTERM ends it half way, and loses nothing: each name that is in
// the first queue is counted and printed, because that queue is drained, and the
// printer with its queue is a later phase, which the stop reaches when the
// counters have ended.  A file that cannot be read is an exception in a thread:
// an error, which stops the line in the same way.
//
// The exit status is 0, or 1 after an error.
#include <evcoord.hpp>

#include <cerrno>
#include <cstdio>
#include <fstream>

namespace {

constexpr unsigned n_threads = 4;

struct count {
	std::string name;
	unsigned long lines;
};

count
count_lines(const std::string &name)
{
	std::ifstream in(name);
	std::string line;
	unsigned long n = 0;

	if (!in)
		throw std::system_error(errno, std::generic_category(), name);
	while (std::getline(in, line))
		n++;
	return { name, n };
}

int
run(int argc, char **argv)
{
	using namespace evcoord;
	unsigned long total = 0, n = 0;
	std::atomic<unsigned> left{ n_threads };
	coordinator c;
	scope_options later;

	later.phase = 1;
	scope printing(c, "printing", later);
	queue<std::string> names(c, "names", { 16, queue_flag::drain });
	queue<count> counts(printing, "counts", { 16, queue_flag::drain });
	stop_and_join end(c);

	// A signal before the join waits for it: a join drives the phases.
	c.signals({ {}, 0, signals_flag::at_join }).value();
	printing.thread("print", [&] {
		while (auto got = counts.pop()) {
			std::printf("%8lu %s\n", got->lines, got->name.c_str());
			total += got->lines;
			n++;
		}
	});
	printing.ready().value();
	for (unsigned i = 0; i < n_threads; i++)
		c.thread("count", [&] {
			while (auto name = names.pop())
				counts.push(count_lines(*name)).value();
			if (--left == 0)
				counts.close().value();
		});
	names.feed("names", 1, [&, i = 1]() mutable {
		std::optional<std::string> name;

		if (i < argc)
			name = argv[i++];
		return name;
	}).value();
	status st = c.join();
	std::printf("%8lu total of %lu files\n", total, n);
	if (auto error = c.first_error())
		std::fprintf(stderr, "%s\n", error->text);
	else if (c.should_stop())
		std::fprintf(stderr, "stopped\n");
	return st.exit_code();
}

} // namespace

int
main(int argc, char **argv)
{
	if (argc == 2 && std::string(argv[1]) == "--help")
		return std::puts("usage: pipeline_cc [FILE...]") < 0;
	try {
		return run(argc, argv);
	} catch (const std::exception &e) {
		std::fprintf(stderr, "%s\n", e.what());
		return 1;
	}
}
