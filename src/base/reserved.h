/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reserved fields at the end of a public struct.  They must be zero, so that a
 * later release may use them.
 */
#ifndef EVC_BASE_RESERVED_H
#define EVC_BASE_RESERVED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool
evc__reserved_is_zero(const uint64_t *room, size_t n)
{
	while (n > 0)
		if (room[--n] != 0)
			return false;
	return true;
}

/* room is the array itself, not a pointer. */
#define RESERVED_IS_ZERO(room) \
	evc__reserved_is_zero((room), sizeof(room) / sizeof((room)[0]))

#endif
