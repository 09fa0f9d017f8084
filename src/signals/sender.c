/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A signal and its sender in one word, which a handler can hand to another
 * thread in one atomic step: bit 63: a process has sent the signal; bits 56-62:
 * the signal; bits 32-55: the sender's pid; bits 0-31: the sender's uid.
 * Called by: signals.c and refused.c.
 * Locks: none; all is signal-safe.
 */
#include "base/libc.h"
#include "core/core.h"
#include "signals/signals.h"

#define FROM_PROCESS (UINT64_C(1) << 63)

uint64_t
evc__sender(int signo, const siginfo_t *info)
{
	uint64_t signal = (uint64_t)(unsigned)signo << 56;

	/* > 0: the kernel itself has sent the signal. */
	if (info->si_code > 0)
		return signal;
	/* A pid of Linux has 22 bits at most. */
	return FROM_PROCESS | signal |
	       ((uint64_t)(unsigned)info->si_pid & 0xffffff) << 32 |
	       (uint32_t)info->si_uid;
}

int
evc__sender_signo(uint64_t sender)
{
	return (int)(sender >> 56 & 127);
}

void
evc__text_signal(struct text *t, int signo)
{
	const char *s = evc__signal_name(signo);

	if (s != NULL) {
		evc__text_add(t, "SIG");
		evc__text_add(t, s);
	} else {
		evc__text_add(t, "signal ");
		evc__text_int(t, signo);
	}
}

void
evc__text_sender(struct text *t, uint64_t sender)
{
	evc__text_signal(t, evc__sender_signo(sender));
	if (sender & FROM_PROCESS) {
		evc__text_add(t, " from pid ");
		evc__text_int(t, (int64_t)(sender >> 32 & 0xffffff));
		evc__text_add(t, ", uid ");
		evc__text_int(t, (int64_t)(uint32_t)sender);
	} else
		evc__text_add(t, " from the kernel");
}

void
evc__signal_request(evc_coord *c, uint64_t sender, bool cuts, uint32_t stop)
{
	char buf[96];
	struct text t = evc__text_in(buf, sizeof buf);
	struct evc__request q = { .kind = EVC_BY_SIGNAL,
				  .text = buf,
				  .signo = evc__sender_signo(sender),
				  .stop = stop };

	evc__text_sender(&t, sender);
	if (cuts)
		evc__text_add(&t, CUTS_GRACE);
	evc__request(c, &q);
}
