/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Patches: made from a program's elements, read from any peer, and added to
 * vectors.
 * Called by: cluster/worker, cluster/calls and cluster/variables; redis.
 * Locks: none.
 */
#include <evcoord.h>
#include <math.h>

#include "base/sync.h"
#include "wire/head.h"
#include "wire/vector.h"

/* ---- made ---- */

struct addend {
	uint32_t place;
	double by;
};

/* Sort by places, byte by byte; addends of one place stay in their order.
   `other` has room for as many. */
static void
sort_by_place(struct addend *all, struct addend *other, size_t n)
{
	size_t counts[4][256] = { 0 }, at, sum, i;
	struct addend *swap;
	unsigned b, c;

	for (i = 0; i < n; i++)
		for (b = 0; b < 4; b++)
			counts[b][all[i].place >> 8 * b & 0xff]++;
	/* An even number of passes: the result stands in `all`. */
	for (b = 0; b < 4; b++) {
		for (c = 0, sum = 0; c < 256; c++) {
			at = counts[b][c];
			counts[b][c] = sum;
			sum += at;
		}
		for (i = 0; i < n; i++)
			other[counts[b][all[i].place >> 8 * b & 0xff]++] =
				all[i];
		swap = all;
		all = other;
		other = swap;
	}
}

static evc_status
no_memory_for_elements(void)
{
	return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
			  "no memory for the elements of a vector");
}

/* A patch with room for n elements; *ret_at is behind its head. */
static evc_status
make_room(unsigned kind, unsigned width, size_t n, size_t from, evc_value *ret,
	  unsigned char **ret_at)
{
	uint64_t each = (kind == PATCH_PLACES ? 4 : 0) + width;
	uint64_t size = PATCH_HEAD + n * each;
	unsigned char head[HEAD_MOST], *p;
	size_t head_size;

	if (!evc__is_length(size))
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
				  "the elements of a vector: 4 GiB or more");
	head_size = evc__put_length(head, EVC_VALUE_BINARY, (uint32_t)size);
	p = sync_alloc_bytes(head_size + (size_t)size);
	if (p == NULL)
		return no_memory_for_elements();
	memcpy(p, head, head_size);
	*ret = (evc_value){ p, head_size + (size_t)size };
	p += head_size;
	memset(p, 0, PATCH_HEAD);
	p[0] = (unsigned char)kind;
	p[1] = (unsigned char)width;
	put_le32(p + 4, (uint32_t)n);
	put_le32(p + 8, (uint32_t)from);
	*ret_at = p + PATCH_HEAD;
	return 0;
}

static evc_status
check_finite(const evc_elements *e)
{
	size_t i;

	for (i = 0; i < e->n; i++)
		if (!isfinite(elements_number(e, i)))
			return evc_refuse(-EVC_INVALID_ARGUMENT,
					  "%g is nothing to add to element %zu",
					  elements_number(e, i),
					  e->at != NULL ? e->at[i] :
							  e->from + i);
	return 0;
}

/* The addends in the order of their places, one for each place. */
static evc_status
sort_addends(const evc_elements *e, struct addend **ret, size_t *ret_n)
{
	struct addend *all = sync_alloc(e->n + 1, 2 * sizeof *all);
	size_t i, n = 0;

	if (all == NULL)
		return no_memory_for_elements();
	for (i = 0; i < e->n; i++)
		all[i] = (struct addend){ e->at[i], elements_number(e, i) };
	sort_by_place(all, all + e->n, e->n);
	for (i = 0; i < e->n; i++)
		if (n > 0 && all[n - 1].place == all[i].place)
			all[n - 1].by += all[i].by;
		else
			all[n++] = all[i];
	for (i = 0; i < n; i++)
		if (!isfinite(all[i].by)) {
			sync_free(all);
			return evc_refuse(-EVC_INVALID_ARGUMENT,
					  "the sums for one place of the vector "
					  "are too large");
		}
	*ret = all;
	*ret_n = n;
	return 0;
}

static evc_status
make_sparse(const evc_elements *e, unsigned width, evc_value *ret)
{
	struct addend *all = NULL;
	unsigned char *at;
	size_t i, n = 0;
	evc_status st = sort_addends(e, &all, &n);

	if (st < 0)
		return st;
	st = make_room(PATCH_PLACES, width, n, 0, ret, &at);
	for (i = 0; st == 0 && i < n; i++) {
		put_le32(at + i * 4, all[i].place);
		vector_put(at + n * 4, width, i, all[i].by);
	}
	sync_free(all);
	return st;
}

evc_status
evc__patch_make(const evc_elements *e, bool adds, evc_value *ret)
{
	unsigned width = !adds ? 0 : e->floats != NULL ? 4 : 8;
	unsigned char *at;
	evc_status st = adds ? check_finite(e) : 0;
	size_t i;

	*ret = (evc_value){ NULL, 0 };
	if (st < 0)
		return st;
	if (adds && e->at != NULL)
		return make_sparse(e, width, ret);
	st = make_room(e->at != NULL ? PATCH_PLACES : PATCH_RANGE, width, e->n,
		       e->from, ret, &at);
	for (i = 0; st == 0 && i < e->n; i++)
		if (e->at != NULL)
			put_le32(at + i * 4, e->at[i]);
		else if (adds)
			vector_put(at, width, i, elements_number(e, i));
		else
			break;
	return st;
}

evc_value
evc__patch_of_size(void)
{
	static const unsigned char bytes[2 + PATCH_HEAD] = { 0xc4, PATCH_HEAD,
							     PATCH_SIZE };

	return (evc_value){ bytes, sizeof bytes };
}

/* ---- read ---- */

static evc_status
wrong_patch(const char *why)
{
	return evc_refuse(-EVC_INVALID_ARGUMENT,
			  "wrong places in a vector: %s", why);
}

/* The head, and the size that follows from it. */
static bool
read_head(struct patch *p)
{
	uint64_t each;

	if (p->size < PATCH_HEAD)
		return false;
	p->kind = p->bytes[0];
	p->width = p->bytes[1];
	p->n = le32_at(p->bytes + 4);
	p->from = le32_at(p->bytes + 8);
	if (p->kind > PATCH_SIZE || p->bytes[2] != 0 || p->bytes[3] != 0 ||
	    (p->width != 0 && p->width != 4 && p->width != 8) ||
	    (p->kind != PATCH_RANGE && p->from != 0) ||
	    (p->kind == PATCH_SIZE && (p->n != 0 || p->width != 0)) ||
	    p->from > UINT32_MAX - p->n)
		return false;
	each = (p->kind == PATCH_PLACES ? 4 : 0) + p->width;
	if (p->size != PATCH_HEAD + p->n * each)
		return false;
	if (p->kind == PATCH_PLACES)
		p->places = p->bytes + PATCH_HEAD;
	if (p->width != 0)
		p->numbers = p->bytes + p->size - (size_t)p->n * p->width;
	return true;
}

static evc_status
check_addends(const struct patch *p)
{
	size_t i;

	if (p->numbers == NULL)
		return wrong_patch("there is nothing to add");
	for (i = 0; i < p->n; i++) {
		if (!isfinite(vector_number(p->numbers, p->width, i)))
			return wrong_patch("a number that is not finite");
		if (i > 0 && patch_place(p, i) <= patch_place(p, i - 1))
			return wrong_patch("the places do not grow");
	}
	return 0;
}

evc_status
evc__patch_read(const evc_value *v, bool adds, struct patch *ret)
{
	struct head h;

	*ret = (struct patch){ .n = 0 };
	if (v->size == 0 || evc__head(v->data, v->size, &h) != HEAD_FINE ||
	    h.type != EVC_VALUE_BINARY || h.n != v->size - h.size)
		return wrong_patch("no binary data");
	ret->bytes = (const unsigned char *)v->data + h.size;
	ret->size = (size_t)h.n;
	if (!read_head(ret))
		return wrong_patch("the parts do not fit together");
	if (adds)
		return check_addends(ret);
	return ret->numbers != NULL ? wrong_patch("numbers in a question") : 0;
}

/* ---- used ---- */

/* name: NULL, the vector is no variable. */
static evc_status
check_places(const struct patch *p, const struct vector *v, const char *name,
	     evc_status status)
{
	size_t place;

	if (!patch_is_beyond(p, v->n, &place))
		return 0;
	return evc_refuse(status,
			  "%s%.200s: there is no element %zu in a vector of %zu",
			  name != NULL ? "variable " : "",
			  name != NULL ? name : "a value", place, v->n);
}

static double
sum_at(const struct patch *p, const struct vector *v, size_t i)
{
	double sum = vector_number(v->at, v->width, patch_place(p, i)) +
		     vector_number(p->numbers, p->width, i);

	return v->width == 4 ? (double)(float)sum : sum;
}

evc_status
evc__patch_add(const struct patch *p, const struct vector *to,
	       const char *name, unsigned char *before)
{
	/* The vector is of this process. */
	unsigned char *at = (unsigned char *)(uintptr_t)to->at;
	evc_status st = check_places(p, to, name, -EVC_INVALID_ARGUMENT);
	size_t i, place;

	for (i = 0; st == 0 && i < p->n; i++)
		if (!isfinite(sum_at(p, to, i)))
			st = evc_refuse(-EVC_INVALID_ARGUMENT,
					"variable %s: the sum at element %zu "
					"is no finite number",
					name, patch_place(p, i));
	for (i = 0; st == 0 && i < p->n; i++) {
		place = patch_place(p, i);
		if (before != NULL)
			memcpy(before + i * to->width, at + place * to->width,
			       to->width);
		vector_put(at, to->width, place, sum_at(p, to, i));
	}
	return st;
}

void
evc__patch_undo(const struct patch *p, const struct vector *to,
		const unsigned char *before)
{
	unsigned char *at = (unsigned char *)(uintptr_t)to->at;
	size_t i;

	for (i = 0; i < p->n; i++)
		memcpy(at + patch_place(p, i) * to->width,
		       before + i * to->width, to->width);
}

static evc_status
get_size(const struct vector *of, evc_value *ret)
{
	unsigned char *p = sync_alloc_bytes(HEAD_MOST);

	if (p == NULL)
		return no_memory_for_elements();
	*ret = (evc_value){ p, evc__put_unsigned(p, of->n) };
	return 0;
}

evc_status
evc__patch_get(const struct patch *p, const struct vector *of,
	       const char *name, evc_value *ret)
{
	evc_status st = check_places(p, of, name, -EVC_OUT_OF_RANGE);
	unsigned char *at;
	size_t i;

	*ret = (evc_value){ NULL, 0 };
	if (st < 0)
		return st;
	if (p->kind == PATCH_SIZE)
		return get_size(of, ret);
	st = evc__vector_room(of->width, p->n, ret, &at);
	if (st < 0)
		return st;
	if (p->kind == PATCH_RANGE)
		memcpy(at, of->at + (size_t)p->from * of->width,
		       (size_t)p->n * of->width);
	for (i = 0; p->kind == PATCH_PLACES && i < p->n; i++)
		memcpy(at + i * of->width,
		       of->at + patch_place(p, i) * of->width, of->width);
	return 0;
}

/* The patch's number for a place; its places grow. */
static bool
addend_at(const struct patch *p, size_t place, double *ret)
{
	size_t low = 0, high = p->n, i;

	if (p->kind == PATCH_RANGE) {
		low = place - p->from;
		if (place < p->from || low >= p->n)
			return false;
	} else {
		while (low < high) {
			i = low + (high - low) / 2;
			if (patch_place(p, i) < place)
				low = i + 1;
			else
				high = i;
		}
		if (low == p->n || patch_place(p, low) != place)
			return false;
	}
	*ret = vector_number(p->numbers, p->width, low);
	return true;
}

void
evc__patch_overlay(const struct patch *p, const evc_elements *e, unsigned width)
{
	double by, sum;
	size_t i;

	for (i = 0; i < e->n; i++) {
		if (!addend_at(p, e->at != NULL ? e->at[i] : e->from + i, &by))
			continue;
		sum = elements_number(e, i) + by;
		if (width == 4)
			sum = (double)(float)sum;
		if (e->doubles != NULL)
			e->doubles[i] = sum;
		else
			e->floats[i] = (float)sum;
	}
}
