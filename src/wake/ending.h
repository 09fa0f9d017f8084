/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lines of the log near the end of a stop.
 */
#ifndef EVC_WAKE_ENDING_H
#define EVC_WAKE_ENDING_H

#include <evcoord.h>

/* Lock held: the helper thread writes the lines for c from now on; for a root a
   watch thread is made, too, and for at_end the thread that ends the process.
   false: no memory or no thread to be had. */
bool evc__ending_need(evc_coord *c, bool at_end);

#endif
