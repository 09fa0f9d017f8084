/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames between a coordinator and its worker processes: each of them both ways;
 * cut at every byte, with something behind, of another version, too long; and
 * each length inside that says more than there is.
 */
#include "../support/api_util.h"
#include "../support/frames_util.h"

#include "wire/frames_parts.h"

#define VALUE(s) ((evc_value){ (s), sizeof(s) - 1 })

/* ---- one of each ---- */

static const evc_engine_input inputs[] = {
	{ .id = 71, .value = { "\x93\x01\x02\x03", 4 } },
	{ .id = UINT64_MAX, .value = { "\xa1x", 2 } },
	{ .id = 72, .value = { NULL, 0 } },
};

static const evc_engine_update updates[] = {
	{ .op = EVC_VARIABLE_ADD, .name = "sum", .by = -0.5 },
	{ .op = EVC_VARIABLE_SET, .name = "", .value = { "\x05", 1 } },
};

static evc_engine_task
some_task(void)
{
	return (evc_engine_task){ .n = 5,
				  .id = UINT64_C(1) << 40,
				  .function = "count",
				  .args = VALUE("\x92\x01\xa1y"),
				  .kwargs = VALUE("\x81\xa1k\x07"),
				  .inputs = inputs,
				  .n_inputs = 3,
				  .attempt = 2,
				  .flags = EVC_TRANSACTIONAL,
				  .deadline = 1.5 };
}

static evc_engine_def
some_def(unsigned kind)
{
	return (evc_engine_def){ .id = 3,
				 .kind = kind,
				 .name = "words",
				 .function = "open",
				 .args = VALUE("\x91\xa3" "dir"),
				 .of = 2,
				 .map = "upper",
				 .repeat = UINT64_MAX,
				 .seed = 9,
				 .shuffle = true };
}

static struct frame_result
some_result(bool failed)
{
	struct frame_result r = { .r = { .n = 8,
					 .took = 0.25,
					 .updates = updates,
					 .n_updates = 2 },
				  .kept = !failed };

	if (failed) {
		r.r.code = EVC_DATA_LOSS;
		r.r.kind = EVC_FAILED_FUNCTION;
		r.r.text = "shard 7";
	} else
		r.r.value = VALUE("\xc4\x03" "abc");
	return r;
}

#define N_FRAMES 36

/* The k-th of them. */
static evc_status
put_frame(struct bytes *b, unsigned k)
{
	static const evc_function table[] = { { .name = "a" },
					      { .name = "count" } };
	const struct frame_welcome welcome = { 3, 77, 1 << 20, "worker 3" };
	const struct frame_failed failed = { EVC_NOT_FOUND, "no disk" };
	const struct frame_built built = { 4, EVC_ABORTED, 0.125 };
	const struct frame_backed backed = { 11, 12 };
	const struct frame_note node = { 64, "web-3 17 8f0e 4026531836 991" };
	const struct frame_note none = { UINT64_MAX, "" };
	const struct frame_reply fine = { 0, 4.5, VALUE("\x0a"), NULL };
	const struct frame_reply refused = { -EVC_ABORTED, 0, { NULL, 0 },
					     "it is another" };
	const evc_engine_update add = updates[0];
	const evc_engine_update swap = { .op = EVC_VARIABLE_COMPARE_SET,
					 .name = "best",
					 .value = { "\x0b", 1 },
					 .expected = { "\xc0", 1 } };
	const bool is_kept[] = { false, true, false };
	evc_engine_task t = some_task(), bare = { .n = 1, .function = "f" };
	evc_engine_def def = some_def(EVC_DEF_DATASET);
	evc_engine_def drop = { .id = 3, .kind = EVC_DEF_DROP };
	struct frame_result good = some_result(false), bad = some_result(true);
	size_t most = FRAMES_MOST;

	switch (k) {
	case 0: return evc__frame_put_welcome(b, most, &welcome);
	case 1: return evc__frame_put_task(b, most, &t, is_kept);
	case 2: return evc__frame_put_task(b, most, &bare, NULL);
	case 3: return evc__frame_put_def(b, most, &def);
	case 4: return evc__frame_put_def(b, most, &drop);
	case 5: return evc__frame_put_number(b, FRAME_FORGET, UINT64_MAX);
	case 6: return evc__frame_put_reply(b, most, &fine);
	case 7: return evc__frame_put_reply(b, most, &refused);
	case 8: return evc__frame_put_bare(b, FRAME_LEAVE);
	case 9: return evc__frame_put_hello(b, most, table, 2);
	case 10: return evc__frame_put_hello(b, most, NULL, 0);
	case 11: return evc__frame_put_failed(b, most, &failed);
	case 12: return evc__frame_put_number(b, FRAME_BEGUN, 6);
	case 13: return evc__frame_put_result(b, most, &good);
	case 14: return evc__frame_put_result(b, most, &bad);
	case 15: return evc__frame_put_built(b, &built);
	case 16: return evc__frame_put_variable(b, most, &add);
	case 17: return evc__frame_put_variable(b, most, &swap);
	case 18: return evc__frame_put_bare(b, FRAME_PING);
	case 19: return evc__frame_put_number(b, FRAME_CANCEL, 0);
	case 20: return evc__frame_put_number(b, FRAME_BACK, 12);
	case 21: return evc__frame_put_backed(b, &backed);
	case 22: return evc__frame_put_bare(b, FRAME_PONG);
	case 23: return evc__frame_put_number(b, FRAME_UNTIL, UINT64_MAX - 1);
	case 24: return evc__frame_put_number(b, FRAME_SLOT, 3ull << 32 | 9);
	case 25: return evc__frame_put_bare(b, FRAME_KILL);
	case 26: return evc__frame_put_note(b, FRAME_NODE, &node);
	case 27: return evc__frame_put_note(b, FRAME_UP, &node);
	case 28: return evc__frame_put_number(b, FRAME_OVERDUE, 6);
	case 29: return evc__frame_put_note(b, FRAME_FENCED, &none);
	case 30: return evc__frame_put_note(b, FRAME_GONE, &node);
	case 31: return evc__frame_put_number(b, FRAME_CANCEL_ONE, 1);
	case 32: return evc__frame_put_bare(b, FRAME_LEFT);
	case 33: return evc__frame_put_bare(b, FRAME_LOOK);
	case 34: return evc__frame_put_note(b, FRAME_STACK, &node);
	default: return evc__frame_put_number(b, FRAME_RANK, 1ull << 32 | 5);
	}
}

static struct frame
next_of(const struct bytes *b)
{
	struct frame f;

	ck_assert_int_eq(evc__frame_next(bytes_at(b), b->n, FRAMES_MOST, &f),
			 1);
	return f;
}

/* The length in the head is that of the body. */
static void
set_length(unsigned char *head, size_t n)
{
	head[4] = (unsigned char)(n >> 24);
	head[5] = (unsigned char)(n >> 16);
	head[6] = (unsigned char)(n >> 8);
	head[7] = (unsigned char)n;
}

/* ---- both ways ---- */

START_TEST(each_comes_out_as_it_went_in)
{
	struct bytes b = { 0 }, again = { 0 };
	struct frame f;
	bool inside;
	unsigned k;

	for (k = 0; k < N_FRAMES; k++) {
		OK(put_frame(&b, k));
		f = next_of(&b);
		ck_assert_uint_eq(f.whole, b.n);
		ck_assert_int_eq(frame_again(&f, &again, &inside), 0);
		ck_assert(inside);
		ck_assert_uint_eq(again.n, b.n);
		ck_assert_mem_eq(bytes_at(&again), bytes_at(&b), b.n);
		bytes_take(&b, b.n);
		bytes_take(&again, again.n);
	}
	bytes_free(&b);
	bytes_free(&again);
}
END_TEST

START_TEST(a_task_says_the_same)
{
	const bool is_kept[] = { false, true, false };
	evc_engine_task t = some_task(), got;
	struct bytes b = { 0 };
	struct frame f;

	OK(evc__frame_put_task(&b, FRAMES_MOST, &t, is_kept));
	f = next_of(&b);
	OK(evc__frame_get_task(&f, &got));
	ck_assert_uint_eq(got.n, 5);
	ck_assert_uint_eq(got.id, UINT64_C(1) << 40);
	ck_assert_str_eq(got.function, "count");
	ck_assert_ptr_null(got.call);
	ck_assert_uint_eq(got.args.size, t.args.size);
	ck_assert_mem_eq(got.args.data, t.args.data, t.args.size);
	ck_assert_mem_eq(got.kwargs.data, t.kwargs.data, t.kwargs.size);
	ck_assert_uint_eq(got.attempt, 2);
	ck_assert_uint_eq(got.flags, EVC_TRANSACTIONAL);
	ck_assert(got.deadline == 1.5);
	ck_assert_uint_eq(got.n_inputs, 3);
	ck_assert_uint_eq(got.inputs[0].id, 71);
	ck_assert_mem_eq(got.inputs[0].value.data, "\x93\x01\x02\x03", 4);
	/* kept: no bytes travel, and that is how it is known */
	ck_assert_uint_eq(got.inputs[1].id, UINT64_MAX);
	ck_assert_uint_eq(got.inputs[1].value.size, 0);
	/* nil is something else */
	ck_assert_uint_eq(got.inputs[2].value.size, 1);
	ck_assert_mem_eq(got.inputs[2].value.data, "\xc0", 1);
	sync_free((void *)got.inputs);
	bytes_free(&b);
}
END_TEST

START_TEST(a_result_says_the_same)
{
	struct frame_result r = some_result(true), got;
	struct bytes b = { 0 };
	struct frame f;

	OK(evc__frame_put_result(&b, FRAMES_MOST, &r));
	f = next_of(&b);
	OK(evc__frame_get_result(&f, &got));
	ck_assert_uint_eq(got.r.n, 8);
	ck_assert_int_eq(got.r.code, EVC_DATA_LOSS);
	ck_assert_uint_eq(got.r.kind, EVC_FAILED_FUNCTION);
	ck_assert_str_eq(got.r.text, "shard 7");
	ck_assert(got.r.took == 0.25);
	ck_assert(!got.kept);
	ck_assert_uint_eq(got.r.value.size, 0);
	ck_assert_uint_eq(got.r.n_updates, 2);
	ck_assert_uint_eq(got.r.updates[0].op, EVC_VARIABLE_ADD);
	ck_assert(got.r.updates[0].by == -0.5);
	ck_assert_str_eq(got.r.updates[0].name, "sum");
	ck_assert_uint_eq(got.r.updates[1].op, EVC_VARIABLE_SET);
	ck_assert_mem_eq(got.r.updates[1].value.data, "\x05", 1);
	sync_free((void *)got.r.updates);
	bytes_free(&b);
}
END_TEST

START_TEST(a_note_says_the_same)
{
	const struct frame_note note = { 1, "was killed by signal 9" };
	const struct frame_note silent = { 0, NULL };
	struct frame_note got;
	struct bytes b = { 0 };
	struct frame f;

	OK(evc__frame_put_note(&b, FRAME_GONE, &note));
	f = next_of(&b);
	ck_assert_uint_eq(f.type, FRAME_GONE);
	OK(evc__frame_get_note(&f, &got));
	ck_assert_uint_eq(got.number, 1);
	ck_assert_str_eq(got.text, note.text);
	bytes_take(&b, b.n);
	OK(evc__frame_put_note(&b, FRAME_FENCED, &silent));
	f = next_of(&b);
	OK(evc__frame_get_note(&f, &got));
	ck_assert_uint_eq(got.number, 0);
	ck_assert_str_eq(got.text, "");
	bytes_free(&b);
}
END_TEST

/* Each type has a name of its own, for the texts of garbage, and each is among
   those above. */
START_TEST(each_type_has_a_name_and_a_test)
{
	bool seen[FRAME_TYPES] = { false };
	struct bytes b = { 0 };
	unsigned k, j;

	for (k = 0; k < N_FRAMES; k++) {
		OK(put_frame(&b, k));
		seen[next_of(&b).type] = true;
		bytes_take(&b, b.n);
	}
	for (k = 1; k < FRAME_TYPES; k++) {
		ck_assert_msg(seen[k], "type %u is not tested", k);
		ck_assert_ptr_nonnull(evc__frame_name(k));
		for (j = 0; j < k; j++)
			ck_assert_str_ne(evc__frame_name(k),
					 evc__frame_name(j));
	}
	ck_assert_str_eq(evc__frame_name(FRAME_LEFT), "left");
	ck_assert_str_eq(evc__frame_name(FRAME_UNTIL), "until");
	ck_assert_str_eq(evc__frame_name(FRAME_TYPES), evc__frame_name(0));
	bytes_free(&b);
}
END_TEST

/* ---- cut ---- */

START_TEST(the_beginning_of_one_is_waited_for)
{
	struct bytes b = { 0 };
	unsigned char *part;
	struct frame f;
	unsigned k;
	size_t n;

	for (k = 0; k < N_FRAMES; k++) {
		OK(put_frame(&b, k));
		for (n = 0; n < b.n; n++) {
			/* memory of just that length: no byte is read behind */
			part = malloc(n + (n == 0));
			memcpy(part, bytes_at(&b), n);
			ck_assert_int_eq(evc__frame_next(part, n, FRAMES_MOST,
							 &f),
					 0);
			ck_assert_uint_eq(f.whole, n < FRAME_HEAD ?
							   FRAME_HEAD :
							   b.n);
			free(part);
		}
		bytes_take(&b, b.n);
	}
	bytes_free(&b);
}
END_TEST

/* What a head says is there: but it is cut at every byte, or goes on. */
static void
cut_or_long(const struct bytes *b, size_t n)
{
	unsigned char *part = calloc(1, n);
	struct bytes again = { 0 };
	struct frame f;
	bool inside;
	evc_status st;

	memcpy(part, bytes_at(b), n < b->n ? n : b->n);
	set_length(part, n - FRAME_HEAD);
	ck_assert_int_eq(evc__frame_next(part, n, FRAMES_MOST, &f), 1);
	st = frame_again(&f, &again, &inside);
	ck_assert_msg(st == -EVC_INVALID_ARGUMENT,
		      "type %u, %zu of %zu bytes: %d", f.type, n, b->n, st);
	ck_assert_uint_eq(again.n, 0);
	ck_assert_str_ne(evc_last_error(), "");
	bytes_free(&again);
	free(part);
}

START_TEST(one_that_is_cut_or_goes_on_is_refused)
{
	struct bytes b = { 0 };
	unsigned k;
	size_t n;

	for (k = 0; k < N_FRAMES; k++) {
		OK(put_frame(&b, k));
		for (n = FRAME_HEAD; n < b.n; n++)
			cut_or_long(&b, n);
		cut_or_long(&b, b.n + 1);
		cut_or_long(&b, b.n + 64);
		bytes_take(&b, b.n);
	}
	bytes_free(&b);
}
END_TEST

/* ---- heads ---- */

static void
refused_head(const char *head, size_t n, size_t max_frame, const char *why)
{
	struct frame f;

	ck_assert_int_eq(evc__frame_next(head, n, max_frame, &f),
			 -EVC_INVALID_ARGUMENT);
	HAS(evc_last_error(), why);
}

START_TEST(heads_that_are_none)
{
	struct bytes b = { 0 };
	unsigned char head[FRAME_HEAD];
	struct frame f;
	unsigned k;

	OK(evc__frame_put_bare(&b, FRAME_PING));
	memcpy(head, bytes_at(&b), sizeof(head));
	/* said as early as it can be known */
	refused_head("G", 1, FRAMES_MOST, "no frame");
	refused_head("GET / HTTP/1.1\r\n", 16, FRAMES_MOST, "no frame");
	refused_head("\0\0\0\0\0\0\0\0", 8, FRAMES_MOST, "no frame");
	for (k = 0; k < 256; k++) {
		head[2] = (unsigned char)k;
		if (k == FRAME_VERSION)
			continue;
		refused_head((char *)head, 3, FRAMES_MOST, "version");
		refused_head((char *)head, 8, FRAMES_MOST, "version");
	}
	head[2] = FRAME_VERSION;
	for (k = 0; k < 256; k++) {
		head[3] = (unsigned char)k;
		if (k == 0 || k >= FRAME_TYPES)
			refused_head((char *)head, 4, FRAMES_MOST, "type");
		else
			ck_assert_int_eq(evc__frame_next(head, 4, FRAMES_MOST,
							 &f),
					 0);
	}
	bytes_free(&b);
}
END_TEST

START_TEST(huge_lengths_are_refused_at_once)
{
	struct bytes b = { 0 };
	unsigned char *head;
	struct frame f;

	OK(evc__frame_put_bare(&b, FRAME_PING));
	head = bytes_at(&b);
	set_length(head, 1000);
	ck_assert_int_eq(evc__frame_next(head, 8, 1000, &f), 0);
	ck_assert_uint_eq(f.whole, 1008);
	refused_head((char *)head, 8, 999, "999");
	set_length(head, UINT32_MAX);
	refused_head((char *)head, 8, FRAMES_MOST, "4294967295");
	refused_head((char *)head, 8, 0, "4294967295");
	bytes_free(&b);
}
END_TEST

/* The cluster keeps them all, and looks for each. */
START_TEST(a_program_has_so_many_functions)
{
	const unsigned most = FRAME_NAMES_MOST;
	evc_function *table = calloc(most + 1, sizeof(*table));
	struct bytes b = { 0 };
	const char **names;
	struct frame f;
	unsigned i, n;

	ck_assert_ptr_nonnull(table);
	for (i = 0; i <= most; i++)
		table[i].name = "f";
	REFUSED(EVC_RESOURCE_EXHAUSTED,
		evc__frame_put_hello(&b, FRAMES_MOST, table, most + 1));
	ck_assert_uint_eq(b.n, 0);
	OK(evc__frame_put_hello(&b, FRAMES_MOST, table, most));
	f = next_of(&b);
	OK(evc__frame_get_hello(&f, &names, &n));
	ck_assert_uint_eq(n, most);
	sync_free(names);
	/* One more, from elsewhere. */
	ck_assert(bytes_put(&b, "\0\1f", 4));
	bytes_at(&b)[FRAME_HEAD + 3]++;
	set_length(bytes_at(&b), b.n - FRAME_HEAD);
	f = next_of(&b);
	REFUSED(EVC_INVALID_ARGUMENT,
		evc__frame_get_hello(&f, &names, &n));
	HAS(evc_last_error(), "too many names");
	bytes_free(&b);
	free(table);
}
END_TEST

START_TEST(what_would_be_too_long_is_not_written)
{
	evc_engine_task t = some_task();
	struct frame_result r = some_result(false);
	struct bytes b = { 0 };
	size_t n;

	REFUSED(EVC_RESOURCE_EXHAUSTED, evc__frame_put_task(&b, 64, &t, NULL));
	HAS(evc_last_error(), "64");
	REFUSED(EVC_RESOURCE_EXHAUSTED, evc__frame_put_result(&b, 16, &r));
	ck_assert_uint_eq(b.n, 0);
	OK(evc__frame_put_task(&b, FRAMES_MOST, &t, NULL));
	n = b.n - FRAME_HEAD;
	REFUSED(EVC_RESOURCE_EXHAUSTED,
		evc__frame_put_task(&b, n - 1, &t, NULL));
	ck_assert_uint_eq(b.n, FRAME_HEAD + n);
	OK(evc__frame_put_task(&b, n, &t, NULL));
	/* a length that the head could not say */
#if SIZE_MAX > UINT32_MAX
	t.args.size = (size_t)UINT32_MAX + 1;
#else
	t.args.size = SIZE_MAX;
#endif
	REFUSED(EVC_RESOURCE_EXHAUSTED,
		evc__frame_put_task(&b, SIZE_MAX, &t, NULL));
	bytes_free(&b);
}
END_TEST

/* ---- wrong inside ---- */

/* Every single byte of the body set to others: refused, or as it says. */
START_TEST(each_byte_damaged)
{
	static const unsigned char to[] = { 0, 1, 0x7f, 0x80, 0xc1, 0xff };
	struct bytes b = { 0 }, again = { 0 };
	unsigned char *copy;
	struct frame f;
	bool inside;
	unsigned k, j, n_refused = 0;
	size_t at;

	for (k = 0; k < N_FRAMES; k++) {
		OK(put_frame(&b, k));
		for (at = FRAME_HEAD; at < b.n; at++)
			for (j = 0; j < sizeof(to); j++) {
				copy = malloc(b.n);
				memcpy(copy, bytes_at(&b), b.n);
				copy[at] = to[j];
				ck_assert_int_eq(evc__frame_next(copy, b.n,
								 FRAMES_MOST,
								 &f),
						 1);
				if (frame_again(&f, &again, &inside) < 0)
					n_refused++;
				ck_assert(inside);
				bytes_take(&again, again.n);
				free(copy);
			}
		bytes_take(&b, b.n);
	}
	ck_assert_uint_gt(n_refused, 100);
	bytes_free(&b);
	bytes_free(&again);
}
END_TEST

#define WRONG(put_it, get_it, got, why) \
	do { \
		OK(put_it); \
		f = next_of(&b); \
		REFUSED(EVC_INVALID_ARGUMENT, get_it(&f, &(got))); \
		HAS(evc_last_error(), why); \
		bytes_take(&b, b.n); \
	} while (0)

START_TEST(what_makes_no_sense)
{
	struct frame_result r = some_result(false), got_r;
	struct frame_failed fail = { 0, "nothing" }, got_f;
	evc_engine_update u = { .op = 0, .name = "x" }, got_u;
	evc_engine_task t = some_task(), got_t;
	evc_engine_def d = some_def(0), got_d;
	struct bytes b = { 0 };
	struct frame f;

	r.r.kind = EVC_FAILED_FUNCTION;
	WRONG(evc__frame_put_result(&b, FRAMES_MOST, &r), evc__frame_get_result,
	      got_r, "an error that is none");
	r = some_result(true);
	r.r.code = 256;
	WRONG(evc__frame_put_result(&b, FRAMES_MOST, &r), evc__frame_get_result,
	      got_r, "a code that is none");
	r = some_result(true);
	r.r.kind = 77;
	WRONG(evc__frame_put_result(&b, FRAMES_MOST, &r), evc__frame_get_result,
	      got_r, "an error that is none");
	r = some_result(true);
	r.r.took = NAN;
	WRONG(evc__frame_put_result(&b, FRAMES_MOST, &r), evc__frame_get_result,
	      got_r, "a time that is none");
	/* only a cancel gives back without an error's kind */
	r = (struct frame_result){ .r = { .code = EVC_CANCELLED } };
	WRONG(evc__frame_put_result(&b, FRAMES_MOST, &r), evc__frame_get_result,
	      got_r, "an error that is none");
	r.r.updates = &u;
	r.r.n_updates = 1;
	r.r.took = -1;
	u.op = EVC_VARIABLE_GET;
	WRONG(evc__frame_put_result(&b, FRAMES_MOST, &r), evc__frame_get_result,
	      got_r, "an update that is none");
	WRONG(evc__frame_put_failed(&b, FRAMES_MOST, &fail),
	      evc__frame_get_failed, got_f, "no error");
	u.op = 5;
	WRONG(evc__frame_put_variable(&b, FRAMES_MOST, &u),
	      evc__frame_get_variable, got_u, "unknown operation");
	t.deadline = -1;
	WRONG(evc__frame_put_task(&b, FRAMES_MOST, &t, NULL),
	      evc__frame_get_task, got_t, "a deadline that is none");
	t = some_task();
	t.args = VALUE("\x92\x01");
	WRONG(evc__frame_put_task(&b, FRAMES_MOST, &t, NULL),
	      evc__frame_get_task, got_t, "no value");
	t = some_task();
	t.function = "a name of more than the forty-seven bytes that there are";
	WRONG(evc__frame_put_task(&b, FRAMES_MOST, &t, NULL),
	      evc__frame_get_task, got_t, "too long");
	WRONG(evc__frame_put_def(&b, FRAMES_MOST, &d), evc__frame_get_def,
	      got_d, "unknown kind");
	bytes_free(&b);
}
END_TEST

/* ---- the memory they go through ---- */

START_TEST(bytes_come_out_in_the_order_they_went_in)
{
	struct bytes b = { 0 };
	unsigned char chunk[997];
	unsigned in = 0, out = 0, k;
	size_t i, n;

	/* More in than out, and then the rest. */
	for (k = 0; k < 3000; k++) {
		n = k % 997 + 1;
		for (i = 0; i < n; i++)
			chunk[i] = (unsigned char)(in++ % 251);
		ck_assert(bytes_put(&b, chunk, n));
		n = k < 2000 ? b.n / 2 : b.n;
		for (i = 0; i < n; i++)
			ck_assert_uint_eq(bytes_at(&b)[i], out++ % 251);
		bytes_take(&b, n);
	}
	ck_assert_uint_eq(b.n, 0);
	ck_assert_uint_eq(in, out);
	/* What is empty keeps no more than it should. */
	ck_assert_uint_le(b.room, BYTES_KEPT);
	ck_assert_ptr_nonnull(bytes_room(&b, 1 << 20));
	b.n += 1 << 20;
	bytes_take(&b, 1 << 20);
	ck_assert_uint_eq(b.room, 0);
	ck_assert_ptr_null(bytes_room(&b, SIZE_MAX));
	ck_assert_ptr_null(bytes_room(&b, SIZE_MAX - 64));
	bytes_free(&b);
}
END_TEST

/* For a sanitizer that watches NULL + 0. */
START_TEST(no_bytes_are_nowhere)
{
	struct bytes b = { 0 };

	ck_assert_ptr_null(bytes_at(&b));
	ck_assert_ptr_null(bytes_behind(&b, 0));
	ck_assert(bytes_put(&b, "xy", 2));
	ck_assert_uint_eq(*bytes_behind(&b, 1), 'y');
	bytes_free(&b);
	ck_assert_ptr_null(bytes_at(&b));
}
END_TEST

API_MAIN("frames", each_comes_out_as_it_went_in, a_task_says_the_same,
	 a_result_says_the_same, a_note_says_the_same,
	 each_type_has_a_name_and_a_test, the_beginning_of_one_is_waited_for,
	 one_that_is_cut_or_goes_on_is_refused, heads_that_are_none,
	 huge_lengths_are_refused_at_once, a_program_has_so_many_functions,
	 what_would_be_too_long_is_not_written,
	 each_byte_damaged, what_makes_no_sense,
	 bytes_come_out_in_the_order_they_went_in, no_bytes_are_nowhere)
