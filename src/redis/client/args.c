/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The words of a command.  Some words point into bytes of the caller; all
 * others are written into one buffer here.  That buffer may move until the
 * command is whole, so evc__args_seal sets the addresses of its words at the
 * end.
 * Called by: all files that send a command or a script.
 * Locks: none; the caller owns the words.
 */
#include <stdio.h>

#include "base/array.h"
#include "redis/client/redis.h"

/* Append a word. at NULL: the word stands in the buffer, behind the words
   before. */
static void
add_word(struct redis_args *a, const char *at, size_t n)
{
	size_t used = (size_t)a->n;

	if (a->failed || !ARRAY_RESERVE(a->argv, used, a->room, 1) ||
	    !ARRAY_RESERVE(a->len, used, a->len_room, 1)) {
		a->failed = true;
		return;
	}
	a->argv[a->n] = at;
	a->len[a->n++] = n;
}

void
evc__args_add(struct redis_args *a, const void *bytes, size_t n)
{
	add_word(a, n > 0 ? bytes : "", n);
}

void
evc__args_text(struct redis_args *a, const char *text)
{
	evc__args_add(a, text, strlen(text));
}

/* Append formatted bytes to the buffer, without a word of their own.  Returns
   how many. */
static size_t __attribute__((format(printf, 2, 0)))
append_vfmt(struct redis_args *a, const char *fmt, va_list ap)
{
	char none[1];
	va_list again;
	int n;

	va_copy(again, ap);
	n = vsnprintf(none, sizeof none, fmt, again);
	va_end(again);
	if (n < 0 || !ARRAY_RESERVE(a->numbers, a->n_numbers, a->numbers_room,
				 (size_t)n + 1)) {
		a->failed = true;
		return 0;
	}
	(void)vsnprintf(a->numbers + a->n_numbers, (size_t)n + 1, fmt, ap);
	a->n_numbers += (size_t)n;
	return (size_t)n;
}

static size_t __attribute__((format(printf, 2, 3)))
append_fmt(struct redis_args *a, const char *fmt, ...)
{
	va_list ap;
	size_t n;

	va_start(ap, fmt);
	n = append_vfmt(a, fmt, ap);
	va_end(ap);
	return n;
}

void
evc__args_fmt(struct redis_args *a, const char *fmt, ...)
{
	va_list ap;
	size_t n;

	va_start(ap, fmt);
	n = append_vfmt(a, fmt, ap);
	va_end(ap);
	add_word(a, NULL, n);
}

void
evc__args_key(struct redis_args *a, const struct redis_address *at,
	      const char *fmt, ...)
{
	size_t n = append_fmt(a, "{%s}:", at->ns);
	va_list ap;

	va_start(ap, fmt);
	n += append_vfmt(a, fmt, ap);
	va_end(ap);
	add_word(a, NULL, n);
}

void
evc__args_seal(struct redis_args *a)
{
	const char *next = a->numbers;
	int i;

	for (i = 0; i < a->n && !a->failed; i++)
		if (a->argv[i] == NULL) {
			a->argv[i] = next;
			next += a->len[i];
		}
}

void
evc__args_free(struct redis_args *a)
{
	sync_free(a->argv);
	sync_free(a->len);
	sync_free(a->numbers);
	*a = (struct redis_args){ .n = 0 };
}
