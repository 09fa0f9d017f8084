/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What tests of checkpoints share: a folder of the test's own, the path of the
 * file that is saved there, and that of another one.
 */
#ifndef TESTS_SUPPORT_FOLDER_UTIL_H
#define TESTS_SUPPORT_FOLDER_UTIL_H

#include "api_util.h"

static char folder[64], path[96], other[112] MAYBE_UNUSED;

static MAYBE_UNUSED void
folder_make(void)
{
	snprintf(folder, sizeof folder, "/tmp/evc-saved-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/state", folder);
	snprintf(other, sizeof other, "%s/other", folder);
}

static MAYBE_UNUSED void
folder_remove(void)
{
	char command[128];

	snprintf(command, sizeof command, "rm -r %s", folder);
	ck_assert_int_eq(system(command), 0);
}

#endif
