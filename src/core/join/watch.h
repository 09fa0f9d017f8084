/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The watch thread of a tree, and the thread that ends the process.
 */
#ifndef EVC_CORE_WATCH_H
#define EVC_CORE_WATCH_H

#include "core/join/join.h"

/* Root's lock held: make the watch thread, unless there is one, and with at_end
   the thread that ends the process.  false: no memory or no thread to be
   had. */
bool evc__watch_need(evc_coord *root, bool at_end);
/* No lock: the time of the root's stop is over.  Wait until the report of the
   helper is in the log and all lines are handed out, or a hook hangs; ns at
   most. */
void evc__await_report(evc_coord *c, uint32_t stop, uint64_t ns);
/* No other thread can reach the root: end both threads. */
void evc__watch_end(evc_coord *root);

#endif
