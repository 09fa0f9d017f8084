/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Allocations, counted: the program brings malloc and its kin itself and
 * hands every call on to the C library's, so what libevcoord and libev take
 * is seen as well.  Sanitizers bring their own malloc, and other C libraries
 * have no second name for theirs; there nothing is counted.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <stdio.h>
#include <unistd.h>

#include "bench.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#endif

#if defined(__GLIBC__) && !defined(SANITIZED)
#define COUNTED 1
#include <malloc.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void *p);

static uint64_t n_allocs;
/* Off until somebody asks: threads that allocate side by side would share the
   line of the count, and slow down what is measured there. */
static bool counting;

static void
count(void)
{
	if (__atomic_load_n(&counting, __ATOMIC_RELAXED))
		__atomic_fetch_add(&n_allocs, 1, __ATOMIC_RELAXED);
}

void *
malloc(size_t size)
{
	count();
	return __libc_malloc(size);
}

void *
calloc(size_t n, size_t size)
{
	count();
	return __libc_calloc(n, size);
}

void *
realloc(void *p, size_t size)
{
	count();
	return __libc_realloc(p, size);
}

void *
memalign(size_t alignment, size_t size)
{
	count();
	return __libc_memalign(alignment, size);
}

void *
aligned_alloc(size_t alignment, size_t size)
{
	count();
	return __libc_memalign(alignment, size);
}

int
posix_memalign(void **ret, size_t alignment, size_t size)
{
	void *p;

	if (alignment < sizeof(void *) || (alignment & (alignment - 1)))
		return EINVAL;
	count();
	p = __libc_memalign(alignment, size);
	if (!p)
		return ENOMEM;
	*ret = p;
	return 0;
}

void
free(void *p)
{
	__libc_free(p);
}
#endif

bool
bench_alloc_counted(void)
{
#ifdef COUNTED
	return true;
#else
	return false;
#endif
}

uint64_t
bench_allocs(void)
{
#ifdef COUNTED
	__atomic_store_n(&counting, true, __ATOMIC_RELAXED);
	return __atomic_load_n(&n_allocs, __ATOMIC_RELAXED);
#else
	return 0;
#endif
}

uint64_t
bench_heap_bytes(void)
{
#ifdef COUNTED
	struct mallinfo2 m = mallinfo2();

	return (uint64_t)m.uordblks + (uint64_t)m.hblkhd;
#else
	return 0;
#endif
}

uint64_t
bench_mapped_bytes(void)
{
	char text[128];
	int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	ssize_t got;

	/* No stdio: it would allocate between two looks. */
	if (fd < 0)
		bench_must_sys(errno, "/proc/self/statm");
	got = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (got <= 0)
		bench_must_sys(EIO, "/proc/self/statm");
	text[got] = '\0';
	return strtoull(text, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}
