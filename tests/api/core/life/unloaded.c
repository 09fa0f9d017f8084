/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dlclose leaves the library where it is: the handlers of its signals lead into
 * it.  This program is not linked with it.
 */
#include <evcoord.h>

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TRY(x) \
	do { \
		if (!(x)) { \
			printf("%s:%d: %s\n", __FILE__, __LINE__, #x); \
			return 1; \
		} \
	} while (0)

int
main(void)
{
	const char *top = getenv("EVC_TOP_BUILDDIR");
	evc_status (*kick_signal)(int), (*stack_signal)(int), st;
	char path[4096];
	void *lib;

	snprintf(path, sizeof path, "%s/src/.libs/libevcoord.so",
		 top != NULL ? top : ".");
	if (access(path, R_OK) != 0) {
		printf("SKIP unloaded: no shared library was built\n");
		return 77;
	}
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	TRY(lib != NULL);
	*(void **)&kick_signal = dlsym(lib, "evc_kick_signal");
	*(void **)&stack_signal = dlsym(lib, "evc_stack_signal");
	TRY(kick_signal != NULL && stack_signal != NULL);
	TRY(kick_signal(SIGURG) == 0);
	st = stack_signal(SIGUSR2);
	TRY(st == 0 || st == -EVC_UNIMPLEMENTED);
	TRY(dlclose(lib) == 0);
	TRY(raise(SIGURG) == 0);
	signal(SIGURG, SIG_DFL);
	/* glibc before 2.35 has no backtrace for its handler. */
	TRY(st != 0 || raise(SIGUSR2) == 0);
	return 0;
}
