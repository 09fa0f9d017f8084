/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes, as a checkpoint: as the value in it, which is refused with nothing
 * changed, or read by all in the same way - into a table of variables, as a list,
 * through a pile and back; and as the file around that value.
 */
#include "fuzz/fuzz.h"

#include <evcoord.h>
#include <evcoord/value.h>

#include "cluster/snapshot/snapshot.h"

#include <arpa/inet.h>

/* ---- the value ---- */

static void
pack(struct fuzz *f, struct variables *v, evc_value *ret)
{
	FUZZ_CHECK(f, evc__variables_pack(v, ret, NULL) == 0);
	FUZZ_CHECK(f, evc_value_check(ret) == 0);
}

/* Another table of the same variables packs to the same bytes. */
static void
is_same(struct fuzz *f, const evc_value *packed, const evc_value *other)
{
	struct variables v;
	evc_value again;

	FUZZ_CHECK(f, evc__variables_init(&v));
	FUZZ_CHECK(f, evc__variables_unpack(&v, other) == 0);
	pack(f, &v, &again);
	FUZZ_CHECK(f, again.size == packed->size);
	FUZZ_CHECK(f, memcmp(again.data, packed->data, again.size) == 0);
	evc_value_free(&again);
	evc__variables_destroy(&v);
}

/* Put together what stands in parts. */
static evc_value
whole_of(const evc_value *parts, size_t n)
{
	size_t size = 0, i;
	unsigned char *to;

	for (i = 0; i < n; i++)
		size += parts[i].size;
	to = malloc(size);
	for (size = 0, i = 0; i < n; i++) {
		memcpy(to + size, parts[i].data, parts[i].size);
		size += parts[i].size;
	}
	return (evc_value){ to, size };
}

static void
through_a_pile(struct fuzz *f, const struct variable_list *l,
	       const evc_value *packed)
{
	size_t cut = fuzz_below(f, l->n + 1), n;
	struct pile p = { .n = 0 };
	evc_value *parts, whole;

	FUZZ_CHECK(f, evc__pile_add(&p, l->entries, l->n) == 0);
	/* Some of them come twice. */
	FUZZ_CHECK(f, evc__pile_add(&p, l->entries, cut) == 0);
	FUZZ_CHECK(f, evc__pile_settle(&p) == 0);
	FUZZ_CHECK(f, p.n == l->n);
	FUZZ_CHECK(f, evc__pile_parts(&p, l->finished, &parts, &n) == 0);
	whole = whole_of(parts, n);
	is_same(f, packed, &whole);
	free((void *)whole.data);
	sync_free(parts);
	evc__pile_free(&p);
}

static bool
as_value(struct fuzz *f, const unsigned char *bytes, size_t n)
{
	evc_value v = { bytes, n }, copy, packed;
	struct variable_list l;
	struct variables table;
	evc_status st, listed;

	if (n == 0 || evc_value_copy(&copy, &v) != 0)
		return false;
	FUZZ_CHECK(f, evc__variables_init(&table));
	st = evc__variables_unpack(&table, &v);
	FUZZ_CHECK(f, st == 0 || table.by_name.n == 0);
	listed = evc__variables_read(&copy, &l);
	if (listed == 0)
		listed = evc__variables_check_names(&l);
	FUZZ_CHECK(f, (st == 0) == (listed == 0));
	FUZZ_CHECK(f, st == 0 || evc_last_error()[0] != '\0');
	if (st == 0) {
		pack(f, &table, &packed);
		is_same(f, &packed, &packed);
		is_same(f, &packed, &v);
		through_a_pile(f, &l, &packed);
		evc_value_free(&packed);
	}
	evc__variables_list_free(&l);
	evc__variables_destroy(&table);
	return st == 0;
}

/* ---- the file ---- */

static void
put_file(struct fuzz *f, int fd, const void *bytes, size_t n, size_t at)
{
	FUZZ_CHECK(f, pwrite(fd, bytes, n, (off_t)at) == (ssize_t)n);
}

/* With a head that fits, but for what is damaged; any other file is refused. */
static void
as_file(struct fuzz *f, const unsigned char *bytes, size_t n)
{
	unsigned char head[HEAD_SIZE] = SNAPSHOT_MAGIC;
	const evc_value body = { bytes, n };
	bool damaged = fuzz_once_in(f, 2);
	size_t at = fuzz_below(f, HEAD_SIZE), size = HEAD_SIZE + n;
	uint32_t word = htonl(SNAPSHOT_VERSION);
	evc_status st;
	evc_value got;
	char path[40];
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	memcpy(head + VERSION_AT, &word, 4);
	word = htonl((uint32_t)n);
	memcpy(head + LENGTH_AT + 4, &word, 4);
	word = htonl(evc__snapshot_crc(head, &body, 1));
	memcpy(head + CRC_AT, &word, 4);
	if (damaged)
		head[at] ^= (unsigned char)(1 + fuzz_below(f, 255));
	FUZZ_CHECK(f, fd >= 0);
	put_file(f, fd, head, HEAD_SIZE, 0);
	put_file(f, fd, bytes, n, HEAD_SIZE);
	if (damaged && fuzz_once_in(f, 2))
		FUZZ_CHECK(f, ftruncate(fd, (off_t)fuzz_below(f, 2 * size)) == 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	st = evc__snapshot_read(path, &got);
	FUZZ_CHECK(f, (st == 0) == !damaged);
	FUZZ_CHECK(f, st == 0 || evc_last_error()[0] != '\0');
	if (st == 0) {
		FUZZ_CHECK(f, got.size == n);
		FUZZ_CHECK(f, n == 0 || memcmp(got.data, bytes, n) == 0);
	}
	evc_value_free(&got);
	close(fd);
}

static bool
one(struct fuzz *f, const unsigned char *bytes, size_t n)
{
	if (fuzz_once_in(f, 8))
		as_file(f, bytes, n);
	return as_value(f, bytes, n);
}

static const struct fuzz_seed seeds[] = {
	FUZZ_SEED("\x92\x05\x80"),
	FUZZ_SEED("\x92\x05\x81\xa1x\xc4\x01\x07"),
	FUZZ_SEED("\x92\x05\x82\xa1x\xc4\x01\x07\xa2yz\xc4\x03\x92\x01\x02"),
	FUZZ_SEED("\x92\xcd\x01\x00\xde\x00\x01\xa1x\xc4\x09\xcb\x40\0\0\0\0\0\0\0"),
};

FUZZ_MAIN({ .name = "snapshots",
	    .one = one,
	    .seeds = seeds,
	    .n_seeds = sizeof(seeds) / sizeof(seeds[0]) })
