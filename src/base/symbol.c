/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Code addresses as text, for stacks in reports.  dladdr(3) takes a lock, which
 * a thread that hangs in dlopen holds for ever; so the module comes from
 * _dl_find_object, without a lock, and the function from the symbols that the
 * module exports.  Without the lock a module may be unloaded at any moment: its
 * memory is read by sync_peek, where missing memory is an error and no fault.
 * Called by: observe, for stacks in reports.
 * Locks: none.
 */
#include "base/stack.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include "base/proc.h"
#include "base/sync.h"
#include "base/text.h"

/* Symbols, or words of a hash table, copied at once. */
#define AT_ONCE 64
/* No table of an intact module is so large. */
#define TOO_MANY (UINT32_C(1) << 24)

#ifdef DLFO_STRUCT_HAS_EH_DBASE

/* Copy a whole object.  false: its memory cannot be read. */
static bool
peek_all(void *to, uintptr_t from, size_t n)
{
	return sync_peek(to, from, n) == (ssize_t)n;
}

static void
peek_text(char *to, size_t room, uintptr_t from)
{
	ssize_t n = sync_peek(to, from, room - 1);

	to[n > 0 ? n : 0] = '\0';
}

/* The tables of a module. */
struct module {
	uintptr_t bias; /* memory address less address in the file */
	uintptr_t names, symbols, hash; /* 0: missing */
	char path[128];
};

static bool
find_module(const void *frame, struct module *m)
{
	struct dl_find_object o;
	struct link_map map;
	ElfW(Dyn) d;
	uintptr_t at;

	memset(m, 0, sizeof *m);
	if (_dl_find_object((void *)(uintptr_t)frame, &o) != 0 ||
	    !peek_all(&map, (uintptr_t)o.dlfo_link_map, sizeof map))
		return false;
	m->bias = map.l_addr;
	peek_text(m->path, sizeof m->path, (uintptr_t)map.l_name);
	at = (uintptr_t)map.l_ld;
	for (; peek_all(&d, at, sizeof d) && d.d_tag != DT_NULL;
	     at += sizeof d) {
		/* The dynamic linker adds the bias on some machines only. */
		uintptr_t p = d.d_un.d_ptr + (d.d_un.d_ptr < m->bias ? m->bias :
								       0);

		if (d.d_tag == DT_GNU_HASH)
			m->hash = p;
		else if (d.d_tag == DT_SYMTAB)
			m->symbols = p;
		else if (d.d_tag == DT_STRTAB)
			m->names = p;
	}
	return true;
}

/* The number after the last symbol of the chain that has symbol i. */
static uint32_t
chain_end(uintptr_t chains, uint32_t offset, uint32_t i)
{
	uint32_t word;

	for (; i >= offset && i < TOO_MANY; i++)
		if (!peek_all(&word, chains + (i - offset) * sizeof word,
			      sizeof word) ||
		    (word & 1))
			return i + 1;
	return 0;
}

/* The symbols that the module exports: from *ret_first to before the result. */
static uint32_t
exported_symbols(const struct module *m, uint32_t *ret_first)
{
	struct {
		uint32_t n_buckets, offset, n_bloom, shift;
	} head;
	uint32_t bucket[AT_ONCE], i, k, n, last = 0;
	uintptr_t at = m->hash + sizeof head;

	if (m->hash == 0 || !peek_all(&head, m->hash, sizeof head) ||
	    head.n_buckets > TOO_MANY || head.n_bloom > TOO_MANY)
		return 0;
	at += head.n_bloom * sizeof(ElfW(Addr));
	for (i = 0; i < head.n_buckets; i += n) {
		n = head.n_buckets - i < AT_ONCE ? head.n_buckets - i : AT_ONCE;
		if (!peek_all(bucket, at + i * sizeof *bucket,
			      n * sizeof *bucket))
			return 0;
		for (k = 0; k < n; k++)
			last = bucket[k] > last ? bucket[k] : last;
	}
	*ret_first = head.offset;
	return chain_end(at + head.n_buckets * sizeof *bucket, head.offset,
			 last);
}

static bool
symbol_covers(const ElfW(Sym) *s, uintptr_t addr)
{
	/* 32-bit and 64-bit ELF have the same types. */
	unsigned type = ELF64_ST_TYPE(s->st_info);

	return (type == STT_FUNC || type == STT_GNU_IFUNC) &&
	       s->st_shndx != SHN_UNDEF && addr >= s->st_value &&
	       addr - s->st_value < s->st_size;
}

/* The name and start of the function at an address of the file.  false: not
   known.  Of several names, the first without "_" at its beginning. */
static bool
function_at(const struct module *m, uintptr_t addr, char *name, size_t room,
	    uintptr_t *ret_start)
{
	ElfW(Sym) s[AT_ONCE];
	uint32_t i, k, n, first = 0, end = exported_symbols(m, &first);
	bool found = false;

	for (i = first; i < end; i += n) {
		n = end - i < AT_ONCE ? end - i : AT_ONCE;
		if (!peek_all(s, m->symbols + i * sizeof *s, n * sizeof *s))
			break;
		for (k = 0; k < n; k++) {
			if (!symbol_covers(&s[k], addr))
				continue;
			found = true;
			*ret_start = s[k].st_value;
			peek_text(name, room, m->names + s[k].st_name);
			if (name[0] != '_')
				return true;
		}
	}
	return found;
}

static void
in_module(struct text *t, const void *frame)
{
	struct module m;
	const char *file;
	char name[96];
	uintptr_t addr, start;
	bool known;

	if (!find_module(frame, &m))
		return;
	/* The dynamic linker leaves the path of the program itself empty. */
	if (m.path[0] == '\0' && !evc__proc_program(m.path, sizeof m.path))
		evc__copy(m.path, sizeof m.path, program_invocation_name);
	file = strrchr(m.path, '/');
	file = file != NULL ? file + 1 : m.path;
	addr = (uintptr_t)frame - m.bias;
	known = function_at(&m, addr, name, sizeof name, &start);
	if (known)
		evc__text_fmt(t, "%s+%#zx (", name, (size_t)(addr - start));
	evc__text_fmt(t, "%s+%#zx%s", file, (size_t)addr, known ? ")" : "");
}
#else
static void
in_module(struct text *t, const void *frame)
{
	(void)t;
	(void)frame;
}
#endif

void
evc__stack_name(const void *frame, char *buf, size_t n)
{
	struct text t = evc__text_in(buf, n);

	in_module(&t, frame);
	if (t.len == 0)
		evc__text_fmt(&t, "%p", frame);
}
