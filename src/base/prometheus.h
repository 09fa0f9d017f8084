/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The text format of Prometheus.
 */
#ifndef EVC_BASE_PROMETHEUS_H
#define EVC_BASE_PROMETHEUS_H

#include <stdint.h>

#include "base/text.h"

/* What stands before the samples of one name: evcoord_ROOM_NAME, or, without a
   room, evcoord_NAME. */
void evc__prometheus_head(struct text *t, const char *room, const char *name,
			  const char *type, const char *help);
/* The value of a label. */
void evc__prometheus_escaped(struct text *t, const char *s);
/* The end of a sample with a whole number. */
void evc__prometheus_whole(struct text *t, uint64_t v);

#endif
