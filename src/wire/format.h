/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The formats of evc_pack and evc_unpack: checked as a whole before anything is
 * read by them, so that reading may take it that they are right.
 */
#ifndef EVC_CLUSTER_FORMAT_H
#define EVC_CLUSTER_FORMAT_H

#include <evcoord/value.h>

/* What may stand in one. */
enum {
	FORMAT_PACK = 1 << 0,
	FORMAT_UNPACK = 1 << 1,
	FORMAT_REFS = 1 << 2 /* "r" and "w", "w" */
};

struct format_key {
	const char *word;
	size_t n;
	bool given;    /* %: it comes as an argument */
	bool optional;
};

/* 0, or refused with a text.  One without a value is right for packing. */
evc_status evc__format_check(const char *format, unsigned flags);
/* Refuse what was given for the letter at `at`. */
evc_status evc__format_refuse(evc_status status, const char *format,
			      const char *at, const char *why);

/* All of these: of a format that was checked. */

/* What is not for the eye alone. */
static inline const char *
format_next(const char *at)
{
	while (*at == ' ' || *at == ',' || (*at >= '\t' && *at <= '\r'))
		at++;
	return at;
}

/* at stands on a [ or {: how many there are inside, and is there a "..."? */
size_t evc__format_count(const char *at, bool *ret_more);
/* The key at `at`; what stands behind its colon is returned. */
const char *evc__format_key(const char *at, struct format_key *ret);

#endif
