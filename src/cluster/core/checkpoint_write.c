/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One save of the variables to a file, those that are here or those that the
 * engine keeps.
 * Called by: checkpoint.c.
 * Locks: variables.saving, held; the cluster's lock, taken.
 */
#include "cluster/core/cluster.h"

/* 0, or refused: the engine has not got the variables of the checkpoint, so
   others must not replace them. */
static evc_status
check_first(evc_cluster *cl)
{
	bool over;

	sync_lock(&cl->q.lock);
	over = cl->checkpoint.first == FIRST_NONE;
	sync_unlock(&cl->q.lock);
	return over ? 0 :
		      evc_refuse(-EVC_UNAVAILABLE,
				 "the engine has not got what stands in %s",
				 cl->config.checkpoint);
}

/* Variables that are here.  A file that has gone since is written anew. */
static evc_status
save_ours(evc_cluster *cl, const char *path, bool if_changed,
	  uint64_t *ret_changes, struct snapshot_file *ret_file)
{
	struct snapshot_place place = { .is_free = NULL };
	struct variables *v = &cl->vars;
	evc_value packed;
	evc_status st;

	if (if_changed && evc__variables_n_changes(v) == v->saved &&
	    (evc__snapshot_file(path).is || !ret_file->is))
		return 0;
	st = evc__variables_pack(v, &packed, ret_changes);
	if (st == 0)
		st = evc__snapshot_write(path, &packed, 1, &place);
	evc_value_free(&packed);
	if (st == 0)
		*ret_file = place.file;
	return st;
}

/* Tries of a save, with another coordinator in between. */
#define SAVES_MOST 3

struct save {
	struct snapshot_place place; /* first */
	evc_cluster *cl;
	struct kept_state state;     /* what is written */
	bool again;                  /* the state may be old */
};

/* This process may have been frozen until another coordinator has saved a newer
   state there. */
static evc_status
check_place(struct snapshot_place *p)
{
	struct save *s = LIST_OF(p, struct save, place);
	struct kept_state now;
	evc_status st = evc__kept_counts(s->cl, &now);

	s->again = st == 0 && now.generation != s->state.generation;
	return s->again ? evc_refuse(-EVC_UNAVAILABLE,
				     "another coordinator may have had the "
				     "variables during the save") :
			  st;
}

static evc_status
write_kept(struct save *s, const char *path)
{
	struct pile all = { .n = 0 };
	evc_value *parts = NULL;
	size_t n;
	bool is_ours = checkpoint_is(s->cl, path);
	bool early = is_ours && check_first(s->cl) < 0;
	evc_status st = evc__kept_all(s->cl, &all, &s->state);

	if (st == 0 && is_ours)
		st = check_first(s->cl);
	/* The state may be that before the load, which is over now. */
	s->again = st == 0 && early;
	if (s->again)
		st = evc_refuse(-EVC_UNAVAILABLE, "it was just restored");
	if (st == 0)
		st = evc__pile_parts(&all, s->state.finished, &parts, &n);
	if (st == 0)
		st = evc__snapshot_write(path, parts, n, &s->place);
	sync_free(parts);
	evc__pile_free(&all);
	return st;
}

/* Has the file the present state?  Another coordinator may have put its own file
   there. */
static bool
kept_is_saved(evc_cluster *cl, const char *path,
	      const struct snapshot_file *last)
{
	struct snapshot_file now = evc__snapshot_file(path);
	struct kept_state s;

	return cl->vars.saved != UINT64_MAX && snapshot_file_is(&now, last) &&
	       evc__kept_counts(cl, &s) == 0 && s.changes == cl->vars.saved;
}

/* Variables that the engine keeps. */
static evc_status
save_kept(evc_cluster *cl, const char *path, bool if_changed,
	  uint64_t *ret_changes, struct snapshot_file *ret_file)
{
	struct save s = { .place.is_free = check_place, .cl = cl };
	unsigned tries = 0;
	evc_status st;

	if (if_changed && kept_is_saved(cl, path, ret_file))
		return 0;
	do {
		s.again = false;
		st = write_kept(&s, path);
	} while (s.again && ++tries < SAVES_MOST);
	if (st == 0) {
		*ret_changes = s.state.changes;
		*ret_file = s.place.file;
	}
	return st;
}

evc_status
evc__checkpoint_write(evc_cluster *cl, const char *path, bool if_changed,
		      uint64_t *ret_changes, struct snapshot_file *ret_file)
{
	return cluster_asks(cl) ?
		       save_kept(cl, path, if_changed, ret_changes, ret_file) :
		       save_ours(cl, path, if_changed, ret_changes, ret_file);
}
