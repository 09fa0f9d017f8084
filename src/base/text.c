/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text in a buffer of fixed size; see text.h.
 * Called by: all rooms, for messages, reports and formats.
 * Locks: none; the buffer is the caller's.
 */
#include "base/text.h"

#include <stdio.h>
#include <string.h>

/* Bytes of a line formatted at once, at most. */
#define PART_MOST 1024

/* ---- UTF-8 ---- */

size_t
evc__utf8(const char *s, uint32_t *ret)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *u = (const unsigned char *)s;
	size_t n = u[0] < 0x80		    ? 1 :
		   (u[0] & 0xe0) == 0xc0    ? 2 :
		   (u[0] & 0xf0) == 0xe0    ? 3 :
		   (u[0] & 0xf8) == 0xf0    ? 4 :
					      0;
	uint32_t v = n == 1 ? u[0] : u[0] & (0x7fu >> n);
	size_t i;

	if (n == 0)
		return 0;
	/* The 0 byte at the end continues no character. */
	for (i = 1; i < n; i++) {
		if ((u[i] & 0xc0) != 0x80)
			return 0;
		v = v << 6 | (u[i] & 0x3f);
	}
	/* Too long an encoding, no character, or half of a UTF-16 pair. */
	if (v < least[n] || v > 0x10ffff || (v >= 0xd800 && v <= 0xdfff))
		return 0;
	*ret = v;
	return n;
}

/* The length of a text that was cut after n bytes, without half of a character
   at its end. */
static size_t
whole_characters(const char *s, size_t n)
{
	size_t i = n, have;
	unsigned char first;

	while (i > 0 && n - i < 3 && ((unsigned char)s[i - 1] & 0xc0) == 0x80)
		i--;
	if (i == 0)
		return n;
	first = (unsigned char)s[i - 1];
	have = n - i + 1;
	return (first >= 0xc0 && have < 2) || (first >= 0xe0 && have < 3) ||
			       (first >= 0xf0 && have < 4) ?
		       i - 1 :
		       n;
}

/* Is the character visible?  Not controls, line separators, or marks that change
   the direction of text. */
static bool
is_visible(uint32_t v)
{
	if (v < 0x20 || (v >= 0x7f && v < 0xa0))
		return false;
	return v != 0x61c && v != 0x200e && v != 0x200f &&
	       !(v >= 0x2028 && v <= 0x202e) && !(v >= 0x2066 && v <= 0x2069);
}

/* ---- the buffer ---- */

struct text
evc__text_in(char *buf, size_t room)
{
	struct text t = { buf, room, 0, false };

	if (room > 0)
		buf[0] = '\0';
	return t;
}

struct text
evc__lines_in(char *buf, size_t room)
{
	struct text t = evc__text_in(buf, room);

	t.lines = true;
	return t;
}

/* Remove half of a character at the end of a cut text. */
static void
cut_character(struct text *t)
{
	if (t->room > 0)
		t->buf[whole_characters(t->buf, t->room - 1)] = '\0';
}

/* Add all n bytes, or none of them and nothing afterwards. */
static void
put_bytes(struct text *t, const char *s, size_t n)
{
	if (t->len + n < t->room) {
		memcpy(t->buf + t->len, s, n);
		t->buf[t->len + n] = '\0';
	}
	t->len += n;
}

static void
put_code(struct text *t, unsigned char b)
{
	static const char hex[] = "0123456789abcdef";
	char code[4] = { '\\', 'x', hex[b >> 4], hex[b & 15] };

	if (b == '\n' || b == '\t' || b == '\r')
		code[1] = b == '\n' ? 'n' : b == '\t' ? 't' : 'r';
	put_bytes(t, code, code[1] == 'x' ? 4 : 2);
}

/* For people: s stays within its line, whatever its bytes. */
static void
put_clean(struct text *t, const char *s)
{
	size_t n, i;
	uint32_t v;

	for (; *s != '\0'; s += n) {
		n = evc__utf8(s, &v);
		if (n > 0 && is_visible(v)) {
			put_bytes(t, s, n);
			continue;
		}
		n = n > 0 ? n : 1;
		for (i = 0; i < n; i++)
			put_code(t, (unsigned char)s[i]);
	}
}

void
evc__text_add(struct text *t, const char *s)
{
	size_t before = t->len;

	if (t->lines) {
		put_clean(t, s);
		return;
	}
	for (; *s != '\0'; s++, t->len++)
		if (t->len + 1 < t->room) {
			t->buf[t->len] = *s;
			t->buf[t->len + 1] = '\0';
		}
	if (before < t->room && t->len >= t->room)
		cut_character(t);
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

/* A line ends at the end of fmt only. */
static void __attribute__((format(printf, 2, 0)))
lines_vfmt(struct text *t, const char *fmt, va_list ap)
{
	size_t n = strlen(fmt);
	bool ends = n > 0 && fmt[n - 1] == '\n';
	char part[PART_MOST];
	int k = vsnprintf(part, sizeof part, fmt, ap);

	if (k < 0)
		return;
	if ((size_t)k >= sizeof part)
		part[whole_characters(part, sizeof part - 1)] = '\0';
	else if (ends)
		part[k - 1] = '\0';
	put_clean(t, part);
	if (ends)
		put_bytes(t, "\n", 1);
}

void
evc__text_vfmt(struct text *t, const char *fmt, va_list ap)
{
	size_t left = t->len < t->room ? t->room - t->len : 0;
	int n;

	if (fmt == NULL)
		return;
	if (t->lines) {
		lines_vfmt(t, fmt, ap);
		return;
	}
	n = vsnprintf(left > 0 ? t->buf + t->len : NULL, left, fmt, ap);
	if (n > 0)
		t->len += (size_t)n;
	if (left > 0 && t->len >= t->room)
		cut_character(t);
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

void
evc__copy_dots(char *to, size_t room, const char *s)
{
	struct text t;
	size_t n;

	if (s == NULL || room < 4 || strlen(s) < room) {
		evc__copy(to, room, s);
		return;
	}
	t = evc__text_in(to, room - 3);
	evc__text_add(&t, s);
	n = strlen(to);
	t = evc__text_in(to + n, room - n);
	evc__text_add(&t, "...");
}

void
evc__text_ends(struct text *t, const char *s)
{
	static const char gap[] = " ... ";
	size_t room = t->len < t->room ? t->room - t->len - 1 : 0, head;
	const char *tail;

	if (strlen(s) <= room || room < 3 * sizeof gap) {
		evc__text_add(t, s);
		return;
	}
	head = whole_characters(s, (room - strlen(gap)) / 2);
	tail = evc__end_of(s, room - strlen(gap) - head);
	memcpy(t->buf + t->len, s, head);
	t->len += head;
	t->buf[t->len] = '\0';
	evc__text_add(t, gap);
	evc__text_add(t, tail);
}

void
evc__copy_ends(char *to, size_t room, const char *s)
{
	struct text t = evc__text_in(to, room);

	if (s != NULL)
		evc__text_ends(&t, s);
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

	evc__copy(to, room, n >= room ? evc__end_of(s, room - 1) : s);
}
