/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An array that grows.  Its owner has a pointer, a number of elements, and the
 * number of elements that the memory has room for (size_t); all are 0 before
 * the first use.  The memory is for sync_free.
 */
#ifndef EVC_BASE_ARRAY_H
#define EVC_BASE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>

/* Move the n elements of the array at *array to more memory, for `more`
   elements behind them at least.  false: no memory, and the array is as
   before. */
bool evc__array_grow(void *array, size_t size, size_t n, size_t more,
		     size_t *room);

/* Make room for `more` elements behind the first n.  false: no memory, and the
   array is as before. */
#define ARRAY_RESERVE(at, n, room, more) \
	((more) <= (room) - (n) || \
	 evc__array_grow(&(at), sizeof *(at), (n), (more), &(room)))

#endif
