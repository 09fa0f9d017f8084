/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What reports of a registry show, taken group by group.
 * Called by: report.c, report_json.c and report_metrics.c.
 * Locks: none of its own; the public calls take them.
 */
#include "group/report.h"

#include <stdio.h>

#include "base/sync.h"

#define SOME 16

/* ---- names ---- */

const char *
evc__group_state(unsigned state)
{
	static const char *const name[] = {
		"new", "starting", "running", "paused", "stopping", "stopped",
	};
	unsigned i = state - EVC_GROUP_NEW;

	return i < sizeof name / sizeof name[0] ? name[i] : "?";
}

const char *
evc__group_reason(unsigned kind)
{
	static const char *const name[] = {
		"?",	  "request", "error",	    "member end",
		"signal", "empty",   "loop broken", "parent",
	};

	return name[kind < sizeof name / sizeof name[0] ? kind : 0];
}

void
evc__text_double(struct text *t, double v)
{
	char digits[40], *s;

	snprintf(digits, sizeof digits, "%.15g", v);
	if (strtod(digits, NULL) != v)
		snprintf(digits, sizeof digits, "%.17g", v);
	/* The other bytes are the locale's point, of one byte or more. */
	for (s = digits; *s != '\0'; s++)
		if (strchr("+-0123456789e", *s) == NULL) {
			size_t n = strcspn(s, "+-0123456789e");

			*s = '.';
			memmove(s + 1, s + n, strlen(s + n) + 1);
		}
	evc__text_add(t, digits);
}

/* ---- one group ---- */

/* Twice the room, for elements of this size; false: no memory, nothing
   changed. */
static bool
grow(void **array, size_t n, size_t *room, size_t size)
{
	size_t more = *room > 0 ? 2 * *room : SOME;
	void *p = sync_alloc(more, size);

	if (p == NULL)
		return false;
	if (n > 0)
		memcpy(p, *array, n * size);
	sync_free(*array);
	*array = p;
	*room = more;
	return true;
}

static void
take_workers(evc_group *g, struct evc__group_facts *f)
{
	evc_worker_info w;
	void *all = NULL;
	size_t room = 0;
	unsigned i;

	for (i = 0; evc_group_worker_get(g, i, &w) == 0; i++) {
		if (i == room && !grow(&all, i, &room, sizeof w)) {
			f->lost = true;
			break;
		}
		((evc_worker_info *)all)[i] = w;
	}
	f->worker = all;
	f->n_workers = i;
}

static void
take_errors(evc_group *g, struct evc__group_facts *f)
{
	evc_worker_error e;
	void *all = NULL;
	size_t room = 0;
	unsigned i;

	for (i = 0; evc_group_error_get(g, i, &e) == 0; i++) {
		if (i == room && !grow(&all, i, &room, sizeof e)) {
			f->lost = true;
			break;
		}
		((evc_worker_error *)all)[i] = e;
	}
	f->error = all;
	f->n_errors = i;
}

static void
take_metrics(evc_group *g, struct evc__group_facts *f)
{
	size_t n = evc_group_metrics(g, NULL, 0), have;

	if (n == 0)
		return;
	f->metric = sync_alloc(n, sizeof *f->metric);
	if (f->metric == NULL) {
		f->lost = true;
		return;
	}
	/* By now there may be more metrics. */
	have = evc_group_metrics(g, f->metric, n);
	f->n_metrics = have < n ? have : n;
}

/* ---- all of them ---- */

struct registry_walk {
	struct evc__registry_facts *f;
	bool with_errors;
};

static bool
take_group(evc_group *g, void *arg)
{
	struct registry_walk *k = arg;
	struct evc__registry_facts *f = k->f;
	struct evc__group_facts *new;
	void *all = f->group;
	size_t i;

	if (f->n == f->room && !grow(&all, f->n, &f->room, sizeof *new)) {
		f->lost++;
		return true;
	}
	f->group = all;
	new = &f->group[f->n];
	memset(new, 0, sizeof *new);
	if (evc_group_get(g, &new->info) < 0)
		return true;
	for (i = 0; i < f->n; i++)
		new->same += strcmp(f->group[i].info.name, new->info.name) == 0;
	take_workers(g, new);
	take_metrics(g, new);
	if (k->with_errors)
		take_errors(g, new);
	f->n++;
	return true;
}

evc_status
evc__registry_facts(evc_registry *reg, bool with_errors,
		    struct evc__registry_facts *ret)
{
	struct registry_walk k = { ret, with_errors };
	char before[256];
	evc_status st;

	memset(ret, 0, sizeof *ret);
	ret->mono_ns = sync_mono();
	ret->real_ns = sync_real();
	/* A refused call ends each list. */
	evc__copy(before, sizeof before, evc_last_error());
	st = evc_registry_each(reg, take_group, &k);
	if (st == 0)
		(void)evc_refuse(0, "%s", before);
	return st;
}

void
evc__registry_facts_free(struct evc__registry_facts *f)
{
	size_t i;

	for (i = 0; i < f->n; i++) {
		sync_free(f->group[i].worker);
		sync_free(f->group[i].error);
		sync_free(f->group[i].metric);
	}
	sync_free(f->group);
}
