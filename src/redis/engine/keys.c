/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ids of entries, names of keys, an entry that says nothing, and the deletion of
 * keys.  A deletion may be lost with the connection, so the command is sent again
 * on the next connection until there is an answer.  A deletion may come late, and
 * twice, and does no harm: no such key is ever made again, because the name has
 * the number of a generation, of a session, or of a value already forgotten.
 * Called by: all files of the engine.
 * Locks: none; loop thread only.
 */
#include "redis/engine/engine.h"

#include <inttypes.h>

/* ---- ids ---- */

static bool
parse_number(const char **at, uint64_t *ret)
{
	char *end;

	/* strtoull would skip blanks and signs. */
	if (**at < '0' || **at > '9')
		return false;
	errno = 0;
	*ret = strtoull(*at, &end, 10);
	*at = end;
	return errno == 0;
}

static bool
parse_id(const char *id, uint64_t *ret_ms, uint64_t *ret_n)
{
	return parse_number(&id, ret_ms) && *id++ == '-' &&
	       parse_number(&id, ret_n) && *id == '\0';
}

bool
evc__id_is(const char *text)
{
	uint64_t ms, n;

	return parse_id(text, &ms, &n);
}

bool
evc__id_is_upto(const char *a, const char *b)
{
	uint64_t a_ms, a_n, b_ms, b_n;

	return parse_id(a, &a_ms, &a_n) && parse_id(b, &b_ms, &b_n) &&
	       (a_ms < b_ms || (a_ms == b_ms && a_n <= b_n));
}

/* ---- names ---- */

void
evc__redis_own_key(struct redis_engine *e, struct redis_args *a,
		   const char *name)
{
	evc__args_key(a, &e->address, "%s:%s", e->lock.g_text, name);
}

void
evc__redis_to_key(const struct node_session *s, struct redis_args *a)
{
	evc__args_key(a, &s->e->address, "%" PRIu64 ":to:%s.%" PRIu64, s->g,
		      s->name, s->inc);
}

void
evc__redis_beat_key(const struct node_session *s, struct redis_args *a)
{
	evc__args_key(a, &s->e->address, "%" PRIu64 ":beat:%s.%" PRIu64, s->g,
		      s->name, s->inc);
}

void
evc__redis_value_key(struct redis_engine *e, struct redis_args *a, uint64_t id)
{
	evc__args_key(a, &e->address, "%s:v:%" PRIu64, e->lock.g_text, id);
}

void
evc__redis_to_ends(struct node_session *s)
{
	struct redis_args a = { 0 };

	evc__args_text(&a, "PEXPIRE");
	evc__redis_to_key(s, &a);
	evc__args_fmt(&a, "%llu",
		      (unsigned long long)KEYS_PX(redis_ms(s->e->lease_ns)));
	evc__redis_send(s->e->client, REDIS_SAY, NULL, NULL, &a);
}

/* ---- deleted ---- */

struct unlinking {
	struct list link;
	struct redis_engine *e;
	struct redis_args a;
	bool waits;          /* for a connection */
};

static void
free_unlinking(struct unlinking *u)
{
	list_remove(&u->link);
	evc__args_free(&u->a);
	sync_free(u);
}

static void
on_unlinked(const redisReply *r, void *arg)
{
	struct unlinking *u = arg;

	u->waits = r == NULL || reply_is_refused_for_now(r);
	if (!u->waits)
		free_unlinking(u);
}

static void
send_unlinking(struct unlinking *u)
{
	struct redis_args a = { 0 };
	int i;

	/* The client frees the words of a command, so the copy is sent. */
	for (i = 0; i < u->a.n; i++)
		evc__args_add(&a, u->a.argv[i], u->a.len[i]);
	u->waits = !evc__redis_send(u->e->client, REDIS_SAY, on_unlinked, u,
				    &a);
}

void
evc__redis_unlink(struct redis_engine *e, struct redis_args *keys)
{
	struct unlinking *u = NULL;

	if (!keys->failed && keys->n > 1)
		u = sync_alloc(1, sizeof *u);
	if (u == NULL) {
		/* Without memory the keys end by themselves. */
		evc__args_free(keys);
		return;
	}
	evc__args_seal(keys);
	u->e = e;
	u->a = *keys;
	*keys = (struct redis_args){ 0 };
	list_append(&e->values.unlinking, &u->link);
	send_unlinking(u);
}

void
evc__redis_unlink_again(struct redis_engine *e)
{
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &e->values.unlinking) {
		struct unlinking *u = LIST_OF(n, struct unlinking, link);

		if (u->waits)
			send_unlinking(u);
	}
}

void
evc__unlinks_free(struct redis_engine *e)
{
	while (!list_empty(&e->values.unlinking))
		free_unlinking(LIST_OF(e->values.unlinking.next,
				       struct unlinking, link));
}

bool
evc__redis_begun(struct redis_engine *e, redis_reply_fn *fn)
{
	struct redis_args a = { 0 };

	evc__args_text(&a, "XADD");
	evc__redis_own_key(e, &a, "ev");
	evc__args_text(&a, "*");
	evc__args_text(&a, EVENT_BEGUN);
	evc__args_text(&a, "");
	return evc__redis_send(e->client, REDIS_SAY, fn, e, &a);
}
