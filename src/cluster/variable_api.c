/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The program's calls for variables.
 */
#include "cluster/cluster.h"

/* One that changes a variable to value. */
static evc_status
change(evc_cluster *cl, evc_engine_update *u, const evc_value *value)
{
	evc_status st = evc__cluster_check(cl);

	if (st < 0)
		return st;
	if (value == NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "there is no value (nil is one of no bytes)");
	u->value = *value;
	return evc__variable_do(&cl->vars, u, NULL, NULL);
}

evc_status
evc_variable_add(evc_cluster *cluster, const char *name, double by,
		 double *ret_now)
{
	evc_engine_update u = { .op = EVC_VARIABLE_ADD,
				.name = name,
				.by = by };
	evc_status st = evc__cluster_check(cluster);

	return st < 0 ? st
		      : evc__variable_do(&cluster->vars, &u, ret_now, NULL);
}

evc_status
evc_variable_set(evc_cluster *cluster, const char *name, const evc_value *value)
{
	evc_engine_update u = { .op = EVC_VARIABLE_SET, .name = name };

	return change(cluster, &u, value);
}

evc_status
evc_variable_get(evc_cluster *cluster, const char *name, evc_value *ret_value)
{
	evc_engine_update u = { .op = EVC_VARIABLE_GET, .name = name };
	evc_status st = evc__cluster_check(cluster);

	return st < 0 ? st
		      : evc__variable_do(&cluster->vars, &u, NULL, ret_value);
}

evc_status
evc_variable_compare_set(evc_cluster *cluster, const char *name,
			 const evc_value *expected, const evc_value *value)
{
	evc_engine_update u = { .op = EVC_VARIABLE_COMPARE_SET, .name = name };

	if (expected != NULL)
		u.expected = *expected;
	return change(cluster, &u, value);
}

evc_status
evc_variable_each(evc_cluster *cluster, evc_variable_fn *fn, void *arg)
{
	struct variable_list l;
	size_t i;
	evc_status st = evc__cluster_check(cluster);

	if (st < 0)
		return st;
	if (fn == NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "there is no function to call");
	st = evc__variables_list(&cluster->vars, &l);
	if (st < 0)
		return st;
	for (i = 0; i < l.n; i++)
		if (!fn(l.entries[i].name, &l.entries[i].value, arg))
			break;
	evc__variables_list_free(&l);
	return 0;
}

uint64_t
evc_cluster_finished(const evc_cluster *cluster)
{
	if (evc__cluster_check(cluster) < 0)
		return 0;
	/* Its lock is no part of what is read. */
	return evc__variables_n_finished(
		(struct variables *)(uintptr_t)&cluster->vars);
}
