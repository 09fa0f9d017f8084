/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bar.h - a progress bar on standard error, for pipeline, checksum and
 * wordcount: one line that is drawn again and again, on a terminal; on anything
 * else nothing.
 *
 * One thread at a time.
 */
#ifndef EXAMPLES_BAR_H
#define EXAMPLES_BAR_H

#include <stdbool.h>

struct bar {
	bool on;    /* standard error is a terminal */
	int length; /* of the line that stands there, 0 for none */
};

void bar_init(struct bar *b);

/* Draw it: what part of the whole is done, 0..1 (NAN: nobody knows yet), and a
   text beside it, as printf(3) takes it. */
void bar_draw(struct bar *b, double part, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Take it away: before another line is written, and at the end. */
void bar_clear(struct bar *b);

/* "123.4 kB" into buf. */
const char *bar_bytes(char *buf, unsigned size, double n);

#endif
