/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table by number and by name: beside a model, without memory, and with
 * names of one hash.
 */

#include "../support/api_util.h"
#include "../support/seam.h"

#include "base/sync.h"
#include "base/table.h"

enum { MANY = 3000 };

struct record {
	union {
		uint64_t id;
		struct table_node node;
	};
	bool in, seen;
};

struct named {
	struct table_name at;
	char name[16];
};

static struct table table;
static struct record record[MANY];

static void
anew(void)
{
	int i;

	seam_reset();
	evc__table_free(&table);
	memset(record, 0, sizeof record);
	for (i = 0; i < MANY; i++)
		record[i].id = (uint64_t)i + 1;
}

static void
add(int i)
{
	ck_assert(evc__table_reserve(&table, 1));
	evc__table_add(&table, &record[i].node);
	record[i].in = true;
}

static void
take(int i)
{
	evc__table_remove(&table, &record[i].node);
	record[i].in = false;
}

static void
check_all(void)
{
	struct record *r, *behind;
	size_t n = 0;
	int i;

	TABLE_EACH(r, behind, &table) {
		ck_assert(r->in && !r->seen);
		r->seen = true;
		n++;
	}
	ck_assert_uint_eq(n, table.n);
	for (i = 0; i < MANY; i++) {
		ck_assert(record[i].seen == record[i].in);
		record[i].seen = false;
		ck_assert_ptr_eq(evc__table_find(&table, record[i].id),
				 record[i].in ? &record[i] : NULL);
	}
}

START_TEST(an_empty_table_has_nothing)
{
	anew();
	ck_assert_ptr_null(evc__table_find(&table, 0));
	ck_assert_ptr_null(evc__table_find(&table, 1));
	ck_assert_ptr_null(evc__table_find_name(&table, "a"));
	ck_assert_ptr_null(evc__table_next(&table, NULL));
	add(0);
	take(0);
	check_all();
	anew();
}
END_TEST

START_TEST(random_histories_agree_with_a_model)
{
	unsigned seed = 7;
	int i, k;

	anew();
	for (k = 0; k < 40000; k++) {
		seed = seed * 1103515245u + 12345u;
		i = (int)(seed >> 8) % MANY;
		if (record[i].in)
			take(i);
		else
			add(i);
		if (k % 4000 == 0)
			check_all();
	}
	check_all();
	ck_assert_uint_le(table.n, 2 * table.n_buckets);
	anew();
}
END_TEST

START_TEST(without_memory_the_chains_get_longer)
{
	size_t before;
	int i;

	anew();
	seam_fail("alloc", "evc__table_reserve", 1, ENOMEM);
	ck_assert(!evc__table_reserve(&table, 1));
	add(0);
	before = table.n_buckets;
	seam_fail_all("alloc", "evc__table_reserve", 1, ENOMEM);
	for (i = 1; i < MANY; i++)
		add(i);
	ck_assert_uint_eq(table.n_buckets, before);
	check_all();
	seam_reset();
	take(5);
	add(5);
	ck_assert_uint_ge(table.n_buckets * 2, MANY);
	check_all();
	anew();
}
END_TEST

START_TEST(room_for_many_needs_no_memory_later)
{
	int i;

	anew();
	ck_assert(evc__table_reserve(&table, MANY));
	seam_fail_all("alloc", "evc__table_reserve", 1, ENOMEM);
	for (i = 0; i < MANY; i++)
		add(i);
	ck_assert_uint_ge(table.n_buckets * 2, MANY);
	check_all();
	anew();
}
END_TEST

START_TEST(names_are_found_by_their_text)
{
	static struct named n[MANY];
	struct named twin = { .name = "another" }, *r, *behind;
	size_t seen = 0;
	int i;

	anew();
	for (i = 0; i < MANY; i++) {
		snprintf(n[i].name, sizeof n[i].name, "name %d", i);
		n[i].at.text = n[i].name;
		ck_assert(evc__table_reserve(&table, 1));
		ck_assert_ptr_null(evc__table_find_name(&table, n[i].name));
		evc__table_add_name(&table, &n[i].at);
	}
	for (i = 0; i < MANY; i++)
		ck_assert_ptr_eq(evc__table_find_name(&table, n[i].name),
				 &n[i]);
	/* One of the same hash with another text is passed by. */
	twin.at.text = twin.name;
	twin.at.node.key = n[17].at.node.key;
	evc__table_add(&table, &twin.at.node);
	ck_assert_ptr_eq(evc__table_find_name(&table, "name 17"), &n[17]);
	evc__table_remove(&table, &n[17].at.node);
	ck_assert_ptr_null(evc__table_find_name(&table, "name 17"));
	ck_assert_ptr_null(evc__table_find_name(&table, ""));
	TABLE_EACH(r, behind, &table) {
		evc__table_remove(&table, &r->at.node);
		seen++;
	}
	ck_assert_uint_eq(seen, MANY);
	ck_assert_uint_eq(table.n, 0);
	anew();
}
END_TEST

API_MAIN("table", an_empty_table_has_nothing,
	 random_histories_agree_with_a_model,
	 without_memory_the_chains_get_longer,
	 room_for_many_needs_no_memory_later, names_are_found_by_their_text)
