/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bar.c - a progress bar on standard error; see bar.h.
 */
#include "bar.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define LINE_MAX_WIDTH 200
#define BAR_MOST       20

void
bar_init(struct bar *b)
{
	b->on = isatty(STDERR_FILENO);
	b->length = 0;
}

/* Asked each time: windows change their size. */
static int
columns(void)
{
	struct winsize w;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &w) < 0 || w.ws_col < 2)
		return 80;
	return w.ws_col < LINE_MAX_WIDTH ? w.ws_col : LINE_MAX_WIDTH;
}

/* One write(2) for each line, so that it does not flicker. */
static void
put(struct bar *b, const char *line, int length)
{
	char out[2 * LINE_MAX_WIDTH + 2];
	int n = 0;

	out[n++] = '\r';
	memcpy(out + n, line, (size_t)length);
	n += length;
	/* What was longer before is overwritten with blanks. */
	while (n - 1 < b->length)
		out[n++] = ' ';
	b->length = length;
	if (length == 0)
		out[n++] = '\r';
	(void)!write(STDERR_FILENO, out, (size_t)n);
}

void
bar_draw(struct bar *b, double part, const char *fmt, ...)
{
	char text[LINE_MAX_WIDTH], line[2 * LINE_MAX_WIDTH];
	int n, room, width = columns() - 1; /* the last column would wrap */
	va_list ap;

	if (!b->on)
		return;
	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* "[##  ]  50%  " gets what the text leaves. */
	room = width - n - (int)sizeof("[] 100%  ") + 1;
	if (room > BAR_MOST)
		room = BAR_MOST;
	if (isnan(part) || room < 1) {
		n = snprintf(line, sizeof(line), "%s", text);
	} else {
		part = fmin(fmax(part, 0), 1);
		n = snprintf(line, sizeof(line), "[%-*.*s] %3d%%  %s", room,
			     (int)(part * room), "####################",
			     (int)(part * 100), text);
	}
	put(b, line, n < width ? n : width);
}

void
bar_clear(struct bar *b)
{
	if (b->length > 0)
		put(b, "", 0);
}

const char *
bar_bytes(char *buf, unsigned size, double n)
{
	static const char *const units[] = { "B", "kB", "MB", "GB", "TB" };
	unsigned i = 0;

	while (n >= 1000 && i < sizeof(units) / sizeof(units[0]) - 1) {
		n /= 1000;
		i++;
	}
	snprintf(buf, size, i ? "%.1f %s" : "%.0f %s", n, units[i]);
	return buf;
}
