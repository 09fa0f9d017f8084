/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Worker groups and what is above them: a coordinator of the program's, that of
 * the registry; and requests on their own scope.
 */
#include "../../support/workers_util.h"

START_TEST(a_coordinator_of_ones_own_stops_its_groups)
{
	evc_coord *c = new_coord(NULL);
	evc_group_opts o = { .coord = c };
	evc_registry *reg = new_registry(0);
	struct crew k = { 0 }, own = { 0 };
	evc_verdict v;

	crew_add(reg, "below", &k, 2, &o);
	ck_assert_ptr_null(evc_registry_coord(reg));
	crew_add(reg, "own", &own, 2, NULL);
	ck_assert_ptr_eq(evc_scope_parent(evc_group_scope(k.group)), c);
	ck_assert_ptr_nonnull(evc_registry_coord(reg));
	OK(evc_registry_start(reg));
	UNTIL(atomic_load(&k.runs) > 3);
	OK(evc_request_stop(c, 0, "all of it"));
	OK(evc_join(c, NULL, &v));
	ck_assert_uint_eq(v.n_stragglers, 0);
	STATE_COMES(k.group, EVC_GROUP_STOPPED);
	UNTIL(atomic_load(&k.n_cleanup) == 1);
	CALLED(&k, 1, 1, 1, 1, 1);
	ck_assert_uint_eq(info_of(k.group).stop.kind, EVC_BY_PARENT);
	ck_assert(evc_group_is_active(own.group));
	/* No start while that stop stands. */
	REFUSED(EVC_CANCELLED, evc_group_start(k.group));
	CALLED(&k, 1, 1, 1, 1, 1);
	OK(evc_clear_stop(c));
	OK(evc_group_start(k.group));
	UNTIL(info_of(k.group).n_live == 2);
	end_registry(reg);
	OK(evc_free(c));
}
END_TEST

START_TEST(the_stop_of_a_registrys_coordinator_stops_all)
{
	evc_registry *reg = new_registry(0);
	struct crew a = { 0 }, b = { 0 };

	crew_add(reg, "a", &a, 2, NULL);
	crew_add(reg, "b", &b, 2, NULL);
	OK(evc_registry_start(reg));
	OK(evc_request_stop(evc_registry_coord(reg), 0, "enough"));
	STATE_COMES(a.group, EVC_GROUP_STOPPED);
	STATE_COMES(b.group, EVC_GROUP_STOPPED);
	UNTIL(atomic_load(&a.n_cleanup) == 1 && atomic_load(&b.n_cleanup) == 1);
	CALLED(&a, 1, 1, 1, 1, 1);
	CALLED(&b, 1, 1, 1, 1, 1);
	end_registry(reg);
}
END_TEST

START_TEST(a_request_on_its_scope_stops_a_group)
{
	evc_registry *reg = new_registry(0);
	struct crew a = { 0 }, b = { 0 };

	crew_add(reg, "a", &a, 2, NULL);
	crew_add(reg, "b", &b, 2, NULL);
	OK(evc_registry_start(reg));
	OK(evc_request_stop(evc_group_scope(a.group), 0, "this one"));
	STATE_COMES(a.group, EVC_GROUP_STOPPED);
	UNTIL(atomic_load(&a.n_cleanup) == 1);
	CALLED(&a, 1, 1, 1, 1, 1);
	ck_assert_str_eq(info_of(a.group).stop.text, "this one");
	ck_assert(evc_group_is_active(b.group));
	OK(evc_group_start(a.group));
	ck_assert(evc_group_is_active(a.group));
	end_registry(reg);
}
END_TEST

API_MAIN("workers_above", a_coordinator_of_ones_own_stops_its_groups,
	 the_stop_of_a_registrys_coordinator_stops_all,
	 a_request_on_its_scope_stops_a_group)
