/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evcoord - stop a libev program well.
 *
 * A coordinator is a stop event, a register of members, and a join.  Anyone
 * may ask for the stop; the stop reaches event loops through an ev_async
 * watcher and threads through one futex word and one descriptor; the join
 * waits until every member has ended and says exactly who did not.
 *
 * This header brings in the rest.  None of them includes ev.h, so they stand
 * next to libevent's headers; all are clean in C99 and in C++11.
 *
 * Rules that hold everywhere:
 *   - evc_status: 0 is fine; > 0 is a code that somebody reported; < 0 is
 *     -code, this call was refused, nothing changed, what ret_... points to
 *     was not touched, and evc_last_error() says why.
 *   - Order of arguments: object, name, what it is, fn, arg, opts, ret.
 *     opts and ret_... may be NULL, except the result of a constructor.
 *   - An option struct is NULL or {0} for the defaults; its reserved room
 *     must be zero.
 *   - Time is a double, in seconds, on the monotonic clock.
 *   - Callbacks are never called under a lock and never in the thread that
 *     asks for the stop: they run on the loop or thread that owns the member.
 */
#ifndef EVCOORD_H
#define EVCOORD_H

#include <evcoord/version.h>
#include <evcoord/types.h>
#include <evcoord/coord.h>
#include <evcoord/reactor.h>
#include <evcoord/members.h>
#include <evcoord/looper.h>
#include <evcoord/runner.h>
#include <evcoord/scope.h>
#include <evcoord/join.h>
#include <evcoord/wake.h>
#include <evcoord/escalation.h>
#include <evcoord/signals.h>
#include <evcoord/observe.h>
#include <evcoord/trace.h>
#include <evcoord/systemd.h>
#include <evcoord/post.h>
#include <evcoord/group.h>
#include <evcoord/queue.h>
#include <evcoord/pool.h>

#endif
