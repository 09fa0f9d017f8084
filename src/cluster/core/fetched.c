/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From a value to its remotes, and back with their results.
 * Called by: fetch_start.c; cluster/calls.
 * Locks: the cluster's lock, taken for look-ups.
 */
#include "cluster/core/fetch.h"

#include "base/array.h"

/* ---- to the remotes ---- */

static bool
collect_ref(const struct walk_ref *ref, void *arg)
{
	struct ref_list *l = arg;

	l->no_memory = !ARRAY_RESERVE(l->at, l->n, l->room, 1);
	if (!l->no_memory)
		l->at[l->n++] = *ref;
	return !l->no_memory;
}

evc_status
evc__refs_add(struct ref_list *l, const evc_value *v)
{
	evc_status st = evc__value_walk(v->data, v->size, collect_ref, l);

	return st == 0 && l->no_memory ?
		       evc_refuse(-EVC_RESOURCE_EXHAUSTED, "no memory") : st;
}

static evc_status
check_ref(const evc_cluster *cl, const struct walk_ref *ref)
{
	if (ref->per_worker)
		return evc_refuse(-EVC_UNIMPLEMENTED,
				  "a per-worker value is on the workers alone:"
				  " pass it to a function, by evc_schedule");
	if (ref->serial != cl->serial)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "a remote of another cluster stands in the"
				  " value");
	return 0;
}

/* Lock held. */
static evc_status
hold_remotes(evc_cluster *cl, const struct ref_list *refs, struct fetched *f)
{
	evc_remote *r;
	size_t i;

	for (i = 0; i < refs->n; i++) {
		r = evc__remote_find(cl, refs->at[i].id);
		if (r == NULL || !evc__remote_hold(r))
			return evc_refuse(-EVC_INVALID_ARGUMENT,
					  "a remote in the value is not there"
					  " any more");
		f->remotes[f->n++] = r;
	}
	return 0;
}

evc_status
evc__fetched_find(evc_cluster *cl, const evc_value *value, struct fetched *ret)
{
	struct fetched f = { NULL, 0 };
	struct ref_list refs = { .n = 0 };
	evc_status st = value != NULL ? evc__refs_add(&refs, value) : 0;
	unsigned i;

	for (i = 0; st == 0 && i < refs.n; i++)
		st = check_ref(cl, &refs.at[i]);
	if (st == 0 && refs.n > 0) {
		f.remotes = sync_alloc(refs.n, sizeof(evc_remote *));
		if (f.remotes == NULL)
			st = evc_refuse(-EVC_RESOURCE_EXHAUSTED, "no memory");
	}
	if (st == 0) {
		sync_lock(&cl->q.lock);
		st = hold_remotes(cl, &refs, &f);
		sync_unlock(&cl->q.lock);
	}
	sync_free(refs.at);
	if (st < 0)
		evc__fetched_drop(cl, &f);
	else
		*ret = f;
	return st;
}

void
evc__fetched_drop(evc_cluster *cl, struct fetched *f)
{
	size_t i;

	/* The last remote could free the cluster. */
	evc__cluster_ref(cl);
	for (i = 0; i < f->n; i++)
		evc_remote_free(f->remotes[i]);
	sync_free(f->remotes);
	evc__cluster_unref(cl);
}

/* ---- and back ---- */

/* Bytes of a text for evc_refuse, which leaves out the middle of a long one. */
#define SHORT_SIZE 900

evc_status
evc__remote_outcome(evc_remote *r, evc_value *ret)
{
	static const evc_value nil;
	char text[SHORT_SIZE];

	evc__remote_count_fetch(r);
	if (ret != NULL)
		*ret = r->code == 0 ? r->value : nil;
	if (r->code == 0)
		return 0;
	evc__copy_ends(text, sizeof text, r->text);
	return evc_refuse(r->code, "%s%s%s", remote_name(r),
			  r->text != NULL ? ": " : "", text);
}

struct resolving {
	const struct fetched *f;
	size_t next; /* the order is that of the search */
};

static bool
resolve_ref(const struct walk_ref *ref, evc_value *ret, void *arg)
{
	struct resolving *s = arg;

	(void)ref;
	return evc__remote_outcome(s->f->remotes[s->next++], ret) == 0;
}

evc_status
evc__fetched_take(const struct fetched *f, const evc_value *value,
		  evc_value *ret)
{
	static const evc_value nil;
	struct resolving s = { .f = f };
	size_t i;

	for (i = 0; i < f->n; i++)
		if (f->remotes[i]->code != 0)
			return evc__remote_outcome(f->remotes[i], NULL);
	if (value == NULL)
		value = &nil;
	return evc__walk_splice(value, resolve_ref, &s, ret);
}
