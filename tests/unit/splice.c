/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Values put in the places of remotes, at every depth and of every size; what a
 * function alone may read and may not write; and no memory at each place where
 * some is asked for.
 */
#include "../support/api_util.h"
#include "support/seam.h"

#include "wire/head.h"
#include "wire/walk.h"

#define DEPTH EVC_VALUE_DEPTH
#define BIG 100000

#define VALUE(s) ((evc_value){ (s), sizeof(s) - 1 })

static unsigned char bytes[BIG + 64];

/* n arrays inside each other around what follows at to + the result. */
static size_t
open_arrays(unsigned char *to, unsigned n)
{
	memset(to, 0x91, n);
	return n;
}

static void
is(const evc_value *v, const void *p, size_t n)
{
	ck_assert_uint_eq(v->size, n);
	ck_assert_mem_eq(v->data, p, n);
	OK(evc_value_check(v));
}

/* What each remote is to become, by its id; NULL data and size 1: nothing. */
struct table {
	evc_value values[8];
	unsigned asked;
};

#define STAYS ((evc_value){ NULL, 1 })

static bool
look_up(const struct walk_ref *r, evc_value *ret, void *arg)
{
	struct table *t = arg;

	ck_assert(!r->per_worker);
	ck_assert_uint_eq(r->serial, 5);
	ck_assert_uint_lt(r->id, 8);
	t->asked++;
	if (t->values[r->id].data == NULL && t->values[r->id].size == 1)
		return false;
	*ret = t->values[r->id];
	return true;
}

/* ---- what comes out ---- */

START_TEST(several_in_one_value)
{
	/* [r0, {"a": r1, "b": w, "c": r2}, r3, r1, 7] */
	struct table t = { .values = { VALUE("\xa2hi"), { NULL, 0 },
				       VALUE("\x92\x01\x81\xa1x\xc0"),
				       STAYS } };
	unsigned char ref[4][REF_BYTES], *p = bytes, want[128], *q = want;
	evc_value v, result = { NULL, 0 };
	unsigned i;

	for (i = 0; i < 4; i++)
		evc__walk_put_ref(ref[i], i == 3, 5, i == 3 ? 6 : i);
#define PUT(to, from, n) ((to) = (unsigned char *)mempcpy((to), (from), (n)))
	PUT(p, "\x95", 1);
	PUT(p, ref[0], REF_BYTES);
	PUT(p, "\x83\xa1" "a", 3);
	PUT(p, ref[1], REF_BYTES);
	PUT(p, "\xa1" "b", 2);
	PUT(p, ref[3], REF_BYTES);
	PUT(p, "\xa1" "c", 2);
	PUT(p, ref[2], REF_BYTES);
	evc__walk_put_ref(p, false, 5, 3);
	p += REF_BYTES;
	PUT(p, ref[1], REF_BYTES);
	PUT(p, "\x07", 1);
	v = (evc_value){ bytes, (size_t)(p - bytes) };

	PUT(q, "\x95\xa2hi\x83\xa1" "a\xc0\xa1" "b", 10);
	PUT(q, ref[3], REF_BYTES);
	PUT(q, "\xa1" "c\x92\x01\x81\xa1x\xc0", 8);
	evc__walk_put_ref(q, false, 5, 3);
	q += REF_BYTES;
	PUT(q, "\xc0\x07", 2);
#undef PUT

	OK(evc__walk_splice(&v, look_up, &t, &result));
	is(&result, want, (size_t)(q - want));
	/* Each place is asked for once. */
	ck_assert_uint_eq(t.asked, 5);
	evc_value_free(&result);
}
END_TEST

START_TEST(without_a_remote_it_is_a_copy)
{
	struct table t = { .asked = 0 };
	evc_value v = VALUE("\x92\x01\x02"), result = { "x", 1 };

	OK(evc__walk_splice(&v, look_up, &t, &result));
	is(&result, v.data, v.size);
	ck_assert_ptr_ne(result.data, v.data);
	evc_value_free(&result);
	v = (evc_value){ NULL, 0 };
	result = (evc_value){ "x", 1 };
	OK(evc__walk_splice(&v, look_up, &t, &result));
	ck_assert_ptr_null(result.data);
	ck_assert_uint_eq(result.size, 0);
	ck_assert_uint_eq(t.asked, 0);
}
END_TEST

START_TEST(a_remote_alone)
{
	struct table t = { .values = { VALUE("\xc3"), { NULL, 0 } } };
	evc_value v = { bytes, REF_BYTES }, result;

	evc__walk_put_ref(bytes, false, 5, 0);
	OK(evc__walk_splice(&v, look_up, &t, &result));
	is(&result, "\xc3", 1);
	evc_value_free(&result);
	evc__walk_put_ref(bytes, false, 5, 1);
	OK(evc__walk_splice(&v, look_up, &t, &result));
	is(&result, "\xc0", 1);
	evc_value_free(&result);
}
END_TEST

START_TEST(at_every_depth)
{
	unsigned char inner[DEPTH + 1];
	struct table t = { .asked = 0 };
	unsigned outside, inside;
	evc_value v, result;
	size_t n;

	for (outside = 0; outside <= DEPTH; outside++)
		for (inside = 0; inside <= DEPTH; inside++) {
			n = open_arrays(bytes, outside);
			evc__walk_put_ref(bytes + n, false, 5, 0);
			v = (evc_value){ bytes, n + REF_BYTES };
			n = open_arrays(inner, inside);
			inner[n] = 0x2a;
			t.values[0] = (evc_value){ inner, n + 1 };
			result = (evc_value){ "kept", 4 };
			if (outside + inside > DEPTH) {
				REFUSED(EVC_INVALID_ARGUMENT,
					evc__walk_splice(&v, look_up, &t,
							 &result));
				HAS(evc_last_error(), "32 deep");
				ck_assert_uint_eq(result.size, 4);
				continue;
			}
			OK(evc__walk_splice(&v, look_up, &t, &result));
			ck_assert_uint_eq(result.size, outside + inside + 1);
			OK(evc_value_check(&result));
			evc_value_free(&result);
		}
}
END_TEST

START_TEST(of_every_size)
{
	static const size_t sizes[] = { 1,   100, 495,  496,  497,   498,
					512, 513, 1000, 2047, 65535, BIG };
	unsigned char *big = malloc(BIG + 5), head[5] = { 0xc6 };
	struct table t = { .asked = 0 };
	evc_value v, result;
	const void *p;
	size_t i, n;

	ck_assert_ptr_nonnull(big);
	bytes[0] = 0x92;
	evc__walk_put_ref(bytes + 1, false, 5, 0);
	evc__walk_put_ref(bytes + 1 + REF_BYTES, false, 5, 0);
	v = (evc_value){ bytes, 1 + 2 * REF_BYTES };
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (n = 0; n < 4; n++)
			head[1 + n] = (unsigned char)(sizes[i] >>
						      (24 - 8 * n));
		memset(big, 'b', BIG + 5);
		memcpy(big, head, 5);
		t.values[0] = (evc_value){ big, sizes[i] + 5 };
		OK(evc__walk_splice(&v, look_up, &t, &result));
		ck_assert_uint_eq(result.size, 1 + 2 * (sizes[i] + 5));
		memset(big, 'c', BIG + 5);
		OK(evc_unpack(&result, "[*B]", &p, &n));
		ck_assert_uint_eq(n, sizes[i]);
		ck_assert_int_eq(*(const char *)p, 'b');
		ck_assert_int_eq(((const char *)p)[n - 1], 'b');
		evc_value_free(&result);
	}
	free(big);
}
END_TEST

START_TEST(what_is_no_value_is_not_spliced)
{
	struct table t = { .asked = 0 };
	evc_value v = VALUE("\x92\x01"), result = { "kept", 4 };

	REFUSED(EVC_INVALID_ARGUMENT,
		evc__walk_splice(&v, look_up, &t, &result));
	ck_assert_uint_eq(result.size, 4);
}
END_TEST

/* ---- per-worker values ---- */

static evc_status
unpack_with(const struct unpack_env *env, const evc_value *v,
	    const char *format, ...)
{
	evc_status st;
	va_list ap;

	va_start(ap, format);
	st = evc__unpack(v, env, format, ap);
	va_end(ap);
	return st;
}

static evc_status
pack_with(bool refs, evc_value *ret, const char *format, ...)
{
	static const struct pack_refs unused;
	evc_status st;
	va_list ap;

	va_start(ap, format);
	st = evc__pack(ret, refs ? &unused : NULL, NULL, format, ap);
	va_end(ap);
	return st;
}

/* Those of even ids are here; what stands for one is its id. */
static bool
even(const struct walk_ref *r, evc_local **ret, void *arg)
{
	ck_assert_str_eq(arg, "arg");
	ck_assert(r->per_worker);
	ck_assert_uint_eq(r->serial, 9);
	if (r->id % 2 != 0)
		return false;
	*ret = (evc_local *)(uintptr_t)r->id;
	return true;
}

START_TEST(a_function_reads_per_worker_values)
{
	static char arg[] = "arg";
	struct unpack_env env = { even, arg }, none = { NULL, NULL };
	evc_local *a = NULL, *b = NULL;
	evc_value v = { bytes, 1 + 2 * REF_BYTES };
	int i = 3;

	bytes[0] = 0x92;
	evc__walk_put_ref(bytes + 1, true, 9, 4);
	evc__walk_put_ref(bytes + 1 + REF_BYTES, true, 9, 6);
	OK(unpack_with(&env, &v, "[ww]", &a, &b));
	ck_assert_uint_eq((uintptr_t)a, 4);
	ck_assert_uint_eq((uintptr_t)b, 6);
	REFUSED(EVC_INVALID_ARGUMENT, unpack_with(&env, &v, "[wi]", &a, &i));
	ck_assert_str_eq(evc_last_error(),
			 "in [1]: a per-worker value, not an integer");

	evc__walk_put_ref(bytes + 1 + REF_BYTES, true, 9, 7);
	b = (evc_local *)bytes;
	REFUSED(EVC_INVALID_ARGUMENT, unpack_with(&env, &v, "[ww]", &a, &b));
	HAS(evc_last_error(), "in [1]: ");
	HAS(evc_last_error(), "per-worker value 7");
	ck_assert_ptr_eq(b, bytes);

	/* A remote is none, and a missing one asks for nothing. */
	evc__walk_put_ref(bytes + 1, false, 9, 4);
	REFUSED(EVC_INVALID_ARGUMENT, unpack_with(&env, &v, "[w*]", &a));
	ck_assert_str_eq(evc_last_error(),
			 "in [0]: a remote, not a per-worker value");
	v = VALUE("\x80");
	OK(unpack_with(&env, &v, "{a?:w}", &b));
	ck_assert_ptr_eq(b, bytes);

	/* Outside of a function nothing stands for one. */
	v = (evc_value){ bytes + 1 + REF_BYTES, REF_BYTES };
	REFUSED(EVC_INVALID_ARGUMENT, unpack_with(&none, &v, "w", &a));
	HAS(evc_last_error(), "w cannot stand here");
	REFUSED(EVC_INVALID_ARGUMENT, unpack_with(NULL, &v, "w", &a));
	REFUSED(EVC_INVALID_ARGUMENT, unpack_with(&env, &v, "r", &a));
	HAS(evc_last_error(), "r cannot stand here");
}
END_TEST

START_TEST(a_result_has_no_references)
{
	evc_value v = { bytes, REF_BYTES }, result = { "kept", 4 };

	REFUSED(EVC_INVALID_ARGUMENT, pack_with(false, &result, "[r]", bytes));
	HAS(evc_last_error(), "r cannot stand here");
	REFUSED(EVC_INVALID_ARGUMENT, pack_with(false, &result, "w", bytes));
	HAS(evc_last_error(), "w cannot stand here");
	evc__walk_put_ref(bytes, false, 5, 0);
	REFUSED(EVC_INVALID_ARGUMENT, pack_with(false, &result, "[iv]", 1, &v));
	HAS(evc_last_error(), "byte 2: a remote or a per-worker value");
	ck_assert_uint_eq(result.size, 4);
	OK(pack_with(true, &result, "[iv]", 1, &v));
	ck_assert_uint_eq(result.size, 2 + REF_BYTES);
	evc_value_free(&result);
	v = VALUE("\x91\xc0");
	OK(pack_with(false, &result, "[v]", &v));
	is(&result, "\x91\x91\xc0", 3);
	evc_value_free(&result);
}
END_TEST

/* ---- no memory ---- */

/* Does the call ask for memory so often, and is it refused each time that there
   is none, with nothing kept?  (A leak would be found by a tool.) */
#define NO_MEMORY(times, result, call) \
	do { \
		int nth_; \
		for (nth_ = 1; nth_ <= (times); nth_++) { \
			int h_ = seam_fail("alloc", NULL, nth_, ENOMEM); \
			(result) = (evc_value){ "kept", 4 }; \
			REFUSED(EVC_RESOURCE_EXHAUSTED, (call)); \
			ck_assert_uint_eq((result).size, 4); \
			ck_assert_int_eq(seam_arrivals(h_), nth_); \
			seam_reset(); \
		} \
		nth_ = seam_fail("alloc", NULL, (times) + 1, ENOMEM); \
		OK(call); \
		ck_assert_int_eq(seam_arrivals(nth_), (times)); \
		seam_reset(); \
		evc_value_free(&(result)); \
	} while (0)

START_TEST(no_memory)
{
	static char big[3000];
	struct table t = { .asked = 0 };
	evc_value v = VALUE("\x93\x01\x02\x03"), result, nil = { NULL, 0 };

	NO_MEMORY(1, result, evc_pack(&result, "[ii]", 1, 2));
	NO_MEMORY(1, result, evc_pack(&result, "B", big, sizeof(big)));
	NO_MEMORY(2, result, evc_pack(&result, "[BB]", big, (size_t)600,
				      big, sizeof(big)));
	NO_MEMORY(0, result, evc_pack(&result, ""));
	NO_MEMORY(1, result, evc_value_copy(&result, &v));
	NO_MEMORY(0, result, evc_value_copy(&result, &nil));
	NO_MEMORY(1, result, evc__walk_splice(&v, look_up, &t, &result));

	OK(evc_pack(&t.values[0], "B", big, sizeof(big)));
	bytes[0] = 0x93;
	evc__walk_put_ref(bytes + 1, false, 5, 0);
	evc__walk_put_ref(bytes + 1 + REF_BYTES, false, 5, 0);
	bytes[1 + 2 * REF_BYTES] = 0x01;
	v = (evc_value){ bytes, 2 + 2 * REF_BYTES };
	NO_MEMORY(2, result, evc__walk_splice(&v, look_up, &t, &result));
	evc_value_free(&t.values[0]);
}
END_TEST

API_MAIN("splice", several_in_one_value, without_a_remote_it_is_a_copy,
	 a_remote_alone, at_every_depth, of_every_size,
	 what_is_no_value_is_not_spliced, a_function_reads_per_worker_values,
	 a_result_has_no_references, no_memory)
