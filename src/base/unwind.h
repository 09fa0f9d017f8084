/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stacks that are unwound under us: by an exception of C++ (or whatever else
 * throws by way of libgcc), by pthread_exit and by cancellation.
 *
 * An exception first looks for its handler, and leaves the stack as it is
 * meanwhile; only then are the frames left, one by one.  In most calls of a
 * function of the user's it must find none, because our lists lead into the
 * frames that it would leave: these calls are WALLED, the search ends at the
 * wall, and the throw calls std::terminate with everything in place.  Where
 * an exception may pass, what is linked into a frame is undone by a function
 * that stands LEAVING its variable.
 *
 * A thread that ends has no handler to look for.  Where its loop or the helper
 * would be left in the middle of something, the wall is a SHUT one: pthread_exit
 * comes no further, and calls abort.
 *
 * Walls are there on amd64 and arm64; elsewhere exceptions go through.
 */
#ifndef EVC_BASE_UNWIND_H
#define EVC_BASE_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <unwind.h>

/* fn(&variable) is called when its block is left, in whichever way. */
#define LEAVING(fn) __attribute__((__cleanup__(fn)))

#if defined __LP64__ && (defined __x86_64__ || defined __aarch64__)
#define EVC__HAVE_WALLS 1
_Unwind_Reason_Code
evc__wall(int version, _Unwind_Action actions, _Unwind_Exception_Class class_,
	  struct _Unwind_Exception *e, struct _Unwind_Context *x)
	__attribute__((visibility("hidden")));
_Unwind_Reason_Code
evc__shut_wall(int version, _Unwind_Action actions,
	       _Unwind_Exception_Class class_, struct _Unwind_Exception *e,
	       struct _Unwind_Context *x)
	__attribute__((visibility("hidden")));
#ifdef __aarch64__
#define WALL_SYMBOL_ "S"
#else
#define WALL_SYMBOL_ "i"
#endif
/* The function that this stands in has that personality: who unwinds asks it. */
#define UNWOUND_BY(personality) \
	__asm__ volatile(".cfi_personality 0x1b, %c0" \
			 : : WALL_SYMBOL_(personality))
#else
#define EVC__HAVE_WALLS 0
#define UNWOUND_BY(personality) ((void)0)
#endif

/* Such a function has one call, which is no jump, and nothing else: the compiler
   has no reason to give it a personality, or a second part. */
#if defined __has_attribute
#if __has_attribute(disable_sanitizer_instrumentation)
#define WALL_ATTRIBUTES_ \
	__attribute__((noinline, disable_sanitizer_instrumentation))
#endif
#endif
#ifndef WALL_ATTRIBUTES_
#define WALL_ATTRIBUTES_ __attribute__((noinline, no_sanitize_thread))
#endif
#define NO_JUMP() __asm__ volatile("" : : : "memory")

/* Define a static function that makes this call of a function of the user's,
   and lets no exception out; SHUT: nor the thread's end. */
#define WALLED_BY_(wall, type, name, params, call) \
	WALL_ATTRIBUTES_ static type name params \
	{ \
		type result_; \
		UNWOUND_BY(wall); \
		result_ = call; \
		NO_JUMP(); \
		return result_; \
	}
#define WALLED_VOID_BY_(wall, name, params, call) \
	WALL_ATTRIBUTES_ static void name params \
	{ \
		UNWOUND_BY(wall); \
		call; \
		NO_JUMP(); \
	}
#define WALLED(type, name, params, call) \
	WALLED_BY_(evc__wall, type, name, params, call)
#define WALLED_VOID(name, params, call) \
	WALLED_VOID_BY_(evc__wall, name, params, call)
#define SHUT(type, name, params, call) \
	WALLED_BY_(evc__shut_wall, type, name, params, call)
#define SHUT_VOID(name, params, call) \
	WALLED_VOID_BY_(evc__shut_wall, name, params, call)

/* The commonest of these calls. */
struct evc_coord;
void evc__call_walled(void (*fn)(void *arg), void *arg);
void evc__call_shut(void (*fn)(void *arg), void *arg);
int evc__fn_shut(int (*fn)(struct evc_coord *c, void *arg),
		 struct evc_coord *c, void *arg);
/* Call fn(c, arg).  false: an exception has left it, and ends here.  (Not
   pthread_exit, nor a cancellation: they go on.) */
bool evc__fn_catching(int (*fn)(struct evc_coord *c, void *arg),
		      struct evc_coord *c, void *arg, int *ret_result);

/* How many calls of fn the calling thread is in, those above the frame at
   `outer` alone (NULL: all).  < 0: that cannot be told. */
int evc__calls_of(void (*fn)(void), const void *outer);

#endif
