/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text of any length to a descriptor, in pieces, for the timeline.
 *
 * Numbers are printed as whole numbers, so no locale puts a comma in.
 */
#ifndef EVC_OBSERVE_TRACE_OUT_H
#define EVC_OBSERVE_TRACE_OUT_H

#include <evcoord.h>

struct out {
	int fd;
	evc_status st; /* the first failure; nothing is written after it */
	size_t n;
	char buf[8192];
};

void evc__out_begin(struct out *o, int fd);
void evc__out_add(struct out *o, const char *s);
/* A short text, with nothing of the user's. */
void evc__out_fmt(struct out *o, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Nanoseconds as microseconds, with all digits. */
void evc__out_us(struct out *o, uint64_t ns);
/* A string in quotes; the text may be the user's, with any bytes. */
void evc__out_json(struct out *o, const char *s);
evc_status evc__out_end(struct out *o);

#endif
