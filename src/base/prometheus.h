/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The text format of Prometheus.
 */
#ifndef EVC_BASE_PROMETHEUS_H
#define EVC_BASE_PROMETHEUS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

/* The HELP and TYPE lines of the metric evcoord_ROOM_NAME, or evcoord_NAME for
   a room of NULL. */
void evc__prometheus_head(struct text *t, const char *room, const char *name,
			  const char *type, const char *help);
/* Does the name end in "#" and a number, as a repeated name does?  Then the
   first of these names is numbered, too. */
bool evc__is_numbered(const char *name);
/* The value of a label, in UTF-8; different texts stay different. */
void evc__prometheus_escaped(struct text *t, const char *s);
/* A comment, without a line end in the text. */
void evc__prometheus_comment(struct text *t, const char *said);
/* A family of one sample without labels. */
void evc__prometheus_family(struct text *t, const char *room, const char *name,
			    const char *type, const char *help, uint64_t v);
/* The end of a sample with a whole number. */
void evc__prometheus_whole(struct text *t, uint64_t v);

#endif
