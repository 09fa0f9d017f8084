/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For tests of a hosted reactor: a coordinator, whose home is on a host of bare
 * epoll.  A test that frees the coordinator sets c to NULL.
 */
#ifndef TESTS_SUPPORT_HOSTED_UTIL_H
#define TESTS_SUPPORT_HOSTED_UTIL_H

#include "api_util.h"
#include "host.h"

static struct host h;
static struct hosted t;
static evc_coord *c;

static void
set_up(void)
{
	host_init(&h);
	OK(evc_new(NULL, NULL, &c));
	hosted_init(&t, &h, c, "ui");
}

static void
tear_down(void)
{
	if (c != NULL) {
		host_del(&h, t.fd);
		OK(evc_free(c));
	}
	host_end(&h);
}

#endif
