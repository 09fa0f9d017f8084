/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions by name.
 * Called by: worker.c, local.c and dataset.c; the check by all rooms that take
 * a table.
 * Locks: none.
 */
#include "cluster/worker/functions.h"

#include <evcoord.h>
#include <string.h>

#include "base/reserved.h"
#include "base/sync.h"
#include "cluster/worker/worker.h"
#include "wire/frames.h"

#define NAME_SIZE 48
#define MOST FRAME_NAMES_MOST

static evc_status
check_function(const evc_function *f, unsigned i)
{
	if (f->name == NULL || *f->name == '\0')
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "function %u of the table has no name", i);
	if (strnlen(f->name, NAME_SIZE) == NAME_SIZE)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "the name of function %u, \"%.48s...\", is "
				  "longer than 47 bytes",
				  i, f->name);
	if (f->fn == NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "function \"%s\" has no fn", f->name);
	if (f->flags != 0 || !RESERVED_IS_ZERO(f->reserved_))
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "function \"%s\": flags and reserved_ must "
				  "be 0",
				  f->name);
	return 0;
}

evc_status
evc__functions_init(struct functions *t, const evc_function *table, unsigned n)
{
	struct function *f;
	evc_status st = 0;
	unsigned i;

	*t = (struct functions){ .all = NULL };
	if ((table == NULL && n > 0) || n > MOST)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  table == NULL ?
					  "%u functions in no table" :
					  "%u functions are too many: a table "
					  "has %u at most",
				  n, MOST);
	t->all = sync_alloc(n > 0 ? n : 1, sizeof *t->all);
	if (t->all == NULL || !evc__table_reserve(&t->by_name, n))
		st = evc_refuse(-EVC_RESOURCE_EXHAUSTED,
				"no memory for %u functions", n);
	for (i = 0; st == 0 && i < n; i++) {
		st = check_function(&table[i], i);
		if (st == 0 && evc__functions_find(t, table[i].name) != NULL)
			st = evc_refuse(-EVC_INVALID_ARGUMENT,
					"function \"%s\" is twice in the table",
					table[i].name);
		if (st < 0)
			break;
		f = &t->all[i];
		f->is = &table[i];
		f->at.text = table[i].name;
		evc__table_add_name(&t->by_name, &f->at);
	}
	if (st < 0)
		evc__functions_destroy(t);
	return st;
}

void
evc__functions_destroy(struct functions *t)
{
	evc__table_free(&t->by_name);
	sync_free(t->all);
}

const evc_function *
evc__functions_find(const struct functions *t, const char *name)
{
	const struct function *f = evc__table_find_name(&t->by_name, name);

	return f != NULL ? f->is : NULL;
}

evc_status
evc__functions_check(const evc_function *functions, unsigned n)
{
	struct functions t;
	evc_status st = evc__functions_init(&t, functions, n);

	if (st == 0)
		evc__functions_destroy(&t);
	return st;
}
