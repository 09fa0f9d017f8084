/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of codes, the text of a refused call, the clock of a coordinator, and
 * the checks that all calls share.
 *
 * Called by: every public call; functions of all rooms that read the clock.
 * Locks: none; texts are thread-local, evc__enter enters the refgate.
 */
#include <math.h>
#include <string.h>

#include "base/reserved.h"
#include "base/text.h"
#include "base/unwind.h"
#include "core/core.h"

static __thread char last_error[sizeof((struct evc__last_error *)0)->text];
/* Bytes of a text before its middle is left out. */
#define SAID_SIZE 1024
/* The coordinator that has already recorded the text of last_error as an error;
   or NULL. */
static __thread const evc_coord *error_of;

const char *
evc_status_name(evc_status s)
{
	static const char *const name[] = {
		"OK",
		"CANCELLED",
		"UNKNOWN",
		"INVALID_ARGUMENT",
		"DEADLINE_EXCEEDED",
		"NOT_FOUND",
		"ALREADY_EXISTS",
		"PERMISSION_DENIED",
		"RESOURCE_EXHAUSTED",
		"FAILED_PRECONDITION",
		"ABORTED",
		"OUT_OF_RANGE",
		"UNIMPLEMENTED",
		"INTERNAL",
		"UNAVAILABLE",
		"DATA_LOSS",
		"UNAUTHENTICATED",
	};
	unsigned code = s < 0 ? 0u - (unsigned)s : (unsigned)s;

	if (code < sizeof name / sizeof name[0])
		return name[code];
	return code <= 255 ? "APPLICATION" : "?";
}

const char *
evc_version(void)
{
	return EVC_VERSION_STRING;
}

const char *
evc_last_error(void)
{
	return last_error;
}

evc_status
evc_refuse(evc_status status, const char *fmt, ...)
{
	char said[SAID_SIZE];
	struct text t = evc__lines_in(said, sizeof said);
	va_list ap;

	/* An argument of the new text may be the old text. */
	va_start(ap, fmt);
	evc__text_vfmt(&t, fmt, ap);
	va_end(ap);
	evc__copy_ends(last_error, sizeof last_error, said);
	error_of = NULL;
	return status;
}

struct evc__last_error
evc__last_error_keep(void)
{
	struct evc__last_error kept = { .of = error_of };

	memcpy(kept.text, last_error, sizeof last_error);
	return kept;
}

void
evc__last_error_restore(const struct evc__last_error *kept)
{
	memcpy(last_error, kept->text, sizeof last_error);
	error_of = kept->of;
}

bool
evc__refusal_is_new(const evc_coord *c)
{
	bool is_new = error_of != c;

	error_of = c;
	return is_new;
}

evc_status
evc__refuse_plain(evc_status s, const char *func, const char *why)
{
	struct text t = evc__text_in(last_error, sizeof last_error);

	error_of = NULL;
	evc__text_add(&t, func);
	evc__text_add(&t, ": ");
	evc__text_add(&t, why);
	return s;
}

evc_status
evc__check(const evc_coord *c, const char *func)
{
	if (c != NULL && evc__same_process(c))
		return 0;
	/* The caller may be a signal handler. */
	return c == NULL ?
		       evc__refuse_plain(-EVC_INVALID_ARGUMENT, func,
					 "no coordinator") :
		       evc__refuse_plain(-EVC_FAILED_PRECONDITION, func,
					 "this is a fork child, the "
					 "coordinator is its parent's");
}

evc_status
evc__enter(evc_coord *c, evc_status refused, const char *func)
{
	if (evc__refgate_enter(&c->life.gate))
		return 0;
	return evc__refuse(refused, "%s: the coordinator is being freed",
			   func);
}

evc_status
evc__check_reserved(const uint64_t room[8], const char *func)
{
	if (!evc__reserved_is_zero(room, 8))
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "%s: reserved room is not zero", func);
	return 0;
}

evc_status
evc__check_grace(double grace, const char *func)
{
	if (isnan(grace) || (grace < 0 && grace != EVC_NO_GRACE))
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "%s: grace is not a time", func);
	return 0;
}

evc_status
evc__check_opts(const evc_member_opts *o, unsigned kind, const char *func)
{
	const unsigned looper = EVC_OWN_THREAD | EVC_PAUSED | EVC_FLUSH;
	const unsigned named =
		((1u << 9) - 1) | (kind == EVC_CHILD ? EVC_MAY_FAIL : 0) |
		(kind == EVC_GUARD ? 0 : EVC_MAY_BE_REFUSED) |
		(kind == EVC_REGISTERED ? EVC_NOT_JOINED : 0) |
		(kind == EVC_THREAD ? EVC_OWN_SCOPE : 0);
	bool started, thread;

	if (o == NULL)
		return 0;
	started = kind == EVC_THREAD ||
		  (kind == EVC_LOOPER && (o->flags & EVC_OWN_THREAD));
	thread = started || kind == EVC_REGISTERED || kind == EVC_GUARD;
	if (evc__check_reserved(o->reserved_, func) < 0 ||
	    evc__check_grace(o->grace, func) < 0)
		return -EVC_INVALID_ARGUMENT;
	if (o->flags & ~named)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "%s: unknown flags %#x", func,
				   o->flags & ~named);
	if (!(o->jitter >= 0 && o->jitter <= 1))
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "%s: jitter is not in 0..1", func);
	if (kind != EVC_LOOPER &&
	    ((o->flags & looper) || o->missed != 0 || o->start != NULL ||
	     o->stop != NULL || o->jitter != 0))
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "%s: EVC_OWN_THREAD, EVC_PAUSED, EVC_FLUSH, "
				   "missed, start, stop and jitter are for "
				   "loopers",
				   func);
	if (o->release != NULL && kind != EVC_LOOPER && kind != EVC_HOOK &&
	    kind != EVC_RUNNER)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "%s: release is for loopers, hooks and "
				   "runners",
				   func);
	if (kind != EVC_HOOK && (o->flags & EVC_ON_DRAIN))
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "%s: EVC_ON_DRAIN is for hooks", func);
	if ((o->flags & EVC_KICK) && !thread)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "%s: EVC_KICK is for members with a thread",
				   func);
	if ((o->flags & EVC_WATCHED) && !started)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "%s: EVC_WATCHED is for started threads",
				   func);
	return 0;
}

evc_status
evc__normal(evc_status code, bool *ret_unknown)
{
	unsigned u = code < 0 ? 0u - (unsigned)code : (unsigned)code;

	*ret_unknown = u > 255;
	return u > 255 ? EVC_UNKNOWN : (evc_status)u;
}

bool
evc__is_clean(const evc_coord *c, uint64_t w, evc_status code)
{
	/* After the stop, CANCELLED means that a member obeyed. */
	if (code == EVC_CANCELLED && (w & WORD_FLAG))
		return true;
	return c->status.clean[code / 64] >> (code % 64) & 1;
}

bool
evc_is_clean(const evc_coord *c, evc_status code)
{
	bool unknown;

	code = evc__normal(code, &unknown);
	return !unknown && evc__is_clean(c, sync_load(&c->word), code);
}

/* ---- the clock ---- */

WALLED(uint64_t, call_clock, (const evc_coord *c),
       c->status.clock(c->status.clock_arg))

uint64_t
evc__now(const evc_coord *c)
{
	return c->status.clock != NULL ? call_clock(c) : sync_mono();
}

uint64_t
evc__real_ns(const evc_coord *c, uint64_t ns)
{
	return c->status.clock != NULL && ns != SYNC_FOREVER &&
			       ns > BACKOFF_MOST_NS
		       ? BACKOFF_MOST_NS
		       : ns;
}
