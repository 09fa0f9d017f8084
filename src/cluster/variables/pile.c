/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Variables as they come, in blocks: each entry is as in the map of
 * evc__variables_pack, name and value, so the blocks are the parts of a file.  A
 * name coming again takes out its entry before.
 *
 *     pile_add --> blocks --settle--> blocks --> parts of a file
 *                                            \-> a list, for evc_variable_each
 * Called by: cluster/core (variable_ask.c, checkpoint.c), cluster/calls.
 * Locks: none; a pile has a single thread at a time.
 */
#include <evcoord.h>

#include "wire/head.h"
#include "cluster/variables/table.h"

#define BLOCK_SIZE ((size_t)1 << 20)

struct pile_block {
	struct pile_block *next;
	size_t n, room;
	unsigned char bytes[];
};

/* An entry in a block. */
struct piled {
	unsigned char *name;
	size_t n_name;
	unsigned char *value;
	size_t n_value;
	unsigned char *end;
};

/* The bytes were written here, so their heads are right. */
static struct piled
read_piled(unsigned char *at)
{
	struct piled p;
	struct head h;

	(void)evc__head(at, HEAD_MOST, &h);
	p.name = at + h.size;
	p.n_name = (size_t)h.n;
	at = p.name + p.n_name;
	(void)evc__head(at, HEAD_MOST, &h);
	p.value = at + h.size;
	p.n_value = (size_t)h.n;
	p.end = p.value + p.n_value;
	return p;
}

/* No name has such a byte. */
static void
mark_dead(struct piled *p)
{
	p->name[0] = '\0';
}

static bool
is_dead(const struct piled *p)
{
	return p->name[0] == '\0';
}

/* ---- to come ---- */

static struct pile_block *
block_for(struct pile *p, size_t n)
{
	struct pile_block *b = p->last;
	size_t room = n > BLOCK_SIZE ? n : BLOCK_SIZE;

	if (b != NULL && b->room - b->n >= n)
		return b;
	b = sync_alloc(1, sizeof *b + room + HEAD_MOST);
	if (b == NULL)
		return NULL;
	b->room = room;
	if (p->last != NULL)
		p->last->next = b;
	else
		p->first = b;
	p->last = b;
	p->n_blocks++;
	return b;
}

static unsigned char *
put_piled(unsigned char *to, unsigned type, const void *bytes, size_t n)
{
	to += evc__put_length(to, type, (uint32_t)n);
	if (n > 0)
		memcpy(to, bytes, n);
	return to + n;
}

static evc_status
add_one(struct pile *p, const evc_engine_entry *e)
{
	const evc_engine_update u = { .op = EVC_VARIABLE_SET,
				      .name = e->name,
				      .value = e->value };
	evc_status st = evc__variable_check(&u);
	struct pile_block *b;
	unsigned char *to;
	size_t n_name, n;

	if (st < 0)
		return st;
	n = evc_value_type(&e->value) == EVC_VALUE_NIL ? 0 : e->value.size;
	n_name = strlen(e->name);
	b = block_for(p, 2 * HEAD_MOST + n_name + n);
	if (b == NULL)
		return evc__variable_no_memory();
	to = put_piled(b->bytes + b->n, EVC_VALUE_STRING, e->name, n_name);
	to = put_piled(to, EVC_VALUE_BINARY, e->value.data, n);
	b->n = (size_t)(to - b->bytes);
	p->n++;
	return 0;
}

evc_status
evc__pile_add(struct pile *p, const evc_engine_entry *entries, size_t n)
{
	evc_status st = 0;
	size_t i;

	for (i = 0; st == 0 && i < n; i++)
		st = add_one(p, &entries[i]);
	return st;
}

void
evc__pile_free(struct pile *p)
{
	struct pile_block *b, *next;

	for (b = p->first; b != NULL; b = next) {
		next = b->next;
		sync_free(b);
	}
	*p = (struct pile){ .n = 0 };
}

/* ---- each name once ---- */

/* Entries by their names: open addressing, with places for half as many
   more. */
struct index {
	unsigned char **at;
	size_t mask;
};

static bool
index_make(struct index *x, size_t n)
{
	size_t places = 16;

	while (places < n + n / 2)
		places *= 2;
	x->mask = places - 1;
	x->at = sync_alloc(places, sizeof *x->at);
	return x->at != NULL;
}

static uint64_t
hash_name(const unsigned char *s, size_t n)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	while (n-- > 0)
		h = (h ^ *s++) * UINT64_C(0x100000001b3);
	h ^= h >> 32;
	return h * UINT64_C(0x9e3779b97f4a7c15) >> 16;
}

/* The place of this name: empty, or with an entry of the same name. */
static unsigned char **
index_find(const struct index *x, const struct piled *p)
{
	size_t i = (size_t)hash_name(p->name, p->n_name) & x->mask;
	struct piled is;

	for (; x->at[i] != NULL; i = (i + 1) & x->mask) {
		is = read_piled(x->at[i]);
		if (is.n_name == p->n_name &&
		    memcmp(is.name, p->name, p->n_name) == 0)
			break;
	}
	return &x->at[i];
}

/* Have the last entry of each name alone count. */
static void
mark_former(struct pile *p, const struct index *x)
{
	struct pile_block *b;
	unsigned char *at, **place;
	struct piled is, was;

	for (b = p->first; b != NULL; b = b->next)
		for (at = b->bytes; at < b->bytes + b->n; at = is.end) {
			is = read_piled(at);
			place = index_find(x, &is);
			was = *place != NULL ? read_piled(*place) : is;
			*place = at;
			if (was.name != is.name)
				mark_dead(&was);
		}
}

/* Move living entries to the front of their blocks. */
static void
drop_dead(struct pile *p)
{
	struct pile_block *b;
	unsigned char *at, *to, *end;
	struct piled is;

	p->n = 0;
	p->size = 0;
	for (b = p->first; b != NULL; b = b->next) {
		to = b->bytes;
		end = b->bytes + b->n;
		for (at = b->bytes; at < end; at = is.end) {
			is = read_piled(at);
			if (is_dead(&is) || is.n_value == 0)
				continue;
			if (to != at)
				memmove(to, at, (size_t)(is.end - at));
			to += is.end - at;
			p->n++;
		}
		b->n = (size_t)(to - b->bytes);
		p->size += b->n;
	}
}

evc_status
evc__pile_settle(struct pile *p)
{
	struct index x;

	if (!index_make(&x, p->n))
		return evc__variable_no_memory();
	mark_former(p, &x);
	sync_free(x.at);
	drop_dead(p);
	return 0;
}

/* ---- settled: a file ---- */

evc_status
evc__pile_parts(struct pile *p, uint64_t finished, evc_value **ret,
		size_t *ret_n)
{
	unsigned char *to = p->head;
	evc_value *parts = sync_alloc(1 + p->n_blocks, sizeof *parts);
	struct pile_block *b;
	size_t n = 1;

	if (parts == NULL)
		return evc__variable_no_memory();
	to += evc__put_length(to, EVC_VALUE_ARRAY, 2);
	to += evc__put_unsigned(to, finished);
	to += evc__put_length(to, EVC_VALUE_MAP, (uint32_t)p->n);
	parts[0] = (evc_value){ p->head, (size_t)(to - p->head) };
	for (b = p->first; b != NULL; b = b->next)
		parts[n++] = (evc_value){ b->bytes, b->n };
	*ret = parts;
	*ret_n = n;
	return 0;
}

/* ---- settled: a list ---- */

evc_status
evc__pile_list(struct pile *p, struct variable_list *ret)
{
	struct pile_block *b;
	unsigned char *at;
	struct piled is;

	*ret = (struct variable_list){ .n = 0 };
	if (p->n == 0)
		return 0;
	ret->entries = sync_alloc(p->n, sizeof *ret->entries);
	if (ret->entries == NULL)
		return evc__variable_no_memory();
	for (b = p->first; b != NULL; b = b->next)
		for (at = b->bytes; at < b->bytes + b->n; at = is.end) {
			is = read_piled(at);
			/* The head of the value gives its place to the end of
			   the name. */
			is.name[is.n_name] = '\0';
			ret->entries[ret->n++] = (evc_engine_entry){
				(const char *)is.name, { is.value, is.n_value }
			};
		}
	return 0;
}

/* ---- a file as a list ---- */

/* Find a name standing twice; NULL: none.  The names end with a 0. */
static const char *
find_twice(const struct variable_list *l, uint32_t *places, size_t mask)
{
	size_t i, k;

	for (i = 0; i < l->n; i++) {
		const char *name = l->entries[i].name;

		k = (size_t)hash_name((const unsigned char *)name,
				      strlen(name)) & mask;
		for (; places[k] != 0; k = (k + 1) & mask)
			if (strcmp(l->entries[places[k] - 1].name, name) == 0)
				return name;
		places[k] = (uint32_t)i + 1;
	}
	return NULL;
}

evc_status
evc__variables_check_names(const struct variable_list *l)
{
	size_t n = 16;
	uint32_t *places;
	const char *twice;

	while (n < l->n + l->n / 2)
		n *= 2;
	places = sync_alloc(n, sizeof *places);
	if (places == NULL)
		return evc__variable_no_memory();
	twice = find_twice(l, places, n - 1);
	sync_free(places);
	return twice == NULL ? 0 :
			       evc_refuse(-EVC_INVALID_ARGUMENT,
					  "variable %s stands there twice",
					  twice);
}
