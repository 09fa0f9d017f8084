/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text of any length to a descriptor, in pieces.
 *
 * Names and texts are the user's: bytes that are no UTF-8, and characters that
 * the format cannot hold, become U+FFFD.
 */
#include "observe/trace_out.h"

#include <string.h>

#include "base/text.h"
#include "base/utf8.h"
#include "observe/write_out.h"

#define REPLACEMENT 0xfffdu

void
evc__out_begin(struct out *o, int fd)
{
	o->fd = fd;
	o->st = 0;
	o->n = 0;
}

static void
flush(struct out *o)
{
	if (o->st == 0)
		o->st = evc__write_out(o->fd, o->buf, o->n, false);
	o->n = 0;
}

static void
add(struct out *o, const char *s, size_t n)
{
	if (n > sizeof o->buf - o->n)
		flush(o);
	memcpy(o->buf + o->n, s, n);
	o->n += n;
}

void
evc__out_add(struct out *o, const char *s)
{
	size_t n = strlen(s);

	while (n > sizeof o->buf) {
		add(o, s, sizeof o->buf);
		s += sizeof o->buf;
		n -= sizeof o->buf;
	}
	add(o, s, n);
}

void
evc__out_fmt(struct out *o, const char *fmt, ...)
{
	char line[512];
	struct text t = evc__text_in(line, sizeof line);
	va_list ap;

	va_start(ap, fmt);
	evc__text_vfmt(&t, fmt, ap);
	va_end(ap);
	evc__out_add(o, line);
}

void
evc__out_us(struct out *o, uint64_t ns)
{
	evc__out_fmt(o, "%llu.%03llu", (unsigned long long)(ns / 1000),
		     (unsigned long long)(ns % 1000));
}

/* The next character of *s, which is not at its end. */
static uint32_t
next(const char **s, const char **ret_bytes, size_t *ret_n)
{
	uint32_t v = REPLACEMENT;

	*ret_bytes = *s;
	*ret_n = evc__utf8(*s, &v);
	*s += *ret_n > 0 ? *ret_n : 1;
	return v;
}

void
evc__out_json(struct out *o, const char *s)
{
	const char *bytes;
	size_t n;

	add(o, "\"", 1);
	while (*s != '\0') {
		uint32_t v = next(&s, &bytes, &n);

		if (v == '"' || v == '\\')
			add(o, "\\", 1);
		if (v < 0x20 || v == 0x7f || n == 0)
			evc__out_fmt(o, "\\u%04x", (unsigned)v);
		else
			add(o, bytes, n);
	}
	add(o, "\"", 1);
}

/* XML has no characters for most controls, escaped or not. */
static bool
in_xml(uint32_t v)
{
	return v == '\t' || v == '\n' || v == '\r' ||
	       (v >= 0x20 && (v < 0x7f || v > 0x9f) && v != 0xfffe &&
		v != 0xffff);
}

void
evc__out_xml(struct out *o, const char *s)
{
	const char *bytes;
	size_t n;

	while (*s != '\0') {
		uint32_t v = next(&s, &bytes, &n);

		if (n == 0 || !in_xml(v))
			evc__out_add(o, "\xef\xbf\xbd");
		else if (v < 0x20 || v == '&' || v == '<' || v == '>' ||
			 v == '"' || v == '\'')
			evc__out_fmt(o, "&#%u;", (unsigned)v);
		else
			add(o, bytes, n);
	}
}

evc_status
evc__out_end(struct out *o)
{
	flush(o);
	return o->st;
}
