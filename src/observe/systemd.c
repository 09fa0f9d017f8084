/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls that tell the service manager.
 * Called by: the program (evc_systemd_start, _ready, _reloading, _notify,
 * _stop).
 * Locks: the coordinator's, taken; sd->looper needs the lock.
 */
#include "observe/systemd.h"

#include <math.h>

#include "base/libc.h"
#include "core/core.h"
#include "core/join/join.h"

#define STATUS_EVERY 0.25
#define EXTEND 5.0
/* The manager reads so much at once. */
#define LINES_MOST 4096

/* A number from the environment; false: there is none. */
static bool
env_number(const char *name, uint64_t *ret)
{
	const char *s = getenv(name);
	unsigned long long v;
	char *end;

	if (s == NULL || s[0] < '0' || s[0] > '9')
		return false;
	errno = 0;
	v = strtoull(s, &end, 10);
	*ret = v;
	return *end == '\0' && errno == 0;
}

/* Seconds between two signs of life; 0: none are wanted. */
static double
watchdog_interval(const evc_systemd_opts *o)
{
	uint64_t us, pid;
	int e = errno;
	bool ours;

	if (o->watchdog != 0)
		return o->watchdog > 0 ? o->watchdog : 0;
	/* Is the variable meant for this process, or inherited from another? */
	ours = getenv("WATCHDOG_PID") == NULL ||
	       (env_number("WATCHDOG_PID", &pid) && pid == (uint64_t)getpid());
	if (!ours || !env_number("WATCHDOG_USEC", &us))
		us = 0;
	errno = e;
	return (double)us / 1e6 / 2;
}

/* ---- the start ---- */

static evc_status
check_seconds(double s, bool may_be_negative, const char *what)
{
	if (isfinite(s) && (s >= 0 || may_be_negative))
		return 0;
	return evc__refuse(-EVC_INVALID_ARGUMENT,
			   "evc_systemd_start: %s is not a time", what);
}

static evc_status
check_systemd_opts(const evc_coord *c, const evc_systemd_opts *o)
{
	evc_status st = evc__check_reserved(o->reserved_, "evc_systemd_start");

	if (st == 0 && c->parent != NULL)
		st = evc__refuse(-EVC_FAILED_PRECONDITION,
				 "evc_systemd_start: %s is a scope", c->name);
	if (st == 0)
		st = check_seconds(o->status_every, false, "status_every");
	if (st == 0)
		st = check_seconds(o->extend, true, "extend");
	if (st == 0)
		st = check_seconds(o->watchdog, true, "watchdog");
	if (st == 0 && o->reactor != NULL && o->reactor->c != c)
		st = evc__refuse(-EVC_INVALID_ARGUMENT,
				 "evc_systemd_start: another coordinator's "
				 "reactor");
	return st;
}

static evc_status
refuse_second(const evc_coord *c)
{
	return evc__refuse(-EVC_ALREADY_EXISTS,
			   "evc_systemd_start: %s tells already", c->name);
}

static bool
has_manager(evc_coord *c)
{
	bool yes;

	sync_lock(&c->lock);
	yes = c->life.systemd != NULL;
	sync_unlock(&c->lock);
	return yes;
}

static evc_status
make_systemd(evc_coord *c, const evc_systemd_opts *o, const char *name,
	     struct evc__systemd **ret)
{
	struct evc__systemd *sd = sync_alloc(1, sizeof *sd);
	uint64_t every;

	if (sd == NULL)
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				   "evc_systemd_start: no memory");
	if (!evc__manager_address(&sd->manager, name)) {
		sync_free(sd);
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "evc_systemd_start: no path, and no "
				   "@name, or too long: %.120s",
				   name);
	}
	sd->manager.fd = sync_dgram();
	if (sd->manager.fd < 0) {
		sync_free(sd);
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				   "evc_systemd_start: no socket");
	}
	sd->c = c;
	sd->listener.tell = evc__systemd_tell;
	sd->job.run = evc__systemd_run;
	list_init(&sd->job.node);
	every = evc__ns(o->status_every == 0 ? STATUS_EVERY : o->status_every);
	/* At least so long, or the helper thread would spin. */
	sd->status_ns = every > BACKOFF_FIRST_NS ? every : BACKOFF_FIRST_NS;
	sd->extend = o->extend == 0 ? EXTEND : o->extend;
	sd->watchdog = watchdog_interval(o);
	sd->reactor = o->reactor != NULL ? o->reactor : evc__home(c);
	*ret = sd;
	return 0;
}

static void
free_systemd(struct evc__systemd *sd)
{
	sync_fd_close(sd->manager.fd);
	sync_free(sd);
}

static void end_systemd(evc_coord *c);

/* Lock held: hear of stops and drains from now on, also of the present stop. */
static evc_status
enrol_systemd(struct evc__systemd *sd)
{
	evc_coord *c = sd->c;

	if (c->life.systemd != NULL)
		return refuse_second(c);
	if (!evc__listen(c, &sd->listener))
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				   "evc_systemd_start: no memory");
	if (!evc__helper_job_add(c, &sd->job)) {
		evc__unlisten(c, &sd->listener);
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				   "evc_systemd_start: no helper thread");
	}
	c->life.systemd = sd;
	c->life.release_systemd = end_systemd;
	/* First into the table, then the look. */
	evc__systemd_tell(&sd->listener);
	return 0;
}

/* Lock held, given up meanwhile: no thread tells any more, but the looper;
   NULL: nothing told. */
static struct evc__systemd *
withdraw_systemd(evc_coord *c)
{
	struct evc__systemd *sd = c->life.systemd;

	if (sd == NULL)
		return NULL;
	c->life.systemd = NULL;
	c->life.release_systemd = NULL;
	evc__helper_job_remove(c, &sd->job);
	evc__unlisten(c, &sd->listener);
	return sd;
}

static evc_status
start_systemd(evc_coord *c, const evc_systemd_opts *o)
{
	const char *name = o->socket;
	struct evc__systemd *sd = NULL;
	evc_status st;

	if (has_manager(c))
		return refuse_second(c);
	if (name == NULL)
		name = getenv("NOTIFY_SOCKET");
	if (name == NULL || (o->socket == NULL && name[0] == '\0'))
		return evc__refuse(-EVC_NOT_FOUND,
				   "evc_systemd_start: no NOTIFY_SOCKET");
	st = make_systemd(c, o, name, &sd);
	if (st < 0)
		return st;
	sync_lock(&c->lock);
	st = enrol_systemd(sd);
	sync_unlock(&c->lock);
	if (st == 0 && sd->watchdog > 0) {
		st = evc__systemd_watch(sd);
		if (st < 0) {
			sync_lock(&c->lock);
			withdraw_systemd(c);
			sync_unlock(&c->lock);
		}
	}
	if (st < 0)
		free_systemd(sd);
	return st;
}

evc_status
evc_systemd_start(evc_coord *c, const evc_systemd_opts *opts)
{
	static const evc_systemd_opts none;
	const evc_systemd_opts *o = opts != NULL ? opts : &none;
	evc_status st = evc__check(c, __func__);

	if (st == 0)
		st = check_systemd_opts(c, o);
	if (st == 0)
		st = start_systemd(c, o);
	/* No manager is no error. */
	return st == -EVC_NOT_FOUND ? st : evc__refuse_setup(c, __func__, st);
}

/* ---- the rest ---- */

static evc_status
send_lines(evc_coord *c, const char *lines, size_t n, const char *func)
{
	evc_status st = 0;

	/* The lock keeps the manager; a datagram never blocks. */
	sync_lock(&c->lock);
	if (c->life.systemd == NULL)
		st = evc__refuse(-EVC_NOT_FOUND, "%s: %s tells nobody", func,
				 c->name);
	else if (!evc__manager_send(&c->life.systemd->manager, lines, n))
		st = evc__refuse(-EVC_UNAVAILABLE, "%s: %s", func,
				 evc__errno_text(errno) != NULL ?
					 evc__errno_text(errno) :
					 "not sent");
	sync_unlock(&c->lock);
	return st;
}

static evc_status
refuse_length(const char *func)
{
	return evc__refuse(-EVC_INVALID_ARGUMENT,
			   "%s: more than %d bytes", func, LINES_MOST);
}

/* Send a state, with STATUS= unless status is NULL. */
static evc_status
send_state(evc_coord *c, const char *state, const char *status,
	   const char *func)
{
	char lines[LINES_MOST + 1];
	struct text t = evc__text_in(lines, sizeof lines);
	evc_status st = evc__check(c, func);

	if (st < 0)
		return st;
	evc__text_add(&t, state);
	if (status != NULL && strchr(status, '\n') != NULL)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "%s: a status is one line", func);
	t.lines = true;
	if (status != NULL) {
		evc__text_add(&t, "STATUS=");
		evc__text_add(&t, status);
		evc__text_fmt(&t, "\n");
	}
	if (t.len > LINES_MOST)
		return refuse_length(func);
	return send_lines(c, lines, t.len, func);
}

evc_status
evc_systemd_ready(evc_coord *c, const char *status)
{
	return send_state(c, "READY=1\n", status, __func__);
}

evc_status
evc_systemd_reloading(evc_coord *c, const char *status)
{
	char state[64];
	struct text t = evc__text_in(state, sizeof state);

	/* The manager compares the time with its own, so no clock of the
	   program's is asked. */
	evc__text_fmt(&t, "RELOADING=1\nMONOTONIC_USEC=%llu\n",
		      (unsigned long long)(sync_mono() / 1000));
	return send_state(c, state, status, __func__);
}

evc_status
evc_systemd_notify(evc_coord *c, const char *lines)
{
	evc_status st = evc__check(c, __func__);

	if (st < 0)
		return st;
	if (lines == NULL || lines[0] == '\0')
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "evc_systemd_notify: nothing to say");
	if (strlen(lines) > LINES_MOST)
		return refuse_length(__func__);
	return send_lines(c, lines, strlen(lines), __func__);
}

evc_status
evc_systemd_stop(evc_coord *c)
{
	evc_status st = evc__check(c, __func__);
	struct evc__systemd *sd;
	bool watches;

	if (st < 0)
		return st;
	sync_lock(&c->lock);
	sd = withdraw_systemd(c);
	/* A looper that has ended with a stop is not removed again. */
	watches = sd != NULL && sd->looper != 0 &&
		  evc__id_find(c, sd->looper) != NULL;
	sync_unlock(&c->lock);
	if (sd == NULL)
		return evc__refuse(-EVC_NOT_FOUND,
				   "evc_systemd_stop: %s tells nobody",
				   c->name);
	if (watches)
		(void)evc_member_remove(c, sd->looper);
	free_systemd(sd);
	return 0;
}

/* The coordinator goes: no member is alive, also not the looper. */
static void
end_systemd(evc_coord *c)
{
	struct evc__systemd *sd;

	sync_lock(&c->lock);
	sd = withdraw_systemd(c);
	sync_unlock(&c->lock);
	if (sd == NULL)
		return;
	evc__systemd_last_word(sd);
	free_systemd(sd);
}
