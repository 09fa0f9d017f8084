/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The program's calls for variables, here or by the engine that keeps them.
 * Called by: the program.
 * Locks: none here; variables.lock in cluster/variables.
 */
#include "cluster/core/cluster.h"
#include "cluster/variables/table.h"

#include "base/unwind.h"

evc_status
evc__variable_perform(evc_cluster *cl, const evc_engine_update *u,
		      double *ret_now, evc_value *ret_value)
{
	return cluster_asks(cl) ?
		       evc__kept_do(cl, u, ret_now, ret_value) :
		       evc__variable_do(&cl->vars, u, ret_now, ret_value);
}

/* An operation with a value. */
static evc_status
change_value(evc_cluster *cl, evc_engine_update *u, const evc_value *value)
{
	evc_status st = evc__cluster_check(cl);

	if (st < 0)
		return st;
	if (value == NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "there is no value (nil is one of no bytes)");
	u->value = *value;
	return evc__variable_perform(cl, u, NULL, NULL);
}

evc_status
evc_variable_add(evc_cluster *cluster, const char *name, double by,
		 double *ret_now)
{
	evc_engine_update u = { .op = EVC_VARIABLE_ADD,
				.name = name,
				.by = by };
	evc_status st = evc__cluster_check(cluster);

	return st < 0 ? st : evc__variable_perform(cluster, &u, ret_now, NULL);
}

evc_status
evc_variable_set(evc_cluster *cluster, const char *name, const evc_value *value)
{
	evc_engine_update u = { .op = EVC_VARIABLE_SET, .name = name };

	return change_value(cluster, &u, value);
}

evc_status
evc_variable_get(evc_cluster *cluster, const char *name, evc_value *ret_value)
{
	evc_engine_update u = { .op = EVC_VARIABLE_GET, .name = name };
	evc_status st = evc__cluster_check(cluster);
	evc_value v = { NULL, 0 };

	if (st == 0)
		st = evc__variable_perform(cluster, &u, NULL,
					   ret_value != NULL ? &v : NULL);
	if (st == 0 || st == -EVC_NOT_FOUND)
		*ret_value = v;
	return st;
}

evc_status
evc_variable_number(evc_cluster *cluster, const char *name, double *ret_number)
{
	const struct said before = evc__said_before();
	evc_value v = { NULL, 0 };
	evc_status st = evc_variable_get(cluster, name, &v);

	st = evc__missing_is_zero(st, &before);
	if (st < 0)
		return st;
	if (ret_number == NULL)
		st = evc_refuse(-EVC_INVALID_ARGUMENT,
				"there is no place for the number");
	else
		st = evc__content_number(name, &v, ret_number);
	evc_value_free(&v);
	return st;
}

evc_status
evc_variable_compare_set(evc_cluster *cluster, const char *name,
			 const evc_value *expected, const evc_value *value)
{
	evc_engine_update u = { .op = EVC_VARIABLE_COMPARE_SET, .name = name };

	if (expected != NULL)
		u.expected = *expected;
	return change_value(cluster, &u, value);
}

/* The list may point into the pile. */
static evc_status
list_variables(evc_cluster *cl, struct pile *all, struct variable_list *ret)
{
	struct kept_state state;
	evc_status st;

	if (!cluster_asks(cl))
		return evc__variables_list(&cl->vars, ret);
	st = evc__kept_all(cl, all, &state);
	if (st == 0)
		st = evc__pile_list(all, ret);
	if (st == 0)
		evc__variables_sort(ret);
	return st;
}

WALLED(bool, see, (evc_variable_fn *fn, const evc_engine_entry *e, void *arg),
       fn(e->name, &e->value, arg))

evc_status
evc_variable_each(evc_cluster *cluster, evc_variable_fn *fn, void *arg)
{
	struct variable_list l = { .n = 0 };
	struct pile all = { .n = 0 };
	size_t i;
	evc_status st = evc__cluster_check(cluster);

	if (st < 0)
		return st;
	if (fn == NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "there is no function to call");
	st = list_variables(cluster, &all, &l);
	for (i = 0; st == 0 && i < l.n; i++)
		if (!see(fn, &l.entries[i], arg))
			break;
	evc__variables_list_free(&l);
	evc__pile_free(&all);
	return st;
}

uint64_t
evc_cluster_finished(const evc_cluster *cluster)
{
	/* The function changes locks alone. */
	evc_cluster *cl = (evc_cluster *)(uintptr_t)cluster;

	if (evc__cluster_check(cl) < 0)
		return 0;
	return cluster_asks(cl) ? evc__kept_n_finished(cl) :
				  evc__variables_n_finished(&cl->vars);
}
