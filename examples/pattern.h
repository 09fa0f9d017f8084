/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The known content of the files that the demo serves.  A file of N bytes is
 * named "N.bin", and N alone decides every byte of it: whoever writes the
 * files and whoever checks the answers need to agree on nothing else.
 */
#ifndef PATTERN_H
#define PATTERN_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Eight bytes of the file, well mixed: a lost, doubled or moved piece of an
   answer cannot look right. */
static inline uint64_t
pattern_word(uint64_t size, uint64_t index)
{
	uint64_t x = size * 0x9e3779b97f4a7c15u + index;

	x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
	x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
	return x ^ (x >> 32);
}

/* Bytes off .. off + n - 1 of the file of that size. */
static inline void
pattern_fill(unsigned char *buf, size_t n, uint64_t size, uint64_t off)
{
	size_t i = 0;

	while (i < n) {
		uint64_t at = off + i, word = pattern_word(size, at / 8);

		for (unsigned k = at % 8; k < 8 && i < n; k++, i++)
			buf[i] = (unsigned char)(word >> (8 * k));
	}
}

/* How many bytes from the start of buf are right: n when all are. */
static inline size_t
pattern_match(const unsigned char *buf, size_t n, uint64_t size, uint64_t off)
{
	unsigned char want[4096];
	size_t done = 0;

	while (done < n) {
		size_t part = n - done < sizeof(want) ? n - done : sizeof(want);

		pattern_fill(want, part, size, off + done);
		if (memcmp(want, buf + done, part) != 0) {
			for (size_t i = 0; i < part; i++)
				if (want[i] != buf[done + i])
					return done + i;
		}
		done += part;
	}
	return n;
}

#endif
