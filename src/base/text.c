/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/text.h"

#include <stdio.h>
#include <string.h>

struct text
evc__text_in(char *buf, size_t room)
{
	struct text t = { buf, room, 0 };

	if (room > 0)
		buf[0] = '\0';
	return t;
}

void
evc__text_add(struct text *t, const char *s)
{
	for (; *s != '\0'; s++, t->len++)
		if (t->len + 1 < t->room) {
			t->buf[t->len] = *s;
			t->buf[t->len + 1] = '\0';
		}
}

void
evc__text_int(struct text *t, int64_t v)
{
	char digits[24];
	size_t i = sizeof digits;
	uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;

	digits[--i] = '\0';
	do
		digits[--i] = (char)('0' + u % 10);
	while ((u /= 10) != 0);
	if (v < 0)
		digits[--i] = '-';
	evc__text_add(t, digits + i);
}

void
evc__text_vfmt(struct text *t, const char *fmt, va_list ap)
{
	size_t left = t->len < t->room ? t->room - t->len : 0;
	int n = vsnprintf(left > 0 ? t->buf + t->len : NULL, left, fmt, ap);

	if (n > 0)
		t->len += (size_t)n;
}

void
evc__text_fmt(struct text *t, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	evc__text_vfmt(t, fmt, ap);
	va_end(ap);
}

void
evc__copy(char *to, size_t room, const char *s)
{
	struct text t = evc__text_in(to, room);

	if (s != NULL)
		evc__text_add(&t, s);
}

const char *
evc__end_of(const char *s, size_t most)
{
	size_t n = strlen(s), at = n > most ? n - most : 0;

	while (at > 0 && at < n && ((unsigned char)s[at] & 0xc0) == 0x80)
		at++;
	return s + at;
}

void
evc__copy_end(char *to, size_t room, const char *s)
{
	size_t n = s != NULL ? strlen(s) : 0;

	evc__copy(to, room, n >= room ? s + (n - room + 1) : s);
}
