/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stack of another thread, by signal: the asker puts a question into a
 * static mailbox, sends the signal and sleeps; the handler answers on the asked
 * thread.  An answer may come late, after the asker has given up or put in
 * another question.  So the state of the mailbox carries the number of the
 * question: the handler notes the stack in its own frame, claims the mailbox by
 * a CAS from the state that it found, and copies; an asker that gives up takes
 * the question back by a CAS from the same state.  One of the two succeeds.
 * Called by: observe, for the stacks in reports, and to choose the signal.
 * Locks: `askers`, for one question at a time; `installers`; box.state is
 * atomic.
 */
#include "base/stack.h"

#include <signal.h>
#include <sys/auxv.h>
#include <ucontext.h>

#include "base/deadline.h"
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

/* Frames of the handler and the kernel above the thread's own, at most. */
#define ABOVE 4
/* The same, if the context does not show the interrupted frame. */
#define ABOVE_LIKELY 2

/* Bytes of stack that an asked thread must have left: for the unwinding, and
   for the kernel's signal frame, if AT_MINSIGSTKSZ is not known. */
#define ROOM ((size_t)8 << 10)
#define FRAME ((size_t)4 << 10)
static const char too_little[] = "it has too little stack left";

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

/* How often, a millisecond apart, a thread is examined that no signal reaches:
   disk sleep and blocked signals often last a moment only.  A running thread
   that blocks signals is examined until the time is over: it may be about to
   leave this handler, and wait for a processor. */
#define LOOKS 3
#define LOOK_NS UINT64_C(1000000)

enum phase { IDLE, ASKED, ANSWERING, ANSWERED };
#define PHASE(state) ((enum phase)((state)&3))
#define WITH_PHASE(state, phase) (((state) & ~UINT32_C(3)) | (phase))

static struct {
	/* atomic: the asker, asleep on it <-> the handler: number and
	   phase of the question */
	_Atomic uint32_t state;
	_Atomic int tid; /* the asked thread; set before ASKED */
	/* written by the handler between ANSWERING and ANSWERED, read by the
	   asker after ANSWERED */
	bool cramped; /* too little stack is left to unwind */
	unsigned n;
	void *frame[EVC__STACK_MOST];
} box;

/* For one question at a time.  A leaf; no handler takes this lock. */
static pthread_mutex_t askers = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t installers = PTHREAD_MUTEX_INITIALIZER;
/* atomic: evc__stack_install, under installers -> all threads */
static _Atomic int number;

/* The instruction that the signal interrupted; NULL: not known. */
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

/* Copy the thread's own frames: from `first` on, or if that is missing, from
   the skip-th.  All but the first are return addresses; an address less by 1
   lies in the call. */
static unsigned
copy_frames(void **to, unsigned most, void *const *raw, int n, void *first,
	    int skip)
{
	unsigned len = 0;
	int i;

	for (i = 0; i < n && raw[i] != first; i++)
		;
	/* The unwinding did not come so far: at least the place is known. */
	if (i == n && first != NULL && most > 0)
		to[len++] = first;
	else if (i == n)
		i = skip;
	for (; i < n && len < most; i++, len++)
		to[len] = len == 0 ? raw[i] : (char *)raw[i] - 1;
	return len;
}

/* Are there n bytes of stack below sp?  The stack of the first thread grows, so
   it cannot be probed. */
static bool
is_room(int tid, uintptr_t sp, size_t n)
{
	uintptr_t p;
	char byte;

	if (tid == getpid())
		return true;
	/* A guard page cannot be read. */
	for (p = sp - n; p < sp; p += 4096)
		if (sync_peek(&byte, p, 1) < 0 && errno == EFAULT)
			return false;
	return true;
}

/* The same for the handler, which may run on a signal stack. */
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
			box.n = copy_frames(box.frame, EVC__STACK_MOST, raw, n,
					    interrupted_at(context),
					    ABOVE_LIKELY);
			sync_store_sc(&box.state, WITH_PHASE(state, ANSWERED));
			sync_futex_wake(&box.state);
		}
	}
	errno = saved;
}

/* ---- the asker ---- */

/* Sleep until the mailbox leaves this phase.  false: the time is over. */
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

/* Put a question into the mailbox, with askers held.  A handler touches the
   mailbox in the phases ASKED and ANSWERING only. */
static uint32_t
post_question(int tid)
{
	uint32_t state = sync_load_sc(&box.state);

	state = WITH_PHASE(state + 4, ASKED);
	sync_store_relaxed(&box.tid, tid);
	sync_store_sc(&box.state, state);
	return state;
}

/* Take the question back.  false: the answer has begun. */
static bool
take_question_back(uint32_t state)
{
	return sync_cas(&box.state, &state, WITH_PHASE(state, IDLE));
}

/* askers held. */
static unsigned
ask_thread(int tid, void **frames, unsigned most, uint64_t ns,
	   const char **ret_why)
{
	uint64_t until = sync_mono() + ns;
	uint32_t state;
	unsigned n;

	/* A handler that was asked before is still copying its answer. */
	if (!await_not(ANSWERING, until)) {
		*ret_why = "another thread is still answering";
		return 0;
	}
	state = post_question(tid);
	if (sync_tid_signal(tid, sync_load(&number)) != 0) {
		*ret_why = errno == ESRCH ? "it has ended" :
					    "the signal could not be sent";
		take_question_back(state);
		return 0;
	}
	if ((!await_not(ASKED, until) && take_question_back(state)) ||
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

/* The size of the kernel's signal frame. */
static size_t
frame_size(void)
{
	size_t n = getauxval(AT_MINSIGSTKSZ);

	return n > FRAME ? n : FRAME;
}

/* Why the thread cannot handle a signal now; NULL: it probably can. */
static const char *
out_of_reach(int tid, uint64_t until)
{
	uint64_t signal = UINT64_C(1) << (sync_load(&number) - 1);
	struct evc__proc p;
	const char *why;
	unsigned i;

	for (i = 0;; i++) {
		/* Nothing is known: the question is worth a try. */
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
		evc__nap(LOOK_NS);
	}
}

/* The stack of the calling thread, from `caller`, a return address, on. */
static unsigned
own_stack(void **frames, unsigned most, void *caller)
{
	void *raw[EVC__STACK_MOST + ABOVE];
	int n = backtrace(raw, EVC__STACK_MOST + ABOVE);
	unsigned len = copy_frames(frames, most, raw, n, caller, ABOVE_LIKELY);

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
		return own_stack(frames, most, __builtin_return_address(0));
	if (sync_load(&number) == 0)
		*ret_why = "no signal was chosen for it";
	else
		*ret_why = out_of_reach(tid, sync_mono() + ns);
	if (*ret_why == NULL) {
		sync_lock(&askers);
		n = ask_thread(tid, frames, most, ns, ret_why);
		sync_unlock(&askers);
	}
	return n;
}

/* ---- the signal ---- */

/* In a fork child: askers, installers and handlers were the parent's
   threads. */
static void
fork_reset(void)
{
	sync_store(&box.state, WITH_PHASE(sync_load(&box.state), IDLE));
	sync_lock_init(&askers);
	sync_lock_init(&installers);
}

/* installers held; 0 or an errno value. */
static int
install_handler(int signo)
{
	struct sigaction sa = { .sa_sigaction = on_ask,
				.sa_flags = SA_SIGINFO | SA_RESTART |
					    SA_ONSTACK };
	void *raw[2];
	int n = evc__signal_free(signo);

	if (n <= 0)
		return EEXIST;
	/* The first call loads libgcc, and allocates. */
	(void)backtrace(raw, 2);
	/* The handler blocks all signals but those of faults. */
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
		e = install_handler(signo);
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
