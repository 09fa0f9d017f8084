/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All variables at one moment: as a list, and as one value for a file.  The
 * lock is held for the copy alone, because functions end under it; the copy is
 * sorted and written without the lock.
 * Called by: cluster/core (checkpoint.c, variable_ask.c), cluster/calls.
 * Locks: variables.lock.
 */
#include <evcoord.h>

#include "wire/head.h"
#include "cluster/variables/table.h"

static int
by_name(const void *a, const void *b)
{
	const evc_engine_entry *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static char *
put_bytes(char *to, const void *bytes, size_t n)
{
	memcpy(to, bytes, n);
	return to + n;
}

/* Lock held. */
static evc_status
copy_variables(struct variables *v, struct variable_list *ret)
{
	const struct variable *x, *next;
	evc_engine_entry *e;
	size_t size = 0;
	evc_value is;
	char *to;

	TABLE_EACH(x, next, &v->by_name)
		size += strlen(x->name) + 1 + x->is.size;
	ret->finished = v->finished;
	ret->changes = v->changes;
	ret->n = v->by_name.n;
	if (ret->n == 0)
		return 0;
	ret->entries = sync_alloc(ret->n, sizeof *ret->entries);
	ret->tail = sync_alloc(1, size);
	if (ret->entries == NULL || ret->tail == NULL)
		return evc__variable_no_memory();
	e = ret->entries;
	to = ret->tail;
	TABLE_EACH(x, next, &v->by_name) {
		is = content_value(&x->is);
		e->name = to;
		to = put_bytes(to, x->name, strlen(x->name) + 1);
		e->value = (evc_value){ to, is.size };
		to = put_bytes(to, is.data, is.size);
		e++;
	}
	return 0;
}

evc_status
evc__variables_list(struct variables *v, struct variable_list *ret)
{
	evc_status st;

	*ret = (struct variable_list){ .n = 0 };
	sync_lock(&v->lock);
	st = copy_variables(v, ret);
	sync_unlock(&v->lock);
	if (st < 0)
		evc__variables_list_free(ret);
	else
		evc__variables_sort(ret);
	return st;
}

void
evc__variables_sort(struct variable_list *l)
{
	if (l->n > 0)
		qsort(l->entries, l->n, sizeof *l->entries, by_name);
}

void
evc__variables_list_free(struct variable_list *l)
{
	sync_free(l->entries);
	sync_free(l->tail);
	*l = (struct variable_list){ .n = 0 };
}

/* ---- to bytes ---- */

static char *
put_head(char *to, unsigned type, size_t n)
{
	unsigned char head[HEAD_MOST];

	return put_bytes(to, head, evc__put_length(head, type, (uint32_t)n));
}

static size_t
packed_most(const struct variable_list *l)
{
	size_t i, n = 3 * HEAD_MOST;

	for (i = 0; i < l->n; i++)
		n += 2 * HEAD_MOST + strlen(l->entries[i].name) +
		     l->entries[i].value.size;
	return n;
}

evc_status
evc__variables_pack(struct variables *v, evc_value *ret, uint64_t *ret_changes)
{
	struct variable_list l;
	unsigned char number[HEAD_MOST];
	const evc_engine_entry *e;
	char *bytes, *to;
	size_t i;
	evc_status st = evc__variables_list(v, &l);

	*ret = (evc_value){ NULL, 0 };
	if (st < 0)
		return st;
	bytes = to = sync_alloc(1, packed_most(&l));
	if (bytes == NULL) {
		evc__variables_list_free(&l);
		return evc__variable_no_memory();
	}
	to = put_head(to, EVC_VALUE_ARRAY, 2);
	to = put_bytes(to, number, evc__put_unsigned(number, l.finished));
	to = put_head(to, EVC_VALUE_MAP, l.n);
	for (i = 0; i < l.n; i++) {
		e = &l.entries[i];
		to = put_head(to, EVC_VALUE_STRING, strlen(e->name));
		to = put_bytes(to, e->name, strlen(e->name));
		to = put_head(to, EVC_VALUE_BINARY, e->value.size);
		to = put_bytes(to, e->value.data, e->value.size);
	}
	*ret = (evc_value){ bytes, (size_t)(to - bytes) };
	if (ret_changes != NULL)
		*ret_changes = l.changes;
	evc__variables_list_free(&l);
	return 0;
}

/* ---- and back ---- */

static evc_status
no_such_name(void)
{
	return evc_refuse(-EVC_INVALID_ARGUMENT,
			  "there is no such name of a variable");
}

/* An entry of the map: the name, without an end, and the bytes. */
static evc_status
read_entry(const evc_value *key, const evc_value *element, const char **ret_name,
	   size_t *ret_n, evc_value *ret)
{
	const void *bytes;
	evc_status st = evc_unpack(key, "S", ret_name, ret_n);

	if (st == 0)
		st = evc_unpack(element, "B", &bytes, &ret->size);
	if (st < 0)
		return st;
	ret->data = bytes;
	return *ret_n > 0 && (*ret_name)[0] != VARIABLE_NAME_NOT &&
			       memchr(*ret_name, 0, *ret_n) == NULL ?
		       0 :
		       no_such_name();
}

/* Read an entry of the map into a private table. */
static evc_status
unpack_one(struct variables *v, const evc_value *key, const evc_value *element)
{
	char name[VARIABLE_NAME_MOST + 1];
	evc_engine_update u = { .op = EVC_VARIABLE_SET, .name = name };
	const char *s;
	size_t len;
	evc_status st = read_entry(key, element, &s, &len, &u.value);

	if (st < 0)
		return st;
	if (len > VARIABLE_NAME_MOST)
		return no_such_name();
	memcpy(name, s, len);
	name[len] = '\0';
	if (evc__variable_find(v, name) != NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "variable %s stands there twice", name);
	st = evc__variable_do(v, &u, NULL, NULL);
	if (st == 0 && evc__variable_find(v, name) == NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT, "variable %s is nil",
				  name);
	return st;
}

/* Every status is about the value, but for a lack of memory. */
static evc_status
about_the_value(evc_status st)
{
	return st == 0 || st == -EVC_RESOURCE_EXHAUSTED ? st
							: -EVC_INVALID_ARGUMENT;
}

/* The map in the value, and the number before it. */
static evc_status
open_value(const evc_value *value, uint64_t *ret_finished, evc_value *ret_map)
{
	evc_status st = evc__value_walk(value->data, value->size, NULL, NULL);

	if (st == 0)
		st = evc_unpack(value, "[Uv]", ret_finished, ret_map);
	if (st == 0 && evc_value_type(ret_map) != EVC_VALUE_MAP)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "the variables are no map");
	return st;
}

static evc_status
unpack_all(struct variables *v, const evc_value *value)
{
	evc_value map, key, element;
	size_t at = 0;
	evc_status st = open_value(value, &v->finished, &map);

	while (st == 0 && evc_value_next(&map, &at, &key, &element))
		st = unpack_one(v, &key, &element);
	return st;
}

evc_status
evc__variables_unpack(struct variables *v, const evc_value *value)
{
	struct variables fresh;
	evc_status st;

	if (!evc__variables_init(&fresh))
		return evc__variable_no_memory();
	st = about_the_value(unpack_all(&fresh, value));
	if (st == 0)
		st = evc__variables_replace(v, &fresh);
	evc__variables_destroy(&fresh);
	return st;
}

/* ---- back as a list ---- */

static evc_status
list_one(struct variable_list *l, const evc_value *key,
	 const evc_value *element)
{
	evc_engine_entry *e = &l->entries[l->n];
	size_t n;
	evc_status st = read_entry(key, element, &e->name, &n, &e->value);

	if (st < 0)
		return st;
	if (n > VARIABLE_NAME_MOST)
		return no_such_name();
	/* The first byte of the element was read, and gives its place to the
	   end of the name. */
	l->tail[e->name + n - l->tail] = '\0';
	st = evc__content_check(e->name, &e->value);
	if (st == 0 && evc_value_type(&e->value) == EVC_VALUE_NIL)
		st = evc_refuse(-EVC_INVALID_ARGUMENT, "variable %s is nil",
				e->name);
	l->n++;
	return st;
}

/* The walk has a step more behind it when an entry is changed. */
static evc_status
list_all(struct variable_list *l, const evc_value *map, size_t n)
{
	evc_value key, element, next_key, next;
	size_t at = 0;
	bool is = evc_value_next(map, &at, &key, &element), more;
	evc_status st = 0;

	for (; is && st == 0 && l->n < n; is = more) {
		more = evc_value_next(map, &at, &next_key, &next);
		st = list_one(l, &key, &element);
		key = next_key;
		element = next;
	}
	return st;
}

evc_status
evc__variables_read(evc_value *value, struct variable_list *ret)
{
	struct head h;
	evc_value map;
	evc_status st;

	*ret = (struct variable_list){ .tail = (char *)(uintptr_t)value->data };
	st = open_value(value, &ret->finished, &map);
	*value = (evc_value){ NULL, 0 };
	if (st == 0 && evc__head(map.data, map.size, &h) == HEAD_FINE &&
	    h.n > 0) {
		ret->entries = sync_alloc((size_t)h.n, sizeof *ret->entries);
		st = ret->entries == NULL ? evc__variable_no_memory() :
					    list_all(ret, &map, (size_t)h.n);
	}
	if (st == 0)
		st = evc__variables_check_names(ret);
	if (st < 0)
		evc__variables_list_free(ret);
	return about_the_value(st);
}
