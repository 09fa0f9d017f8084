/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a thread stands, as text for people: the function and the module of an
 * address, and those words of the stack that look like return addresses.
 * Called by: shake_trace.c and shake_judge.c.
 * Locks: none; one thread.
 */
#include "shake_tool.h"

#include <string.h>
#include <sys/uio.h>

#define WORDS 2048      /* of a stack, that are looked at */
#define FRAMES 10       /* in the text of a stack */
#define MODULES 128     /* executable mappings of a process */

struct module {
	unsigned long long from, to, offset;
	char path[256];
};

struct modules {
	struct module of[MODULES];
	size_t n;
};

/* The executable mappings of a process. */
static void
modules_read(struct modules *all, pid_t pid)
{
	char line[1024], mode[8], path[40];
	struct module *m;
	FILE *maps;
	int at;

	all->n = 0;
	snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
	maps = fopen(path, "re");
	if (maps == NULL)
		return;
	while (all->n < MODULES && fgets(line, sizeof line, maps) != NULL) {
		m = &all->of[all->n];
		at = 0;
		if (sscanf(line, "%llx-%llx %7s %llx %*s %*s %n", &m->from,
			   &m->to, mode, &m->offset, &at) < 4 || at == 0 ||
		    mode[2] != 'x')
			continue;
		snprintf(m->path, sizeof m->path, "%.*s",
			 (int)strcspn(line + at, "\n"), line + at);
		if (m->path[0] != '\0')
			all->n++;
	}
	fclose(maps);
}

static const struct module *
module_of(const struct modules *all, uint64_t ip)
{
	for (size_t i = 0; i < all->n; i++)
		if (ip >= all->of[i].from && ip < all->of[i].to)
			return &all->of[i];
	return NULL;
}

static void
module_text(const struct module *m, uint64_t ip, char *text, size_t size)
{
	const char *name = strrchr(m->path, '/');
	char function[PLACE_SIZE / 2];

	if (name == NULL) {
		snprintf(text, size, "%s", m->path); /* [vdso] */
		return;
	}
	symbol_text(m->path, ip - m->from + m->offset, function,
		    sizeof function);
	if (function[0] == '+')
		snprintf(text, size, "%s%s", name + 1, function);
	else
		snprintf(text, size, "%s (%s)", function, name + 1);
}

void
place_text(pid_t pid, uint64_t ip, char *text, size_t size)
{
	static struct modules all;
	const struct module *m;

	modules_read(&all, pid);
	m = module_of(&all, ip);
	if (m != NULL)
		module_text(m, ip, text, size);
	else
		snprintf(text, size, "0x%llx", (unsigned long long)ip);
}

static bool
peek(pid_t pid, uint64_t from, void *to, size_t n)
{
	struct iovec ours = { to, n };
	struct iovec theirs = { (void *)(uintptr_t)from, n };

	return process_vm_readv(pid, &ours, 1, &theirs, 1, 0) == (ssize_t)n;
}

/* Does a call instruction end at ip? */
static bool
is_return_address(pid_t pid, uint64_t ip)
{
#if defined(__x86_64__)
	unsigned char b[7];

	if (!peek(pid, ip - sizeof b, b, sizeof b))
		return false;
	if (b[2] == 0xe8)
		return true;
	for (int at = 0; at < 6; at++)
		if (b[at] == 0xff && (b[at + 1] & 0x38) == 0x10 && at != 2)
			return true;
	return false;
#else
	(void)pid, (void)ip;
	return false;
#endif
}

void
stack_text(pid_t pid, uint64_t sp, char *text, size_t size)
{
	static struct modules all;
	char place[PLACE_SIZE], last[PLACE_SIZE] = "";
	const struct module *m;
	uintptr_t word[64];
	unsigned frames = 0;

	text[0] = '\0';
	modules_read(&all, pid);
	for (unsigned i = 0; i < WORDS && frames < FRAMES; i++) {
		if (i % 64 == 0 &&
		    !peek(pid, sp + i * sizeof *word, word, sizeof word))
			break;
		m = module_of(&all, word[i % 64]);
		if (m == NULL || !is_return_address(pid, word[i % 64]))
			continue;
		module_text(m, word[i % 64], place, sizeof place);
		if (strcmp(place, last) == 0)
			continue;
		append(text, size, "%s%s", frames++ > 0 ? " < " : "", place);
		if (strncmp(place, "main+", 5) == 0)
			break;
		memcpy(last, place, sizeof last);
	}
}

void
place_now(pid_t pid, pid_t tid, char *text, size_t size, char *stack,
	  size_t stack_size)
{
	char path[64], line[256] = "", place[PLACE_SIZE];
	unsigned long long sp, ip;
	long nr;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/task/%d/syscall", (int)pid,
		 (int)tid);
	f = fopen(path, "re");
	if (f != NULL && fgets(line, sizeof line, f) == NULL)
		line[0] = '\0';
	if (f != NULL)
		fclose(f);
	/* "R (running)" */
	status_value(tid, "State", text, size);
	stack[0] = '\0';
	if (sscanf(line, "%ld %*s %*s %*s %*s %*s %*s %llx %llx", &nr, &sp,
		   &ip) != 3)
		return;
	place_text(pid, ip, place, sizeof place);
	snprintf(text, size, "%s: %s", call_name((int)nr), place);
	stack_text(pid, sp, stack, stack_size);
}
