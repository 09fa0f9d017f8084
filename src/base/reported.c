/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The last error code that the calling thread has reported; see reported.h.
 * Called by: core, members and workers, through the inline functions there.
 * Locks: none; the data is thread-local.
 */
#include "base/reported.h"

__thread struct evc__reported evc__reported;
