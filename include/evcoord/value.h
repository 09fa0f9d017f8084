/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Values: the arguments and results of a cluster's functions.  Each is one
 * MessagePack value, made and read by a format.
 *
 *	evc_pack(&v, "[i {path:s size:U}]", 7, "/etc/motd", size);
 *	evc_unpack(&v, "[i {path:S}]", &number, &path, &path_len);
 *
 * A format describes one value (for evc_pack an empty format, "", makes nil).
 * Spaces and commas in it have no meaning.
 *
 *            evc_pack takes               evc_unpack fills
 *   n        nothing: nil                 nothing: the value must be nil
 *   b        int                          int *, 0 or 1
 *   i u      int, unsigned                int *, unsigned *
 *   I U      int64_t, uint64_t            int64_t *, uint64_t *
 *   d        double                       double *, of a whole number too
 *   s        const char *, NULL is nil    char *, size_t: copied there, with a
 *                                         0 byte; the text must fit
 *   S        const char *, size_t         const char **, size_t *
 *   B        const void *, size_t         const void **, size_t *
 *   v        const evc_value *            evc_value *
 *   *        -                            nothing: any value is accepted
 *   r        evc_remote *                 -
 *   R        evc_remote *const *, size_t: -
 *            an array of remotes
 *   w        const evc_per_worker *       evc_local **, in a function alone
 *   E        const evc_elements *:        - (evc_value_elements reads it)
 *            a vector
 *   [ ]      an array of the formats      the same; "..." before the ] says
 *            inside                       that there may be more elements
 *   { }      a map of KEY:TYPE; the KEY   the same; KEY?:TYPE may be missing,
 *            is a word, or % for a        then nothing is filled; entries that
 *            const char * argument        the format does not name are skipped
 *
 * The pointers that S, B and v fill point into the value that is read.  A whole
 * number that does not fit its type is refused, and so is a value of another
 * type than the format's.
 */
#ifndef EVCOORD_VALUE_H
#define EVCOORD_VALUE_H

#include <evcoord/types.h>

#include <stddef.h>

EVC_BEGIN_DECLS_

typedef struct evc_remote evc_remote;
typedef struct evc_per_worker evc_per_worker;
typedef struct evc_local evc_local;

enum {
	EVC_VALUE_DEPTH = 32 /* arrays and maps inside each other, at most */
};

/*
 * One whole MessagePack value; NULL, 0 stands for nil.  A value from evc_pack,
 * or from another call that returns one, is given back by evc_value_free.  The
 * memory of a value that the program made by other means stays the program's.
 */
typedef struct evc_value {
	const void *data;
	size_t size;
} evc_value;

/*
 * Elements of a vector, in the program's memory: n numbers, doubles or floats.
 * A vector is a value of many numbers that stand side by side as bytes; it may
 * be an argument, a result, a part of other values, or a variable: then its
 * elements are read and added to in their places (evc_vector_add).
 * A double becomes a float, and back, wherever the two kinds meet.
 */
typedef struct evc_elements {
	double *doubles;    /* the numbers here, and floats is NULL; calls that
			       set or add write nothing here */
	float *floats;      /* or here, and doubles is NULL; with n = 0 both may
			       be NULL */
	size_t n;           /* how many */
	size_t from;        /* the place of the first in the vector, 0 ...: the
			       others follow */
	const uint32_t *at; /* the place of each, in any order; NULL: they
			       follow each other, from `from` on */
	uint64_t reserved_[4]; /* 0 */
} evc_elements;

/* The type of a value: evc_value_type */
enum {
	EVC_VALUE_NIL = 1,
	EVC_VALUE_BOOL = 2,
	EVC_VALUE_INTEGER = 3,
	EVC_VALUE_DOUBLE = 4,
	EVC_VALUE_STRING = 5,
	EVC_VALUE_BINARY = 6,
	EVC_VALUE_ARRAY = 7,
	EVC_VALUE_MAP = 8,
	EVC_VALUE_REMOTE = 9,     /* an evc_remote stands for its result */
	EVC_VALUE_PER_WORKER = 10, /* an evc_per_worker */
	EVC_VALUE_VECTOR = 11      /* doubles or floats, as evc_elements */
};

/*
 * Make a value by a format.
 *
 * Thread:    any.
 * Ownership: *ret_value is the caller's, for evc_value_free; everything is
 *            copied.  A remote or a per-worker value is packed as a name, which
 *            keeps nothing alive: the remote or per-worker value must still
 *            exist when the packed value is scheduled or fetched.
 * Returns:   0; -EVC_INVALID_ARGUMENT for a wrong format, for one deeper than
 *            EVC_VALUE_DEPTH, for "v" with bytes that are no value, for "E"
 *            with elements that are not a whole vector (`from` is 0, `at` is
 *            NULL), and for NULL in place of a remote or of the bytes or
 *            remotes of a count that is not 0;
 *            -EVC_FAILED_PRECONDITION for a remote of a fork child's parent;
 *            -EVC_RESOURCE_EXHAUSTED.
 * Since:     0.1
 */
EVC_MUST_USE EVC_API evc_status
evc_pack(evc_value *ret_value, const char *format, ...);

/*
 * Read a value by a format.  Arguments that were filled before a mismatch stay
 * filled.
 *
 * Thread:    any.
 * Ownership: the pointers that S, B and v fill point into value.
 * Returns:   0; -EVC_INVALID_ARGUMENT when the value does not match (the text
 *            of evc_last_error says where) or when the format is wrong;
 *            -EVC_NOT_FOUND for a missing key; -EVC_OUT_OF_RANGE for a number
 *            or a text that does not fit; -EVC_RESOURCE_EXHAUSTED.
 * Since:     0.1
 */
EVC_API evc_status
evc_unpack(const evc_value *value, const char *format, ...);

/*
 * Free a value that evc_pack, or another call that returns a value, has made.
 *
 * Thread:    any.
 * Ownership: *value is nil afterwards; NULL and nil are fine.
 * Returns:   nothing.
 * Since:     0.1
 */
EVC_API void
evc_value_free(evc_value *value);

/*
 * A copy of a value.
 *
 * Thread:    any.
 * Ownership: *ret_value is the caller's, for evc_value_free.
 * Returns:   0; -EVC_INVALID_ARGUMENT when value is no valid value;
 *            -EVC_RESOURCE_EXHAUSTED.
 * Since:     0.1
 */
EVC_MUST_USE EVC_API evc_status
evc_value_copy(evc_value *ret_value, const evc_value *value);

/*
 * Are these bytes one whole value?  All lengths must stay inside, nothing may
 * follow the value, and it may be no deeper than EVC_VALUE_DEPTH.  For bytes
 * from other sources.
 *
 * Thread:    any.
 * Ownership: nothing changes hands.
 * Returns:   0; -EVC_INVALID_ARGUMENT, and evc_last_error says what and where.
 * Since:     0.1
 */
EVC_API evc_status
evc_value_check(const evc_value *value);

/*
 * The type of a value: of an array or a map, not of its elements.
 *
 * Thread:    any.
 * Ownership: nothing changes hands.
 * Returns:   EVC_VALUE_...; 0 for bytes that are no value.
 * Since:     0.1
 */
EVC_API unsigned
evc_value_type(const evc_value *value);

/*
 * The number of elements of an array or a vector, or of entries of a map.
 *
 * Thread:    any.
 * Ownership: nothing changes hands.
 * Returns:   the number; 0 for everything else.
 * Since:     0.1
 */
EVC_API size_t
evc_value_count(const evc_value *value);

/*
 * An element of an array; of a map, the value of an entry.  A walk by this call
 * takes time in proportion to the square of the number of elements; use
 * evc_value_next for that.
 *
 * Thread:    any.
 * Ownership: *ret_element points into value.
 * Returns:   0; -EVC_OUT_OF_RANGE past the end; -EVC_INVALID_ARGUMENT when
 *            value is neither an array nor a map.
 * Since:     0.1
 */
EVC_API evc_status
evc_value_at(const evc_value *value, size_t index, evc_value *ret_element);

/*
 * Walk an array or a map.  The caller sets *at to 0 before the first call, and
 * then leaves it to the library.
 *
 * Thread:    any.
 * Ownership: *ret_key (of a map; else nil) and *ret_element point into value;
 *            ret_key and ret_element may be NULL.
 * Returns:   true with the next element; false at the end, and when value is
 *            neither an array nor a map.
 * Since:     0.1
 */
EVC_API bool
evc_value_next(const evc_value *value, size_t *at, evc_value *ret_key,
	       evc_value *ret_element);

/*
 * Copy elements of a vector: of a range, or those at `at`.
 *
 * Thread:    any.
 * Ownership: the numbers are copied to to->doubles or to->floats.
 * Returns:   0; -EVC_INVALID_ARGUMENT when the value is no vector, or `to` is
 *            wrong; -EVC_OUT_OF_RANGE when the vector has no element at some of
 *            the places, and nothing is copied.
 * Since:     0.2
 */
EVC_API evc_status
evc_value_elements(const evc_value *vector, const evc_elements *to);

/*
 * Write a value as text, as JSON where that can be, for logs and for people.
 *
 * Thread:    any.
 * Ownership: nothing changes hands.
 * Returns:   the length of the whole text, even if less fitted: then buf has
 *            the beginning, ended by a 0 byte, without half of a character.
 * Since:     0.1
 */
EVC_API size_t
evc_value_print(const evc_value *value, char *buf, size_t n);

EVC_END_DECLS_

#endif
