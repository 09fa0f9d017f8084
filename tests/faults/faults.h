/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests of failing operations share.
 */
#ifndef TESTS_FAULTS_FAULTS_H
#define TESTS_FAULTS_FAULTS_H

#include "../support/api_util.h"

#include <ev.h>
#include <fcntl.h>

#include "../support/seam.h"

static MAYBE_UNUSED bool
count_one(const evc_member_info *m, void *arg)
{
	(void)m;
	++*(unsigned *)arg;
	return true;
}

static MAYBE_UNUSED unsigned
n_members(const evc_coord *c)
{
	unsigned n = 0;

	OK(evc_member_each(c, count_one, &n));
	return n;
}

static MAYBE_UNUSED pthread_t
spawn(void *(*fn)(void *), void *arg)
{
	pthread_t t;

	ck_assert_int_eq(pthread_create(&t, NULL, fn, arg), 0);
	return t;
}

#endif
