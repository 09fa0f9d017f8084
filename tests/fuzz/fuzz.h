/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small fuzzer: bytes made up, or made from good ones by damage, go to a
 * function that must survive them.  A program includes this once and says
 *
 *	static bool
 *	one(struct fuzz *f, const unsigned char *bytes, size_t n)
 *	{
 *		evc_value v = { bytes, n };
 *
 *		if (evc_value_check(&v) != 0)
 *			return false;
 *		FUZZ_CHECK(f, evc_value_type(&v) != 0);
 *		return true;
 *	}
 *
 *	static const struct fuzz_seed seeds[] = {
 *		FUZZ_SEED("\x93\x01\x02\x03"),
 *	};
 *
 *	FUZZ_MAIN({ .name = "values", .one = one, .seeds = seeds,
 *		    .n_seeds = sizeof(seeds) / sizeof(seeds[0]) })
 *
 * one() answers whether the bytes were accepted; those are kept for a while and
 * damaged further.  What it wants to choose, it chooses by fuzz_below(f, n) and
 * its like, which depend on the bytes alone.  The bytes end, or begin, where
 * the memory does, so that one read too far is the end.  .make (may be left
 * out) writes an input of its own into `room` bytes and returns its length.
 * FUZZ_MOST, defined before, is the length of the longest input; 4096.
 *
 *	PROGRAM [SECONDS [SEED]]
 *	PROGRAM -x HEX		one input again, as a failure printed it
 *
 * Without arguments: EVC_FUZZ_SECONDS, or 2; EVC_FUZZ_SEED, or 1.  The same
 * seed makes the same inputs.  It ends with 1 after a failed FUZZ_CHECK, and
 * when nothing, or everything, was accepted, which would show nothing.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#ifndef FUZZ_MOST
#define FUZZ_MOST 4096
#endif

#define FUZZ_UNUSED __attribute__((unused))
#define FUZZ_KEPT 64
#define FUZZ_LEAST 1000 /* inputs, however short the time */

struct fuzz_seed {
	const void *bytes;
	size_t n;
};

/* A string, without its 0 byte. */
#define FUZZ_SEED(s) { (s), sizeof(s) - 1 }

struct fuzz;

struct fuzz_target {
	const char *name;
	bool (*one)(struct fuzz *f, const unsigned char *bytes, size_t n);
	size_t (*make)(struct fuzz *f, unsigned char *to, size_t room);
	const struct fuzz_seed *seeds;
	size_t n_seeds;
};

struct fuzz {
	const struct fuzz_target *target;
	uint64_t random;
	unsigned char *first, *end; /* of the memory for inputs */
	unsigned char bytes[FUZZ_MOST], spare[FUZZ_MOST];
	size_t n;
	uint64_t n_inputs, n_accepted;
	struct {
		unsigned char bytes[FUZZ_MOST];
		size_t n;
	} kept[FUZZ_KEPT];
	size_t n_kept;
};

/* For what is printed when the program dies. */
static struct fuzz fuzz_now_;

/* ---- chance ---- */

static inline uint64_t
fuzz_random(struct fuzz *f)
{
	f->random ^= f->random << 13;
	f->random ^= f->random >> 7;
	f->random ^= f->random << 17;
	return f->random;
}

/* 0 ... n - 1; 0 of none. */
static inline size_t
fuzz_below(struct fuzz *f, size_t n)
{
	return n > 0 ? (size_t)((fuzz_random(f) >> 16) % n) : 0;
}

/* Once in n times. */
static inline bool
fuzz_once_in(struct fuzz *f, size_t n)
{
	return fuzz_below(f, n) == 0;
}

static inline uint64_t
fuzz_begin_random_(uint64_t from)
{
	from = (from + 0x9e3779b97f4a7c15u) * 0xd1342543de82ef95u;
	return from != 0 ? from : 1;
}

/* ---- an end that says why ---- */

static inline void
fuzz_say_input_(void)
{
	static const char digits[] = "0123456789abcdef";
	static const char begin[] = "\nthe input, for -x: ";
	static char text[2 * FUZZ_MOST + 1];
	size_t i;

	for (i = 0; i < fuzz_now_.n; i++) {
		text[2 * i] = digits[fuzz_now_.bytes[i] >> 4];
		text[2 * i + 1] = digits[fuzz_now_.bytes[i] & 15];
	}
	text[2 * i] = '\n';
	if (write(STDERR_FILENO, begin, sizeof(begin) - 1) < 0 ||
	    write(STDERR_FILENO, text, 2 * i + 1) < 0)
		return;
}

static inline void
fuzz_died_(int sig)
{
	fuzz_say_input_();
	signal(sig, SIG_DFL);
	raise(sig);
}

/* The sanitizers end the process in their own way. */
void __sanitizer_set_death_callback(void (*)(void)) __attribute__((weak));

static inline void
fuzz_watch_(void)
{
	if (__sanitizer_set_death_callback != NULL) {
		__sanitizer_set_death_callback(fuzz_say_input_);
		return;
	}
	signal(SIGSEGV, fuzz_died_);
	signal(SIGBUS, fuzz_died_);
	signal(SIGABRT, fuzz_died_);
	signal(SIGFPE, fuzz_died_);
}

#define FUZZ_CHECK(f, cond) \
	do { \
		(void)(f); \
		if (!(cond)) { \
			fprintf(stderr, "%s:%d: not so: %s", __FILE__, \
				__LINE__, #cond); \
			fflush(stderr); \
			fuzz_say_input_(); \
			_exit(1); \
		} \
	} while (0)

/* ---- one input ---- */

/* Memory with none before and none behind. */
static inline bool
fuzz_map_(struct fuzz *f)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t room = (FUZZ_MOST + page - 1) / page * page;
	unsigned char *all = mmap(NULL, room + 2 * page, PROT_NONE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (all == MAP_FAILED)
		return false;
	f->first = all + page;
	f->end = f->first + room;
	return mprotect(f->first, room, PROT_READ | PROT_WRITE) == 0;
}

static inline void
fuzz_keep_(struct fuzz *f)
{
	size_t at = f->n_kept < FUZZ_KEPT ? f->n_kept++ :
					    fuzz_below(f, FUZZ_KEPT);

	memcpy(f->kept[at].bytes, f->bytes, f->n);
	f->kept[at].n = f->n;
}

/* What stands in f->bytes. */
static inline bool
fuzz_try_(struct fuzz *f)
{
	unsigned char *to = f->n_inputs % 2 != 0 ? f->first : f->end - f->n;
	uint64_t before = f->random, sum = f->n;
	bool accepted;
	size_t i;

	for (i = 0; i < f->n; i++)
		sum = (sum ^ f->bytes[i]) * 0x100000001b3u;
	memcpy(to, f->bytes, f->n);
	f->random = fuzz_begin_random_(sum);
	f->n_inputs++;
	accepted = f->target->one(f, to, f->n);
	f->random = before;
	FUZZ_CHECK(f, memcmp(to, f->bytes, f->n) == 0);
	if (accepted)
		f->n_accepted++;
	return accepted;
}

/* ---- where inputs come from ---- */

static inline void
fuzz_take_(struct fuzz *f, const void *bytes, size_t n)
{
	f->n = n < FUZZ_MOST ? n : FUZZ_MOST;
	if (f->n > 0)
		memcpy(f->bytes, bytes, f->n);
}

/* Good bytes, one way or another. */
static inline void
fuzz_begin_input_(struct fuzz *f)
{
	const struct fuzz_target *t = f->target;
	size_t at;

	if (t->make != NULL && fuzz_once_in(f, 3)) {
		f->n = t->make(f, f->bytes, FUZZ_MOST);
	} else if (f->n_kept > 0 && fuzz_once_in(f, 2)) {
		at = fuzz_below(f, f->n_kept);
		fuzz_take_(f, f->kept[at].bytes, f->kept[at].n);
	} else if (t->n_seeds > 0 && !fuzz_once_in(f, 10)) {
		at = fuzz_below(f, t->n_seeds);
		fuzz_take_(f, t->seeds[at].bytes, t->seeds[at].n);
	} else {
		f->n = fuzz_below(f, fuzz_once_in(f, 20) ? FUZZ_MOST : 24);
		for (at = 0; at < f->n; at++)
			f->bytes[at] = (unsigned char)fuzz_below(f, 256);
	}
}

static inline unsigned char
fuzz_byte_(struct fuzz *f)
{
	static const unsigned char edges[] = { 0,    1,    2,    0x1f, 0x20,
					       0x7f, 0x80, 0x81, 0xc0, 0xfe,
					       0xff };

	return fuzz_once_in(f, 2) ? edges[fuzz_below(f, sizeof(edges))] :
				    (unsigned char)fuzz_below(f, 256);
}

/* Make room for n bytes at `at`, as far as there is any: how many. */
static inline size_t
fuzz_open_(struct fuzz *f, size_t at, size_t n)
{
	if (n > FUZZ_MOST - f->n)
		n = FUZZ_MOST - f->n;
	memmove(f->bytes + at + n, f->bytes + at, f->n - at);
	f->n += n;
	return n;
}

/* A number of 1, 2, 4 or 8 bytes in either order, near an edge. */
static inline void
fuzz_damage_number_(struct fuzz *f, size_t at)
{
	size_t n = (size_t)1 << fuzz_below(f, 4), i;
	bool little = fuzz_once_in(f, 2);
	uint64_t v = fuzz_once_in(f, 2) ?
			     UINT64_C(1) << fuzz_below(f, 64) :
			     fuzz_below(f, 2) * (uint64_t)f->n;

	v += fuzz_below(f, 5);
	v -= 2;
	for (i = 0; i < n && at + i < f->n; i++)
		f->bytes[at + i] = (unsigned char)(v >>
				(8 * (little ? i : n - 1 - i)));
}

static inline void
fuzz_damage_(struct fuzz *f)
{
	size_t at = fuzz_below(f, f->n), from = fuzz_below(f, f->n), n, i;

	switch (fuzz_below(f, 8)) {
	case 0: /* one bit */
		if (f->n > 0)
			f->bytes[at] ^= (unsigned char)(1u << fuzz_below(f, 8));
		break;
	case 1: /* one byte */
		if (f->n > 0)
			f->bytes[at] = fuzz_byte_(f);
		break;
	case 2:
		fuzz_damage_number_(f, at);
		break;
	case 3: /* some more */
		n = fuzz_open_(f, at, 1 + fuzz_below(f, 8));
		for (i = 0; i < n; i++)
			f->bytes[at + i] = fuzz_byte_(f);
		break;
	case 4: /* some less */
		n = fuzz_below(f, f->n - at < 16 ? f->n - at + 1 : 16);
		memmove(f->bytes + at, f->bytes + at + n, f->n - at - n);
		f->n -= n;
		break;
	case 5: /* something twice */
		n = fuzz_below(f, f->n - from + 1);
		if (f->n > 0 && n <= FUZZ_MOST - f->n) {
			memcpy(f->spare, f->bytes + from, n);
			fuzz_open_(f, at, n);
			memcpy(f->bytes + at, f->spare, n);
		}
		break;
	case 6: /* cut off */
		f->n = at;
		break;
	default: /* the end of another one */
		if (f->n_kept > 0) {
			i = fuzz_below(f, f->n_kept);
			from = fuzz_below(f, f->kept[i].n);
			n = f->kept[i].n - from;
			if (n > FUZZ_MOST - at)
				n = FUZZ_MOST - at;
			memcpy(f->bytes + at, f->kept[i].bytes + from, n);
			f->n = at + n;
		}
		break;
	}
}

/* ---- the program ---- */

static inline double
fuzz_clock_(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static inline int
fuzz_again_(struct fuzz *f, const char *hex)
{
	unsigned byte;

	for (f->n = 0; f->n < FUZZ_MOST && sscanf(hex, "%2x", &byte) == 1;
	     f->n++, hex += hex[1] != '\0' ? 2 : 1)
		f->bytes[f->n] = (unsigned char)byte;
	printf("%s: %zu bytes, %s\n", f->target->name, f->n,
	       fuzz_try_(f) ? "accepted" : "refused");
	return 0;
}

static inline const char *
fuzz_setting_(const char *arg, const char *variable, const char *otherwise)
{
	const char *s = arg != NULL ? arg : getenv(variable);

	return s != NULL && s[0] != '\0' ? s : otherwise;
}

static FUZZ_UNUSED int
fuzz_main(const struct fuzz_target *t, int argc, char **argv)
{
	struct fuzz *f = &fuzz_now_;
	double seconds = atof(fuzz_setting_(argc > 1 ? argv[1] : NULL,
					    "EVC_FUZZ_SECONDS", "2"));
	uint64_t seed = strtoull(fuzz_setting_(argc > 2 ? argv[2] : NULL,
					       "EVC_FUZZ_SEED", "1"), NULL, 0);
	double start = fuzz_clock_();
	size_t i;

	f->target = t;
	if (!fuzz_map_(f)) {
		perror("fuzz");
		return 99;
	}
	fuzz_watch_();
	if (argc > 2 && strcmp(argv[1], "-x") == 0)
		return fuzz_again_(f, argv[2]);
	printf("%s: seed %llu, %g s\n", t->name, (unsigned long long)seed,
	       seconds);
	fflush(stdout);
	f->random = fuzz_begin_random_(seed);
	for (i = 0; i < t->n_seeds; i++) {
		fuzz_take_(f, t->seeds[i].bytes, t->seeds[i].n);
		if (fuzz_try_(f))
			fuzz_keep_(f);
	}
	while (f->n_inputs < FUZZ_LEAST || fuzz_clock_() < start + seconds) {
		fuzz_begin_input_(f);
		for (i = fuzz_below(f, 6); i > 0; i--)
			fuzz_damage_(f);
		if (fuzz_try_(f) && fuzz_once_in(f, 4))
			fuzz_keep_(f);
	}
	printf("%s: %llu inputs, %llu accepted\n", t->name,
	       (unsigned long long)f->n_inputs,
	       (unsigned long long)f->n_accepted);
	if (f->n_accepted == 0 || f->n_accepted == f->n_inputs) {
		fprintf(stderr, "that shows nothing\n");
		return 1;
	}
	return 0;
}

#define FUZZ_MAIN(...) \
	int main(int argc, char **argv) \
	{ \
		static const struct fuzz_target target_ = __VA_ARGS__; \
		return fuzz_main(&target_, argc, argv); \
	}

#endif
