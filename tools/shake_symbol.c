/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of functions in programs and libraries, from the symbol tables of ELF
 * files of this machine's word size.
 * Called by: shake_place.c.
 * Locks: none; one thread.
 */
#include "shake_tool.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct file {
	const unsigned char *at;
	size_t size;
};

/* A part of the file, or NULL when the file does not have so many bytes. */
static const void *
part_of(const struct file *f, uint64_t from, uint64_t n, uint64_t size)
{
	if (from > f->size || size == 0 || n > (f->size - from) / size ||
	    from % 4 != 0)
		return NULL;
	return f->at + from;
}

/* The address that the file gives to its byte at offset; 0: none. */
static uint64_t
address_of(const struct file *f, const ElfW(Ehdr) *e, uint64_t offset)
{
	const ElfW(Phdr) *p = part_of(f, e->e_phoff, e->e_phnum, sizeof *p);

	for (unsigned i = 0; p != NULL && i < e->e_phnum; i++)
		if (p[i].p_type == PT_LOAD && offset >= p[i].p_offset &&
		    offset - p[i].p_offset < p[i].p_filesz)
			return offset - p[i].p_offset + p[i].p_vaddr;
	return 0;
}

/* The function at an address in the symbol table s, whose strings are in `in`:
   true if there is one. */
static bool
look_up(const struct file *f, const ElfW(Shdr) *s, const ElfW(Shdr) *in,
	uint64_t at, char *text, size_t size)
{
	const char *names = part_of(f, in->sh_offset & ~(uint64_t)3,
				    in->sh_size, 1);
	const ElfW(Sym) *y = part_of(f, s->sh_offset,
				     s->sh_size / sizeof *y, sizeof *y);

	if (names == NULL || y == NULL || in->sh_size == 0 ||
	    in->sh_offset + in->sh_size > f->size)
		return false;
	names = (const char *)f->at + in->sh_offset;
	for (size_t i = 0; i < s->sh_size / sizeof *y; i++) {
		if ((y[i].st_info & 15) != STT_FUNC || at < y[i].st_value ||
		    at - y[i].st_value >= y[i].st_size ||
		    y[i].st_name >= in->sh_size)
			continue;
		snprintf(text, size, "%.*s+0x%llx",
			 (int)strnlen(names + y[i].st_name,
				      in->sh_size - y[i].st_name),
			 names + y[i].st_name,
			 (unsigned long long)(at - y[i].st_value));
		return true;
	}
	return false;
}

static bool
function_at(const struct file *f, uint64_t offset, char *text, size_t size)
{
	const ElfW(Ehdr) *e = part_of(f, 0, 1, sizeof *e);
	const ElfW(Shdr) *s;
	uint64_t at;

	if (e == NULL || memcmp(e->e_ident, ELFMAG, SELFMAG) != 0 ||
	    e->e_ident[EI_CLASS] !=
	    (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32))
		return false;
	at = address_of(f, e, offset);
	snprintf(text, size, "+0x%llx", (unsigned long long)at);
	s = part_of(f, e->e_shoff, e->e_shnum, sizeof *s);
	for (unsigned i = 0; s != NULL && i < e->e_shnum; i++)
		if ((s[i].sh_type == SHT_SYMTAB || s[i].sh_type == SHT_DYNSYM) &&
		    s[i].sh_link < e->e_shnum &&
		    look_up(f, &s[i], &s[s[i].sh_link], at, text, size))
			return true;
	return at != 0;
}

void
symbol_text(const char *file, uint64_t offset, char *text, size_t size)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct file f = { NULL, 0 };
	struct stat st;
	void *at;

	snprintf(text, size, "+0x%llx", (unsigned long long)offset);
	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
		f.size = (size_t)st.st_size;
		at = mmap(NULL, f.size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (at != MAP_FAILED) {
			f.at = at;
			if (!function_at(&f, offset, text, size))
				snprintf(text, size, "+0x%llx",
					 (unsigned long long)offset);
			munmap(at, f.size);
		}
	}
	close(fd);
}
