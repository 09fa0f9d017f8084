/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * _dl_find_object of glibc, on dl_iterate_phdr: the unwinder of a gcc that was
 * built for glibc asks for it, and musl has none.  For tests/platforms.sh alone.
 */
#define _GNU_SOURCE
#include <link.h>
#include <stddef.h>
#include <stdint.h>

struct found {
	unsigned long long flags;
	void *start, *end;
	struct link_map *map;
	void *eh_frame;
	unsigned long long reserved[7];
};

struct look {
	uintptr_t pc;
	struct found *found;
	int is_there;
};

int _dl_find_object(void *pc, struct found *found);

static int
look_at(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct look *l = arg;
	uintptr_t eh = 0;
	int i, here = 0;

	(void)size;
	for (i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t at = info->dlpi_addr + p->p_vaddr;

		if (p->p_type == PT_GNU_EH_FRAME)
			eh = at;
		if (p->p_type != PT_LOAD || l->pc < at ||
		    l->pc >= at + p->p_memsz)
			continue;
		here = 1;
		l->found->start = (void *)at;
		l->found->end = (void *)(at + p->p_memsz);
	}
	l->found->eh_frame = (void *)eh;
	return l->is_there = here && eh != 0;
}

int
_dl_find_object(void *pc, struct found *found)
{
	struct look l = { (uintptr_t)pc, found, 0 };

	*found = (struct found){ 0 };
	dl_iterate_phdr(look_at, &l);
	return l.is_there ? 0 : -1;
}
