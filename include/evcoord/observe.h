/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a person reads: why it stopped, who is late, what was refused.
 */
#ifndef EVCOORD_OBSERVE_H
#define EVCOORD_OBSERVE_H

#include <evcoord/types.h>

EVC_BEGIN_DECLS_

/*
 * Why did it stop, or why does it not: one paragraph that says who asked for
 * the stop (name and thread id), why, where in the source, when, and what came
 * after.
 *
 * Thread:    any; not a signal handler.
 * Ownership: buf is the caller's; ended by a 0 byte when n > 0; may be NULL
 *            when n is 0.
 * Returns:   as snprintf: the length of the whole text without the 0 byte.
 * Since:     0.1
 */
EVC_API size_t
evc_explain(const evc_coord *c, char *buf, size_t n);

/*
 * All kept reasons and all members alive, as text with one line each.
 *
 * Thread:    any; not a signal handler.
 * Ownership: as evc_explain.
 * Returns:   as evc_explain.
 * Since:     0.1
 */
EVC_API size_t
evc_report(const evc_coord *c, char *buf, size_t n);

/*
 * Why this thread's last call was refused.
 *
 * Thread:    any; the text is the calling thread's own.
 * Ownership: the library's; valid until this thread's next call is refused.
 * Returns:   the text, "" before the first refusal.  A call that succeeds
 *            leaves it as it is.
 * Since:     0.1
 */
EVC_API const char *
evc_last_error(void);

/*
 * The name of a code, such as "DEADLINE_EXCEEDED"; of a negative status, the
 * name of its code.
 *
 * Thread:    any, and any signal handler.
 * Ownership: static text.
 * Returns:   never NULL; "APPLICATION" for 17..255, "?" beyond.
 * Since:     0.1
 */
EVC_API const char *
evc_status_name(evc_status s);

/*
 * The version of the library at run time.
 *
 * Thread:    any, and any signal handler.
 * Ownership: static text.
 * Returns:   EVC_VERSION_STRING of the headers it was built with.
 * Since:     0.1
 */
EVC_API const char *
evc_version(void);

EVC_END_DECLS_

#endif
