/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Walls for exceptions and for the end of a thread, around calls of the
 * program's functions; see unwind.h.  Also counts the calls of a function on
 * the stack.
 * Called by: all rooms that call a function of the program's.
 * Locks: none; `innermost` is thread-local.
 */
#include "base/unwind.h"

#include <setjmp.h>
#include <stdint.h>

#if EVC__HAVE_WALLS

/* An error in the search for a handler makes a throw call std::terminate, with
   the stack still in place. */
_Unwind_Reason_Code
evc__wall(int version, _Unwind_Action actions, _Unwind_Exception_Class class_,
	  struct _Unwind_Exception *e, struct _Unwind_Context *x)
{
	(void)version;
	(void)class_;
	(void)e;
	(void)x;
	return actions & _UA_SEARCH_PHASE ? _URC_FATAL_PHASE1_ERROR :
					    _URC_CONTINUE_UNWIND;
}

/* The end of a thread has no such search: an error in the unwinding makes the C
   library call abort. */
_Unwind_Reason_Code
evc__shut_wall(int version, _Unwind_Action actions,
	       _Unwind_Exception_Class class_, struct _Unwind_Exception *e,
	       struct _Unwind_Context *x)
{
	return actions & _UA_FORCE_UNWIND ?
		       _URC_FATAL_PHASE2_ERROR :
		       evc__wall(version, actions, class_, e, x);
}

/* A call that catches exceptions.  C has no landing pad, so the thread goes on
   by longjmp, as with the cleanup handlers of pthread_exit. */
struct catcher {
	struct catcher *up;
	struct _Unwind_Exception *caught;
	jmp_buf env;
};
static __thread struct catcher *innermost;

static _Unwind_Reason_Code
catch_exception(int version, _Unwind_Action actions,
		_Unwind_Exception_Class class_, struct _Unwind_Exception *e,
		struct _Unwind_Context *x)
{
	struct catcher *k = innermost;

	(void)version;
	(void)class_;
	(void)x;
	if (actions & _UA_SEARCH_PHASE)
		return _URC_HANDLER_FOUND;
	innermost = k->up;
	if (actions & _UA_FORCE_UNWIND)
		return _URC_CONTINUE_UNWIND;
	k->caught = e;
	longjmp(k->env, 1);
}

/* The C++ runtime, if the program has one, counts the exceptions in flight. */
extern void *__cxa_begin_catch(void *e) __attribute__((weak));
extern void __cxa_end_catch(void) __attribute__((weak));

static void
drop_exception(struct _Unwind_Exception *e)
{
	if (__cxa_begin_catch != NULL && __cxa_end_catch != NULL) {
		(void)__cxa_begin_catch(e);
		__cxa_end_catch();
	} else
		_Unwind_DeleteException(e);
}

WALL_ATTRIBUTES_ static int
call_caught(int (*fn)(struct evc_coord *c, void *arg), struct evc_coord *c,
	    void *arg)
{
	int st;

	UNWOUND_BY(catch_exception);
	st = fn(c, arg);
	NO_JUMP();
	return st;
}

bool
evc__fn_catching(int (*fn)(struct evc_coord *c, void *arg),
		 struct evc_coord *c, void *arg, int *ret_result)
{
	struct catcher k = { .up = innermost };

	if (setjmp(k.env) != 0) {
		drop_exception(k.caught);
		return false;
	}
	innermost = &k;
	*ret_result = call_caught(fn, c, arg);
	innermost = k.up;
	return true;
}

#else

bool
evc__fn_catching(int (*fn)(struct evc_coord *c, void *arg),
		 struct evc_coord *c, void *arg, int *ret_result)
{
	*ret_result = fn(c, arg);
	return true;
}

#endif

WALLED_VOID(call, (void (*fn)(void *), void *arg), fn(arg))

void
evc__call_walled(void (*fn)(void *arg), void *arg)
{
	call(fn, arg);
}

SHUT_VOID(call_shut, (void (*fn)(void *), void *arg), fn(arg))

void
evc__call_shut(void (*fn)(void *arg), void *arg)
{
	call_shut(fn, arg);
}

SHUT(int, call_fn, (int (*fn)(struct evc_coord *, void *),
		    struct evc_coord *c, void *arg),
     fn(c, arg))

int
evc__fn_shut(int (*fn)(struct evc_coord *c, void *arg), struct evc_coord *c,
	     void *arg)
{
	return call_fn(fn, c, arg);
}

/* ---- calls on the stack ---- */

struct frame_search {
	uintptr_t fn, outer;
	int n;
	bool whole; /* the outermost frame was reached */
};

/* The outermost function of the first thread.  A static program has no unwind
   table for it; in most other programs the weak symbol is NULL. */
extern void _start(void) __attribute__((weak));
#define START_LENGTH 64u

static bool
is_end(uintptr_t ip)
{
	return ip == 0 ||
	       (_start != NULL && ip - (uintptr_t)_start < START_LENGTH);
}

static _Unwind_Reason_Code
see_frame(struct _Unwind_Context *x, void *arg)
{
	struct frame_search *s = arg;

	s->whole = is_end(_Unwind_GetIP(x)) ||
		   (s->outer != 0 && _Unwind_GetCFA(x) > s->outer);
	if (s->whole)
		return _URC_NORMAL_STOP;
	s->n += _Unwind_GetRegionStart(x) == s->fn;
	return _URC_NO_REASON;
}

int
evc__calls_of(void (*fn)(void), const void *outer)
{
	struct frame_search s = { .fn = (uintptr_t)fn,
				  .outer = (uintptr_t)outer };

	(void)_Unwind_Backtrace(see_frame, &s);
	return s.whole ? s.n : -1;
}
