/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What reports of a registry show, taken by the public calls: each answer is of
 * one moment, and no lock is held while text is written.
 */
#ifndef EVC_GROUP_REPORT_H
#define EVC_GROUP_REPORT_H

#include <evcoord.h>

#include "base/text.h"

/* A group. */
struct evc__group_facts {
	evc_group_info info;
	unsigned same; /* number of groups of the same name before this group */
	evc_worker_info *worker;
	size_t n_workers;
	evc_worker_error *error;
	size_t n_errors;
	evc_metric *metric;
	size_t n_metrics;
	bool lost; /* there was no memory for all of this group */
};

struct evc__registry_facts {
	uint64_t mono_ns, real_ns; /* when the facts were taken */
	struct evc__group_facts *group;
	size_t n, room;
	unsigned lost; /* number of groups without memory */
};

/* Refused in a fork child: then there is nothing to free.  A success leaves
   evc_last_error alone. */
evc_status evc__registry_facts(evc_registry *reg, bool with_errors,
			       struct evc__registry_facts *ret);
void evc__registry_facts_free(struct evc__registry_facts *f);

/* "running" */
const char *evc__group_state(unsigned state);
/* "request" */
const char *evc__group_reason(unsigned kind);
/* The fewest digits that read back as v, with a point in every locale.  v is a
   finite number. */
void evc__text_double(struct text *t, double v);

#endif
