/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Transactions that others overtake, for the chaos tests: a bank whose accounts
 * begin without a variable each.  Transfers move money, audits look at all of it,
 * visitors must find nobody of their name, and two counters are read and set
 * again.  Money moves in a vector, too.  However often functions are run again, the sum is exact, and each
 * counter has as many steps as functions.
 *
 * A kind more is a function, a row of bank_kinds, and a line in bank_one and
 * bank_check.
 */
#ifndef TESTS_CONFORMANCE_BANK_H
#define TESTS_CONFORMANCE_BANK_H

#include "functions.h"

enum bank_kind {
	BANK_TRANSFER,
	BANK_AUDIT,
	BANK_TICKET,
	BANK_STEP,
	BANK_VISIT,
	BANK_VECTOR,
	BANK_KINDS
};

/* The last element of the vector counts its functions. */
enum { BANK_ACCOUNTS = 20, BANK_ELEMENTS = 1000 };

struct bank {
	uint64_t n[BANK_KINDS]; /* scheduled, all of which have to succeed */
};

/* ---- functions ---- */

static MAYBE_UNUSED evc_status
bank_failed(evc_exec *x)
{
	return evc_exec_fail(x, EVC_INTERNAL, "%s", evc_last_error());
}

static MAYBE_UNUSED int
bank_set(evc_exec *x, const char *name, double n)
{
	evc_value v = { NULL, 0 };
	int st = evc_pack(&v, "I", (int64_t)n);

	if (st == 0)
		st = evc_exec_variable_set(x, name, &v);
	evc_value_free(&v);
	return st;
}

static MAYBE_UNUSED void
bank_account(int i, char name[32])
{
	snprintf(name, 32, "bank.%d", i);
}

/* [from, to, amount] */
static MAYBE_UNUSED evc_status
fn_bank_transfer(evc_exec *x, void *arg)
{
	int from, to, amount;
	char name[32];
	double n;

	(void)arg;
	if (evc_exec_unpack(x, "[iii]", &from, &to, &amount) < 0)
		return bank_failed(x);
	bank_account(from, name);
	if (evc_exec_variable_number(x, name, &n) < 0 ||
	    bank_set(x, name, n - amount) < 0)
		return bank_failed(x);
	t_sleep(0.0005);
	bank_account(to, name);
	if (evc_exec_variable_number(x, name, &n) < 0 ||
	    bank_set(x, name, n + amount) < 0)
		return bank_failed(x);
	return 0;
}

/* []: an error, if there is money more or less */
static MAYBE_UNUSED evc_status
fn_bank_audit(evc_exec *x, void *arg)
{
	double n, sum = 0;
	char name[32];
	int i;

	(void)arg;
	for (i = 0; i < BANK_ACCOUNTS; i++) {
		bank_account(i, name);
		if (evc_exec_variable_number(x, name, &n) < 0)
			return bank_failed(x);
		sum += n;
	}
	return sum == 0 ? 0 : evc_exec_fail(x, EVC_DATA_LOSS, "the sum is %.0f",
					    sum);
}

/* []: the next ticket, by comparison, whoever else takes one */
static MAYBE_UNUSED evc_status
fn_bank_ticket(evc_exec *x, void *arg)
{
	evc_value was = { NULL, 0 }, next = { NULL, 0 };
	int64_t n = 0;
	evc_status st;

	(void)arg;
	st = evc_exec_variable_get(x, "bank.tickets", &was);
	if (st == 0)
		st = evc_unpack(&was, "I", &n);
	else if (st == -EVC_NOT_FOUND)
		st = 0;
	if (st == 0)
		st = evc_pack(&next, "I", n + 1);
	if (st == 0)
		st = evc_exec_variable_compare_set(x, "bank.tickets",
						   n > 0 ? &was : NULL, &next);
	evc_value_free(&was);
	evc_value_free(&next);
	return st == 0 ? 0 : bank_failed(x);
}

/* [] */
static MAYBE_UNUSED evc_status
fn_bank_step(evc_exec *x, void *arg)
{
	double n;

	(void)arg;
	if (evc_exec_variable_number(x, "bank.steps", &n) < 0 ||
	    bank_set(x, "bank.steps", n + 1) < 0)
		return bank_failed(x);
	return 0;
}

/* [number]: an error, if it was here before */
static MAYBE_UNUSED evc_status
fn_bank_visit(evc_exec *x, void *arg)
{
	evc_value was = { NULL, 0 };
	char name[48];
	int64_t n;
	evc_status st;

	(void)arg;
	if (evc_exec_unpack(x, "[I]", &n) < 0)
		return bank_failed(x);
	snprintf(name, sizeof(name), "bank.visitor.%lld", (long long)n);
	st = evc_exec_variable_get(x, name, &was);
	evc_value_free(&was);
	if (st == 0)
		return evc_exec_fail(x, EVC_DATA_LOSS, "%s was here", name);
	if (st != -EVC_NOT_FOUND || bank_set(x, name, 1) < 0 ||
	    evc_exec_variable_add(x, "bank.visits", 1, NULL) < 0)
		return bank_failed(x);
	return 0;
}

static MAYBE_UNUSED double
bank_sum(const double *all)
{
	double sum = 0;
	int i;

	for (i = 0; i < BANK_ELEMENTS - 1; i++)
		sum += all[i];
	return sum;
}

/* [from, to, amount]: makes the vector, if there is none; now and then an audit,
   too */
static MAYBE_UNUSED evc_status
fn_bank_vector(evc_exec *x, void *arg)
{
	double all[BANK_ELEMENTS] = { 0 }, by[3] = { 0, 0, 1 };
	evc_elements e = { .doubles = all, .n = BANK_ELEMENTS };
	uint32_t at[3] = { 0, 0, BANK_ELEMENTS - 1 };
	int from, to, amount;
	evc_status st;
	size_t n;

	(void)arg;
	if (evc_exec_unpack(x, "[iii]", &from, &to, &amount) < 0)
		return bank_failed(x);
	st = evc_exec_vector_size(x, "bank.vector", &n);
	if (st == -EVC_NOT_FOUND)
		st = evc_exec_vector_set(x, "bank.vector", &e);
	if (st < 0)
		return bank_failed(x);
	at[0] = (uint32_t)from * 40;
	at[1] = (uint32_t)to * 40 + 1;
	by[0] = -amount;
	by[1] = amount;
	if (evc_exec_vector_add(x, "bank.vector",
				&(evc_elements){ .doubles = by, .n = 3,
						 .at = at }) < 0)
		return bank_failed(x);
	if (amount % 10 != 0)
		return 0;
	if (evc_exec_vector_get(x, "bank.vector", &e) < 0)
		return bank_failed(x);
	return bank_sum(all) == 0 ? 0 :
				    evc_exec_fail(x, EVC_DATA_LOSS,
						  "the vector's sum is %.0f",
						  bank_sum(all));
}

#define BANK_FUNCTIONS \
	{ .name = "bank transfer", .fn = fn_bank_transfer }, \
	{ .name = "bank audit", .fn = fn_bank_audit }, \
	{ .name = "bank ticket", .fn = fn_bank_ticket }, \
	{ .name = "bank step", .fn = fn_bank_step }, \
	{ .name = "bank visit", .fn = fn_bank_visit }, \
	{ .name = "bank vector", .fn = fn_bank_vector }

/* ---- the program ---- */

static const struct {
	const char *name;
	unsigned weight;
} bank_kinds[BANK_KINDS] = {
	[BANK_TRANSFER] = { "bank transfer", 6 },
	[BANK_AUDIT] = { "bank audit", 1 },
	[BANK_TICKET] = { "bank ticket", 2 },
	[BANK_STEP] = { "bank step", 2 },
	[BANK_VISIT] = { "bank visit", 1 },
	[BANK_VECTOR] = { "bank vector", 4 },
};

/* Schedule any of them. */
static MAYBE_UNUSED evc_remote *
bank_one(struct bank *b, unsigned *seed)
{
	evc_schedule_opts o = { .flags = EVC_TRANSACTIONAL, .deaths = 255 };
	int from = rand_r(seed) % BANK_ACCOUNTS, amount = rand_r(seed) % 100;
	int to = (from + 1 + rand_r(seed) % (BANK_ACCOUNTS - 1)) %
		 BANK_ACCOUNTS;
	unsigned sum = 0, at, k;
	evc_remote *r;
	evc_status st;

	for (k = 0; k < BANK_KINDS; k++)
		sum += bank_kinds[k].weight;
	at = (unsigned)rand_r(seed) % sum;
	for (k = 0; at >= bank_kinds[k].weight; k++)
		at -= bank_kinds[k].weight;
	if (k == BANK_TRANSFER || k == BANK_VECTOR)
		st = evc_schedule_pack(on.cl, bank_kinds[k].name, &o, &r,
				       "[iii]", from, to, amount);
	else if (k == BANK_VISIT)
		st = evc_schedule_pack(on.cl, bank_kinds[k].name, &o, &r, "[I]",
				       (int64_t)b->n[k]);
	else
		st = evc_schedule(on.cl, bank_kinds[k].name, NULL, NULL, &o,
				  &r);
	OK(st);
	b->n[k]++;
	return r;
}

static MAYBE_UNUSED void
bank_has(const char *name, uint64_t n)
{
	double is = -1;

	OK(evc_variable_number(on.cl, name, &is));
	ck_assert_msg(is == (double)n, "%s: %.0f, not %llu", name, is,
		      (unsigned long long)n);
}

/* When all have succeeded. */
static MAYBE_UNUSED void
bank_check(const struct bank *b)
{
	double all[BANK_ELEMENTS], n, sum = 0;
	evc_elements e = { .doubles = all, .n = BANK_ELEMENTS };
	char name[32];
	int i;

	if (b->n[BANK_VECTOR] > 0) {
		OK(evc_vector_get(on.cl, "bank.vector", &e));
		ck_assert_msg(bank_sum(all) == 0, "the vector's sum is %.0f",
			      bank_sum(all));
		ck_assert(all[BANK_ELEMENTS - 1] ==
			  (double)b->n[BANK_VECTOR]);
	}
	for (i = 0; i < BANK_ACCOUNTS; i++) {
		bank_account(i, name);
		OK(evc_variable_number(on.cl, name, &n));
		sum += n;
	}
	ck_assert_msg(sum == 0, "the sum is %.0f", sum);
	bank_has("bank.tickets", b->n[BANK_TICKET]);
	bank_has("bank.steps", b->n[BANK_STEP]);
	bank_has("bank.visits", b->n[BANK_VISIT]);
}

#endif
