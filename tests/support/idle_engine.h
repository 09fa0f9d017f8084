/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An engine that does nothing: the operations that it has to have.  The test gives
 * it a scheme and an open.
 */
#ifndef TESTS_SUPPORT_IDLE_ENGINE_H
#define TESTS_SUPPORT_IDLE_ENGINE_H

#include <evcoord/unstable/engine.h>

static void
idle_wake(evc_engine *e, int worker)
{
	(void)e;
	(void)worker;
}

static void
idle_cancel(evc_engine *e, uint64_t n)
{
	(void)e;
	(void)n;
}

static void
idle_cancel_one(evc_engine *e, unsigned worker, uint64_t n)
{
	(void)e;
	(void)worker;
	(void)n;
}

static void
idle_end(evc_engine *e)
{
	(void)e;
}

#define IDLE_OPS \
	.abi = EVC_ENGINE_ABI, .wake = idle_wake, .cancel = idle_cancel, \
	.cancel_one = idle_cancel_one, .leave = idle_end, .close = idle_end

#endif
