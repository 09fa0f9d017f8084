/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The signal by which reports ask a thread for its stack, chosen by the
 * program.
 * Called by: the program (evc_stack_signal).
 * Locks: none of its own; see base/stack.h.
 */
#include "base/stack.h"
#include "core/core.h"

evc_status
evc_stack_signal(int signo)
{
	switch (evc__stack_install(signo)) {
	case 0:
		return 0;
	case EINVAL:
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "%s: %d is no signal that can be caught",
				   __func__, signo);
	case ENOSYS:
		return evc__refuse(-EVC_UNIMPLEMENTED,
				   "%s: there is no backtrace that a signal "
				   "handler may call",
				   __func__);
	case ENOMEM:
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED, "%s: no memory",
				   __func__);
	}
	if (evc__stack_signal() != 0)
		return evc__refuse(-EVC_ALREADY_EXISTS,
				   "%s: signal %d was chosen before", __func__,
				   evc__stack_signal());
	if (signo == 0)
		return evc__refuse(-EVC_ALREADY_EXISTS,
				   "%s: no real-time signal is free", __func__);
	return evc__refuse(-EVC_ALREADY_EXISTS, "%s: signal %d has a handler",
			   __func__, signo);
}
