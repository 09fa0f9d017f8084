/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text built into a buffer of fixed size: what does not fit is counted and
 * dropped, and the result is always ended by a 0 byte.
 */
#ifndef EVC_BASE_TEXT_H
#define EVC_BASE_TEXT_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

struct text {
	char *buf;
	size_t room; /* with the 0 byte */
	size_t len;  /* of the whole text, whatever fitted */
};

struct text evc__text_in(char *buf, size_t room);

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
