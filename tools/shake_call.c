/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The system calls of evc-shake: their names, which the build takes from the C
 * library's <sys/syscall.h>, and a seccomp filter by which the kernel stops the
 * chosen calls for the tracer, and no other one.
 * Called by: shake_run.c, shake_plan.c, shake_judge.c and shake_print.c.
 * Locks: none; one thread.
 */
#include "shake_tool.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
	int nr;
	const char *name;
} names[] = {
#include "tools/shake_names.h"
};
#define NAMES (sizeof names / sizeof *names)

const char *
call_name(int nr)
{
	static char text[24];

	for (size_t i = 0; i < NAMES; i++)
		if (names[i].nr == nr)
			return names[i].name;
	snprintf(text, sizeof text, "call_%d", nr);
	return text;
}

int
call_number(const char *name)
{
	for (size_t i = 0; i < NAMES; i++)
		if (strcmp(names[i].name, name) == 0 && names[i].nr < CALLS)
			return names[i].nr;
	return -1;
}

int
call_filter(const bool *call)
{
	struct sock_filter f[2 * CALLS + 3];
	struct sock_fprog prog = { .filter = f };
	unsigned short n = 0;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return -1;
	f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			offsetof(struct seccomp_data, nr));
	for (unsigned nr = 0; call != NULL && nr < CALLS; nr++) {
		if (!call[nr])
			continue;
		f[n++] = (struct sock_filter)BPF_JUMP(
				BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1);
		f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
				SECCOMP_RET_TRACE);
	}
	f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
			call == NULL ? SECCOMP_RET_TRACE : SECCOMP_RET_ALLOW);
	prog.len = n;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog, 0, 0);
}
