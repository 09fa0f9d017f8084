/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the library calls on a member's behalf does not return - a cancel hook,
 * an unblock: the helper thread sits in it, and the join ends on time all the
 * same.
 */
#include "../../../support/rouse_util.h"

static void
all_well_after(evc_coord *c)
{
	ends_at_last(c);
	OK(evc_free(c));
}

static void
sit(void *arg)
{
	stay(NULL, arg);
}

static evc_status
wait_for_pop(evc_coord *c, void *arg)
{
	struct guest *g = arg;
	evc_id id = 0;

	if (evc_cancel_push(c, sit, g, 0, &id) != 0)
		return EVC_INTERNAL;
	evc_wait_for_stop(c, INFINITY);
	while (!atomic_load(&g->in))
		t_sleep(0.001);
	return evc_cancel_pop(c, id) == 0 ? 0 : EVC_INTERNAL;
}

START_TEST(one_whose_cancel_hook_blocks)
{
	evc_coord *c = new_coord(NULL);
	struct guest g = { 0 };
	evc_verdict v;

	OK(evc_thread_start(c, "popper", wait_for_pop, &g, NULL, NULL));
	t_sleep(0.05);
	v = late_join(c);
	names_one(&v, "popper");
	atomic_store(&g.open, 1);
	all_well_after(c);
}
END_TEST

START_TEST(one_whose_unblock_blocks)
{
	evc_member_opts o = { .unblock = sit };
	evc_coord *c = new_coord(NULL);
	struct guest g = { 0 };
	evc_verdict v;

	OK(evc_thread_start(c, "stays", stay, &g, &o, NULL));
	v = late_join(c);
	names_one(&v, "stays");
	atomic_store(&g.open, 1);
	all_well_after(c);
}
END_TEST

API_MAIN("misbehave_calls", one_whose_cancel_hook_blocks,
	 one_whose_unblock_blocks)
