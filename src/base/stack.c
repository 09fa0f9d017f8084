/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stacks by signal.  Who asks puts the question into a mailbox, sends the
 * signal, and sleeps on the mailbox; the handler, on the thread that was asked,
 * answers into it.
 *
 * It stands here, with state that belongs to the process and not to a
 * coordinator, because the handler does: as kick.c.
 *
 * An answer may come late, when nobody waits any more, or another question
 * stands in the mailbox.  So the mailbox is static, and its state carries the
 * number of the question: the handler notes the stack in its own frame, where
 * it may take its time, then claims the mailbox by a CAS from the very state
 * that it found, and copies.  Whoever gives up takes the question back by a CAS
 * from the same state: one of the two succeeds.
 */
#include "base/stack.h"

#include <signal.h>
#include <sys/auxv.h>
#include <ucontext.h>

#include "base/fork.h"
#include "base/kick.h"
#include "base/proc.h"
#include "base/self.h"
#include "base/sync.h"

/* backtrace(3) may be called in a handler where libgcc finds its tables by
   _dl_find_object, which takes no lock: glibc has had that since 2.35. */
#if defined __GLIBC__ && !defined EVC_NO_BACKTRACE
#if __GLIBC_PREREQ(2, 35)
#include <execinfo.h>
#define HAVE_STACKS 1
#endif
#endif
#ifndef HAVE_STACKS
#define HAVE_STACKS 0
#define backtrace(raw, n) ((void)(raw), 0)
#endif

/* The handler, and how the kernel came to it, stand above the thread's own. */
#define ABOVE 4
/* Where no context says where the thread stood: the handler, its trampoline. */
#define ABOVE_LIKELY 2

/* How much of its stack an asked thread has left at least, in bytes: for the
   unwinding, and beside that for what the kernel puts there for a handler, where
   it does not say. */
#define ROOM ((size_t)8 << 10)
#define FRAME ((size_t)4 << 10)
static const char too_little[] = "it has too little stack left";

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

/* How often, a millisecond apart, a thread is looked at that no signal reaches:
   many are in disk sleep, or block signals, only for a moment.  One that blocks
   them and runs is looked at for as long as there is time: it may be on its way
   out of this very handler, and wait for a processor. */
#define LOOKS 3
#define LOOK_NS UINT64_C(1000000)

enum phase { IDLE, ASKED, ANSWERING, ANSWERED };
#define PHASE(state) ((enum phase)((state)&3))
#define WITH_PHASE(state, phase) (((state) & ~UINT32_C(3)) | (phase))

static struct {
	/* atomic: who asks -> the handler -> who asks, who sleeps on it: the
	   number of the question, and how far that is */
	_Atomic uint32_t state;
	_Atomic int tid; /* who is asked; set before ASKED */
	/* written between ANSWERING and ANSWERED by the handler, read after
	   ANSWERED by who asked */
	bool cramped; /* there is no room to unwind it */
	unsigned n;
	void *frame[EVC__STACK_MOST];
} box;

/* One asks at a time.  A leaf; no handler takes it. */
static pthread_mutex_t askers = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t installers = PTHREAD_MUTEX_INITIALIZER;
/* atomic: evc__stack_install, under installers -> everybody */
static _Atomic int number;

/* Where the thread stood when the signal came; NULL: it cannot be told. */
static void *
interrupted_at(const void *context)
{
	const ucontext_t *u = context;

#if defined __x86_64__
	return (void *)u->uc_mcontext.gregs[REG_RIP];
#elif defined __i386__
	return (void *)u->uc_mcontext.gregs[REG_EIP];
#elif defined __aarch64__
	return (void *)u->uc_mcontext.pc;
#elif defined __arm__
	return (void *)u->uc_mcontext.arm_pc;
#else
	(void)u;
	return NULL;
#endif
}

/* What belongs to the thread: from first on, or, where that is not found, from
   the skip-th.  All but the first are return addresses: one back lies in the
   call. */
static unsigned
trim(void **to, unsigned most, void *const *raw, int n, void *first, int skip)
{
	unsigned len = 0;
	int i;

	for (i = 0; i < n && raw[i] != first; i++)
		;
	/* Not unwound as far as that: then at least where it stands. */
	if (i == n && first != NULL && most > 0)
		to[len++] = first;
	else if (i == n)
		i = skip;
	for (; i < n && len < most; i++, len++)
		to[len] = len == 0 ? raw[i] : (char *)raw[i] - 1;
	return len;
}

/* Are there so many bytes of stack below sp?  The first thread's grows, so it
   has not all of its own yet. */
static bool
is_room(int tid, uintptr_t sp, size_t n)
{
	uintptr_t p;
	char byte;

	if (tid == getpid())
		return true;
	/* In the guard page, or at the next thread's, nothing can be read. */
	for (p = sp - n; p < sp; p += 4096)
		if (sync_peek(&byte, p, 1) < 0 && errno == EFAULT)
			return false;
	return true;
}

/* The same for the handler itself, which may be on a stack for signals. */
static bool
is_room_here(const void *context)
{
	const stack_t *own = &((const ucontext_t *)context)->uc_stack;
	uintptr_t sp = (uintptr_t)__builtin_frame_address(0);
	uintptr_t low = (uintptr_t)own->ss_sp;

	if (!(own->ss_flags & SS_DISABLE) && sp >= low &&
	    sp - low < own->ss_size)
		return sp - low >= ROOM;
	return is_room((int)syscall(SYS_gettid), sp, ROOM);
}

static void
on_ask(int signo, siginfo_t *info, void *context)
{
	int saved = errno;
	void *raw[EVC__STACK_MOST + ABOVE];
	uint32_t state = sync_load_sc(&box.state);
	int n = 0;
	bool cramped;

	(void)signo;
	(void)info;
	if (PHASE(state) == ASKED &&
	    sync_load_relaxed(&box.tid) == (int)syscall(SYS_gettid)) {
		cramped = !is_room_here(context);
		if (!cramped)
			n = backtrace(raw, EVC__STACK_MOST + ABOVE);
		if (sync_cas(&box.state, &state, WITH_PHASE(state, ANSWERING))) {
			box.cramped = cramped;
			box.n = trim(box.frame, EVC__STACK_MOST, raw, n,
				     interrupted_at(context), ABOVE_LIKELY);
			sync_store_sc(&box.state, WITH_PHASE(state, ANSWERED));
			sync_futex_wake(&box.state);
		}
	}
	errno = saved;
}

/* ---- who asks ---- */

/* Sleep until the mailbox is not in this phase any more; false: the time is
   over. */
static bool
await_not(enum phase phase, uint64_t until)
{
	uint32_t state;
	uint64_t now;

	while (PHASE(state = sync_load_sc(&box.state)) == phase) {
		now = sync_mono();
		if (now >= until)
			return false;
		sync_futex_wait(&box.state, state, until - now);
	}
	return true;
}

/* Put a question in.  No handler touches a mailbox that is neither ASKED nor
   ANSWERING, and no other asker is there. */
static uint32_t
question(int tid)
{
	uint32_t state = sync_load_sc(&box.state);

	state = WITH_PHASE(state + 4, ASKED);
	sync_store_relaxed(&box.tid, tid);
	sync_store_sc(&box.state, state);
	return state;
}

/* Take it back.  false: it is being answered, or was. */
static bool
take_back(uint32_t state)
{
	return sync_cas(&box.state, &state, WITH_PHASE(state, IDLE));
}

/* askers held. */
static unsigned
ask(int tid, void **frames, unsigned most, uint64_t ns, const char **ret_why)
{
	uint64_t until = sync_mono() + ns;
	uint32_t state;
	unsigned n;

	/* Somebody who was asked before stands in the middle of his answer. */
	if (!await_not(ANSWERING, until)) {
		*ret_why = "another thread is still answering";
		return 0;
	}
	state = question(tid);
	if (sync_tid_signal(tid, sync_load(&number)) != 0) {
		*ret_why = errno == ESRCH ? "it has ended" :
					    "the signal could not be sent";
		take_back(state);
		return 0;
	}
	if ((!await_not(ASKED, until) && take_back(state)) ||
	    !await_not(ANSWERING, sync_mono() + ns)) {
		*ret_why = "it did not answer in time";
		return 0;
	}
	n = box.n < most ? box.n : most;
	memcpy(frames, box.frame, n * sizeof *frames);
	if (box.cramped)
		*ret_why = too_little;
	else
		*ret_why = n == 0 ? "it could not be unwound" : "";
	return n;
}

/* What the kernel puts on a stack for a handler. */
static size_t
frame_size(void)
{
	size_t n = getauxval(AT_MINSIGSTKSZ);

	return n > FRAME ? n : FRAME;
}

/* Why no signal will be handled by that thread now; NULL: one may be. */
static const char *
out_of_reach(int tid, uint64_t until)
{
	uint64_t signal = UINT64_C(1) << (sync_load(&number) - 1);
	static const _Atomic uint32_t nobody;
	struct evc__proc p;
	const char *why;
	unsigned i;

	for (i = 0;; i++) {
		/* Nothing known: it will be seen. */
		if (!evc__proc_read(tid, &p))
			return NULL;
		if (p.state == 'Z' || p.state == 'X')
			return "it has ended";
		if (p.state == 'D')
			why = "it is in disk sleep, where no signal reaches it";
		else if (p.state == 'T' || p.state == 't')
			why = "it is stopped";
		else if (p.blocked & signal)
			why = "it blocks the signal";
		else if (p.sp != 0 && !is_room(tid, p.sp, ROOM + frame_size()))
			return too_little;
		else
			return NULL;
		if (i >= LOOKS - 1 && (p.state != 'R' || sync_mono() >= until))
			return why;
		sync_futex_wait(&nobody, 0, LOOK_NS);
	}
}

/* The calling thread's own, from its caller on: a return address as well. */
static unsigned
own(void **frames, unsigned most, void *caller)
{
	void *raw[EVC__STACK_MOST + ABOVE];
	int n = backtrace(raw, EVC__STACK_MOST + ABOVE);
	unsigned len = trim(frames, most, raw, n, caller, ABOVE_LIKELY);

	if (len > 0)
		frames[0] = (char *)frames[0] - 1;
	return len;
}

unsigned
evc__stack_take(int tid, void **frames, unsigned most, uint64_t ns,
		const char **ret_why)
{
	unsigned n = 0;

	*ret_why = "";
	if (tid == evc__tid() && HAVE_STACKS)
		return own(frames, most, __builtin_return_address(0));
	if (sync_load(&number) == 0)
		*ret_why = "no signal was chosen for it";
	else
		*ret_why = out_of_reach(tid, sync_mono() + ns);
	if (*ret_why == NULL) {
		sync_lock(&askers);
		n = ask(tid, frames, most, ns, ret_why);
		sync_unlock(&askers);
	}
	return n;
}

/* ---- the signal ---- */

/* In a fork child: whoever asked, installed or answered is the parent's. */
static void
fork_reset(void)
{
	sync_store(&box.state, WITH_PHASE(sync_load(&box.state), IDLE));
	sync_lock_init(&askers);
	sync_lock_init(&installers);
}

/* installers held; 0 or an errno value. */
static int
install(int signo)
{
	struct sigaction sa = { .sa_sigaction = on_ask,
				.sa_flags = SA_SIGINFO | SA_RESTART |
					    SA_ONSTACK };
	void *raw[2];
	int n = evc__signal_free(signo);

	if (n <= 0)
		return EEXIST;
	/* The first one loads libgcc, and allocates. */
	(void)backtrace(raw, 2);
	/* Nothing comes between, but for what a fault in here would raise. */
	sigfillset(&sa.sa_mask);
	sigdelset(&sa.sa_mask, SIGSEGV);
	sigdelset(&sa.sa_mask, SIGBUS);
	sigdelset(&sa.sa_mask, SIGFPE);
	sigdelset(&sa.sa_mask, SIGILL);
	if (!evc__signal_take(n, &sa))
		return EEXIST;
	sync_store(&number, n);
	evc__leave_open(n);
	return 0;
}

int
evc__stack_install(int signo)
{
	int n, e;

	if (signo != 0 && !evc__signal_usable(signo))
		return EINVAL;
	if (!HAVE_STACKS)
		return ENOSYS;
	if (!evc__fork_watch())
		return ENOMEM;
	evc__fork_also(fork_reset);
	sync_lock(&installers);
	n = sync_load(&number);
	if (n == 0)
		e = install(signo);
	else
		e = signo == 0 || signo == n ? 0 : EEXIST;
	sync_unlock(&installers);
	return e;
}

int
evc__stack_signal(void)
{
	return sync_load(&number);
}
