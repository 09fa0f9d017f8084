/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An array that grows: the memory doubles, so each element is moved once or
 * twice in all.
 * Called by: each room that keeps a list of unknown length.
 * Locks: none; the owner of the array has one if need be.
 */
#include "base/array.h"

#include "base/sync.h"

/* The first memory: so many bytes, but a few elements in any case. */
#define FIRST_BYTES 256
#define FIRST_LEAST 8

bool
evc__array_grow(void *array, size_t size, size_t n, size_t more, size_t *room)
{
	size_t most = PTRDIFF_MAX / size, want = FIRST_LEAST;
	void *old, *new;

	if (n > most || more > most - n)
		return false;
	if (*room > 0)
		want = *room <= most / 2 ? *room * 2 : most;
	else if (FIRST_BYTES / size > want)
		want = FIRST_BYTES / size;
	if (want < n + more)
		want = n + more;
	new = sync_alloc(want, size);
	if (new == NULL)
		return false;
	/* The pointer may be of any type, so its bytes are copied. */
	memcpy(&old, array, sizeof old);
	if (n > 0)
		memcpy(new, old, n * size);
	memcpy(array, &new, sizeof new);
	sync_free(old);
	*room = want;
	return true;
}
