/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lines of a report about a thread: what the kernel says the thread does,
 * and its stack.  evc_stack_of gives them for one thread.
 * Called by: report.c; the program (evc_stack_of).
 * Locks: none; the facts belong to the caller.
 */
#include "observe/facts.h"

#include "base/kick.h"
#include "base/self.h"
#include "base/text.h"

static void
begin_line(struct text *t, int indent)
{
	evc__text_fmt(t, "%*s", indent, "");
}

static void
add_kernel(struct text *t, int indent, const struct evc__facts_thread *f,
	   unsigned kicks)
{
	int signo = evc__kick_signo();

	begin_line(t, indent);
	if (!f->known) {
		evc__text_fmt(t, "kernel: not known, /proc cannot be read "
				 "or it has just ended\n");
		return;
	}
	evc__text_fmt(t, "kernel: %c", f->proc.state);
	if (f->proc.syscall[0] != '\0')
		evc__text_fmt(t, " in %s", f->proc.syscall);
	else if (evc__proc_state(f->proc.state)[0] != '\0')
		evc__text_fmt(t, ", %s", evc__proc_state(f->proc.state));
	if (f->proc.wchan[0] != '\0')
		evc__text_fmt(t, " (wchan %s)", f->proc.wchan);
	if (kicks > 0 && signo != 0 && (f->proc.blocked >> (signo - 1) & 1))
		evc__text_add(t, ", blocks the kick signal");
	evc__text_fmt(t, "\n");
}

static void
add_stack(struct text *t, int indent, const struct evc__facts_thread *f)
{
	char frame[256];
	unsigned i;

	for (i = 0; i < f->n_frames; i++) {
		evc__stack_name(f->frame[i], frame, sizeof frame);
		begin_line(t, indent);
		evc__text_add(t, i == 0 ? "stack: " : "       ");
		evc__text_add(t, frame);
		evc__text_fmt(t, "\n");
	}
	if (f->no_stack != NULL && !f->left) {
		begin_line(t, indent);
		evc__text_fmt(t, "stack: not available: %s\n", f->no_stack);
	}
}

void
evc__thread_write(struct text *t, int indent, const struct evc__facts_thread *f,
		  unsigned kicks)
{
	add_kernel(t, indent, f, kicks);
	add_stack(t, indent, f);
}

size_t
evc_stack_of(int tid, char *buf, size_t n)
{
	struct text t = evc__lines_in(buf, buf != NULL ? n : 0);
	struct evc__facts_thread f = { .tid = tid }, *seen;

	if (tid <= 0) {
		(void)evc__refuse(-EVC_INVALID_ARGUMENT,
				  "%s: %d is no thread", __func__, tid);
		evc__text_add(&t, evc_last_error());
		return t.len;
	}
	/* A report has looked at the thread. */
	seen = evc__described_thread(tid);
	if (seen != NULL && !seen->left) {
		seen->told = true;
		evc__thread_write(&t, 0, seen, 0);
		return t.len;
	}
	f.known = evc__proc_read(tid, &f.proc);
	/* A thread notes its own stack without a signal. */
	if (tid != evc__tid() && evc__stack_signal() == 0)
		f.no_stack = "evc_stack_signal was not called";
	else
		f.n_frames = evc__stack_take(tid, f.frame, FACTS_FRAMES,
					     EVC__STACK_NS, &f.no_stack);
	if (f.n_frames > 0)
		f.no_stack = NULL;
	evc__thread_write(&t, 0, &f, 0);
	return t.len;
}
