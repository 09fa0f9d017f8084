/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The few frames that simulated nodes write, without the library's own code for
 * frames: a benchmark is linked with the shared libraries.
 */
#ifndef TESTS_SUPPORT_REDIS_SIM_FRAMES_H
#define TESTS_SUPPORT_REDIS_SIM_FRAMES_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/frames.h"

/* Frames to be sent. */
static struct {
	unsigned char bytes[1 << 20];
	size_t n;
} sim_out;

static void
fail(const char *what, const char *why)
{
	fprintf(stderr, "simulated nodes: %s: %s\n", what, why);
	exit(1);
}

static void
put_number(unsigned width, uint64_t n)
{
	if (sim_out.n + width > sizeof(sim_out.bytes))
		fail("frames", "too many");
	while (width-- > 0)
		sim_out.bytes[sim_out.n++] = (unsigned char)(n >> 8 * width);
}

static void
put_text(const char *s)
{
	size_t n = strlen(s);

	put_number(2, n);
	while (*s)
		put_number(1, (unsigned char)*s++);
	put_number(1, 0);
}

static void
put_head(unsigned type, size_t size)
{
	put_number(4, 0xe5c10000u | FRAME_VERSION << 8 | type);
	put_number(4, size);
}

static void
put_note(unsigned type, uint64_t number, const char *text)
{
	put_head(type, 8 + 3 + strlen(text));
	put_number(8, number);
	put_text(text);
}

static void
put_slot(uint64_t slot)
{
	put_head(FRAME_SLOT, 8);
	put_number(8, slot);
}

/* nil, after 10 us. */
static void
put_result(uint64_t n)
{
	const double took = 1e-5;
	uint64_t bits;

	memcpy(&bits, &took, 8);
	put_head(FRAME_RESULT, 8 + 8 + 4 + 1 + 1 + 4 + 3 + 4 + 1);
	put_number(8, n);
	put_number(8, bits);
	put_number(4, 0);
	put_number(1, 0);
	put_number(1, 0);
	put_number(4, 0);
	put_text("");
	put_number(4, 1);
	put_number(1, 0xc0);
}

static uint64_t
number_at(const unsigned char *p, unsigned width)
{
	uint64_t n = 0;

	while (width-- > 0)
		n = n << 8 | *p++;
	return n;
}

#endif
