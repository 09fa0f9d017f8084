/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A write that the kernel answers by an error and by a signal: SIGPIPE, SIGXFSZ.
 * The kernel sends the signal to the writing thread: this thread blocks the
 * signal, and takes it back unless it was pending before.
 */
#ifndef EVC_BASE_MUTE_H
#define EVC_BASE_MUTE_H

#include <signal.h>
#include <stdbool.h>

struct mute {
	sigset_t set, old;
	bool had_one;
	int cancel;
};

/* No cancellation either, until the end. */
void evc__mute(struct mute *m, int sig);
/* raised: the kernel may have sent the signal meanwhile. */
void evc__mute_end(const struct mute *m, bool raised);

#endif
