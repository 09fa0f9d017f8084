/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A table of functions, found by their names in constant time.
 */
#ifndef EVC_CLUSTER_FUNCTIONS_H
#define EVC_CLUSTER_FUNCTIONS_H

#include <evcoord/worker.h>

#include "base/table.h"

struct function {
	struct table_name at;
	const evc_function *is; /* in the caller's table */
};

struct functions {
	struct function *all;
	struct table by_name;
};

/* 0; -EVC_INVALID_ARGUMENT: a mistake in the table; -EVC_RESOURCE_EXHAUSTED.
   The table must stay. */
evc_status evc__functions_init(struct functions *t, const evc_function *table,
			       unsigned n);
void evc__functions_destroy(struct functions *t);

/* NULL: no function of this name. */
const evc_function *evc__functions_find(const struct functions *t,
					const char *name);

#endif
