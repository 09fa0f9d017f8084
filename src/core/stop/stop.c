/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The request of a stop.
 *
 * Takes no lock, allocates nothing, keeps errno, is no cancellation point: safe
 * in any thread and any signal handler.  A slot is claimed, filled and
 * published first, then the CAS on the word wins or not: so a winner is never
 * without its reason.  The first error is set by CAS too, also when the flag
 * stands already: so the CAS that closes a round cannot miss an error.
 *
 * Called by: evc_request_stop and its kin, members, scopes, signal handlers.
 * Locks: none; atomics: the word (CAS), slot_word[], errors, own_stop.
 */
#include "base/reported.h"
#include "base/text.h"
#include "core/core.h"
#include "core/stop/scopes.h"
#include "core/status/trace.h"

/* The result of a request. */
struct outcome {
	evc_status st; /* 0, or the code handed back */
	bool tell;     /* all listeners are to be told */
	bool error;    /* the request counts as an error of the round */
	bool again;    /* nothing was done; the request starts again */
};

/* The word with the request added. */
static uint64_t
with(uint64_t w, const struct evc__request *q, unsigned slot, bool error)
{
	/* The thread that closes the round starts again when a request came
	   in. */
	uint64_t next = w & ~WORD_CLOSING;

	if (!(w & WORD_FLAG) && !q->report)
		next |= WORD_FLAG | WORD_WIN(q->code, slot);
	if (error && WORD_ERR_CODE(w) == 0)
		next |= WORD_ERR(q->code, slot);
	return next;
}

/* Cleared meanwhile: this request came before the clear, and must not stop the
   new round.  But a clear of the parent would have left this request alone:
   then the request came after. */
static struct outcome
stale(evc_coord *c, const struct evc__request *q, uint64_t w, bool error)
{
	if (c->parent != NULL && q->kind != EVC_BY_PARENT && !q->report &&
	    sync_load_sc(&c->stop.cleared_by_parent) == WORD_STOPS(w))
		return (struct outcome){ .again = true };
	return (struct outcome){ .st = error ? q->code : 0 };
}

/* Note that the stop with this number has a request besides the parent's; a
   mark of a later stop stays. */
static void
mark_own(evc_coord *c, uint32_t stop)
{
	uint32_t old = sync_load_sc(&c->stop.own_stop);

	while (((stop - old) & WORD_STOPS_MASK) < WORD_STOPS_MASK / 2)
		if (sync_cas(&c->stop.own_stop, &old, stop))
			break;
}

/* A failed call is no error when the stop made the call fail: the member was
   woken out of that call. */
static bool
is_error(const evc_coord *c, uint64_t w, const struct evc__request *q)
{
	if (evc__is_clean(c, w, q->code))
		return false;
	return !((w & WORD_FLAG) && q->tid == 0 &&
		 (q->err == EINTR || q->err == ECANCELED ||
		  q->err == ESHUTDOWN) &&
		 evc__woken(c, WORD_STOP_NUMBER(w)));
}

static struct outcome
record(evc_coord *c, const struct evc__request *q)
{
	uint64_t w = sync_load(&c->word), next;
	uint32_t stops = WORD_STOPS(w);
	uint64_t at = evc__trace_now(c);
	bool error = is_error(c, w, q);
	bool late = error && (w & WORD_JOINED);
	unsigned slot;

	if ((q->stop != 0 && ((stops + 1) & WORD_STOPS_MASK) != q->stop) ||
	    (q->report && !error))
		return (struct outcome){ 0 };
	/* Set before the word is read again: a clear of the parent sets
	   CLOSING, then looks here. */
	if (c->parent != NULL && q->kind != EVC_BY_PARENT && !q->report &&
	    !late) {
		mark_own(c, (stops + 1) & WORD_STOPS_MASK);
		w = sync_load_sc(&c->word);
		if (WORD_STOPS(w) != stops)
			return stale(c, q, w, error);
	}
	/* A report leaves the winner's slot alone. */
	slot = evc__slot_claim(c, q->report ? w | WORD_FLAG : w, error, late);
	if (slot != NO_SLOT) {
		evc__slot_fill(c, slot, w, error, q);
		evc__slot_publish(c, slot, w, late);
	}
	if (late)
		return (struct outcome){ .st = q->code };
	do {
		if (WORD_STOPS(w) != stops)
			return stale(c, q, w, error);
		error = is_error(c, w, q);
		if (error && (w & WORD_JOINED)) {
			evc__slot_late(c, slot, w);
			return (struct outcome){ .st = q->code };
		}
		next = with(w, q, slot, error);
	} while (next != w && !sync_cas(&c->word, &w, next));
	evc__trace_request(c, q, at,
			   TRACE_ASKED(q->code, (next ^ w) & WORD_FLAG,
				       WORD_STOP_NUMBER(next)));
	if (error && (WORD_ERR_CODE(w) != 0)) {
		/* Not the first error, so no CAS of this thread meets the one
		   that closes the round: count the error, then look whether the
		   round was closed. */
		evc__error_count(c, next);
		w = sync_load_sc(&c->word);
		if (WORD_STOPS(w) != stops || (w & WORD_JOINED))
			return (struct outcome){ .st = q->code };
	}
	if (q->report && slot != NO_SLOT)
		sync_store(&c->stop.slot[slot].reported, true);
	return (struct outcome){ .tell = !q->report, .error = error };
}

static struct outcome
put_request(evc_coord *c, const struct evc__request *q)
{
	struct outcome o;

	do
		o = record(c, q);
	while (o.again);
	return o;
}

evc_status
evc__request_record(evc_coord *c, const struct evc__request *q,
		    bool *ret_error)
{
	struct outcome o = put_request(c, q);

	*ret_error = o.error;
	return o.st;
}

/* The last touch of a scope is to leave its refgate: a stopped scope may be
   freed by its owner while this thread still tells. */
static bool
keep(evc_coord *c)
{
	return c->parent == NULL || evc__refgate_enter(&c->life.gate);
}

static void
let_go(evc_coord *c)
{
	if (c->parent != NULL)
		evc__refgate_leave(&c->life.gate);
}

evc_status
evc__request(evc_coord *c, const struct evc__request *q)
{
	int e = errno;
	struct outcome o;

	/* In a fork child: a function of the parent's that returns there has no
	   request to make. */
	if (!evc__same_process(c) || !keep(c))
		return 0;
	o = put_request(c, q);
	if (q->code != 0 && q->by == 0) {
		evc__reported.to = c;
		evc__reported.stops = WORD_STOPS(sync_load(&c->word));
		evc__reported.code = q->code;
		evc__reported.handed_back = o.st > 0;
	}
	/* Winner or not: the winner may be frozen after its CAS. */
	if (o.tell)
		evc__tell_all(c);
	if (o.error && c->parent != NULL)
		evc__scope_error(c, q);
	let_go(c);
	errno = e;
	return o.st;
}

/* A request with the text and the code of the caller. */
static evc_status
request_formatted(evc_coord *c, evc_status code, int err, const char *text,
		  const char *file, int line, const char *func,
		  evc_status *ret_code)
{
	struct evc__request q = { .err = err,
				  .file = file,
				  .line = line,
				  .func = func };
	char buf[sizeof((evc_reason *)0)->text];
	bool unknown;

	q.code = evc__normal(code, &unknown);
	q.text = text;
	if (unknown) {
		struct text t = evc__text_in(buf, sizeof buf);

		evc__text_add(&t, "code ");
		evc__text_int(&t, code);
		evc__text_add(&t, " is none: ");
		evc__text_add(&t, text != NULL ? text : "");
		q.text = buf;
	}
	*ret_code = q.code;
	return evc__request(c, &q);
}

evc_status
evc_request_stop_at(evc_coord *c, evc_status code, const char *text,
		    const char *file, int line, const char *func)
{
	evc_status st = evc__check(c, "evc_request_stop"), as;

	return st < 0 ? st
		      : request_formatted(c, code, 0, text, file, line, func,
					  &as);
}

static evc_status
vfail(evc_coord *c, evc_status code, int err, const char *file, int line,
      const char *func, const char *fmt, va_list ap)
{
	char buf[sizeof((evc_reason *)0)->text];
	struct text t = evc__text_in(buf, sizeof buf);
	evc_status st = evc__check(c, "evc_fail"), as;
	int e = errno;

	if (st < 0)
		return st;
	if (code == 0) {
		code = EVC_UNKNOWN;
		evc__text_add(&t, "failed with code OK: ");
	}
	if (fmt != NULL)
		evc__text_vfmt(&t, fmt, ap);
	request_formatted(c, code, err, buf, file, line, func, &as);
	errno = e;
	return as;
}

evc_status
evc_fail_at(evc_coord *c, evc_status code, int err, const char *file,
	    int line, const char *func, const char *fmt, ...)
{
	va_list ap;
	evc_status st;

	va_start(ap, fmt);
	st = vfail(c, code, err, file, line, func, fmt, ap);
	va_end(ap);
	return st;
}

/* The macros of these names add a place; the symbols serve other languages. */
#undef evc_request_stop
evc_status
evc_request_stop(evc_coord *c, evc_status code, const char *text)
{
	return evc_request_stop_at(c, code, text, NULL, 0, NULL);
}

#undef evc_fail
evc_status
evc_fail(evc_coord *c, evc_status code, int err, const char *fmt, ...)
{
	va_list ap;
	evc_status st;

	va_start(ap, fmt);
	st = vfail(c, code, err, NULL, 0, NULL, fmt, ap);
	va_end(ap);
	return st;
}

evc_status
evc_refuse_setup(evc_coord *c, const char *func, evc_status status)
{
	struct evc__request q = { .code = status < 0 ? -status : status,
				  .kind = EVC_BY_ERROR,
				  .text = evc_last_error(),
				  .func = func };

	/* A start that is refused because of a stop is no error.  And one call
	   may be built on another call, which has reported the refusal. */
	if (status != 0 && q.code != EVC_CANCELLED && c != NULL &&
	    evc__same_process(c) && (c->flags & EVC_STRICT_SETUP) &&
	    evc__refusal_is_new(c))
		evc__request(c, &q);
	return status;
}

bool
evc_should_stop(const evc_coord *c)
{
	return sync_load(&c->word) & WORD_FLAG;
}
