/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The libev loop of any reactor, for parts of the library that are built on the
 * public headers.  This interface may change with each release.
 */
#ifndef EVCOORD_UNSTABLE_INNER_LOOP_H
#define EVCOORD_UNSTABLE_INNER_LOOP_H

#include <evcoord/types.h>

EVC_BEGIN_DECLS_

/*
 * Get the libev loop that makes the turns of a reactor: that of
 * evc_reactor_loop, or, of a hosted reactor, the library's own, which
 * evc_reactor_turn runs.  On the latter only watchers that need neither a
 * descriptor nor a time work, such as an ev_prepare.
 *
 * Thread:    that loop's thread.
 * Ownership: the loop stays its owner's.
 * Returns:   the loop; NULL for NULL, or when the loop was destroyed.
 * Since:     0.2
 */
EVC_API struct ev_loop *
evc_reactor_inner_loop(const evc_reactor *r);

EVC_END_DECLS_

#endif
