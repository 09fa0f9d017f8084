/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The small parts that everything stands on: texts, times, the list, reserved
 * room.
 */

#include "../support/api_util.h"
#include "../support/seam.h"

#include <math.h>

#include "base/list.h"
#include "base/reserved.h"
#include "base/text.h"
#include "base/deadline.h"

/* ---- text ---- */

/* A buffer with a guard on both sides. */
struct framed {
	char before[8], buf[16], after[8];
};

static struct text
framed_text(struct framed *f, size_t room)
{
	memset(f, '#', sizeof *f);
	return evc__text_in(f->buf, room);
}

static void
check_frame(const struct framed *f, size_t room)
{
	static const char hashes[] = "################";

	ck_assert_mem_eq(f->before, hashes, sizeof f->before);
	ck_assert_mem_eq(f->buf + room, hashes, sizeof f->buf - room);
	ck_assert_mem_eq(f->after, hashes, sizeof f->after);
}

START_TEST(text_is_cut_counted_and_ended_by_0)
{
	static const char whole[] = "one two three";
	size_t room, n = strlen(whole), fits;

	for (room = 0; room <= sizeof((struct framed *)0)->buf; room++) {
		struct framed f;
		struct text t = framed_text(&f, room);

		evc__text_add(&t, "one ");
		evc__text_add(&t, "");
		evc__text_fmt(&t, "%s %s", "two", "three");
		ck_assert_uint_eq(t.len, n);
		check_frame(&f, room);
		if (room == 0)
			continue;
		fits = n < room ? n : room - 1;
		ck_assert_uint_eq(strlen(f.buf), fits);
		ck_assert_mem_eq(f.buf, whole, fits);
	}
}
END_TEST

START_TEST(text_counts_on_after_it_was_cut)
{
	struct framed f;
	struct text t = framed_text(&f, 4);

	evc__text_fmt(&t, "%d", 12345);
	evc__text_add(&t, "67");
	evc__text_int(&t, 89);
	evc__text_fmt(&t, "%c", '0');
	ck_assert_str_eq(f.buf, "123");
	ck_assert_uint_eq(t.len, 10);
	check_frame(&f, 4);
}
END_TEST

START_TEST(text_of_no_room_writes_nothing)
{
	struct text t = evc__text_in(NULL, 0);

	evc__text_add(&t, "abc");
	evc__text_int(&t, -5);
	evc__text_fmt(&t, "%s", "de");
	ck_assert_uint_eq(t.len, 7);
}
END_TEST

START_TEST(text_knows_all_numbers)
{
	static const int64_t number[] = { 0,  1,         -1,        9,
					  10, INT64_MAX, INT64_MIN, -4000000000 };
	char is[32], should[32];
	size_t i;

	for (i = 0; i < sizeof number / sizeof number[0]; i++) {
		struct text t = evc__text_in(is, sizeof is);

		evc__text_int(&t, number[i]);
		snprintf(should, sizeof should, "%lld", (long long)number[i]);
		ck_assert_str_eq(is, should);
		ck_assert_uint_eq(t.len, strlen(should));
	}
}
END_TEST

START_TEST(copy_keeps_the_beginning_copy_end_the_end)
{
	static const struct {
		const char *from, *copy, *copy_end;
	} c[] = { { NULL, "", "" },
		  { "", "", "" },
		  { "abc", "abc", "abc" },
		  { "1234567", "1234567", "1234567" },
		  { "12345678", "1234567", "2345678" },
		  { "src/core/join.c", "src/cor", "/join.c" } };
	size_t i;

	for (i = 0; i < sizeof c / sizeof c[0]; i++) {
		struct framed f;

		(void)framed_text(&f, 0);
		evc__copy(f.buf, 8, c[i].from);
		ck_assert_str_eq(f.buf, c[i].copy);
		check_frame(&f, 8);
		evc__copy_end(f.buf, 8, c[i].from);
		ck_assert_str_eq(f.buf, c[i].copy_end);
		check_frame(&f, 8);
	}
}
END_TEST

/* For each room: whole if it fits, else both ends, and no half of a character on
   either side of the gap. */
START_TEST(copy_ends_leaves_out_the_middle)
{
	static const char one[] = "the beginning of it, and of course the end";
	static const char two[] = "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80 "
				  "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80 "
				  "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80";
	static const char *const texts[] = { one, two };
	char buf[128];
	struct text t;
	size_t i, room;
	const char *s;
	uint32_t v;

	for (i = 0; i < 2; i++)
		for (room = 1; room <= strlen(texts[i]) + 2; room++) {
			memset(buf, '#', sizeof(buf));
			evc__copy_ends(buf, room, texts[i]);
			ck_assert_int_eq(buf[room], '#');
			ck_assert_uint_lt(strlen(buf), room);
			if (room > strlen(texts[i])) {
				ck_assert_str_eq(buf, texts[i]);
				continue;
			}
			for (s = buf; *s != '\0'; s += evc__utf8(s, &v))
				ck_assert_uint_gt(evc__utf8(s, &v), 0);
			if (room < 24)
				continue;
			s = strstr(buf, " ... ");
			ck_assert_ptr_nonnull(s);
			ck_assert_int_eq(strncmp(buf, texts[i],
						 (size_t)(s - buf)), 0);
			s += strlen(" ... ");
			ck_assert_str_eq(s, texts[i] + strlen(texts[i]) -
						    strlen(s));
			ck_assert_uint_gt(strlen(s), 2);
		}
	evc__copy_ends(buf, 8, NULL);
	ck_assert_str_eq(buf, "");
	/* Behind something, and without any room. */
	t = evc__text_in(buf, 40);
	evc__text_add(&t, "why: ");
	evc__text_ends(&t, one);
	ck_assert_str_eq(buf, "why: the beginning  ...  course the end");
	t = evc__text_in(buf, 8);
	evc__text_add(&t, "too much already");
	evc__text_ends(&t, one);
	ck_assert_str_eq(buf, "too muc");
	ck_assert_uint_eq(t.len, 16 + strlen(one));
}
END_TEST

/* ---- times ---- */

START_TEST(seconds_become_nanoseconds)
{
	ck_assert_uint_eq(evc__ns(0), 0);
	ck_assert_uint_eq(evc__ns(-1), 0);
	ck_assert_uint_eq(evc__ns(-INFINITY), 0);
	ck_assert_uint_eq(evc__ns(NAN), 0);
	ck_assert_uint_eq(evc__ns(1e-300), 0);
	ck_assert_uint_eq(evc__ns(1e-10), 0);
	ck_assert_uint_eq(evc__ns(1e-9), 1);
	ck_assert_uint_eq(evc__ns(0.25), 250000000);
	ck_assert_uint_eq(evc__ns(120), UINT64_C(120000000000));
	ck_assert_uint_lt(evc__ns(8.9e9), SYNC_FOREVER);
	ck_assert_uint_eq(evc__ns(9e9), SYNC_FOREVER);
	ck_assert_uint_eq(evc__ns(1e300), SYNC_FOREVER);
	ck_assert_uint_eq(evc__ns(INFINITY), SYNC_FOREVER);
}
END_TEST

START_TEST(times_end_or_never_do)
{
	uint64_t now = sync_mono(), until;

	ck_assert_uint_eq(evc__after(7, 5), 12);
	ck_assert_uint_eq(evc__after(7, SYNC_FOREVER - 8), SYNC_FOREVER - 1);
	ck_assert_uint_eq(evc__after(7, SYNC_FOREVER - 7), SYNC_FOREVER);
	ck_assert_uint_eq(evc__after(7, SYNC_FOREVER), SYNC_FOREVER);
	ck_assert_uint_eq(evc__after(SYNC_FOREVER, 0), SYNC_FOREVER);

	until = evc__deadline_in(1000);
	ck_assert_uint_ge(until, now + UINT64_C(1000000000000));
	ck_assert_uint_le(evc__deadline_left_ns(until),
			  UINT64_C(1000000000000));
	ck_assert_uint_gt(evc__deadline_left_ns(until), 0);
	ck_assert_double_gt(evc__deadline_left(until), 0);
	ck_assert_double_le(evc__deadline_left(until), 1000);
	ck_assert_uint_eq(evc__deadline_left_ns(now), 0);
	ck_assert_double_eq(evc__deadline_left(now), 0);
	ck_assert_uint_le(evc__deadline_in(-1), sync_mono());
	ck_assert_uint_le(evc__deadline_in(NAN), sync_mono());

	ck_assert_uint_eq(evc__deadline_in(INFINITY), SYNC_FOREVER);
	ck_assert_uint_eq(evc__deadline_in_ns(SYNC_FOREVER), SYNC_FOREVER);
	ck_assert_uint_eq(evc__deadline_left_ns(SYNC_FOREVER), SYNC_FOREVER);
	ck_assert(isinf(evc__deadline_left(SYNC_FOREVER)));
}
END_TEST

struct changing {
	pthread_mutex_t lock;
	_Atomic uint32_t word;
	bool done; /* lock */
};

static void *
change(void *arg)
{
	struct changing *c = arg;

	sync_lock(&c->lock);
	c->done = true;
	sync_add(&c->word, 1);
	sync_unlock(&c->lock);
	sync_futex_wake(&c->word);
	return NULL;
}

START_TEST(a_change_is_awaited_until_the_time_is_over)
{
	struct changing c = { .lock = PTHREAD_MUTEX_INITIALIZER };
	uint64_t until;
	pthread_t t;

	sync_lock(&c.lock);
	/* Over already: the lock was never given up. */
	ck_assert(!evc__await_change(&c.lock, &c.word, sync_mono()));
	/* Nobody changes it: it ends by itself. */
	until = evc__deadline_in(0.01);
	while (evc__await_change(&c.lock, &c.word, until))
		continue;
	ck_assert_uint_ge(sync_mono(), until);
	ck_assert_int_eq(pthread_create(&t, NULL, change, &c), 0);
	while (!c.done)
		ck_assert(evc__await_change(&c.lock, &c.word, SYNC_FOREVER));
	sync_unlock(&c.lock);
	ck_assert_int_eq(pthread_join(t, NULL), 0);
}
END_TEST

static void *
await_done(void *arg)
{
	struct changing *c = arg;

	sync_lock(&c->lock);
	while (!c->done)
		evc__await_change(&c->lock, &c->word, SYNC_FOREVER);
	sync_unlock(&c->lock);
	return NULL;
}

/* The waiter has given up the lock and does not sleep yet; the word moves when
   the lock is free again. */
START_TEST(a_word_that_moves_behind_the_change_is_not_missed)
{
	struct changing c = { .lock = PTHREAD_MUTEX_INITIALIZER };
	int h = seam_hold("futex_wait", "evc__await_change", 1);
	pthread_t t;

	OK(pthread_create(&t, NULL, await_done, &c));
	ck_assert(seam_await(h));
	sync_lock(&c.lock);
	c.done = true;
	sync_unlock(&c.lock);
	sync_add(&c.word, 1);
	sync_futex_wake(&c.word);
	seam_release(h);
	OK(pthread_join(t, NULL));
	seam_reset();
}
END_TEST

START_TEST(a_nap_ends_by_itself)
{
	uint64_t from = sync_mono();

	evc__nap(2000000);
	ck_assert_uint_ge(sync_mono() - from, 2000000);
}
END_TEST

START_TEST(reserved_room_is_zero_to_its_end)
{
	uint64_t room[3] = { 0 };
	size_t i;

	ck_assert(RESERVED_IS_ZERO(room));
	for (i = 0; i < 3; i++) {
		room[i] = UINT64_C(1) << 63;
		ck_assert(!RESERVED_IS_ZERO(room));
		ck_assert(evc__reserved_is_zero(room, i));
		room[i] = 0;
	}
}
END_TEST

/* ---- list ---- */

struct number {
	int n;
	struct list node;
};

static int
digits(struct list *head)
{
	struct list *n, *tmp;
	int sum = 0;

	LIST_EACH(n, tmp, head)
		sum = sum * 10 + LIST_OF(n, struct number, node)->n;
	return sum;
}

START_TEST(list_appends_removes_and_walks_in_order)
{
	struct number a[5];
	struct list head, *n, *tmp;
	int i;

	list_init(&head);
	ck_assert(list_empty(&head));
	ck_assert_int_eq(digits(&head), 0);
	for (i = 0; i < 5; i++) {
		a[i].n = i + 1;
		list_append(&head, &a[i].node);
	}
	ck_assert_int_eq(digits(&head), 12345);
	list_remove(&a[2].node);
	list_remove(&a[2].node); /* harmless */
	ck_assert(list_empty(&a[2].node));
	list_remove(&a[0].node);
	list_remove(&a[4].node);
	ck_assert_int_eq(digits(&head), 24);
	list_append(&head, &a[0].node);
	ck_assert_int_eq(digits(&head), 241);
	/* The element that a walk stands on may go. */
	LIST_EACH(n, tmp, &head)
		list_remove(n);
	ck_assert(list_empty(&head));
}
END_TEST

API_MAIN("base", text_is_cut_counted_and_ended_by_0,
	 text_counts_on_after_it_was_cut, text_of_no_room_writes_nothing,
	 text_knows_all_numbers, copy_keeps_the_beginning_copy_end_the_end,
	 copy_ends_leaves_out_the_middle,
	 seconds_become_nanoseconds, times_end_or_never_do,
	 a_change_is_awaited_until_the_time_is_over,
	 a_word_that_moves_behind_the_change_is_not_missed,
	 a_nap_ends_by_itself,
	 reserved_room_is_zero_to_its_end,
	 list_appends_removes_and_walks_in_order)
