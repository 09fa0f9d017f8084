/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames with values that are lent: what is sent is what would have been put,
 * however much of it goes at a time; and spare blocks of memory.
 */
#include "../support/api_util.h"
#include "../support/seam.h"

#include "wire/frames.h"
#include "wire/spare.h"

#define MOST ((size_t)64 << 20)
#define LARGE (LEND_LEAST + 1000)

/* ---- frames ---- */

/* A string of n bytes in all. */
static evc_value
text_of(size_t n, unsigned seed)
{
	unsigned char *p = malloc(n);
	size_t i;

	ck_assert_ptr_nonnull(p);
	ck_assert_uint_gt(n, 70000);
	p[0] = 0xdb;
	for (i = 0; i < 4; i++)
		p[1 + i] = (unsigned char)((n - 5) >> (24 - 8 * i));
	for (i = 5; i < n; i++)
		p[i] = (unsigned char)(i * 7 + seed);
	return (evc_value){ p, n };
}

/* One of n bytes that nobody reads as a value. */
static evc_value
bytes_of(size_t n, unsigned seed)
{
	unsigned char *p = malloc(n + 1);
	size_t i;

	ck_assert_ptr_nonnull(p);
	for (i = 0; i < n; i++)
		p[i] = (unsigned char)(i * 13 + seed);
	return (evc_value){ n > 0 ? p : NULL, n };
}

#define N_INPUTS 40

static struct {
	evc_value args[2];
	evc_engine_input inputs[N_INPUTS];
	bool kept[N_INPUTS];
	evc_engine_task t;
	struct frame_result r;
	evc_engine_update updates[2];
} made;

/* Values around the least one that is lent. */
static void
make_values(void)
{
	static const size_t sizes[] = {
		LEND_LEAST - 1, LEND_LEAST, LARGE, 1, LEND_LEAST * 2, 4000,
	};
	unsigned i;

	memset(&made, 0, sizeof(made));
	made.args[0] = bytes_of(LARGE, 1);
	made.args[1] = bytes_of(LEND_LEAST, 2);
	for (i = 0; i < N_INPUTS; i++) {
		made.inputs[i].id = i;
		made.inputs[i].value = bytes_of(sizes[i % 6], i);
		made.kept[i] = i % 5 == 0;
	}
	made.t = (evc_engine_task){ .n = 5,
				    .function = "count",
				    .args = made.args[0],
				    .kwargs = made.args[1],
				    .inputs = made.inputs,
				    .n_inputs = N_INPUTS };
	for (i = 0; i < 2; i++)
		made.updates[i] = (evc_engine_update){
			.op = EVC_VARIABLE_SET,
			.name = "v",
			.value = made.inputs[2 + i].value,
			.expected = made.inputs[4 + i].value,
		};
	made.r = (struct frame_result){ .r = { .n = 7,
					       .value = made.args[0],
					       .updates = made.updates,
					       .n_updates = 2 } };
}

static void
free_values(void)
{
	unsigned i;

	for (i = 0; i < N_INPUTS; i++)
		free((void *)made.inputs[i].value.data);
	free((void *)made.args[0].data);
	free((void *)made.args[1].data);
}

static void
put_all(struct bytes *b)
{
	OK(evc__frame_put_number(b, FRAME_CANCEL, 1));
	OK(evc__frame_put_task(b, MOST, &made.t, made.kept));
	OK(evc__frame_put_result(b, MOST, &made.r));
	OK(evc__frame_put_task(b, MOST, &made.t, NULL));
	OK(evc__frame_put_number(b, FRAME_CANCEL, 2));
}

static void
lend_all(struct outgoing *o)
{
	OK(evc__frame_put_number(&o->own, FRAME_CANCEL, 1));
	OK(evc__frame_lend_task(o, MOST, &made.t, made.kept));
	OK(evc__frame_lend_result(o, MOST, &made.r));
	OK(evc__frame_lend_task(o, MOST, &made.t, NULL));
	OK(evc__frame_put_number(&o->own, FRAME_CANCEL, 2));
}

/* Send `n` bytes at most: what goes is what `want` says. */
static void
send_some(struct outgoing *o, const unsigned char **want, size_t n)
{
	struct iovec pieces[PIECES_MOST];
	unsigned i, k = evc__outgoing_pieces(o, pieces);
	size_t sent = 0, part;

	ck_assert_uint_gt(k, 0);
	for (i = 0; i < k && sent < n; i++) {
		ck_assert_uint_gt(pieces[i].iov_len, 0);
		part = pieces[i].iov_len < n - sent ? pieces[i].iov_len :
						      n - sent;
		ck_assert(memcmp(pieces[i].iov_base, *want, part) == 0);
		*want += part;
		sent += part;
	}
	evc__outgoing_take(o, sent);
}

/* Bytes of one step: a few, one, all of the pieces. */
static const size_t steps[] = { 1000, 9973, LEND_LEAST, SIZE_MAX };

/* Send the rest, after which all of b has gone. */
static void
send_rest(struct outgoing *o, const unsigned char *want, const struct bytes *b,
	  size_t step)
{
	while (outgoing_size(o) > 0)
		send_some(o, &want, step);
	ck_assert_ptr_eq(want, bytes_at(b) + b->n);
}

START_TEST(lent_or_put_the_same_is_sent)
{
	struct bytes b = { 0 };
	struct outgoing o = { 0 };
	unsigned round;

	make_values();
	put_all(&b);
	for (round = 0; round < 3; round++) {
		lend_all(&o);
		ck_assert_uint_eq(outgoing_size(&o), b.n);
		send_rest(&o, bytes_at(&b), &b, steps[_i]);
		ck_assert_uint_eq(o.own.n, 0);
		ck_assert_uint_eq(o.n_lent, 0);
	}
	evc__outgoing_free(&o);
	bytes_free(&b);
	free_values();
}
END_TEST

/* More comes before the first has gone. */
START_TEST(lent_behind_what_is_half_sent)
{
	struct bytes b = { 0 };
	struct outgoing o = { 0 };
	const unsigned char *want;
	unsigned k;

	make_values();
	for (k = 0; k < 4; k++)
		put_all(&b);
	want = bytes_at(&b);
	for (k = 0; k < 4; k++) {
		lend_all(&o);
		send_some(&o, &want, LEND_LEAST + 777);
		send_some(&o, &want, 3);
	}
	send_rest(&o, want, &b, steps[_i]);
	evc__outgoing_free(&o);
	bytes_free(&b);
	free_values();
}
END_TEST

/* The lender wants the memory back. */
START_TEST(what_is_lent_can_be_copied)
{
	struct bytes b = { 0 };
	struct outgoing o = { 0 };
	const unsigned char *want;
	uint64_t left;

	make_values();
	put_all(&b);
	put_all(&b);
	want = bytes_at(&b);
	ck_assert(evc__outgoing_own(&o));
	lend_all(&o);
	send_some(&o, &want, LEND_LEAST + 777);
	left = outgoing_size(&o);
	seam_fail_all("alloc", NULL, 1, ENOMEM);
	ck_assert(!evc__outgoing_own(&o));
	seam_reset();
	ck_assert_uint_eq(outgoing_size(&o), left);
	ck_assert(evc__outgoing_own(&o));
	ck_assert_uint_eq(outgoing_size(&o), left);
	ck_assert_uint_eq(o.n_lent_bytes, 0);
	/* others may follow */
	lend_all(&o);
	free_values();
	make_values();
	evc__outgoing_free(&o);
	free_values();
	bytes_free(&b);
}
END_TEST

START_TEST(copied_it_is_the_same)
{
	struct bytes b = { 0 };
	struct outgoing o = { 0 };
	const unsigned char *want;

	make_values();
	put_all(&b);
	put_all(&b);
	want = bytes_at(&b);
	lend_all(&o);
	send_some(&o, &want, LEND_LEAST + 777);
	ck_assert(evc__outgoing_own(&o));
	lend_all(&o);
	send_rest(&o, want, &b, steps[_i]);
	evc__outgoing_free(&o);
	bytes_free(&b);
	free_values();
}
END_TEST

/* Refused: nothing is put, and nothing lent. */
START_TEST(refused_or_whole)
{
	struct outgoing o = { 0 };
	struct bytes b = { 0 };
	size_t whole;
	int n;

	make_values();
	OK(evc__frame_put_task(&b, MOST, &made.t, NULL));
	whole = b.n - FRAME_HEAD;
	REFUSED(EVC_RESOURCE_EXHAUSTED,
		evc__frame_lend_task(&o, whole - 1, &made.t, NULL));
	HAS(evc_last_error(), "max_frame");
	ck_assert_uint_eq(outgoing_size(&o), 0);
	OK(evc__frame_lend_task(&o, whole, &made.t, NULL));
	ck_assert_uint_eq(outgoing_size(&o), b.n);
	evc__outgoing_free(&o);
	for (n = 1; n <= 2; n++) {
		seam_fail_all("alloc", NULL, n, ENOMEM);
		REFUSED(EVC_RESOURCE_EXHAUSTED,
			evc__frame_lend_task(&o, MOST, &made.t, NULL));
		HAS(evc_last_error(), "no memory");
		REFUSED(EVC_RESOURCE_EXHAUSTED,
			evc__frame_lend_result(&o, MOST, &made.r));
		seam_reset();
		ck_assert_uint_eq(outgoing_size(&o), 0);
		ck_assert_uint_eq(o.n_lent, 0);
	}
	OK(evc__frame_lend_result(&o, MOST, &made.r));
	evc__outgoing_free(&o);
	bytes_free(&b);
	free_values();
}
END_TEST

/* What was lent is read at the other end as what was put. */
START_TEST(it_is_read_as_it_was)
{
	struct frame_result r = { .r.n = 3, .r.value = text_of(100000, 4) };
	struct outgoing o = { 0 };
	struct frame_result got;
	struct frame f;

	OK(evc__frame_lend_result(&o, MOST, &r));
	ck_assert(evc__outgoing_own(&o));
	ck_assert_int_eq(evc__frame_next(bytes_at(&o.own), o.own.n, MOST, &f),
			 1);
	ck_assert_uint_eq(f.whole, o.own.n);
	OK(evc__frame_get_result(&f, &got));
	ck_assert_uint_eq(got.r.value.size, r.r.value.size);
	OK(memcmp(got.r.value.data, r.r.value.data, r.r.value.size));
	evc__outgoing_free(&o);
	free((void *)r.r.value.data);
}
END_TEST

/* ---- spare blocks ---- */

static void *
block(size_t n)
{
	void *p = sync_alloc_bytes(n);

	ck_assert_ptr_nonnull(p);
	return p;
}

START_TEST(spare_blocks_fit)
{
	const size_t n = SPARE_LEAST;
	struct spare s = { 0 };
	void *a = block(4 * n), *b = block(2 * n), *c = block(8 * n);

	ck_assert(spare_is_empty(&s));
	ck_assert_ptr_null(spare_take(&s, n));
	/* A small one is no spare. */
	spare_put(&s, block(n - 1), n - 1);
	ck_assert(spare_is_empty(&s));
	spare_put(&s, a, 4 * n);
	spare_put(&s, b, 2 * n);
	ck_assert_ptr_null(spare_take(&s, 4 * n + 1));
	ck_assert_ptr_null(spare_take(&s, n - 1));
	ck_assert_ptr_eq(spare_take(&s, 3 * n), a);
	ck_assert_ptr_null(spare_take(&s, 3 * n));
	spare_put(&s, a, 3 * n);
	/* The smallest gives way. */
	spare_put(&s, c, 8 * n);
	ck_assert_ptr_eq(spare_take(&s, 2 * n), a);
	ck_assert_ptr_null(spare_take(&s, 2 * n));
	ck_assert_ptr_eq(spare_take(&s, 5 * n), c);
	ck_assert(spare_is_empty(&s));
	spare_put(&s, a, 3 * n);
	spare_put(&s, c, 8 * n);
	ck_assert(!spare_is_empty(&s));
	spare_drop(&s);
	ck_assert(spare_is_empty(&s));
}
END_TEST

T_MAIN("outgoing", NULL, NULL, T_TIMES(lent_or_put_the_same_is_sent, 4),
       T_TIMES(lent_behind_what_is_half_sent, 4),
       T_ONCE(what_is_lent_can_be_copied), T_TIMES(copied_it_is_the_same, 4),
       T_ONCE(refused_or_whole), T_ONCE(it_is_read_as_it_was),
       T_ONCE(spare_blocks_fit))
