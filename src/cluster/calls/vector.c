/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The program's calls for vectors among the variables.
 * Called by: the program.
 * Locks: none here; variables.lock in cluster/variables.
 */
#include "cluster/core/cluster.h"

#include "wire/vector.h"

evc_status
evc_vector_set(evc_cluster *cluster, const char *name,
	       const evc_elements *elements)
{
	evc_value v = { NULL, 0 };
	evc_status st = evc__elements_check(elements, true);

	if (st == 0)
		st = evc__elements_vector(elements, &v);
	if (st == 0)
		st = evc_variable_set(cluster, name, &v);
	evc_value_free(&v);
	return st;
}

/* Do the operation with the patch of the elements. */
static evc_status
perform_patch(evc_cluster *cl, unsigned op, const char *name,
	      const evc_elements *e, evc_value *ret)
{
	evc_engine_update u = { .op = op, .name = name };
	evc_status st = evc__cluster_check(cl);

	if (st == 0)
		st = evc__elements_check(e, false);
	if (st == 0)
		st = evc__patch_make(e, op == EVC_VARIABLE_VECTOR_ADD,
				     &u.value);
	if (st == 0)
		st = evc__variable_perform(cl, &u, NULL, ret);
	evc_value_free(&u.value);
	return st;
}

evc_status
evc_vector_add(evc_cluster *cluster, const char *name,
	       const evc_elements *elements)
{
	return perform_patch(cluster, EVC_VARIABLE_VECTOR_ADD, name, elements,
			     NULL);
}

evc_status
evc_vector_get(evc_cluster *cluster, const char *name, const evc_elements *to)
{
	evc_value v = { NULL, 0 };
	evc_status st = perform_patch(cluster, EVC_VARIABLE_VECTOR_GET, name,
				      to, &v);

	if (st == 0)
		st = evc__elements_fill(to, &v);
	evc_value_free(&v);
	return st;
}

evc_status
evc_vector_size(evc_cluster *cluster, const char *name, size_t *ret_n)
{
	evc_engine_update u = { .op = EVC_VARIABLE_VECTOR_GET,
				.name = name,
				.value = evc__patch_of_size() };
	evc_value v = { NULL, 0 };
	uint64_t n = 0;
	evc_status st = evc__cluster_check(cluster);

	if (st == 0 && ret_n == NULL)
		st = evc__variable_no_place();
	if (st == 0)
		st = evc__variable_perform(cluster, &u, NULL, &v);
	if (st == 0)
		st = evc_unpack(&v, "U", &n);
	if (st == 0)
		*ret_n = (size_t)n;
	evc_value_free(&v);
	return st;
}
