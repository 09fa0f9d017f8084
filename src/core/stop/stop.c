/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The request of a stop.
 *
 * Each thread and each signal handler may make a request: a request takes no
 * lock, allocates nothing, keeps errno and is no cancellation point.  A request
 * first fills and publishes a slot with its reason; then a CAS on the word
 * decides whether the request wins.  So a winner always has its reason.  A CAS
 * on the word also sets the first error of a round, even in a stopped round.
 * So the CAS that closes a round fails after such an error.
 *
 * Called by: evc_request_stop, evc_fail, members, scopes, signal handlers; joins
 * and hosts that return.
 * Locks: none; atomics: the word (CAS), slot_word[], errors, own_stop.
 */
#include "base/probe.h"
#include "base/self.h"
#include "base/text.h"
#include "core/core.h"
#include "core/stop/scopes.h"
#include "core/status/trace.h"

/* The result of a request. */
struct outcome {
	evc_status st; /* 0, or the code handed back */
	bool tell;     /* the caller tells all listeners */
	bool error;    /* the request counts as an error of the round */
	bool repeat;   /* the caller records the request again */
};

/* The word w with the request q. */
static uint64_t
word_with(uint64_t w, const struct evc__request *q, unsigned slot, bool error)
{
	/* Without CLOSING the last CAS of a thread that closes the round fails;
	   that thread then looks at the round again. */
	uint64_t next = w & ~WORD_CLOSING;

	if (!(w & WORD_FLAG) && !q->report)
		next |= WORD_FLAG | WORD_WIN(q->code, slot);
	if (error && WORD_ERR_CODE(w) == 0)
		next |= WORD_ERR(q->code, slot);
	return next;
}

/* A clear has ended the round that this request began in.  After a clear of c
   itself the request belongs to the old round, and must not stop the new round.
   A clear of the parent keeps the stop of a scope with own_stop set.  So when
   such a clear has ended the stop, the request came after the clear, and
   belongs to the new round. */
static struct outcome
after_clear(evc_coord *c, const struct evc__request *q, uint64_t w, bool error)
{
	if (c->parent != NULL && q->kind != EVC_BY_PARENT && !q->report &&
	    sync_load_sc(&c->stop.cleared_by_parent) == WORD_STOPS(w))
		return (struct outcome){ .repeat = true };
	return (struct outcome){ .st = error ? q->code : 0 };
}

/* Store in own_stop that the stop with this number has a request besides the
   request of the parent.  own_stop never goes back to an earlier stop. */
static void
set_own_stop(evc_coord *c, uint32_t stop)
{
	uint32_t old = sync_load_sc(&c->stop.own_stop);

	while (((stop - old) & WORD_STOPS_MASK) < WORD_STOPS_MASK / 2)
		if (sync_cas(&c->stop.own_stop, &old, stop))
			break;
}

/* A failed call is no error when the library woke the calling thread for the
   stop, because the wake-up made the call fail.  q->tid is 0 when the calling
   thread itself makes the request. */
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

/* Record the request in a slot and in the word. */
static struct outcome
record_request(evc_coord *c, const struct evc__request *q)
{
	uint64_t w = sync_load(&c->word), next;
	uint32_t stops = WORD_STOPS(w);
	uint64_t at = evc__trace_now(c);
	bool error = is_error(c, w, q);
	bool late = error && (w & WORD_JOINED);
	unsigned slot;

	/* The request is for another stop, or reports a clean code. */
	if ((q->stop != 0 && ((stops + 1) & WORD_STOPS_MASK) != q->stop) ||
	    (q->report && !error))
		return (struct outcome){ 0 };
	/* own_stop is set before this second load of the word; a clear of the
	   parent sets CLOSING before its load of own_stop.  So the clear sees
	   own_stop, or this thread sees the change of the word. */
	if (c->parent != NULL && q->kind != EVC_BY_PARENT && !q->report &&
	    !late) {
		set_own_stop(c, (stops + 1) & WORD_STOPS_MASK);
		w = sync_load_sc(&c->word);
		if (WORD_STOPS(w) != stops)
			return after_clear(c, q, w, error);
	}
	/* evc__slot_claim keeps slot 0 for the winner.  A report never wins:
	   with the flag set, evc__slot_claim gives no slot 0 to the report. */
	slot = evc__slot_claim(c, q->report ? w | WORD_FLAG : w, error, late);
	if (slot != NO_SLOT) {
		evc__slot_fill(c, slot, w, error, q);
		evc__slot_publish(c, slot, w, late);
	}
	if (late)
		return (struct outcome){ .st = q->code };
	do {
		if (WORD_STOPS(w) != stops)
			return after_clear(c, q, w, error);
		error = is_error(c, w, q);
		if (error && (w & WORD_JOINED)) {
			evc__slot_late(c, slot, w);
			return (struct outcome){ .st = q->code };
		}
		next = word_with(w, q, slot, error);
	} while (next != w && !sync_cas(&c->word, &w, next));
	evc__trace_request(c, q, at,
			   TRACE_ASKED(q->code, (next ^ w) & WORD_FLAG,
				       WORD_STOP_NUMBER(next)));
	PROBE5(stop_requested, &c->name[0], q->code, q->kind, q->by, q->text);
	if (error && (WORD_ERR_CODE(w) != 0)) {
		/* A later error does not change the word, so the CAS of a
		   thread that closes the round succeeds.  Therefore this thread
		   counts the error first, and then looks at the word: if the
		   round was closed meanwhile, the caller gets the code back. */
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
record_until_done(evc_coord *c, const struct evc__request *q)
{
	struct outcome o;

	do
		o = record_request(c, q);
	while (o.repeat);
	return o;
}

evc_status
evc__request_record(evc_coord *c, const struct evc__request *q,
		    bool *ret_error)
{
	struct outcome o = record_until_done(c, q);

	*ret_error = o.error;
	return o.st;
}

/* The owner of a stopped scope may free the scope while this thread still tells
   listeners.  Therefore this thread is inside the scope's refgate, and leaves
   the refgate as its last use of the scope. */
static bool
enter_scope(evc_coord *c)
{
	return c->parent == NULL || evc__refgate_enter(&c->life.gate);
}

static void
leave_scope(evc_coord *c)
{
	if (c->parent != NULL)
		evc__refgate_leave(&c->life.gate);
}

evc_status
evc__request(evc_coord *c, const struct evc__request *q)
{
	int e = errno;
	struct outcome o;

	/* In a fork child a request has no effect on a coordinator of the
	   parent process.  A shut refgate means that the scope is being
	   freed. */
	if (!evc__same_process(c) || !enter_scope(c))
		return 0;
	o = record_until_done(c, q);
	/* When the function of a member returns a code that its thread has
	   reported here, the return gives no second reason. */
	if (q->code != 0 && q->by == 0) {
		evc__reported.to = c;
		evc__reported.stops = WORD_STOPS(sync_load(&c->word));
		evc__reported.code = q->code;
		evc__reported.handed_back = o.st > 0;
	}
	/* The winner may sleep after its CAS, so each request tells all
	   listeners. */
	if (o.tell)
		evc__tell_all(c);
	if (o.error && c->parent != NULL)
		evc__scope_error(c, q);
	leave_scope(c);
	errno = e;
	return o.st;
}

/* Make a request with the text and the code of the caller.  *ret_code: the code
   after evc__normal. */
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
		evc__text_ends(&t, text != NULL ? text : "");
		q.text = buf;
	}
	*ret_code = q.code;
	return evc__request(c, &q);
}

evc_status
evc_request_stop_at(evc_coord *c, evc_status code, const char *text,
		    const char *file, int line, const char *func)
{
	evc_status st = evc__check(c, "evc_request_stop"), used;

	return st < 0 ? st
		      : request_formatted(c, code, 0, text, file, line, func,
					  &used);
}

/* evc_fail_at with a va_list. */
static evc_status __attribute__((format(printf, 7, 0)))
vfail(evc_coord *c, evc_status code, int err, const char *file, int line,
      const char *func, const char *fmt, va_list ap)
{
	char buf[TEXT_ROOM];
	struct text t = evc__text_in(buf, sizeof buf);
	evc_status st = evc__check(c, "evc_fail"), used;
	int e = errno;

	if (st < 0)
		return st;
	if (code == 0) {
		code = EVC_UNKNOWN;
		evc__text_add(&t, "failed with code OK: ");
	}
	if (fmt != NULL)
		evc__text_vfmt(&t, fmt, ap);
	request_formatted(c, code, err, buf, file, line, func, &used);
	errno = e;
	return used;
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

/* The macros with these names add file, line and function; other languages use
   the symbols. */
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

	/* A start that a stop refuses is no error.  And a refused call may be a
	   part of another call: then only the inner call reports the
	   refusal. */
	if (status != 0 && q.code != EVC_CANCELLED && c != NULL &&
	    evc__same_process(c) && (c->flags & EVC_STRICT_SETUP) &&
	    evc__refusal_is_new(c))
		evc__request(c, &q);
	return status;
}

void
evc__stop_returned(evc_coord *c, uint32_t stop)
{
	if (stop != 0 && sync_load_sc(&c->stop.n_driving) == 0 &&
	    sync_load_sc(&c->stop.n_host_runs) == 0)
		sync_store_sc(&c->tree->answered, stop);
}

evc_status
evc__refuse_member(evc_coord *c, const char *func, const evc_member_opts *o,
		   evc_status st)
{
	return o != NULL && (o->flags & EVC_MAY_BE_REFUSED) ?
		       st :
		       evc_refuse_setup(c, func, st);
}

bool
evc_should_stop(const evc_coord *c)
{
	return sync_load(&c->word) & WORD_FLAG;
}
