/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A locale that writes 0,5, for this process and those that it starts.
 */
#ifndef TESTS_SUPPORT_LOCALE_UTIL_H
#define TESTS_SUPPORT_LOCALE_UTIL_H

#include "support.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char locale_folder[] = "/tmp/evcoord-locale-XXXXXX";

/* false: this system has no such locale, and cannot make one. */
static inline bool
comma_begin(void)
{
	char command[200], text[8];

	ck_assert_ptr_nonnull(mkdtemp(locale_folder));
	snprintf(command, sizeof(command),
		 "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>&1",
		 locale_folder);
	if (system(command) == 0)
		setenv("LOCPATH", locale_folder, 1);
	setenv("LC_ALL", "de_DE.UTF-8", 1);
	(void)setlocale(LC_ALL, "");
	snprintf(text, sizeof(text), "%.1f", 0.5);
	return strcmp(text, "0,5") == 0;
}

static inline void
comma_end(void)
{
	char command[100];

	setlocale(LC_ALL, "C");
	unsetenv("LC_ALL");
	unsetenv("LOCPATH");
	snprintf(command, sizeof(command), "rm -rf %s", locale_folder);
	ck_assert_int_eq(system(command), 0);
}

#endif
