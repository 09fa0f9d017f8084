/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc-trace - draw the timeline that evc_trace_write has written:
 *	evc-trace [-o FILE] [TIMELINE]
 * The JSON has all facts of the picture, so the tool may draw on another
 * machine, or later.
 * Called by: the shell.
 * Locks: none; one thread.
 */
#include "trace_tool.h"

#include <errno.h>
#include <evcoord/version.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>

/* A message is one line, whatever bytes names and input have. */
void
die(const char *fmt, ...)
{
	char text[1024], *s;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	for (s = text; *s != '\0'; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			*s = '?';
	fprintf(stderr, "evc-trace: %s\n", text);
	exit(EXIT_FAILURE);
}

void *
room_for(size_t n, size_t size)
{
	void *room = calloc(n, size);

	if (room == NULL)
		die("no memory");
	return room;
}

void
append(char *buf, size_t size, const char *fmt, ...)
{
	size_t n = strlen(buf);
	va_list ap;
	int more;

	va_start(ap, fmt);
	more = vsnprintf(buf + n, size - n, fmt, ap);
	va_end(ap);
	if (more >= 0 && (size_t)more < size - n)
		return;
	/* The text was cut, perhaps within the last character. */
	n = strlen(buf);
	while (n > 0 && (buf[n - 1] & 0xc0) == 0x80)
		n--;
	if (n > 0 && (buf[n - 1] & 0x80) != 0)
		n--;
	buf[n] = '\0';
}

/* All printed bytes have to arrive. */
static _Noreturn void
exit_flushed(const char *to)
{
	if (fflush(stdout) != 0 || ferror(stdout))
		die("%s: cannot be written: %s", to, strerror(errno));
	exit(EXIT_SUCCESS);
}

static _Noreturn void
usage(FILE *f)
{
	fputs("usage: evc-trace [-o FILE] [TIMELINE]\n"
	      "TIMELINE is what evc_trace_write has written (standard input "
	      "without it);\n"
	      "the picture of it, an SVG, goes to FILE or to standard output, "
	      "see evc-trace(1)\n", f);
	if (f == stderr)
		exit(2);
	exit_flushed("standard output");
}

int
main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ 0 }
	};
	static struct timeline t;
	static struct picture p;
	const char *from = "standard input", *to = "standard output";
	bool to_file = false;
	FILE *f = stdin;
	int opt;

	while ((opt = getopt_long(argc, argv, "o:", longs, NULL)) != -1) {
		if (opt == 'h')
			usage(stdout);
		if (opt == 'V') {
			puts("evc-trace " EVC_VERSION_STRING);
			exit_flushed(to);
		}
		if (opt != 'o')
			usage(stderr);
		to = optarg;
		to_file = true;
	}
	if (argc - optind > 1)
		usage(stderr);
	if (optind < argc) {
		from = argv[optind];
		f = fopen(from, "r");
		if (f == NULL)
			die("%s: %s", from, strerror(errno));
	}
	timeline_read(&t, f, from);
	picture_plan(&p, &t);
	/* The file is made only when the picture is ready. */
	if (to_file && freopen(to, "w", stdout) == NULL)
		die("%s: %s", to, strerror(errno));
	picture_draw(&p);
	exit_flushed(to);
}
