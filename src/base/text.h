/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text built into a buffer of fixed size: what does not fit is counted and
 * dropped, and the result is always ended by a 0 byte.  Names and texts are the
 * program's, or come from anywhere: texts for people are built as lines, the
 * formats of machines have functions of their own (json_write.h, prometheus.h,
 * observe/trace_out.h, observe/systemd.h), and nothing else writes them.
 */
#ifndef EVC_BASE_TEXT_H
#define EVC_BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
	char *buf;
	size_t room; /* with the 0 byte */
	size_t len;  /* of the whole text, whatever fitted */
	bool lines;  /* for people: see evc__lines_in */
};

struct text evc__text_in(char *buf, size_t room);
/* The same for people: controls, ends of lines and bytes that are no UTF-8 are
   shown as \n, \x1b.  A line ends with a \n at the end of a format alone. */
struct text evc__lines_in(char *buf, size_t room);

/* These two take no lock and are safe in signal handlers. */
void evc__text_add(struct text *t, const char *s);
void evc__text_int(struct text *t, int64_t v);

void evc__text_fmt(struct text *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void evc__text_vfmt(struct text *t, const char *fmt, va_list ap)
	__attribute__((format(printf, 2, 0)));

/* Copy s, cut to fit; NULL is empty.  Safe in signal handlers. */
void evc__copy(char *to, size_t room, const char *s);
/* The same, but a long one keeps its end. */
void evc__copy_end(char *to, size_t room, const char *s);
/* The last bytes of s, `most` of them and no half of a letter before. */
const char *evc__end_of(const char *s, size_t most);

#endif
