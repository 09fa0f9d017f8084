/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The formats of evc_pack and evc_unpack.  A format is checked as a whole
 * before any argument is read, so readers find no mistake in the middle.
 */
#ifndef EVC_CLUSTER_FORMAT_H
#define EVC_CLUSTER_FORMAT_H

#include <evcoord/value.h>

/* What may stand in a format. */
enum {
	FORMAT_PACK = 1 << 0,
	FORMAT_UNPACK = 1 << 1,
	FORMAT_REFS = 1 << 2 /* "r", "R" and "w" to pack, "w" to unpack */
};

struct format_key {
	const char *word;
	size_t n;
	bool given;    /* %: the key is an argument */
	bool optional;
};

/* 0, or refused with a text.  For packing an empty format is right. */
evc_status evc__format_check(const char *format, unsigned flags);
/* Refuse the argument of the letter at `at`. */
evc_status evc__format_refuse(evc_status status, const char *format,
			      const char *at, const char *why);

/* The format is a checked one in all functions below. */

/* Step over blanks and commas. */
static inline const char *
format_next(const char *at)
{
	while (*at == ' ' || *at == ',' || (*at >= '\t' && *at <= '\r'))
		at++;
	return at;
}

/* `at` stands on a [ or {: the number of values inside, and whether "..." ends
   them. */
size_t evc__format_count(const char *at, bool *ret_more);
/* The key at `at`.  Returns the place behind its colon. */
const char *evc__format_key(const char *at, struct format_key *ret);

#endif
