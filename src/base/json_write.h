/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A writer of JSON into text.
 *
 * The output is valid JSON in UTF-8 for any bytes of a string: a byte that is
 * no UTF-8 becomes U+FFFD.  Numbers have a point in every locale.
 */
#ifndef EVC_BASE_JSON_WRITE_H
#define EVC_BASE_JSON_WRITE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

struct evc__json {
	struct text *t;
	bool more; /* the current level has a value already */
};

/* key is NULL in arrays, and for the outermost value. */
void evc__json_begin(struct evc__json *j, const char *key, const char *bracket);
void evc__json_end(struct evc__json *j, const char *bracket);
/* The key and comma before a value that the caller writes. */
void evc__json_key(struct evc__json *j, const char *key);
void evc__json_null(struct evc__json *j, const char *key);
/* s NULL: writes null. */
void evc__json_string(struct evc__json *j, const char *key, const char *s);
/* s NULL or "": writes null. */
void evc__json_string_if(struct evc__json *j, const char *key, const char *s);
void evc__json_number(struct evc__json *j, const char *key, uint64_t v);
/* applies false: writes null. */
void evc__json_number_if(struct evc__json *j, const char *key, bool applies,
			 uint64_t v);
void evc__json_integer(struct evc__json *j, const char *key, int v);
void evc__json_boolean(struct evc__json *j, const char *key, bool v);
void evc__json_seconds(struct evc__json *j, const char *key, double s);
/* s negative: writes null. */
void evc__json_seconds_if(struct evc__json *j, const char *key, double s);

/* Seconds with nine decimals and a point. */
void evc__text_seconds(struct text *t, double s);
void evc__text_ns(struct text *t, uint64_t ns);
/* The fewest digits that read back as v, with a point in every locale.  v is a
   finite number. */
void evc__text_double(struct text *t, double v);

#endif
