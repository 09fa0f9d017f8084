/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The choice of the kick signal.  core sends the kicks.
 * Called by: the program.
 * Locks: none; base/kick.c has its own.
 */
#include "base/kick.h"
#include "core/core.h"

evc_status
evc_kick_signal(int signo)
{
	if (!evc__signal_usable(signo))
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "evc_kick_signal: %d cannot be one", signo);
	if (evc__kick_install(signo) < 0)
		return evc__refuse(-EVC_ALREADY_EXISTS,
				   "evc_kick_signal: %d has a handler, or "
				   "kicks are sent by another signal",
				   signo);
	return 0;
}
