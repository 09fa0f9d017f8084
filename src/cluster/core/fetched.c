/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From a value to the remotes that stand in it, and back with their results.
 */
#include "cluster/core/fetch.h"

#include "wire/walk.h"

/* ---- to the remotes ---- */

struct ids {
	const evc_cluster *cl;
	uint64_t *at;
	size_t n, room;
	bool per_worker, foreign, no_memory;
};

static bool
collect(const struct walk_ref *ref, void *arg)
{
	struct ids *ids = arg;
	uint64_t *at;

	ids->per_worker = ref->per_worker;
	ids->foreign = !ref->per_worker && ref->serial != ids->cl->serial;
	if (ids->per_worker || ids->foreign)
		return false;
	if (ids->n == ids->room) {
		at = sync_alloc(ids->room * 2 + 8, sizeof *at);
		ids->no_memory = at == NULL;
		if (at == NULL)
			return false;
		if (ids->n > 0)
			memcpy(at, ids->at, ids->n * sizeof *at);
		sync_free(ids->at);
		ids->at = at;
		ids->room = ids->room * 2 + 8;
	}
	ids->at[ids->n++] = ref->id;
	return true;
}

static evc_status
find_ids(const evc_value *value, struct ids *ids)
{
	evc_status st = evc__value_walk(value->data, value->size, collect, ids);

	if (st < 0)
		return st;
	if (ids->per_worker)
		return evc_refuse(-EVC_UNIMPLEMENTED,
				  "a per-worker value is on the workers alone:"
				  " pass it to a function, by evc_schedule");
	if (ids->foreign)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "a remote of another cluster stands in the"
				  " value");
	if (ids->no_memory)
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED, "no memory");
	return 0;
}

/* Lock held. */
static evc_status
hold_all(evc_cluster *cl, const struct ids *ids, struct fetched *f)
{
	evc_remote *r;
	size_t i;

	for (i = 0; i < ids->n; i++) {
		r = evc__remote_find(cl, ids->at[i]);
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
	struct ids ids = { .cl = cl };
	evc_status st = value != NULL ? find_ids(value, &ids) : 0;

	if (st == 0 && ids.n > 0) {
		f.remotes = sync_alloc(ids.n, sizeof(evc_remote *));
		if (f.remotes == NULL)
			st = evc_refuse(-EVC_RESOURCE_EXHAUSTED, "no memory");
	}
	if (st == 0) {
		sync_lock(&cl->q.lock);
		st = hold_all(cl, &ids, &f);
		sync_unlock(&cl->q.lock);
	}
	sync_free(ids.at);
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

	/* The last of them could take the cluster with it. */
	evc__cluster_ref(cl);
	for (i = 0; i < f->n; i++)
		evc_remote_free(f->remotes[i]);
	sync_free(f->remotes);
	evc__cluster_unref(cl);
}

/* ---- and back ---- */

evc_status
evc__remote_outcome(evc_remote *r, evc_value *ret)
{
	static const evc_value nil;

	evc__remote_count_fetch(r);
	if (ret != NULL)
		*ret = r->code == 0 ? r->value : nil;
	if (r->code == 0)
		return 0;
	return evc_refuse(r->code, "%s%s%s",
			  r->function != NULL ? r->function->name : "call",
			  r->text != NULL ? ": " : "",
			  r->text != NULL ? r->text : "");
}

struct resolving {
	const struct fetched *f;
	size_t next; /* they come in the order in which they were found */
};

static bool
resolve(const struct walk_ref *ref, evc_value *ret, void *arg)
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
	return evc__walk_splice(value, resolve, &s, ret);
}
