/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The text format of Prometheus.
 */
#ifndef EVC_BASE_PROMETHEUS_H
#define EVC_BASE_PROMETHEUS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

/* What stands before the samples of one name: evcoord_ROOM_NAME, or, without a
   room, evcoord_NAME. */
void evc__prometheus_head(struct text *t, const char *room, const char *name,
			  const char *type, const char *help);
/* Does it end as if it were the second of its name?  Then also the first one is
   numbered. */
bool evc__is_numbered(const char *name);
/* The value of a label: UTF-8, and different for different s. */
void evc__prometheus_escaped(struct text *t, const char *s);
/* What readers skip and people see; it has no end of a line in it. */
void evc__prometheus_comment(struct text *t, const char *said);
/* The end of a sample with a whole number. */
void evc__prometheus_whole(struct text *t, uint64_t v);

#endif
