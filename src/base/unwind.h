/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames of the library that are unwound: by an exception of C++ (or any throw
 * by way of libgcc), by pthread_exit and by cancellation.
 *
 * A throw has two phases: a search for a handler, with the stack intact, and
 * the unwinding, frame by frame.  In most calls of a program's function the
 * search must fail, because lists of the library lead into the frames: such a
 * call is WALLED, the search ends at the wall, and the throw calls
 * std::terminate with the stack intact.  Where an exception may pass, a
 * variable that is linked into a list is marked LEAVING, with the function that
 * unlinks the variable.
 *
 * The end of a thread has no search phase.  Where a loop or the helper thread
 * must not be left half-way, the wall is SHUT: pthread_exit calls abort there.
 *
 * Walls exist on amd64 and arm64; elsewhere exceptions pass.
 */
#ifndef EVC_BASE_UNWIND_H
#define EVC_BASE_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <unwind.h>

/* fn(&variable) is called when the block is left in any way. */
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
/* Give the function this personality, which decides during an unwinding. */
#define UNWOUND_BY(personality) \
	__asm__ volatile(".cfi_personality 0x1b, %c0" \
			 : : WALL_SYMBOL_(personality))
#else
#define EVC__HAVE_WALLS 0
#define UNWOUND_BY(personality) ((void)0)
#endif

/* A walled function has one call, which is no jump, and nothing else: so the
   compiler adds no personality and no second part. */
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

/* Define a static function that calls a program's function and lets no
   exception out; SHUT: nor the end of the thread. */
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

/* The most common walled calls. */
struct evc_coord;
void evc__call_walled(void (*fn)(void *arg), void *arg);
void evc__call_shut(void (*fn)(void *arg), void *arg);
int evc__fn_shut(int (*fn)(struct evc_coord *c, void *arg),
		 struct evc_coord *c, void *arg);
/* Call fn(c, arg).  false: an exception has left fn, and ends here.
   (pthread_exit and a cancellation go on.) */
bool evc__fn_catching(int (*fn)(struct evc_coord *c, void *arg),
		      struct evc_coord *c, void *arg, int *ret_result);

/* The number of calls of fn on the calling thread's stack, above the frame at
   `outer` (NULL: on the whole stack).  < 0: not known. */
int evc__calls_of(void (*fn)(void), const void *outer);

#endif
