/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text built into a buffer of fixed size: bytes that do not fit are counted and
 * dropped, and a 0 byte ends the result.  Names and texts may come from
 * anywhere, so text for people is built as lines, and each machine format has a
 * writer of its own (json_write.h, prometheus.h, observe/trace_out.h,
 * observe/systemd.h).
 */
#ifndef EVC_BASE_TEXT_H
#define EVC_BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Room for a text of the program's before the text is cut to fit in a reason,
   where a mark shows that there was more. */
#define TEXT_ROOM 4096

struct text {
	char *buf;
	size_t room; /* with the 0 byte */
	size_t len;  /* of the whole text, with the dropped bytes */
	bool lines;  /* for people: see evc__lines_in */
};

struct text evc__text_in(char *buf, size_t room);
/* The same for people: controls, line ends and bytes that are no UTF-8 appear
   as \n, \x1b.  Only a \n at the end of a format ends a line. */
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
/* The same, but a text that does not fit ends with "...". */
void evc__copy_dots(char *to, size_t room, const char *s);
/* The same, but a long text keeps its end. */
void evc__copy_end(char *to, size_t room, const char *s);
/* The same, but a text that does not fit keeps its beginning and its end, with
   " ... " between. */
void evc__copy_ends(char *to, size_t room, const char *s);
/* Add s so, in the room that t, not for lines, has left. */
void evc__text_ends(struct text *t, const char *s);
/* The last bytes of s, `most` at most, without half of a character first. */
const char *evc__end_of(const char *s, size_t most);

/* The bytes of the UTF-8 character at s, which is not the final 0 byte; 0: no
   UTF-8.  *ret: its number. */
size_t evc__utf8(const char *s, uint32_t *ret);

#endif
