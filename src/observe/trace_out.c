/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text of any length to a descriptor, in pieces.  Names and texts are the
 * user's: bytes that are not UTF-8 become U+FFFD.
 * Called by: trace_json.c and trace_write.c.
 * Locks: none; the struct is the caller's.
 */
#include "observe/trace_out.h"

#include <string.h>

#include "base/text.h"
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
flush_out(struct out *o)
{
	if (o->st == 0)
		o->st = evc__write_out(o->fd, o->buf, o->n, false);
	o->n = 0;
}

static void
add_bytes(struct out *o, const char *s, size_t n)
{
	if (n > sizeof o->buf - o->n)
		flush_out(o);
	memcpy(o->buf + o->n, s, n);
	o->n += n;
}

void
evc__out_add(struct out *o, const char *s)
{
	size_t n = strlen(s);

	while (n > sizeof o->buf) {
		add_bytes(o, s, sizeof o->buf);
		s += sizeof o->buf;
		n -= sizeof o->buf;
	}
	add_bytes(o, s, n);
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

void
evc__out_json(struct out *o, const char *s)
{
	add_bytes(o, "\"", 1);
	while (*s != '\0') {
		uint32_t v = REPLACEMENT;
		size_t n = evc__utf8(s, &v);

		if (v == '"' || v == '\\')
			add_bytes(o, "\\", 1);
		if (v < 0x20 || v == 0x7f || n == 0)
			evc__out_fmt(o, "\\u%04x", (unsigned)v);
		else
			add_bytes(o, s, n);
		s += n > 0 ? n : 1;
	}
	add_bytes(o, "\"", 1);
}

evc_status
evc__out_end(struct out *o)
{
	flush_out(o);
	return o->st;
}
