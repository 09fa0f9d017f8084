/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A walk over MessagePack bytes, without trust: heads are read, each length is
 * checked against the bytes that are left, nothing is allocated.  Every reader
 * of this library reads in this way.
 *
 * PURE: bytes in, numbers out.
 */
#ifndef EVC_CLUSTER_WALK_H
#define EVC_CLUSTER_WALK_H

#include <evcoord/value.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A remote or a per-worker value inside a value: an extension of 12 bytes, the
   cluster's serial and the id, both in network order. */
#define EXT_REMOTE 0x45
#define EXT_PER_WORKER 0x46
#define EXT_SIZE 12
/* A vector: doubles or floats side by side, the lowest byte first. */
#define EXT_DOUBLES 0x47
#define EXT_FLOATS 0x48
#define REF_BYTES 15 /* head (ext8, length, type) and the 12 bytes */

struct walk_ref {
	bool per_worker; /* else a remote */
	uint32_t serial;
	uint64_t id;
	size_t at, size; /* place of the bytes in the value */
};

/* Check that n bytes are one whole value; a value of no bytes is nil.  `ref`
   (may be NULL) is called for each reference; false ends the walk with 0.
   Returns 0, or -EVC_INVALID_ARGUMENT with a text (evc_refuse). */
evc_status evc__value_walk(const void *bytes, size_t n,
			   bool (*ref)(const struct walk_ref *r, void *arg),
			   void *arg);

/* Write the 15 bytes of a reference. */
void evc__walk_put_ref(unsigned char *to, bool per_worker, uint32_t serial,
		       uint64_t id);

/* A copy of a checked value with other values in the places of its remotes.
   `resolve` gives the value of a remote, with bytes that stay during the call;
   false leaves the remote. 0; -EVC_RESOURCE_EXHAUSTED; -EVC_INVALID_ARGUMENT:
   the result would be too deep. */
evc_status evc__walk_splice(const evc_value *value,
			    bool (*resolve)(const struct walk_ref *r,
					    evc_value *ret, void *arg),
			    void *arg, evc_value *ret_value);

/* The numbers that stand for a remote and a per-worker value, from their owner.
   remote: 0, or a refusal without a text: -EVC_RESOURCE_EXHAUSTED, no memory;
   -EVC_FAILED_PRECONDITION, a remote of a fork child's parent. */
struct pack_refs {
	evc_status (*remote)(evc_remote *r, uint32_t *ret_serial,
			     uint64_t *ret_id);
	void (*per_worker)(const evc_per_worker *p, uint32_t *ret_serial,
			   uint64_t *ret_id);
};

/* evc_unpack and evc_pack with more to say. local: the object for a per-worker
   value ("w"); NULL: "w" is refused. */
struct unpack_env {
	bool (*local)(const struct walk_ref *r, evc_local **ret, void *arg);
	void *arg;
};
evc_status evc__unpack(const evc_value *value, const struct unpack_env *env,
		       const char *format, va_list ap);
struct spare;
/* refs: for "r", "R" and "w"; NULL: all are refused. spare: memory for a large
   value; NULL: new memory alone. */
evc_status evc__pack(evc_value *ret_value, const struct pack_refs *refs,
		     struct spare *spare, const char *format, va_list ap);

#endif
